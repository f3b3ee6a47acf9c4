/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's inside: what its lcores and its control path share. Not installed; programs see
 * engine/uroce.h and engine/command.h.
 *
 * Who may touch what
 *	struct lcore and everything hanging in it (ready list, wheel, staged frames): its own thread.
 *	struct engine_qp: its lcore, from lcore_qp_attach() to the return of lcore_qp_detach();
 *	    before and after that the control path. Fields marked (control) stay the control path's.
 *	tables that lcores read (directory, keys, a client's queue pairs, bells): written by the
 *	    control path with release stores, retired memory is freed after engine_grace_period().
 *	everything else: the control path, under engine.control_lock.
 * The control path reaches into an lcore only by lcore_call().
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/reason.h"
#include "base/time.h"
#include "drivers/client_memory/peer.h"
#include "drivers/port.h"
#include "engine/command.h"
#include "engine/moderate.h"
#include "config/limits.h"
#include "memory/key.h"
#include "queue/arena.h"
#include "queue/cq_move.h"
#include "queue/cq_ring.h"
#include "queue/ring.h"
#include "transport/transport.h"
#include "wire/envelope.h"

struct engine;
struct lcore;
struct client;
struct copy_batch;
struct peer_atomic;
struct peer_copy;
struct peer_memory;
struct mover;
struct moving;
struct holding;
struct held_packet;
struct flow_table;
struct engine_flow;
struct exception;
struct user;

/* The program's end is in the program; EOF on either side tells the other. */
struct engine_channel {
	struct client *client;
	uint32_t context; /* handle */
	uint32_t handle;
	uint32_t users; /* CQs on it (control) */
	int fd; /* our end, non-blocking */
};

struct target;
struct destination;
struct engine_srq;
struct engine_xrcd;
struct window;
struct xrcd;

struct engine_cq {
	struct cq_rings rings;
	struct client *client;
	struct engine_channel *channel; /* NULL: none */
	struct moderation moderation;
	uint64_t cookie;
	bool ignores_overrun; /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: what finds no room is lost */
	struct {
		uint64_t offset; /* 0: none */
		size_t octets;
	} memory[2]; /* of the rings' halves (control) */
	uint64_t page_offset;
	uint32_t context; /* handle (control) */
	uint32_t handle;
	uint32_t users; /* queue pairs on it (control) */
	uint32_t events; /* completion events sent so far; atomic */
	uint32_t async_events; /* atomic */
	uint32_t async_owed; /* atomic: bits of events that found the context's socket full */
	uint32_t overrun; /* set once; atomic */
	uint32_t event_owed; /* atomic: an event found the channel's socket full */
	int async_fd; /* where its context hears of an overrun */
};

STAILQ_HEAD(held_list, held_packet);

/* Where a queue pair's packets go. */
enum flow_state {
	FLOW_NONE, /* no address vector yet, or its MAC address is being resolved: hold packets */
	FLOW_PORT,
	FLOW_LOOP, /* one of our own addresses: goes round inside the engine */
	FLOW_UNREACHABLE, /* resolution failed: packets are lost, retries will tell the program */
	FLOW_BY_HANDLE, /* UD: the address handle of each request says */
};

/*
 * An address handle. What lcores have seen never changes: another MAC address makes another one in
 * its place, and the old one goes after a grace period.
 */
struct engine_ah {
	struct flow flow;
	uint8_t flow_state; /* enum flow_state, never BY_HANDLE; NONE: packets are lost meanwhile */
	bool port_by_qpns; /* no flow label: each packet's source port follows from both numbers */
	bool is_multicast;
	uint32_t pd; /* number */
	struct qp_path path;
	/* (control) */
	struct client *client;
	uint32_t handle;
	uint32_t context;
	uint32_t pd_handle;
	uint8_t ended; /* enum ah_ended: cmd_ah.c */
	struct destination *destination; /* destinations.h; NULL: nothing changes */
	uint32_t destination_version; /* that its envelope is of */
	TAILQ_ENTRY(engine_ah) destination_link;
	LIST_ENTRY(engine_ah) engine_link;
};

/* A multicast group with members here. */
struct mcast_group {
	struct mcast_group *next; /* in its bucket */
	struct gid gid;
	struct engine_qp *member[LIMIT_MCAST_QPS]; /* NULL: a free place */
	uint32_t members; /* (control) */
	struct user *user; /* (control) of who came first */
	struct mcast_group *freed_next; /* (control) unlinked, waits for a grace period */
};

/* What was posted when this was asked for: see cmd_ah.c. */
struct posted_mark {
	uint32_t serial; /* of who asked last, */
	uint32_t end; /* and what qp_retired will say when all that was posted then has left */
};

struct engine_qp {
	/* hot: the lcore's */
	struct qp *core;
	struct lcore *lcore;
	struct qp_page *page;
	struct ring_side sq;
	struct ring_side rq;
	struct engine_cq *send_cq;
	struct engine_cq *recv_cq; /* NULL: an XRC target, see srq.h */
	struct engine_srq *srq; /* where its receives come from; NULL: from rq, or XRC */
	struct engine_xrcd *xrcd; /* of an XRC target, */
	LIST_HEAD(, target) holders; /* and who has a handle of it: xrc.h */
	struct client *client;
	uint32_t qpn;
	uint32_t handle;
	uint8_t type; /* enum qp_type */
	uint8_t flow_state; /* enum flow_state */
	bool is_ready; /* stands in the ready list */
	bool starved; /* ... in that of those that wait for a mover's job, instead */
	bool in_wheel;
	bool detached;
	bool gather_pending; /* a mover reads payload for it: no next packet until then */
	bool broken; /* its client wrote nonsense into a ring */
	bool held_back; /* a frame of this round was not sent: none may overtake it */
	bool flushing; /* in ERR, and nothing completes before the posted receives any more */
	bool more_work; /* the window was full: its ring holds more */
	bool crowded; /* it has asked for room for more unsettled copies */
	bool raw; /* whole frames, see raw.h */
	bool unreliable; /* a packet is done when it has left */
	uint8_t raw_flags; /* enum raw_flag */
	bool error_asked; /* WQ: its program put it into the error state */
	uint16_t identification; /* of the next IPv4 header */
	uint32_t wheel_slot;
	uint32_t published_retired;
	nanotime wheel_at;
	TAILQ_ENTRY(engine_qp) ready_link;
	LIST_ENTRY(engine_qp) wheel_link;
	struct flow flow;
	struct recv_work *receive; /* private copy of the oldest posted receive, rq.stride octets */
	bool receive_valid; /* ... it holds the request at rq's cursor */
	uint64_t last_ticket; /* of copies handed to a batch or mover; 0: all settled */
	uint64_t chain; /* ... of which, if one fails, those behind it are not made */
	bool atomic_waits; /* ... and which are an atomic that its lcore tries again (moving.c) */
	struct mover *mover; /* ... which makes them; NULL: its lcore */
	struct held_list held; /* packets that wait for it, see hold.c */
	TAILQ_ENTRY(engine_qp) held_link;
	uint32_t rendezvous; /* of tagged messages, under way: at most LIMIT_RENDEZVOUS */
	uint32_t
		unexpected; /* ... and messages without an entry, whose receives are not complete */
	uint32_t windows; /* atomic: of type 2, bound through it */
	struct posted_mark posted[2]; /* (see there) */
	bool operation_waits; /* in lcore.operations */
	bool operation_owed; /* an invalidation is reported when its copies are over */
	struct key_operation operation; /* on its way to the control thread */
	TAILQ_ENTRY(engine_qp) operation_link;
	/* (control) */
	uint32_t raw_users; /* steering rules and indirection tables that lead to it */
	uint64_t cookie;
	uint32_t context;
	uint32_t pd;
	uint32_t groups; /* multicast groups that it is a member of */
	bool may_hold; /* UD: in client_objects.holding */
	LIST_ENTRY(engine_qp) holding_link;
	int async_fd;
	uint32_t async_events; /* atomic */
	uint32_t async_owed; /* atomic: as of a CQ */
	uint64_t sq_offset, rq_offset, page_offset;
	size_t sq_octets, rq_octets;
	void *memory; /* of core and receive: see qp_memory.c */
	void *records; /* of a peer's READs and atomics; NULL: none */
	void *tickets; /* of many unsettled copies; NULL: of a few, in `memory` */
	uint64_t memory_octets, memory_maps; /* of all three */
	struct qp_path path; /* last address vector */
	struct destination *destination; /* as of an address handle */
	uint32_t destination_version;
	TAILQ_ENTRY(engine_qp) destination_link;
	bool has_peer; /* connected: peers.h, */
	uint32_t peer_qpn; /* to this number */
	struct gid peer_gid;
	LIST_ENTRY(engine_qp) peer_link;
	LIST_ENTRY(engine_qp) engine_link;
};

TAILQ_HEAD(ready_list, engine_qp);
TAILQ_HEAD(operation_list, engine_qp);
TAILQ_HEAD(waiting_list, engine_qp);
LIST_HEAD(wheel_slot, engine_qp);

/* One process that is attached, or the program that embeds the engine. */
struct client {
	struct engine *engine;
	uint32_t number; /* index in engine.client */
	uint32_t user; /* the same number for all programs of one user, below LIMIT_CLIENTS */
	bool embedded;
	bool dying; /* (control) */
	struct arena *arena;
	struct client_page *page;
	struct ring_side bell[LIMIT_LCORES]; /* bell[i]: lcore i's */
	struct engine_qp **qp; /* by handle, LIMIT_QPS + 1 slots; lcores read it */
	struct engine_ah **ah; /* by handle, LIMIT_AHS + 1 slots; lcores read it */
	struct peer_memory *memory; /* how its memory is reached; NULL: embedded */
	struct mover *mover; /* copies run there instead of on the lcore; NULL: none */
	uint32_t async_owed; /* atomic: an object of it owes asynchronous events */
	/* (control): tables of the other objects, socket, pidfd: control.h */
	struct client_objects *objects;
};

/* A request of the control path, executed between bursts. */
struct lcore_message {
	void (*run)(struct lcore *l, void *arg, nanotime now);
	void *arg;
	uint32_t done; /* atomic: 1 once it ran */
};

#define WHEEL_SLOTS	 4096u
#define WHEEL_TICK_SHIFT 13 /* a slot is 8.192 us, a turn of the wheel 33.6 ms */

struct wheel {
	uint64_t tick; /* next slot to look at, not masked */
	uint32_t entries;
	uint64_t occupied[WHEEL_SLOTS / 64];
	struct wheel_slot slot[WHEEL_SLOTS];
};

struct lcore_statistics {
	uint64_t rx_packets, rx_octets, tx_packets, tx_octets;
	uint64_t retransmitted, timeouts, rnr_naks;
	uint64_t polls, idle_polls, sleeps;
	uint64_t by_reason[REASON_COUNT];
};

/* Frames of one tx round, in the order in which they were made. */
#define STAGE_MAX  256u
#define GATHER_MAX 1024u /* peer copies of one round */

struct staged_frame {
	struct rte_mbuf *mbuf;
	struct engine_qp *qp;
	uint16_t header_length;
	uint16_t payload_length;
	bool sealed;
	bool summed;
	bool loop;
	bool failed; /* its payload could not be read */
	bool raw; /* of a raw queue pair */
	uint8_t flow_state; /* enum flow_state: where it goes, if it is not raw */
	bool port_by_qpns; /* its source port follows from both queue pair numbers */
	bool echo; /* to a group with members here, beside the port */
	uint8_t l3; /* where its IP header begins */
	uint8_t refused; /* enum reason: it may not be sent, raw or TSO (`failed`, too) */
	bool unsent;
	uint16_t peer_first; /* peer copies of its payload in the round's batch */
	uint16_t peer_count;
	struct packet packet; /* to name it to the core if it cannot be sent */
};

#define LOOP_SLOTS	   2048u
#define SRQ_RECEIVE_OCTETS 576u /* recv_work_stride(LIMIT_SGE) */

struct lcore {
	struct engine *engine;
	uint32_t index;
	uint16_t queue; /* of the port; UINT16_MAX: none of its own */
	struct ready_list ready;
	struct wheel wheel;
	struct moderated_list moderated; /* CQs that owe an event */
	struct operation_list operations; /* queue pairs with one for the end of this round */
	uint32_t staged;
	struct staged_frame *stage; /* STAGE_MAX */
	struct moving *moving; /* jobs for movers */
	struct holding *holding; /* packets that wait for one */
	uint32_t gather_count;
	struct peer_copy *gather_copy; /* GATHER_MAX: payloads to be read from peer memory */
	uint16_t tx_queue;
	nanotime stalled_until; /* a port or lcore was full: no tx round before */
	struct copy_batch *copies; /* placements of this rx round that wait for peer memory */
	uint64_t chains; /* the number of the newest */
	struct rte_ring *inbox; /* mbufs from other lcores: handed over or looped */
	struct rte_ring *messages; /* struct lcore_message */
	uint32_t exceptions; /* frames of this burst for the kernel */
	struct rte_mbuf *exception[LIMIT_BURST];
	uint32_t loop_head, loop_tail; /* frames for ourselves: loop[tail .. head), free-running */
	struct rte_mbuf **loop; /* LOOP_SLOTS */
	uint32_t clients; /* attached ones, whose bells are looked at */
	struct client *client[LIMIT_CLIENTS];
	struct lcore_statistics stats;
	struct outcome outcome; /* scratch */
	struct engine_srq *srq; /* whose request is offered to the packet at hand */
	uint8_t srq_receive[SRQ_RECEIVE_OCTETS] __rte_aligned(64); /* ... that request */
	struct span_list gather; /* scratch */
	struct copy_stamp stamp; /* what it copies from or to a client's memory right now */
	int wake_fd; /* eventfd */
	uint32_t sleeping; /* atomic */
	uint32_t seat; /* atomic: 1 while somebody polls it, see lcore.c */
	bool summoned; /* its thread was asleep, and is wanted on the seat */
	bool stood_in; /* on the seat is who calls it, for its messages */
	nanotime asleep_until;
	nanotime idle_since; /* 0: busy */
} __rte_cache_aligned;

struct engine_gid {
	struct gid gid; /* all zero: free */
};

struct engine {
	struct flow_table *flows; /* steering rules, as lcores see them; NULL: none */
	LIST_HEAD(, engine_flow) flow_list; /* (control) */
	uint32_t flow_count; /* (control) */
	char name[32];
	uint64_t id;
	struct port *port; /* NULL: same host only */
	struct rte_mempool *pool;
	uint32_t
		direct_moves[LIMIT_CLIENTS]; /* atomic: copies with movers into its direct memory */
	uint32_t lcores;
	struct lcore *lcore; /* lcores of them */
	struct key_table keys;
	struct engine_qp **directory; /* 2^20 slots, by qpn >> 4 */
	struct engine_srq **srq; /* by the low 16 bits of their numbers; lcores read it */
	struct engine_gid
		gid[LIMIT_GIDS]; /* control writes, lcores read whole entries racily: see gid.c */
	uint32_t tx_busy[LIMIT_LCORES]; /* atomic: a tx queue is in use */
	struct mac mac;
	uint16_t vlan;
	uint8_t active_mtu; /* ibv_mtu */
	uint32_t max_frame; /* octets of a raw frame: the Ethernet MTU, its header, one tag */
	bool sum_loop; /* make and check the ICRC of frames that never leave, too */
	bool adaptive; /* idle mode */
	uint32_t stopping; /* atomic */
	struct rte_ring *strangers; /* frames that are not RoCE, for the control thread */
	struct exception
		*exception; /* ... for the kernel: exception.h; NULL: its port has no interface */
	struct rte_ring *mads; /* datagrams for queue pair 1, for the connection manager: cm_rx.c */
	struct rte_ring *established; /* numbers of queue pairs whose peer speaks before its RTU */
	struct rte_ring *crowded; /* ... that ask for room for more unsettled copies */
	struct window **window; /* by the slot of their keys; NULL: there was none yet */
	struct rte_ring
		*operations[LIMIT_LCORES]; /* queue pairs whose operation is the control thread's */
	int control_fd; /* eventfd: wakes the control thread */
	pthread_mutex_t control_lock;
	uint64_t heartbeat;
	struct client *client[LIMIT_CLIENTS]; /* (control); lcores: span_memory */
	LIST_HEAD(, engine_qp) qps; /* (control) */
	LIST_HEAD(, engine_ah) ahs; /* (control) */
	struct mcast_group *mcast[256]; /* by a hash of the group; control writes, lcores read */
	uint32_t posted_serial; /* (control) see cmd_ah.c */
	uint32_t
		settlers; /* atomic: so many wait for copies (settle.c); who ends one says so then: */
	uint32_t settle_news; /* atomic */
	uint32_t qp_count, cq_count, mr_count, client_count;
	struct control *control; /* (control) the rest of the control path: control.h */
};

/* clock.c: ns of the monotonic clock, by TSC; clock_init once the EAL knows its frequency. */
void clock_init(void);
nanotime clock_now(void);
/* Lets a client read the same clock. */
void clock_publish(struct client_page *page);

/* poll.c. Everything an lcore does, once. Returns how much there was to do (0: idle). */
uint32_t lcore_poll(struct lcore *l);
/*
 * In a message that waits for posted work of a client to leave: nobody else may be on the lcore's
 * seat. False: that is for who polls the lcore. Its thread is woken by lcore_call; a program with a
 * loop of its own comes by.
 */
bool lcore_let_leave(struct lcore *l, const struct client *c, nanotime now);
#define LEAVE_PAUSE 20u /* us, for that one to take the seat */
#define LEAVE_TIME  (10 * TIME_MS) /* and it has so long: it may be busy elsewhere */

/* rx.c */
uint32_t rx_poll(struct lcore *l, nanotime now);
/* What follows any event of a queue pair: completions, events, deadline, ready list. */
void qp_settled(struct lcore *l, struct engine_qp *q, nanotime now);

/*
 * A packet for this queue pair, whose octets lie in the mbuf. Returns true if the mbuf was kept;
 * else it is still the caller's.
 */
bool packet_input(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		  nanotime now);
/* The frame goes to another lcore's inbox, marked; dropped and counted if that is full. */
void hand_over(struct lcore *l, struct lcore *to, struct rte_mbuf *m, uint32_t mark);
/*
 * A frame that the queue pair `sender` made for one of our own addresses; false: no room, the frame
 * stays the caller's.
 */
bool loop_output(struct lcore *l, struct rte_mbuf *m, uint32_t sender, uint32_t dest_qpn,
		 bool summed);

/*
 * Marks of frames inside the engine (mbuf.hash.usr): what it is (raw.h, datagram.h, rx.c) in the low
 * octet, and above that the number of the queue pair that sent it; 0: it came by the port.
 */
static inline uint32_t frame_mark(uint32_t kind, uint32_t sender)
{
	return kind | sender << 8;
}

static inline uint32_t frame_kind(uint32_t mark)
{
	return mark & 0xff;
}

static inline uint32_t frame_sender(uint32_t mark)
{
	return mark >> 8;
}

/* work.c: doorbells and requests into windows. */
uint32_t doorbells_poll(struct lcore *l, nanotime now);
/* Moves what the rings hold into the window; flushes receives of a queue pair in ERR. */
void qp_drain_rings(struct lcore *l, struct engine_qp *q, nanotime now);

/* The oldest posted receive, copied to private memory, or NULL; and: it was used. */
const struct recv_work *receive_peek(struct lcore *l, struct engine_qp *q, nanotime now);
void receive_taken(struct lcore *l, struct engine_qp *q);
/* It was not: one of an SRQ is there for everybody again. */
void receive_kept(struct lcore *l, const struct recv_work *offer);
/* A queue pair in ERR: its posted receives complete as flushed. */
void receives_flush(struct lcore *l, struct engine_qp *q, nanotime now);

/* tx.c */
uint32_t tx_poll(struct lcore *l, nanotime now);
/* A turn of this client's queue pairs alone. */
void tx_of_client(struct lcore *l, const struct client *c, nanotime now);
void ready_add(struct lcore *l, struct engine_qp *q);
void ready_remove(struct lcore *l, struct engine_qp *q);

/* frame.c */
/* Headers and payload of the packet in s->packet, gathered from l->gather; peer payload is read later. */
void frame_build(struct lcore *l, struct engine_qp *q, struct staged_frame *s);
/* After its peer copies (of this array) were made: pad and ICRC, or s->failed. */
void frame_seal(struct staged_frame *s, const struct peer_copy *copy);

/* send.c: how many of the first frames the port took; the others are still the caller's. */
uint32_t port_send(struct lcore *l, struct rte_mbuf **m, uint32_t n);
/* Sends them in order; what cannot be sent goes back to the core. The mbufs are gone then. */
void frames_send(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now);

/* wheel.c */
void wheel_init(struct wheel *w, nanotime now);
void wheel_set(struct wheel *w, struct engine_qp *q, nanotime at);
void wheel_remove(struct wheel *w, struct engine_qp *q);
uint32_t wheel_turn(struct lcore *l, nanotime now);
/* When the next slot with entries begins: TIME_NEVER or an instant, maybe early, never late. */
nanotime wheel_next(const struct wheel *w);

/* place.c: spans. */
struct copy_batch *copy_batch_create(void);
void copy_batch_destroy(struct copy_batch *b);
/* Makes (or starts) the copies and the atomic of an outcome; settles what is done at once. True: the mbuf was kept. */
bool place_outcome(struct lcore *l, struct engine_qp *q, const struct outcome *o,
		   const struct packet *p, struct rte_mbuf *m, nanotime now);
/* A ticket without copies, settled behind those before it. */
void place_nothing(struct lcore *l, struct engine_qp *q, uint64_t ticket, nanotime now);
/* Makes the peer copies that have gathered and settles their tickets. */
void place_flush(struct lcore *l, nanotime now);
/* Peer copies of a client's queue pairs in the lcore's own thread, watched by the control thread. */
void client_copy(struct lcore *l, struct client *c, struct peer_copy *copy, uint32_t n,
		 struct copy_breaks *breaks, nanotime now);
/* An atomic likewise: peer_memory_atomic. */
int place_atomic(struct lcore *l, const struct peer_memory *m, uint64_t address,
		 struct peer_atomic *a, nanotime now);
/* Movers: takes results, and goes on with what waited for them (moving.c). */
uint32_t place_poll(struct lcore *l, nanotime now);
/* Forgets a queue pair that is being detached (its copies are waited for or made harmless). */
void place_forget(struct lcore *l, struct engine_qp *q);

/*
 * notify.c: completions and events to programs. The time of the completion is filled in. The queue
 * pair fails if the CQ has no room; NULL: an operation of none.
 */
void cq_complete(struct lcore *l, struct engine_qp *q, struct engine_cq *cq, struct completion *c,
		 nanotime now);
/* Sends the completion event; false: the program's socket is full, event_owed says to try again. */
bool cq_send_event(struct engine_cq *cq);
void qp_raise(struct lcore *l, struct engine_qp *q, uint32_t events);
/* Asynchronous events that found the program's socket full, once more. Control thread. */
struct owed_round {
	int full_fd; /* of a socket that is full; -1: none was */
	bool told; /* something */
};
void cq_tell_owed(struct engine_cq *cq, struct owed_round *round);
void qp_tell_owed(struct engine_qp *q, struct owed_round *round);

/* directory.c */
int directory_init(struct engine *e);
void directory_destroy(struct engine *e);
/* A random free number of this lcore; 0 if there is none. Control path. */
uint32_t directory_reserve(struct engine *e, uint32_t lcore, struct engine_qp *q);
void directory_publish(struct engine *e, struct engine_qp *q);
/* Its number rests. */
void directory_remove(struct engine *e, struct engine_qp *q, nanotime now);

static inline struct engine_qp *directory_find(const struct engine *e, uint32_t qpn)
{
	struct engine_qp *q =
		__atomic_load_n(&e->directory[(qpn >> 4) & 0xfffff], __ATOMIC_ACQUIRE);

	/* The low bits mark a number that is reserved but not published, or that rests. */
	return q != NULL && ((uintptr_t)q & 3) == 0 && q->qpn == qpn ? q : NULL;
}

/* mcast.c. The group, or NULL; until the lcore's next quiescent state. */
struct mcast_group *mcast_find(struct engine *e, const struct gid *gid);
bool mcast_is_member(struct engine *e, const struct gid *gid, const struct engine_qp *q);

static inline struct engine_qp *mcast_member(const struct mcast_group *g, uint32_t place)
{
	/* Acquire: a queue pair is complete before it is a member. */
	return __atomic_load_n(&g->member[place], __ATOMIC_ACQUIRE);
}

/* The client's address handle, or NULL; until the lcore's next quiescent state. Any number. */
static inline const struct engine_ah *ah_find(const struct client *c, uint32_t handle)
{
	/* Acquire: the control path shows a handle when it is complete. */
	return handle <= LIMIT_AHS ? __atomic_load_n(&c->ah[handle], __ATOMIC_ACQUIRE) : NULL;
}

/* cm_rx.c. A datagram for queue pair 1: the mbuf is taken. */
void cm_rx(struct lcore *l, const struct packet *p, struct rte_mbuf *m);
/* The peer of this queue pair has sent before it said that it is ready (COMM_EST). */
void cm_rx_established(struct engine *e, const struct engine_qp *q);

/* qp_memory.c: it has no room for one more unsettled copy, and asks for it once. */
void qp_crowded(struct lcore *l, struct engine_qp *q);

/* control.c: wakes the control thread. Any thread. */
void control_wake(struct engine *e);
/*
 * ... for what this lcore has just put into a ring that lcores fill and the control thread empties
 * as a whole. A flood is told of a few times only.
 */
void control_tell(struct engine *e, const struct rte_ring *ring);

/* control.c: looks after lcores that sit in a copy of a client's memory. Caller holds control_lock. */
void control_watch_copies(struct engine *e, nanotime now);

/* lcore.c: the control path's way in. */
int lcore_init(struct engine *e, struct lcore *l, uint32_t index);
void lcore_destroy(struct lcore *l);
/*
 * Runs `run` on the lcore between bursts and waits for it. Where nobody polls that lcore (an
 * embedding program that is in this very call, a thread that sleeps) the caller runs it itself.
 * `run` touches no memory of clients but their arenas. Caller holds control_lock.
 */
void lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg);
uint32_t messages_poll(struct lcore *l, nanotime now);
/* To be run by lcore_call: */
void lcore_qp_attach(struct lcore *l, struct engine_qp *q, nanotime now);
void lcore_qp_detach(struct lcore *l, struct engine_qp *q, nanotime now);
void lcore_client_attach(struct lcore *l, struct client *c);
void lcore_client_detach(struct lcore *l, struct client *c);
/* A state or path of the queue pair changed: look at everything once. */
void lcore_qp_touch(struct lcore *l, struct engine_qp *q, nanotime now);
/* The seat of an lcore: who has it polls. False: somebody else sits there. */
bool lcore_sit(struct lcore *l);
void lcore_rise(struct lcore *l);
/* Wakes a sleeping lcore. */
void lcore_wake(struct lcore *l);
/* Waits until every lcore has passed a quiescent state. */
void engine_grace_period(struct engine *e);

/*
 * Whose memory a peer span of this queue pair's work lies in, as a copy names it: NULL for its own
 * client's. A region of a shared protection domain may be another client's; while a span of it is
 * at hand that client cannot go, because its regions go a grace period before it does.
 */
static inline const struct peer_memory *span_memory(const struct lcore *l,
						    const struct engine_qp *q, const struct span *s)
{
	if (s->client == q->client->number)
		return NULL;
	return __atomic_load_n(&l->engine->client[s->client], __ATOMIC_ACQUIRE)->memory;
}

static inline void count_reason(struct lcore *l, enum reason r)
{
	l->stats.by_reason[r]++;
}

#endif
