/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liburoce: an RDMA engine inside a DPDK program (uroced is such a program).
 *
 *	rte_eal_init(...)
 *	port = ethdev_open(...)			or NULL: this host only; see drivers/
 *	e = uroce_create(&options, why, sizeof(why))
 *	uroce_register(e)			libibverbs.so.1 of this process now lists its device
 *	for (;;) { uroce_poll(e, 0); ... }	or uroce_start(e): launches options.lcore_ids
 *	ibv_get_device_list() ...		verbs as usual, from any thread
 *	uroce_stop(e), uroce_destroy(e)
 *
 * Several engines can live in one process. Each has a control thread of its own. It serves the
 * socket (if the program asks for one) and follows neighbours, addresses and the deaths of clients.
 *
 * Threads: the program calls uroce_create(), uroce_start(), uroce_stop(), uroce_register() and
 * uroce_destroy() for one engine one after the other, never two of them at the same time. The
 * others may run at any time between uroce_create() and uroce_destroy().
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
	uint8_t octet[16]; /* IPv6, or IPv4 as ::ffff:a.b.c.d; network order */
	uint8_t prefix; /* bits: 0..32 for IPv4, 0..128 for IPv6 */
};

/*
 * All zero is a valid start, except that `lcores` is at least 1 and that `socket_gid` is -1 for
 * "leave the group". The engine copies what it needs: the strings and the struct itself may go
 * after uroce_create().
 */
struct uroce_options {
	/* Name of the device, at most 31 characters. NULL: "uroce0". */
	const char *name;
	/*
	 * The port, from drivers/ or the program's own (drivers/port.h). It has 1 .. 16 queues. The
	 * engine owns it once uroce_create() succeeds, and closes it. NULL: this host only.
	 */
	struct port *port;
	/* Polling threads of the engine, 1 .. 16. They are numbered from 0. */
	uint32_t lcores;
	/* EAL lcores that uroce_start() launches, one for each of `lcores`. */
	unsigned int lcore_ids[16];
	/*
	 * Own addresses, at most 16. 0: those of the port, or without a port those of this host,
	 * which the engine follows when they change.
	 */
	uint32_t addresses;
	struct uroce_address address[16];
	/* Next hops outside of the prefixes, at most 2. */
	uint32_t gateways;
	struct uroce_address gateway[2];
	/* 802.1Q VLAN id, 1 .. 4094. 0: untagged. */
	uint16_t vlan;
	/* Ethernet MTU in octets, at most the port's. 0: the port's, or 4200 without a port. */
	uint16_t mtu;
	/* Idle lcores sleep. uroce_start() only. */
	bool adaptive;
	/* Computes and checks the ICRC of frames that never leave the engine, too. */
	bool sum_loop;
	/* Path of the UNIX socket for other programs, at most 99 octets. NULL: no socket. */
	const char *socket_path;
	/* Mode of the socket (chmod(2)). 0: 0600. */
	uint32_t socket_mode;
	/* Group of the socket (chown(2)). -1: unchanged. */
	int64_t socket_gid;
	/*
	 * Packet buffers, which stay the caller's and outlive the engine. Each holds a whole frame
	 * of the port. NULL: the engine creates a pool of `pool_size` buffers (0: a default that
	 * grows with `lcores`).
	 */
	struct rte_mempool *pool;
	uint32_t pool_size;
	/* Seconds without a client after which uroce_idle_expired() returns true. 0: never. */
	uint32_t exit_when_idle;
};

/*
 * Creates an engine and its control thread. If there is a socket, programs can connect to it when
 * this returns; data moves once the lcores are polled (uroce_start() or uroce_poll()).
 *
 * EAL must be initialised. The port must not be used by anybody else meanwhile. `why` has room for
 * `why_size` octets, at least 1; 256 are enough. A longer message is cut.
 *
 * Returns the engine, which uroce_destroy() frees. On failure it returns NULL, writes one line
 * about the cause into `why`, and the port stays the caller's. Causes: an option out of range; an
 * MTU that is too small for RoCE or exceeds the port's; no memory for buffers (EAL -m); no file
 * descriptors left (ulimit -n); a socket that another engine serves or that cannot be created; no
 * kernel neighbour table for a port that shares the kernel's interface.
 */
UROCE_API struct uroce_engine *uroce_create(const struct uroce_options *options, char *why,
					    size_t why_size);
/*
 * Launches a polling thread on each of options.lcore_ids. A worker lcore runs it as its EAL task;
 * for the main EAL lcore the engine creates a thread on that lcore's CPUs, so that the caller goes
 * on.
 *
 * Returns 0, or a positive errno, and then no lcore runs: EALREADY (it was started already), EBUSY
 * (a worker lcore has a task), or what pthread_create(3) returns. An engine can be started again
 * after uroce_stop().
 */
UROCE_API int uroce_start(struct uroce_engine *e);
/*
 * Ends the threads of uroce_start() and waits for them. The clients' libraries learn that the
 * engine is gone and flush their queues. Does nothing if the engine was not started.
 */
UROCE_API void uroce_stop(struct uroce_engine *e);
/*
 * Stops the engine, disconnects its clients, closes the port and frees everything. No thread may be
 * in uroce_poll() or in a verbs call of this engine's device, and the program has closed its own
 * contexts of the device. It may wait for a moment for copies of clients' memory; what still hangs
 * then is not freed. NULL is allowed.
 */
UROCE_API void uroce_destroy(struct uroce_engine *e);

/*
 * Does one round of the work of one lcore (0 .. options.lcores - 1) in the caller's thread: for
 * programs with a loop of their own, instead of uroce_start(). Any thread may call it, but only one
 * at a time for each lcore; a call that finds another one in progress does nothing and returns 0.
 *
 * Returns how much there was to do, in no particular unit. 0: the lcore was idle.
 */
UROCE_API uint32_t uroce_poll(struct uroce_engine *e, uint32_t lcore);

/*
 * Adds the device to ibv_get_device_list() of this process, until uroce_destroy().
 *
 * Returns 0, or a positive errno: EEXIST (another engine of this process has the name), ENOENT
 * (this process has no libibverbs.so.1, or one that is not uroce's). A device of an engine in
 * another process that has the same name is listed under a name with a number.
 */
UROCE_API int uroce_register(struct uroce_engine *e);

/* Changes options.adaptive while lcores run. Any thread. */
UROCE_API void uroce_set_adaptive(struct uroce_engine *e, bool adaptive);
/* True once options.exit_when_idle seconds have passed without a client. Any thread. */
UROCE_API bool uroce_idle_expired(const struct uroce_engine *e);
/*
 * Reads the counters since uroce_create(). Fills the numbers of *out and leaves out->h zero. Lcores
 * count meanwhile, so the numbers are of nearly the same instant. Any thread, but not from a burst
 * function of the port.
 */
UROCE_API void uroce_statistics(struct uroce_engine *e, struct reply_statistics *out);
/*
 * Writes the device's name, addresses and MTU as one line for people, cut to `size` octets. Threads
 * as for uroce_statistics().
 */
UROCE_API void uroce_describe(const struct uroce_engine *e, char *text, size_t size);

#endif
