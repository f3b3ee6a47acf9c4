/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liburoce: an RDMA engine inside a DPDK program (or inside uroced, which is one).
 *
 *	rte_eal_init(...)
 *	port = ethdev_open(...)			or NULL: same host only; see drivers/
 *	e = uroce_create(&options, why, sizeof(why))
 *	uroce_register(e)			libibverbs.so.1 of this process now lists its device
 *	for (;;) { uroce_poll(e, 0); ... }	or uroce_start(e): launches options.lcore_ids
 *	ibv_get_device_list() ...		verbs as usual, from any thread
 *	uroce_stop(e), uroce_destroy(e)
 *
 * Several engines can live in one process. A control thread of the engine's own serves the socket
 * (if one is asked for), neighbours, addresses and deaths of clients.
 */
#ifndef ENGINE_UROCE_H
#define ENGINE_UROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UROCE_API __attribute__((visibility("default")))

struct port;
struct rte_mempool;
struct uroce_engine;
struct rte_mbuf;
struct reply_statistics; /* protocol/command.h */

struct uroce_address {
	uint8_t octet[16]; /* IPv6, or ::ffff:a.b.c.d */
	uint8_t prefix; /* bits: 0..32 for IPv4, 0..128 for IPv6 */
};

struct uroce_options {
	const char *name; /* device name; NULL: "uroce0" */
	struct port *port; /* becomes the engine's; NULL: same host only */
	uint32_t lcores; /* 1 .. 16 */
	unsigned int lcore_ids
		[16]; /* EAL lcores that uroce_start launches; not looked at by uroce_poll */
	uint32_t addresses; /* 0: those of the port, or of the host where there is no port */
	struct uroce_address address[16];
	uint32_t gateways;
	struct uroce_address gateway[2];
	uint16_t vlan; /* 0: untagged */
	uint16_t mtu; /* Ethernet MTU; 0: the port's; 4200 without a port */
	bool adaptive; /* sleep when idle (uroce_start only) */
	bool sum_loop; /* ICRC also for frames that never leave the engine */
	const char *socket_path; /* NULL: no attached clients */
	uint32_t socket_mode; /* 0: 0600 */
	int64_t socket_gid; /* -1: unchanged */
	struct rte_mempool *pool; /* of packet buffers; NULL: the engine makes one */
	uint32_t pool_size; /* buffers, when it makes one; 0: a default */
	uint32_t
		exit_when_idle; /* seconds without a client after which uroce_idle_expired() says so; 0: never */
};

/* NULL: `why` says in one line which option is wrong or what is missing. Control thread only. */
UROCE_API struct uroce_engine *uroce_create(const struct uroce_options *options, char *why,
					    size_t why_size);
/* Launches the polling threads on options.lcore_ids (EAL workers, or the main lcore last). 0 or an errno. */
UROCE_API int uroce_start(struct uroce_engine *e);
/* Ends the polling threads; clients are told. */
UROCE_API void uroce_stop(struct uroce_engine *e);
UROCE_API void uroce_destroy(struct uroce_engine *e);

/*
 * Everything that engine lcore does, once, in the caller's thread: for programs with a loop of
 * their own. One thread at a time per lcore index. Returns how much there was to do (0: idle).
 */
UROCE_API uint32_t uroce_poll(struct uroce_engine *e, uint32_t lcore);

/*
 * Makes the device visible to ibv_get_device_list() of this process. 0, or EEXIST: another engine of
 * it has this name; ENOENT: the libibverbs.so.1 of this process is not uroce's, or there is none.
 * The device of an engine outside of the process is numbered, should it have the same name.
 */
UROCE_API int uroce_register(struct uroce_engine *e);

/* True once exit_when_idle seconds have passed without a client. Any thread. */
UROCE_API bool uroce_idle_expired(const struct uroce_engine *e);
/* Counters since the start; only the numbers of *out are filled. Any thread. */
UROCE_API void uroce_statistics(struct uroce_engine *e, struct reply_statistics *out);
/* The device's name, addresses and MTU in one line for people. */
UROCE_API void uroce_describe(const struct uroce_engine *e, char *text, size_t size);

#endif
