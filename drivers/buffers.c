/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "base/bits.h"
#include "config/limits.h"
#include "drivers/buffers.h"
#include "drivers/port.h"

#define HUGE_PAGE ((size_t)2 << 20)

static void give_back(struct rte_mempool_memhdr *part, void *length)
{
	munmap(part->addr, (size_t)(uintptr_t)length);
}

/* NULL: errno says why. Begins where a huge page may. */
static void *map_aligned(size_t length)
{
	uint8_t *all, *start;

	all = mmap(NULL, length + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	start = (uint8_t *)(uintptr_t)round_up((uintptr_t)all, HUGE_PAGE);
	if (start > all)
		munmap(all, (size_t)(start - all));
	munmap(start + length, HUGE_PAGE - (size_t)(start - all));
	/* A kernel without transparent huge pages refuses; then there are small ones. */
	(void)madvise(start, length, MADV_HUGEPAGE);
	/* No child needs them: the engine's processes send no packets. */
	(void)madvise(start, length, MADV_DONTFORK);
	(void)madvise(start, length, MADV_DONTDUMP);
	return start;
}

/* The number of buffers that have memory now, or -errno. */
static int fill(struct rte_mempool *pool, uint32_t n)
{
	size_t each = pool->header_size + pool->elt_size + pool->trailer_size;
	size_t length = round_up(n * each + RTE_MEMPOOL_ALIGN, HUGE_PAGE);
	char *memory = map_aligned(length);
	int filled;

	if (memory == NULL)
		return -errno;
	filled = rte_mempool_populate_virt(pool, memory, length, HUGE_PAGE, give_back,
					   (void *)(uintptr_t)length);
	if (filled <= 0)
		munmap(memory, length);
	return filled;
}

/*
 * Without hugetlbfs the EAL's memory is a file in memory, which has no transparent huge pages on most systems: DPDK
 * writes to each buffer when it makes a pool, so 8,192 buffers take 8,192 page faults. Private memory may have huge pages.
 * No device reads it, so no buffer needs to stay within a page: two of 2,240 octets would take two pages.
 */
struct rte_mempool *buffers_make_private(const char *name, uint32_t n, uint32_t cache,
					 uint16_t room, unsigned int flags)
{
	struct rte_pktmbuf_pool_private facts = { .mbuf_data_room_size = room };
	struct rte_mempool *pool;
	int filled;

	pool = rte_mempool_create_empty(name, n, (uint32_t)sizeof(struct rte_mbuf) + room, cache,
					sizeof(facts), SOCKET_ID_ANY,
					flags | RTE_MEMPOOL_F_NO_IOVA_CONTIG);
	if (pool == NULL)
		return NULL;
	filled = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	if (filled == 0) {
		rte_pktmbuf_pool_init(pool, &facts);
		filled = fill(pool, n);
	}
	if (filled < (int)n) {
		rte_mempool_free(pool);
		rte_errno = filled < 0 ? -filled : ENOMEM;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

bool buffers_may_be_private(bool any)
{
	return any && !rte_eal_has_hugepages();
}

bool buffers_are_private(const struct port *port)
{
	return buffers_may_be_private(port == NULL || port->any_buffer);
}

struct rte_mempool *buffers_make(const char *name, uint32_t n, uint16_t room,
				 const struct port *port)
{
	if (buffers_are_private(port))
		return buffers_make_private(name, n, LIMIT_POOL_CACHE, room, 0);
	return rte_pktmbuf_pool_create(name, n, LIMIT_POOL_CACHE, 0, room,
				       port != NULL ? port->socket : SOCKET_ID_ANY);
}
