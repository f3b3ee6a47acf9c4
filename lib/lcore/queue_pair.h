/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair of the engine and the objects that it refers to: completion queues, channels,
 * address handles, multicast groups. Comments say which fields of an object that lcores read belong
 * to the control path.
 */
#ifndef LCORE_QUEUE_PAIR_H
#define LCORE_QUEUE_PAIR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/time.h"
#include "config/limits.h"
#include "lcore/moderate.h"
#include "queue/cq_resize.h"
#include "queue/cq_ring.h"
#include "queue/ring.h"
#include "transport/transport.h"
#include "wire/envelope.h"

struct client;
struct destination;
struct engine_srq;
struct engine_xrcd;
struct held_packet;
struct lcore;
struct lcore_path;
struct mover;
struct target;
struct user;

/* The other end is in the program. EOF tells either side that the other is gone. */
struct engine_channel {
	struct client *client;
	uint32_t context; /* handle */
	uint32_t handle;
	uint32_t users; /* CQs on it (control) */
	int fd; /* our end, non-blocking */
};

struct engine_cq {
	struct cq_rings rings;
	struct client *client;
	struct engine_channel *channel; /* NULL: none */
	struct moderation moderation;
	uint64_t cookie;
	bool ignores_overrun; /* IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN: those without room are lost */
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
	int async_fd; /* the channel on which its context gets the event of an overrun */
};

STAILQ_HEAD(held_list, held_packet);
TAILQ_HEAD(held_queue, held_packet);

/* Where a queue pair's packets go. */
enum flow_state {
	FLOW_NONE, /* no address vector yet, or its MAC address is being resolved: hold packets */
	FLOW_PORT,
	FLOW_LOOP, /* one of our own addresses: goes round inside the engine */
	FLOW_UNREACHABLE, /* resolution failed: packets are lost, retries will tell the program */
	FLOW_BY_HANDLE, /* UD: the address handle of each request decides */
};

/*
 * An address handle. Lcores never see one change. For a new MAC address a new handle takes its
 * place, and the old one is freed after a grace period.
 */
struct engine_ah {
	struct flow flow;
	uint8_t flow_state; /* enum flow_state, never BY_HANDLE; NONE: packets are lost meanwhile */
	bool port_by_qpns; /* no flow label: both numbers give each packet's source port */
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
	uint32_t destination_version; /* from which its envelope was made */
	TAILQ_ENTRY(engine_ah) destination_link;
	LIST_ENTRY(engine_ah) engine_link;
};

/* A multicast group with members here. */
struct mcast_group {
	struct mcast_group *next; /* in its bucket */
	struct gid gid;
	struct engine_qp *member[LIMIT_MCAST_QPS]; /* NULL: a free slot */
	uint32_t members; /* (control) */
	struct user *user; /* (control) the one that came first */
	struct mcast_group *freed_next; /* (control) unlinked, waits for a grace period */
};

/* The requests that were posted at the last question: see cmd_ah.c. */
struct posted_mark {
	uint32_t serial; /* of the question */
	uint32_t end; /* the value of qp_retired when all that was posted by then has left */
};

struct engine_qp {
	/* hot: the lcore's */
	struct qp *core;
	struct lcore *lcore; /* atomic for other lcores (qp_lcore), as it may move before RTR */
	struct qp_page *page;
	struct ring_side sq;
	struct ring_side rq;
	struct engine_cq *send_cq;
	struct engine_cq *recv_cq; /* NULL: an XRC target, see srq.h */
	struct engine_srq *srq; /* where its receives come from; NULL: from rq, or XRC */
	struct engine_xrcd *xrcd; /* of an XRC target, */
	LIST_HEAD(, target) holders; /* and the programs that have a handle of it: xrc.h */
	struct client *client;
	uint32_t qpn;
	uint32_t handle;
	uint8_t type; /* enum qp_type */
	uint8_t flow_state; /* enum flow_state */
	bool is_ready; /* stands in lcore.turns, or in another list where it waits */
	bool in_wheel;
	bool unsettled; /* in lcore.unsettled */
	bool detached;
	bool gather_pending; /* a mover reads payload for it: no next packet until then */
	bool broken; /* its client wrote nonsense into a ring */
	bool held_back; /* a frame of this round was not sent: none may overtake it */
	bool flushing; /* in ERR, and the posted receives complete next */
	bool more_work; /* the window was full: its ring holds more */
	bool keeps_slots; /* a request failed: slots are free once polled (packet.c) */
	bool crowded; /* it has asked for room for more unsettled copies */
	bool raw; /* whole frames, see raw.h */
	bool unreliable; /* a packet is done when it has left */
	uint8_t raw_flags; /* enum raw_flag */
	bool error_asked; /* WQ: its program put it into the error state */
	bool receive_valid; /* `receive` holds the request at rq's cursor */
	bool atomic_waits; /* its copies are an atomic that its lcore tries again (moving.c) */
	bool operation_waits; /* in lcore.operations */
	bool parked; /* its path holds it back, see paths.h, */
	uint8_t parked_at; /* ... in this place of lcore_path.of_user */
	bool operation_owed; /* an invalidation is reported when its copies are over */
	bool may_hold; /* (control) UD: in client_objects.holding */
	bool has_peer; /* (control) connected: peers.h, */
	bool placed; /* (control) counts as one of its lcore's: placing.h */
	uint8_t outlet; /* enum outlet_name: the one that did not take its frames */
	uint8_t overdrawn; /* packets by which its turns went on: tx.c */
	uint16_t wary; /* so many packets more, as one was sent again: tx.c */
	uint16_t waiting; /* frames that the outlet did not take; no turn until they leave */
	uint16_t identification; /* of the next IPv4 header */
	uint32_t peer_qpn; /* (control) of the peer that it is connected to */
	uint32_t destination_version; /* (control) from which its flow was made */
	struct lcore_path *way; /* the path of its packets; NULL: none, see paths.h */
	struct drain_program *drains; /* where it stands in lcore.drains; NULL: it does not */
	TAILQ_ENTRY(engine_qp) drain_link;
	uint32_t wheel_slot;
	uint32_t published_retired;
	nanotime wheel_at;
	TAILQ_ENTRY(engine_qp) park_link;
	struct ready_list *stands_in; /* lcore.turns, outlet.blocked, moving.starved */
	TAILQ_ENTRY(engine_qp) ready_link;
	nanotime waiting_since; /* since when frames wait; the core was told of the time before */
	LIST_ENTRY(engine_qp) wheel_link;
	struct flow flow;
	uint64_t received, sent; /* packets */
	uint64_t again; /* how many of `sent` were sent before */
	struct recv_work *receive; /* private copy of the oldest posted receive, rq.stride octets */
	uint64_t last_ticket; /* of the last copy given to a batch or mover; 0: all settled */
	uint64_t chain; /* ... if one fails, the copies behind it are not made */
	struct mover *mover; /* ... which makes them; NULL: its lcore */
	struct held_list held; /* packets that wait for it, see hold.c */
	TAILQ_ENTRY(engine_qp) held_link;
	struct held_queue behind[2]; /* requests, responses that came too early: behind.c */
	uint32_t behind_count; /* ... their number */
	uint32_t rendezvous; /* of tagged messages, under way: at most LIMIT_RENDEZVOUS */
	uint32_t
		unexpected; /* ... and messages without an entry, whose receives are not complete */
	uint32_t windows; /* atomic: of type 2, bound through it */
	struct posted_mark posted[2]; /* see struct posted_mark */
	struct key_operation operation; /* on its way to the control thread */
	TAILQ_ENTRY(engine_qp) operation_link;
	/* (control) */
	uint64_t cookie;
	uint32_t context;
	uint32_t pd;
	uint32_t groups; /* multicast groups that it is a member of */
	LIST_ENTRY(engine_qp) holding_link;
	int async_fd;
	uint32_t async_events; /* atomic */
	uint32_t async_owed; /* atomic: as of a CQ */
	uint32_t raw_users; /* steering rules and indirection tables that lead to it */
	uint64_t sq_offset, rq_offset, page_offset;
	size_t sq_octets, rq_octets;
	void *memory; /* of core and receive: see qp_memory.c */
	void *records; /* of a peer's READs and atomics; NULL: none */
	void *tickets; /* of many unsettled copies; NULL: of a few, in `memory` */
	uint64_t memory_octets, memory_maps; /* of all three */
	struct destination *destination; /* as of an address handle */
	TAILQ_ENTRY(engine_qp) destination_link;
	LIST_ENTRY(engine_qp) peer_link;
	LIST_ENTRY(engine_qp) engine_link;
};

TAILQ_HEAD(ready_list, engine_qp);
TAILQ_HEAD(drain_list, engine_qp);
TAILQ_HEAD(parked_list, engine_qp);
TAILQ_HEAD(operation_list, engine_qp);
TAILQ_HEAD(waiting_list, engine_qp);
LIST_HEAD(wheel_slot, engine_qp);

/* Acquire: an lcore that finds itself here sees what the last one left (lcore_qp_move). */
static inline struct lcore *qp_lcore(const struct engine_qp *q)
{
	return __atomic_load_n(&q->lcore, __ATOMIC_ACQUIRE);
}

/* Copies from or to memory are under way for it. On its lcore. */
static inline bool qp_has_copies(const struct engine_qp *q)
{
	return q->last_ticket != 0 || q->gather_pending;
}

#endif
