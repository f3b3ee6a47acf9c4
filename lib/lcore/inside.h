/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that files of the data path call in each other, in the order of a frame's way. */
#ifndef LCORE_INSIDE_H
#define LCORE_INSIDE_H

#include <assert.h>

#include "lcore/lcore.h"

struct peer_atomic;
struct peer_copy;

/* Frames of one tx round, in the order in which they were made. */

struct staged_frame {
	struct rte_mbuf *mbuf;
	struct engine_qp *qp;
	/* A new frame has false and 0 in all of these. They lie together, so that few stores do it. */
	bool sealed;
	bool failed; /* its payload could not be read */
	bool raw; /* of a raw queue pair */
	bool unsent; /* it has to be made again */
	bool kept; /* its outlet has it: outlet.h */
	bool captured; /* a capture or trace has seen it: capture.h */
	bool echo; /* for a group that also has members here */
	bool lent; /* it goes without its payload: lent.h */
	bool port_by_qpns; /* its source port follows from both queue pair numbers */
	uint8_t refused; /* enum reason: why a raw or TSO frame may not be sent (`failed`, too) */
	uint16_t peer_count; /* peer copies of its payload in the round's batch, */
	uint16_t peer_first; /* ... from this one on */
	uint16_t header_length;
	uint16_t payload_length;
	uint8_t flow_state; /* enum flow_state: where it goes, if it is not raw */
	bool loop;
	bool summed;
	uint8_t l3; /* where its IP header begins */
	struct packet packet; /* names it to the core if it cannot be sent */
};

/* rx.c */
uint32_t rx_poll(struct lcore *l, nanotime now);
/* This buffer is not needed any more. It is freed with the others of its burst. */
void frame_spent(struct lcore *l, struct rte_mbuf *m);

/* run_rx.c */
/* Whether a run may follow this frame, which the core has just taken. */
bool run_may_follow(const struct lcore *l, const struct engine_qp *q, const struct rte_mbuf *m);

/*
 * Takes the run at the beginning of the n frames *m, behind *p of the queue pair, for which run_may_follow() was true.
 * Returns how many frames that were. They are not the caller's any more.
 */
uint32_t run_rx(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf **m,
		uint32_t n, nanotime now);

/*
 * A packet for this queue pair, whose octets lie in the mbuf. True: the mbuf was kept; otherwise it
 * is still the caller's.
 */
bool packet_input(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		  nanotime now);
/* crossing.c: marks the frame, and puts it into another lcore's inbox as soon as that has room. */
void hand_over(struct lcore *l, struct lcore *to, struct rte_mbuf *m, uint32_t mark);

/* Kinds of frames inside the engine: the low octet of the mark. */
enum frame_kind {
	FRAME_RECEIVED, /* as from a wire */
	FRAME_LENT, /* a trusted one without its payload: lent.h */
	FRAME_TRUSTED, /* its ICRC was checked by another lcore, or it never left the engine unsummed */
	FRAME_RAW_LOOPED, /* a raw queue pair's, to be steered */
	FRAME_RAW_DELIVERED, /* steered: raw_arrived */
	FRAME_FOR_MEMBERS, /* for a group: another lcore received it, members here get it */
	FRAME_KINDS,
};

/*
 * Marks of frames inside the engine (mbuf.hash.usr). The low octet has the kind. Above it is the
 * number of the queue pair that sent the frame; 0: it came from the port.
 */
static inline uint32_t frame_mark(uint32_t kind, uint32_t sender)
{
	return kind | sender << 8;
}

static inline uint32_t frame_kind(uint32_t mark)
{
	assert((mark & 0xff) < FRAME_KINDS); /* marks are ours alone */
	return mark & 0xff;
}

static inline uint32_t frame_sender(uint32_t mark)
{
	return mark >> 8;
}

/*
 * Sends a frame of the queue pair `sender` to one of our own addresses. False: there is no room,
 * and the frame is still the caller's.
 */
bool loop_output(struct lcore *l, struct rte_mbuf *m, uint32_t sender, uint32_t dest_qpn,
		 enum frame_kind kind);

/*
 * work.c: copies the oldest posted receive into private memory. NULL: there is none. Call
 * receive_taken or receive_kept for it.
 */
const struct recv_work *receive_peek(struct lcore *l, struct engine_qp *q, nanotime now);
void receive_taken(struct lcore *l, struct engine_qp *q);
/* The packet did not use it. A request of an SRQ is offered to all its queue pairs again. */
void receive_kept(struct lcore *l, const struct recv_work *offer);
/*
 * Completes the posted receives of a queue pair in ERR as flushed: LIMIT_DRAIN of them. If there
 * are more, the queue pair stands in lcore.drains.
 */
void receives_flush(struct lcore *l, struct engine_qp *q, nanotime now);

/* place.c */
struct copy_batch *copy_batch_create(void);
void copy_batch_destroy(struct copy_batch *b);
/*
 * Makes or starts the copies and the atomic of an outcome, and settles what is done at once. True:
 * the mbuf was kept.
 */
bool place_outcome(struct lcore *l, struct engine_qp *q, const struct outcome *o,
		   const struct packet *p, struct rte_mbuf *m, nanotime now);
/* A ticket without copies: settled after the tickets before it. */
void place_nothing(struct lcore *l, struct engine_qp *q, uint64_t ticket, nanotime now);
/* Makes the batched peer copies and settles their tickets. */
void place_flush(struct lcore *l, nanotime now);
/* Takes the results of movers, and resumes what waited for them (moving.c). */
uint32_t place_poll(struct lcore *l, nanotime now);
/* A queue pair is being detached. Others wait for its copies, or make them harmless. */
void place_forget(struct lcore *l, struct engine_qp *q);

/*
 * The memory of a peer span of this queue pair's work, as a copy names it. NULL: the memory of the
 * queue pair's own client. A region of a shared protection domain may belong to another client.
 * That client cannot go while a span of its region is in use, because its regions go a grace period
 * before it does.
 */
static inline const struct peer_memory *span_memory(const struct lcore *l,
						    const struct engine_qp *q, const struct span *s)
{
	if (s->client == q->client->number)
		return NULL;
	return __atomic_load_n(&l->engine->client[s->client], __ATOMIC_ACQUIRE)->memory;
}

/*
 * notify.c: delivers completions and events to programs. Fills in the time of the completion. If
 * the CQ has no room, the queue pair fails. Queue pair NULL: an operation that belongs to none.
 */
void cq_complete(struct lcore *l, struct engine_qp *q, struct engine_cq *cq, struct completion *c,
		 nanotime now);
/* Asynchronous events of a queue pair (QP_EVENT_*) to its program. */
void qp_raise(struct lcore *l, struct engine_qp *q, uint32_t events);
/* tx.c */
uint32_t tx_poll(struct lcore *l, nanotime now);
/* Gives buffers for frames to come back to the pool. */
void blanks_return(struct lcore *l);
/* A turn of this client's queue pairs alone. */
void tx_of_client(struct lcore *l, const struct client *c, nanotime now);
void ready_add(struct lcore *l, struct engine_qp *q);
void ready_remove(struct lcore *l, struct engine_qp *q);

/* frame.c: after its peer copies (of this array) were made: pad and ICRC, or s->failed. */
void frame_seal(struct staged_frame *s, const struct peer_copy *copy);

/*
 * send.c: sends frames, which the caller has captured. Returns how many the port took; the others
 * are still the caller's.
 */
uint32_t port_send(struct lcore *l, struct rte_mbuf **m, uint32_t n);
/* ... captures those that were not captured before they had to wait, before the port has them. */
void frames_capture(struct lcore *l, struct staged_frame **s, uint32_t n);
/*
 * Sends the frames in order, or keeps them in their outlet, and reports failures to the core. Takes
 * the mbufs.
 */
void frames_send(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now);
/*
 * Parts of frames_send. frames_burst sends at most LIMIT_BURST finished frames in one burst, and
 * returns how many left.
 */
bool frame_goes_to_port(const struct staged_frame *s);
uint32_t frames_burst(struct lcore *l, struct staged_frame **s, uint32_t n);
/* Sends one that does not go to the port alone. False: no room, and it is still the caller's. */
bool frame_send_one(struct lcore *l, struct staged_frame *s);

/* cm_rx.c: a datagram for queue pair 1. Takes the mbuf. */
void cm_rx(struct lcore *l, const struct packet *p, struct rte_mbuf *m);
/* The peer has sent before its RTU arrived (IBV_EVENT_COMM_EST). */
void cm_rx_established(struct engine *e, const struct engine_qp *q);

/* tell.c: asks the control thread, once, for room for more unsettled copies of this queue pair. */
void qp_crowded(struct lcore *l, struct engine_qp *q);

static inline void count_reason(struct lcore *l, enum reason r)
{
	l->stats.by_reason[r]++;
}

#endif
