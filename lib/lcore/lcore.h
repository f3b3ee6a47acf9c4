/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's data path, as the control path sees it. All that the control path may ask of lcores
 * is here, and in the headers of objects that both know (srq.h, window.h, xrc.h, tag/tag.h,
 * raw/raw.h, moving/moving.h, exception/exception.h). inside.h is for lcores alone.
 *
 * Which thread may touch what
 *	struct lcore and everything in it (turns, wheel, staged frames): its own thread.
 *	struct engine_qp: its lcore, from lcore_qp_attach() to the return of lcore_qp_detach();
 *	    before and after that the control path. Fields marked (control) stay the control path's.
 *	tables that lcores read (directory, keys, a client's queue pairs, bells): the control path
 *	    writes them with release stores, and frees old memory after engine_grace_period().
 *	everything else: the control path, under engine.control_lock.
 * The control path reaches into an lcore only by lcore_call().
 */
#ifndef LCORE_LCORE_H
#define LCORE_LCORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <rte_common.h>

#include "base/reason.h"
#include "base/stage.h"
#include "base/time.h"
#include "config/limits.h"
#include "drivers/client_memory/peer.h"
#include "drivers/port.h"
#include "lcore/client.h"
#include "lcore/turns/drains.h"
#include "lcore/queue_pair.h"
#include "lcore/turns/turns.h"
#include "lcore/idle/urgency.h"
#include "lcore/wheel.h"
#include "memory/key.h"
#include "wire/alike.h"
#include "wire/opcode.h"

struct capture;
struct control;
struct copy_batch;
struct cycles;
struct engine_flow;
struct exception;
struct flow_table;
struct holding;
struct moving;
struct outlets;
struct paths;
struct rte_mbuf;
struct rte_mempool;
struct rte_ring;
struct slots;
struct staged_frame;
struct window;

struct lcore_path;
TAILQ_HEAD(held_paths, lcore_path);

/* A request of the control path, executed between bursts. */
struct lcore_message {
	void (*run)(struct lcore *l, void *arg, nanotime now);
	void *arg;
	uint32_t done; /* atomic: 1 once it ran */
};

struct lcore_statistics {
	uint64_t rx_packets, rx_octets, tx_packets, tx_octets;
	uint64_t retransmitted, timeouts, rnr_naks;
	uint64_t ecn_marked, cnps_sent;
	uint64_t crossed; /* frames from the port that were for another lcore */
	uint64_t polls, idle_polls, sleeps;
	uint64_t begun[PACKET_KINDS]; /* messages that peers began, by enum packet_kind */
	uint64_t access_refused; /* peers' requests for memory */
	uint64_t sends; /* SEND requests of programs */
	uint64_t receives; /* that completed with success */
	struct {
		uint64_t failed; /* completions in error, */
		uint64_t flushed; /* ... and how many of them were only flushed */
	} ends[2]; /* of requests; of receives */
	uint64_t by_reason[REASON_COUNT];
};

#define SRQ_RECEIVE_OCTETS 576u /* recv_work_stride(LIMIT_SGE) */

struct lcore {
	struct engine *engine;
	uint32_t index;
	uint32_t qps; /* atomic: queue pairs that live here */
	uint16_t queue; /* of the port; UINT16_MAX: it has no queue */
	struct key_table keys; /* the engine's, read through ... */
	struct key_memo key_memo; /* ... what this lcore remembers of it */
	struct turns turns;
	struct wheel wheel;
	struct drains drains; /* queue pairs whose rings hold more than was taken */
	uint32_t flushed; /* receives of queue pairs in ERR, so far */
	struct moderated_list moderated; /* CQs that owe an event */
	struct operation_list operations; /* queue pairs with one for this round's end */
	uint32_t staged;
	struct staged_frame *stage; /* LIMIT_STAGE */
	struct paths *paths;
	struct held_paths held_paths; /* those of them that hold queue pairs back */
	bool worked; /* the last poll had something to do */
	bool has_jobs; /* moving.c: some jobs are not free, or one came back lately */
	struct moving *moving; /* jobs for movers */
	struct holding *holding; /* packets that wait for movers */
	struct slots *behind; /* places for packets behind gaps, */
	struct behind_far *far; /* ... and memory for queue pairs with many of them */
	uint32_t gather_count;
	struct peer_copy *gather_copy; /* LIMIT_GATHER: payloads to be read from peer memory */
	uint16_t tx_queue;
	struct outlets *outlets; /* frames that the port or an lcore did not take */
	struct copy_batch *copies; /* placements of this rx round that wait for peer memory */
	uint64_t chains; /* the number of the newest chain of copies */
	struct crossing *crossing; /* frames for other lcores' inboxes that were full */
	struct rte_ring *inbox; /* mbufs from other lcores: handed over or looped */
	struct rte_ring *messages; /* struct lcore_message */
	uint32_t exceptions; /* frames of this burst for the kernel */
	struct rte_mbuf *exception[LIMIT_BURST];
	uint32_t loop_head, loop_tail; /* frames for ourselves: loop[tail .. head), free-running */
	struct rte_mbuf **loop; /* LIMIT_LOOP */
	uint32_t clients; /* attached ones, whose bells are looked at */
	struct client *client[LIMIT_CLIENTS];
	struct lcore_statistics stats;
	struct cycles *cycles; /* by stage, while they are measured: cycles.h */
	struct stage_watch *stages; /* of this round; NULL: it is not measured */
	uint32_t unsettled_count; /* queue pairs that had packets in this burst: each once */
	struct engine_qp *unsettled[LIMIT_BURST];
	uint32_t spent_count; /* buffers of this burst to free */
	struct rte_mbuf *spent[LIMIT_BURST];
	uint32_t blank_count; /* buffers for frames to come */
	uint32_t blank_age; /* polls since one was needed */
	struct rte_mbuf *blank[2 * LIMIT_TURN];
	struct outcome outcome; /* scratch */
	struct alike alike; /* the last frame from the port in the middle of a message */
	struct engine_srq *srq; /* its request is offered to the packet at hand */
	uint8_t srq_receive[SRQ_RECEIVE_OCTETS] __rte_aligned(64); /* ... that request */
	struct span_list gather; /* scratch */
	int wake_fd; /* eventfd */
	int wait_fd; /* epoll: what wakes it when it sleeps, besides its port (control) */
	uint32_t sleeping; /* atomic */
	uint32_t seat; /* atomic: 1 while a thread polls it, see lcore.c */
	bool summoned; /* its thread was asleep, and is wanted on the seat */
	bool stood_in; /* the seat is taken by a caller, which only runs messages */
	nanotime asleep_until;
	nanotime idle_since; /* 0: busy */
	bool napped; /* the last time it slept, arriving frames could not wake it */
	nanotime rung_at; /* when a bell that may ring early was drained last; 0: never */
	uint32_t processor; /* as clients were told; its thread writes it on the seat */
	struct crowd crowd;
	enum urgency urgency; /* atomic: of the thread that polls it */
} __rte_cache_aligned;

struct engine_gid {
	struct gid gid; /* all zero: free */
};

struct engine {
	struct capture *capture; /* atomic: capture.h; NULL: no capture and no trace */
	struct flow_table *flows; /* steering rules, as lcores see them; NULL: none */
	LIST_HEAD(, engine_flow) flow_list; /* (control) */
	uint32_t flow_count; /* (control) */
	char name[32];
	uint64_t id;
	uint64_t hash_secret; /* of gid_hash */
	struct port *port; /* NULL: same host only */
	struct rte_mempool *pool;
	uint32_t buffers; /* of the pool, for each lcore */
	uint32_t
		direct_moves[LIMIT_CLIENTS]; /* atomic: copies with movers into its direct memory */
	uint32_t lcores;
	struct lcore *lcore; /* as many as `lcores` */
	struct key_table keys;
	struct engine_qp **directory; /* 2^20 slots, by qpn >> 4 */
	struct engine_srq **srq; /* by the low 16 bits of their numbers; lcores read it */
	struct engine_gid
		gid[LIMIT_GIDS]; /* control writes, lcores read whole entries racily: see gid.c */
	uint32_t tx_busy[LIMIT_LCORES]; /* atomic: a tx queue is in use */
	struct mac mac; /* (control) */
	uint64_t mac_word; /* atomic: the same, for lcores */
	uint16_t vlan;
	bool asks_port_for_sums; /* the port says whether the IPv4 header's checksum is right */
	uint8_t active_mtu; /* ibv_mtu */
	uint32_t max_frame; /* octets of a raw frame: the Ethernet MTU, its header, one tag */
	bool sum_loop; /* make and check the ICRC of frames that never leave, too */
	bool adaptive; /* atomic: idle mode */
	bool urgent; /* lcores that wake run soon: urgency.h */
	uint32_t stopping; /* atomic */
	struct rte_ring *strangers; /* frames that are not RoCE, for the control thread */
	struct exception
		*exception; /* ... for the kernel: exception.h; NULL: its port has no interface */
	struct rte_ring *mads; /* datagrams for queue pair 1, for the connection manager: cm_rx.c */
	struct rte_ring *established; /* numbers of queue pairs whose peer sent before its RTU */
	struct rte_ring *crowded; /* ... that ask for room for more unsettled copies */
	struct window **window; /* by the slot of their keys; NULL: there was none yet */
	struct rte_ring *operations[LIMIT_LCORES]; /* queue pairs with one for the control thread */
	int control_fd; /* eventfd: wakes the control thread */
	pthread_mutex_t control_lock;
	uint64_t heartbeat;
	struct client *client[LIMIT_CLIENTS]; /* (control); lcores: span_memory */
	LIST_HEAD(, engine_qp) qps; /* (control) */
	LIST_HEAD(, engine_ah) ahs; /* (control) */
	struct mcast_group *mcast[256]; /* by a hash of the group; control writes, lcores read */
	uint32_t posted_serial; /* (control) see cmd_ah.c */
	uint32_t settlers; /* atomic: how many commands wait for copies (settle.c) */
	uint32_t
		settle_news; /* atomic: a copy has ended since; written by the thread that ended it */
	uint32_t qp_count, cq_count, mr_count, client_count;
	uint64_t mr_made; /* since the start */
	struct control *control; /* (control) the rest of the control path: control.h */
};

/* clock.c: ns of the monotonic clock, by TSC; clock_init once the EAL knows its frequency. */
void clock_init(void);
nanotime clock_now(void);
/* Lets a client read the same clock. */
void clock_publish(struct client_page *page);

/* lcore.c: the control path's way in. */
int lcore_init(struct engine *e, struct lcore *l, uint32_t index);
void lcore_destroy(struct lcore *l);
/*
 * Runs `run` on the lcore between bursts and waits for it. If no thread polls that lcore (an
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
/* A state or path of the queue pair changed: looks at everything once. */
void lcore_qp_touch(struct lcore *l, struct engine_qp *q, nanotime now);
/*
 * A queue pair that is not connected yet goes to another lcore. It keeps its number, whose low bits
 * name the lcore that it was made for.
 */
struct qp_move {
	struct engine_qp *qp;
	struct lcore *to;
};
void lcore_qp_move(struct lcore *l, void *move, nanotime now);
/* The seat of an lcore: its holder polls. False: another thread has it. */
bool lcore_sit(struct lcore *l);
void lcore_rise(struct lcore *l);
/* Wakes a sleeping lcore. */
void lcore_wake(struct lcore *l);
/* Waits until every lcore has passed a quiescent state. */
void engine_grace_period(struct engine *e);

/* poll.c. Everything an lcore does, once. Returns how much there was to do (0: idle). */
uint32_t lcore_poll(struct lcore *l);
/*
 * For a message that waits until posted work of a client has left. No other thread may be on the
 * lcore's seat. False: the thread that polls the lcore must do it. lcore_call wakes that thread; a
 * program with a loop of its own polls sooner or later.
 */
bool lcore_let_leave(struct lcore *l, const struct client *c, nanotime now);
#define LEAVE_TIME (LIMIT_LEAVE_MS * TIME_MS) /* how long it may take, if it is busy elsewhere */
/*
 * For a message that flushes a queue pair's requests: takes in what has come, as a device would have by
 * then. Else a request whose acknowledgement waits here would be flushed, although the peer's program
 * has the message.
 */
void lcore_let_arrive(struct lcore *l, nanotime now);
/* idle.c: what a dedicated thread does with an lcore until engine.stopping. */
int lcore_loop(void *lcore);

/* Called after any event of a queue pair: takes completions and events, sets deadline and turn. */
void qp_settled(struct lcore *l, struct engine_qp *q, nanotime now);
/* ... once for all packets of a burst: qps_settle does it when the burst ends. */
void qp_settle_later(struct lcore *l, struct engine_qp *q, nanotime now);
void qps_settle(struct lcore *l, nanotime now);

/* outlet.c: queue pairs that have no turn because of an outlet, each once or more often. */
void outlets_each_sender(const struct lcore *l, void (*visit)(struct engine_qp *q, void *arg),
			 void *arg);

/*
 * work.c: takes doorbells, and moves requests into windows, about LIMIT_DRAINED of them in a poll
 * at most. If it returns LIMIT_BURST or more, there may be more to do.
 */
uint32_t doorbells_poll(struct lcore *l, nanotime now);
/* Moves what the rings hold into the window; flushes receives of a queue pair in ERR. */
void qp_drain_rings(struct lcore *l, struct engine_qp *q, nanotime now);

/* directory.c */
int directory_init(struct engine *e);
void directory_destroy(struct engine *e);
/* A random free number of this lcore; 0 if there is none. Control path. */
uint32_t directory_reserve(struct engine *e, uint32_t lcore, struct engine_qp *q);
void directory_publish(struct engine *e, struct engine_qp *q);
/* Takes the queue pair out. Its number rests. */
void directory_remove(struct engine *e, struct engine_qp *q, nanotime now);

static inline struct engine_qp **directory_slot(const struct engine *e, uint32_t qpn)
{
	return &e->directory[(qpn >> 4) & 0xfffff];
}

/*
 * The queue pair in the slot of this number; NULL: none. It may have another number with other low
 * bits.
 */
static inline struct engine_qp *directory_look(const struct engine *e, uint32_t qpn)
{
	struct engine_qp *q = __atomic_load_n(directory_slot(e, qpn), __ATOMIC_ACQUIRE);

	/* The low bits mark a number that is reserved but not published, or that rests. */
	return ((uintptr_t)q & 3) == 0 ? q : NULL;
}

static inline struct engine_qp *directory_find(const struct engine *e, uint32_t qpn)
{
	struct engine_qp *q = directory_look(e, qpn);

	return q != NULL && q->qpn == qpn ? q : NULL;
}

/* mcast.c: the first group with this hash. Only the control path changes the list. */
struct mcast_group **mcast_bucket(struct engine *e, const struct gid *gid);
/* The group, or NULL. Valid until the lcore's next quiescent state. */
struct mcast_group *mcast_find(struct engine *e, const struct gid *gid);
bool mcast_is_member(struct engine *e, const struct gid *gid, const struct engine_qp *q);

static inline struct engine_qp *mcast_member(const struct mcast_group *g, uint32_t index)
{
	/* Acquire: a queue pair is complete before it is a member. */
	return __atomic_load_n(&g->member[index], __ATOMIC_ACQUIRE);
}

/* notify.c. Sends the completion event. False: its socket is full, and event_owed is set. */
bool cq_send_event(struct engine_cq *cq);
/* Sends asynchronous events again that found the program's socket full. Control thread. */
struct owed_round {
	int full_fd; /* a socket that is full; -1: none was */
	bool told; /* an event was sent */
};
void cq_tell_owed(struct engine_cq *cq, struct owed_round *round);
void qp_tell_owed(struct engine_qp *q, struct owed_round *round);

/* tell.c: wakes the control thread. Any thread. */
void control_wake(struct engine *e);
/*
 * ... because this lcore has just put an entry into a ring. The control thread empties such a ring
 * as a whole, so a flood wakes it a few times only.
 */
void control_tell(struct engine *e, const struct rte_ring *ring);
/*
 * (control) After it has taken entries from such a ring: whether there are more. It looks once more,
 * because an lcore that has put one there since may have found the ring not yet emptied.
 */
bool control_has_more(const struct rte_ring *ring);

/* A copy is over: wakes the control thread while a command waits for copies. Any lcore. */
void copy_over_tell(struct engine *e);
static inline void copy_over(struct engine *e)
{
	if (__atomic_load_n(&e->settlers, __ATOMIC_RELAXED) != 0)
		copy_over_tell(e);
}

#endif
