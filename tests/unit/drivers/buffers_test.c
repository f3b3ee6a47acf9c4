/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet buffers of an engine: without hugetlbfs they are in private memory, unless its port needs the EAL's. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_memory.h>

#include "base/bits.h"
#include "drivers/buffers.h"
#include "drivers/port.h"

#define BUFFERS 1023u
#define ROOM	4480u

static void begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"buffers_test", (char *)"--no-huge", (char *)"--no-shconf",
			      (char *)"--no-pci",     (char *)"-m",	   (char *)"16",
			      (char *)"-l",	      (char *)"0",	   prefix };

	snprintf(prefix, sizeof(prefix), "--file-prefix=buffers_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
}

static void end(void)
{
	char folder[256];

	snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	rmdir(folder);
}

TestSuite(buffers, .init = begin, .fini = end, .timeout = 60);

/* Whether the mapping that has `address` has this flag in /proc/self/smaps (proc(5), VmFlags). */
static bool has_flag(const void *address, const char *flag)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	char line[512];
	bool here = false, found = false;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)address >= from && (uintptr_t)address < to;
		else if (here && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

static bool has_huge_pages(void)
{
	return access("/sys/kernel/mm/transparent_hugepage/enabled", F_OK) == 0;
}

/* Each of the buffers can be taken, filled and given back; there is none more. */
static void use_all(struct rte_mempool *pool)
{
	struct rte_mbuf *m[BUFFERS];

	cr_assert_eq(rte_mempool_avail_count(pool), BUFFERS);
	for (uint32_t i = 0; i < BUFFERS; i++) {
		m[i] = rte_pktmbuf_alloc(pool);
		cr_assert_not_null(m[i], "buffer %u", i);
		cr_assert_eq(rte_pktmbuf_data_room_size(pool), ROOM);
		cr_assert_eq(rte_pktmbuf_tailroom(m[i]), ROOM - RTE_PKTMBUF_HEADROOM);
		memset(rte_pktmbuf_append(m[i], ROOM - RTE_PKTMBUF_HEADROOM), (int)i,
		       ROOM - RTE_PKTMBUF_HEADROOM);
	}
	cr_assert_null(rte_pktmbuf_alloc(pool));
	for (uint32_t i = 0; i < BUFFERS; i++) {
		const uint8_t *data = rte_pktmbuf_mtod(m[i], const uint8_t *);

		cr_assert_eq(data[0], (uint8_t)i, "another buffer overlaps buffer %u", i);
		cr_assert_eq(data[ROOM - RTE_PKTMBUF_HEADROOM - 1], (uint8_t)i);
		rte_pktmbuf_free(m[i]);
	}
	cr_assert_eq(rte_mempool_avail_count(pool), BUFFERS);
}

static void expect_private(const struct port *port)
{
	struct rte_mempool *pool = buffers_make("private", BUFFERS, ROOM, port);
	struct rte_mbuf *m;

	cr_assert_not_null(pool, "%s", rte_strerror(rte_errno));
	use_all(pool);
	m = rte_pktmbuf_alloc(pool);
	cr_assert_null(rte_mem_virt2memseg(m, NULL), "it is the EAL's memory");
	cr_assert_eq(has_flag(m, " hg"), has_huge_pages());
	cr_assert(has_flag(m, " dc"), "children get them");
	cr_assert(has_flag(m, " dd"), "core files get them");
	rte_pktmbuf_free(m);
	rte_mempool_free(pool);
	cr_assert_null(rte_mempool_lookup("private"));
}

Test(buffers, without_a_port_are_in_private_memory)
{
	expect_private(NULL);
}

Test(buffers, of_a_port_that_takes_any_are_in_private_memory)
{
	static const struct port port = { .socket = SOCKET_ID_ANY, .any_buffer = true };

	expect_private(&port);
}

/* The pool of --netdev has them: a page has room for one and a half. */
Test(buffers, in_private_memory_follow_each_other)
{
	struct rte_mempool *pool = buffers_make_private("dense", 4095, 0, 2240, 0);

	cr_assert_not_null(pool, "%s", rte_strerror(rte_errno));
	cr_expect_eq(rte_mempool_avail_count(pool), 4095);
	cr_expect_eq(pool->nb_mem_chunks, 1);
	rte_mempool_free(pool);
}

/* Drivers tell their peers of the EAL's memory only. */
Test(buffers, of_another_port_are_in_the_memory_of_the_eal)
{
	static const struct port port = { .socket = SOCKET_ID_ANY };
	struct rte_mempool *pool = buffers_make("shared", BUFFERS, ROOM, &port);
	struct rte_mbuf *m;

	cr_assert_not_null(pool, "%s", rte_strerror(rte_errno));
	use_all(pool);
	m = rte_pktmbuf_alloc(pool);
	cr_assert_not_null(rte_mem_virt2memseg(m, NULL), "a driver cannot tell its peer of it");
	rte_pktmbuf_free(m);
	rte_mempool_free(pool);
}

/* Pages that malloc() may take in the meantime, far fewer than a pool or the rest of its first huge page has. */
#define OF_MALLOC 64ul

static unsigned long mapped_pages(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	cr_assert(f != NULL && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages;
}

/* All memory goes back when the pool is freed, and when there is not enough for it. */
Test(buffers, leave_nothing_behind)
{
	struct rte_mempool *pool = buffers_make("first", BUFFERS, ROOM, NULL);
	struct rlimit all, few;
	unsigned long before;

	rte_mempool_free(pool);
	before = mapped_pages();
	pool = buffers_make("again", BUFFERS, ROOM, NULL);
	cr_assert_gt(mapped_pages(), before + BUFFERS);
	rte_mempool_free(pool);
	cr_assert_lt(mapped_pages(), before + OF_MALLOC);
	cr_assert_eq(getrlimit(RLIMIT_AS, &all), 0);
	few = all;
	few.rlim_cur = before * (unsigned long)sysconf(_SC_PAGESIZE) + (1 << 20);
	cr_assert_eq(setrlimit(RLIMIT_AS, &few), 0);
	pool = buffers_make("too large", BUFFERS, ROOM, NULL);
	cr_expect_eq(rte_errno, ENOMEM);
	cr_assert_eq(setrlimit(RLIMIT_AS, &all), 0);
	cr_assert_null(pool);
	cr_assert_null(rte_mempool_lookup("too large"));
	cr_assert_lt(mapped_pages(), before + OF_MALLOC);
}
