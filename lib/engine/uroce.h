/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * liburoce: an RDMA engine inside a DPDK program.
 *
 *	rte_eal_init(...)
 *	port = uroce_port_open(...)		or uroce_port_handed(...), or NULL: this host only
 *	e = uroce_create(&options, why, sizeof(why))
 *	uroce_register(e)			libibverbs.so.1 of this process now lists its device
 *	for (;;) { uroce_poll(e, 0); ... }	or uroce_start(e), or uroce_service(e, 0, &id)
 *	ibv_get_device_list() ...		verbs as usual, from any thread
 *	uroce_destroy(e)
 *
 * Several engines can live in one process. Each has a control thread of its own. It serves the
 * socket (if the program asks for one) and follows neighbours, addresses and the deaths of clients.
 *
 * Structs that a program fills begin with `size`, which is sizeof of that struct. So a program that
 * was compiled with an older header works with a newer library, and what it does not know is zero.
 *
 * Errors are positive errnos, except where a function says otherwise. A function that has `why`
 * writes one line there about the cause, cut to `why_size` octets (at least 1; 256 are enough). A
 * call in the wrong order, in the wrong thread or with an engine that is gone returns an error.
 *
 * Threads: one thread at a time may create, start, stop, register or destroy an engine; a second one
 * gets EBUSY. All other functions may run at any time in any thread, where nothing else is said.
 */
#ifndef UROCE_H
#define UROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UROCE_API __attribute__((visibility("default")))

/* The most polling threads of an engine, and queues of a port. */
#define UROCE_LCORES	16
/* The most own addresses of an engine. */
#define UROCE_ADDRESSES 16
/* The most next hops. */
#define UROCE_GATEWAYS	2

struct rte_mbuf;
struct rte_mempool;
struct uroce_engine;
struct uroce_port;

/* The version of the library that is loaded: "0.1.0". */
UROCE_API const char *uroce_version(void);

/* ---- ports ---- */

/* Options of uroce_port_open(): exactly one of `name` and `netdev`. */
struct uroce_port_options {
	size_t size; /* sizeof(struct uroce_port_options) */
	/*
	 * A port of DPDK, by its DPDK name (0000:01:00.0, net_memif0). It is stopped or new, and
	 * not in use otherwise.
	 */
	const char *name;
	/* A Linux interface (eth0), which the kernel keeps using, too. */
	const char *netdev;
	/*
	 * For received frames. It stays the caller's and outlives the port. A buffer holds a whole
	 * frame. Give the engine the same pool.
	 */
	struct rte_mempool *pool;
	/* Receive and transmit queues, 1 .. 16; 0: 1. A device may have fewer than wanted. */
	uint16_t queues;
	/* Ethernet MTU in octets. 0: the largest that port and pool carry. */
	uint16_t mtu;
	/* Descriptors of each queue. 0: the driver's choice. Not with `netdev`. */
	uint16_t descriptors;
	/*
	 * Name of a network interface that is made for the kernel beside the port. It gets all
	 * frames that are not RoCE. NULL: none. Not with `netdev`.
	 */
	const char *kernel_interface;
};

/*
 * Opens and starts a port for an engine. A network card makes and checks the checksums of IPv4
 * headers if its driver announces that. Returns the port, or NULL with errno and a line in `why`.
 * Give the port to uroce_create(), or to uroce_port_close().
 */
UROCE_API struct uroce_port *uroce_port_open(const struct uroce_port_options *options, char *why,
					     size_t why_size);

/* Options of uroce_port_handed(). */
struct uroce_handed_options {
	size_t size; /* sizeof(struct uroce_handed_options) */
	const char *name; /* for messages, at most 63 characters. NULL: "handed" */
	uint8_t mac[6]; /* the source address of the engine's frames, to which peers send */
	uint16_t mtu; /* Ethernet MTU in octets, both ways; at least 336 */
	uint16_t queues; /* 1 .. 16; 0: 1. Lcore i of the engine uses queue i if there is one. */
	uint32_t depth; /* frames that wait in each direction of a queue; 0: 1024 */
	uint32_t speed; /* of the link, Mbit/s, for ibv_query_port(); 0: unknown */
};

/*
 * A port of frames that the program hands in and takes out, because it keeps its own ports. The
 * engine answers ARP, neighbour discovery and echo for its addresses by itself, so it needs those
 * frames, too: see uroce_wants(). The link is up. Returns the port or NULL, as uroce_port_open().
 */
UROCE_API struct uroce_port *uroce_port_handed(const struct uroce_handed_options *options,
					       char *why, size_t why_size);
/*
 * Gives the engine received frames of this queue. A frame is as it was on the wire, from the Ethernet
 * header on and without FCS, its VLAN tag not stripped, in buffers without other references.
 *
 * Returns how many were accepted; those belong to the engine, and the others stay the caller's. Fewer
 * than n: the engine is not polled often enough, or its idle lcore has `depth` frames. Any thread, several at a time.
 */
UROCE_API uint16_t uroce_hand_in(struct uroce_port *port, uint16_t queue, struct rte_mbuf **frames,
				 uint16_t n);
/*
 * Takes at most n frames of this queue that the engine sends. They belong to the caller, who
 * transmits them in this order. Offloads are not asked for. Their buffers are from the engine's pool:
 * if the program gave it none, all of them are free again before uroce_destroy(), so another engine
 * gets copies. Any thread, several at a time.
 */
UROCE_API uint16_t uroce_take_out(struct uroce_port *port, uint16_t queue, struct rte_mbuf **frames,
				  uint16_t n);
/*
 * Whether the link of a handed port is up. Programs hear of changes by asynchronous events.
 * EINVAL: the port was opened by uroce_port_open().
 */
UROCE_API int uroce_set_link(struct uroce_port *port, bool up);
/*
 * Closes a port that no engine has. EBUSY: an engine has it, and closes it when it is destroyed.
 */
UROCE_API int uroce_port_close(struct uroce_port *port);

/* ---- engines ---- */

/* An address of an engine, and of its network. */
struct uroce_address {
	uint8_t octet[16]; /* IPv6, or IPv4 mapped into it (RFC 4291); network order */
	uint8_t prefix; /* bits: 0..32 for IPv4, 0..128 for IPv6 */
};

/*
 * Options of uroce_create(). All zero is a valid start, except for `size`, `lcores` (at least 1)
 * and `socket_gid` (-1 for "leave the group"). The engine copies what it needs: the strings and the
 * struct itself may go after uroce_create().
 */
struct uroce_options {
	size_t size; /* sizeof(struct uroce_options) */
	/* Name of the device, at most 31 characters. NULL: "uroce0". */
	const char *name;
	/* The engine owns it once uroce_create() succeeds, and closes it. NULL: this host only. */
	struct uroce_port *port;
	/* Polling threads of the engine, 1 .. 16. They are numbered from 0. */
	uint32_t lcores;
	/* EAL lcores that uroce_start() launches, one for each of `lcores`. */
	unsigned int lcore_ids[UROCE_LCORES];
	/*
	 * The number of own addresses, at most 16. 0: the port's addresses, or, without a port,
	 * this host's, which the engine follows when they change. A handed port has no addresses.
	 */
	uint32_t addresses;
	/* The own addresses: no group's, and none twice. */
	struct uroce_address address[UROCE_ADDRESSES];
	/*
	 * The number of next hops outside of the prefixes: at most one for IPv4 and one for IPv6.
	 */
	uint32_t gateways;
	/* Their addresses; the prefixes do not count. */
	struct uroce_address gateway[UROCE_GATEWAYS];
	/* 802.1Q VLAN id, 1 .. 4094. 0: untagged. */
	uint16_t vlan;
	/* Ethernet MTU in octets, at most the port's. 0: the port's, or 4200 without a port. */
	uint16_t mtu;
	/* Idle lcores sleep. uroce_start() only. */
	bool adaptive;
	/*
	 * The threads of uroce_start() ask the kernel for a short time slice, so that an lcore that
	 * wakes runs before programs that keep its core busy. Each thread gets its share as before.
	 */
	bool urgent;
	/* Also computes and checks the ICRC of frames that never leave the engine. */
	bool sum_loop;
	/* Path of the UNIX socket for other programs, at most 99 octets. NULL: no socket. */
	const char *socket_path;
	/* Mode of the socket (chmod(2)). 0: 0600. */
	uint32_t socket_mode;
	/* Group of the socket (chown(2)). -1: unchanged. */
	int64_t socket_gid;
	/*
	 * Packet buffers, which stay the caller's and outlive the engine. Each holds a whole frame
	 * of the port. An lcore that sends keeps up to 31 of them for its next frames, until 64 polls
	 * have sent nothing or it sleeps. NULL: the engine creates a pool.
	 */
	struct rte_mempool *pool;
	/*
	 * Buffers of the pool that the engine creates. 0: a default that grows with `lcores`, and is smaller without
	 * a port. In fewer than 16,384 for each lcore fewer packets may wait.
	 */
	uint32_t pool_size;
	/* Seconds without a client after which uroce_idle_expired() returns true. 0: never. */
	uint32_t exit_when_idle;
};

/*
 * Creates an engine and its control thread. If there is a socket, programs can connect to it when
 * this returns; data moves once the lcores are polled.
 *
 * Returns the engine, which uroce_destroy() frees. On failure it returns NULL with errno and a line
 * in `why`, and the port stays the caller's. Causes: EAL is not initialised; an option out of range;
 * a port that another engine has; an MTU that is too small for RoCE or exceeds the port's; no memory
 * for buffers (EAL -m); no file descriptors left (ulimit -n); a socket that another engine serves or
 * that cannot be created; no kernel neighbour table for a port that shares the kernel's interface;
 * 16 engines in this process.
 */
UROCE_API struct uroce_engine *uroce_create(const struct uroce_options *options, char *why,
					    size_t why_size);
/*
 * Stops the engine, disconnects its clients, closes the port and frees everything. It may wait for a
 * moment for copies of clients' memory; memory that a hanging copy still uses is not freed.
 *
 * The program closes its contexts of the device first, and no thread may be in a verbs call on it
 * meanwhile. On contexts that are still open, all later calls fail with ENODEV.
 *
 * Returns 0 (also for NULL), or an errno, and then nothing was done: EINVAL (the engine does not
 * exist, or no longer) or EBUSY (a thread is still in a call of this engine, or starts or stops it).
 */
UROCE_API int uroce_destroy(struct uroce_engine *e);

/*
 * Adds the device to ibv_get_device_list() of this process, until uroce_destroy().
 *
 * Returns 0, or EINVAL, EBUSY, EEXIST (an engine of this process has the name), or ENOENT (this
 * process has no libibverbs.so.1, or one that is not uroce's). A device of an engine in another
 * process that has the same name is listed under a name with a number.
 */
UROCE_API int uroce_register(struct uroce_engine *e);

/* ---- polling ---- */

/*
 * Does one round of the work of one lcore (0 .. options.lcores - 1) in the caller's thread: for
 * programs with a loop of their own. Any thread may call it, an EAL thread is faster. A call that
 * finds another one in progress does nothing and returns 0.
 *
 * Returns how much there was to do, in no particular unit; 0: the lcore was idle. Negative: -EINVAL
 * (no such engine or lcore), or -EBUSY (uroce_start() or uroce_service() has given it to a thread).
 */
UROCE_API int uroce_poll(struct uroce_engine *e, uint32_t lcore);
/*
 * Launches a polling thread on each of options.lcore_ids. A worker lcore runs it as its EAL task;
 * for the main EAL lcore the engine creates a thread on that lcore's CPUs, so that the caller goes
 * on.
 *
 * Returns 0, or an errno, and then no lcore runs: EALREADY (it was started already), EBUSY (a worker
 * lcore has a task, or a service polls the engine), EINVAL (no such engine, EAL has no lcore with
 * that id, or an id is given twice), or an error of pthread_create(3). An engine can be started
 * again after uroce_stop().
 */
UROCE_API int uroce_start(struct uroce_engine *e);
/*
 * Ends the threads of uroce_start() and waits for them. The clients' libraries learn that the
 * engine is gone and flush their queues. Does nothing if the engine was not started.
 *
 * Returns 0, EINVAL (no such engine) or EBUSY.
 */
UROCE_API int uroce_stop(struct uroce_engine *e);
/*
 * Makes a service of DPDK (rte_service.h) that polls this lcore of the engine. The program maps it to
 * a service core (rte_service_map_lcore_set()) and sets its state (rte_service_runstate_set()), or
 * runs it itself (rte_service_run_iter_on_app_lcore()). uroce_destroy() waits until no service core is
 * in it, and removes it.
 *
 * Returns 0 and the service's id, or EINVAL, EBUSY (uroce_start() runs), EEXIST (the lcore has a
 * service), or what rte_service_component_register() returns.
 */
UROCE_API int uroce_service(struct uroce_engine *e, uint32_t lcore, uint32_t *service_id);

/* ---- asking ---- */

/*
 * Whether a received frame is the engine's: IPv4, IPv6 or ARP for one of its addresses, in its VLAN;
 * RoCE to a multicast group; and frames to every host of the link (IGMP, MLD, ICMPv6 to all nodes,
 * ARP announcements). A program that needs the latter itself gives the engine a copy. Only the first
 * segment is read, which may be any octets. False for an engine that is gone.
 */
UROCE_API bool uroce_wants(const struct uroce_engine *e, const struct rte_mbuf *frame);
/* Changes options.adaptive while lcores run. Nothing happens to an engine that is gone. */
UROCE_API void uroce_set_adaptive(struct uroce_engine *e, bool adaptive);
/* True once options.exit_when_idle seconds have passed without a client. */
UROCE_API bool uroce_idle_expired(const struct uroce_engine *e);
/*
 * Writes the device's name, addresses and MTU as one line for people, cut to `size` octets. "" for an
 * engine that is gone.
 */
UROCE_API void uroce_describe(const struct uroce_engine *e, char *text, size_t size);

/* A counter of an engine, as uroce_counters() reads it. */
struct uroce_counter {
	const char *name; /* as in `uroce stat --json`; static */
	uint64_t value; /* since uroce_create() */
};

/*
 * Reads the engine's counters. Lcores count meanwhile, so the values are of nearly the same instant.
 *
 * Fills the first n and returns how many there are, which never changes while the library is loaded.
 * `counters` may be NULL if n is 0. 0: there is no such engine.
 */
UROCE_API uint32_t uroce_counters(struct uroce_engine *e, struct uroce_counter *counters,
				  uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
