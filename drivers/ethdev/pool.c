/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_af_xdp gives the kernel the pool's memory as one array of equal buffers. An ordinary pool
 * leaves a gap where a buffer would cross a page, so the array ends before the pool does. The
 * kernel would then neither receive into nor send from the last buffers.
 */
#include <string.h>

#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>

#include "base/bits.h"
#include "drivers/buffers.h"
#include "drivers/ethdev/private.h"
#include "drivers/xdp/xdp.h"

#define XDP_KEPT 4096u /* buffers for each queue: a fill ring and a tx ring of net_af_xdp */
#define CHUNK_LEAST \
	2048u /* AF_XDP's smallest buffer; the largest is a page, so none is made longer */
#define NO_GAPS (RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NO_SPREAD)

uint32_t xdp_buffer_octets(uint16_t mtu)
{
	uint32_t octets = XDP_HEADROOM + ethdev_mbuf_octets(MIN_OF(mtu, (uint16_t)XDP_MTU));

	return MAX_OF(octets, CHUNK_LEAST);
}

bool pool_is_dense(const struct rte_mempool *pool)
{
	return (pool->flags & RTE_MEMPOOL_F_NO_IOVA_CONTIG) != 0 && pool->nb_mem_chunks == 1;
}

struct rte_mempool *pool_for_xdp(const char *name, uint32_t n, uint32_t queues, uint32_t cache,
				 uint16_t room, int socket)
{
	struct rte_pktmbuf_pool_private private = { .mbuf_data_room_size = room };
	struct rte_mempool *pool;

	n += XDP_KEPT * queues;
	if (buffers_may_be_private(true))
		return buffers_make_private(name, n, cache, room, NO_GAPS);
	pool = rte_mempool_create_empty(name, n, (uint32_t)sizeof(struct rte_mbuf) + room, cache,
					sizeof(private), socket, NO_GAPS);
	if (pool == NULL)
		return NULL;
	rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
	rte_pktmbuf_pool_init(pool, &private);
	if (rte_mempool_populate_default(pool) < 0 || !pool_is_dense(pool)) {
		rte_mempool_free(pool);
		rte_errno = ENOMEM;
		return NULL;
	}
	rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
	return pool;
}

/* Takes memory of that node if DPDK has some there, otherwise of any. */
static struct rte_mempool *ordinary_pool(const char *name, uint32_t n, uint32_t cache,
					 uint16_t room, int socket)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, n, cache, 0, room, socket);

	if (pool == NULL && socket != SOCKET_ID_ANY)
		pool = rte_pktmbuf_pool_create(name, n, cache, 0, room, SOCKET_ID_ANY);
	return pool;
}

/* False: there is no such port. */
static bool find_port(const char *name, uint16_t *id, struct rte_eth_dev_info *info)
{
	if (rte_eth_dev_get_port_by_name(name, id) != 0 || rte_eth_dev_info_get(*id, info) != 0)
		return false;
	ethdev_behind(id, info);
	return true;
}

bool ethdev_pool_is_private(const char *port)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	return find_port(port, &id, &info) &&
	       buffers_may_be_private(ethdev_takes_any_buffer(&info));
}

struct rte_mempool *ethdev_pool(const char *port, const char *name, uint32_t n, uint32_t cache,
				uint16_t room)
{
	struct rte_eth_dev_info info;
	uint16_t id;

	if (!find_port(port, &id, &info))
		return ordinary_pool(name, n, cache, room, SOCKET_ID_ANY);
	if (strcmp(info.driver_name, "net_af_xdp") == 0)
		return pool_for_xdp(name, n, info.max_rx_queues, cache, room, SOCKET_ID_ANY);
	if (buffers_may_be_private(ethdev_takes_any_buffer(&info)))
		return buffers_make_private(name, n, cache, room, 0);
	return ordinary_pool(name, n, cache, room, rte_eth_dev_socket_id(id));
}
