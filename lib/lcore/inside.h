/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that files of the data path call in each other, in the order of a frame's way. */
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
	bool unsent; /* it is to be made again */
	bool lent; /* it goes without its payload: lent.h */
	bool kept; /* its outlet has it: outlet.h */
	bool captured; /* a capture or trace has seen them: capture.h */
	uint16_t peer_first; /* peer copies of its payload in the round's batch */
	uint16_t peer_count;
	struct packet packet; /* to name it to the core if it cannot be sent */
};

/* rx.c */
uint32_t rx_poll(struct lcore *l, nanotime now);
/* Nobody needs this buffer any more: it is freed with the others of its burst. */
void frame_spent(struct lcore *l, struct rte_mbuf *m);

/*
 * A packet for this queue pair, whose octets lie in the mbuf. Returns true if the mbuf was kept;
 * else it is still the caller's.
 */
bool packet_input(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		  nanotime now);
/* crossing.c: the frame, marked, goes to another lcore's inbox, as soon as that has room. */
void hand_over(struct lcore *l, struct lcore *to, struct rte_mbuf *m, uint32_t mark);

/* Kinds of frames inside the engine: the low octet of the mark. */
enum frame_kind {
	FRAME_RECEIVED, /* as from a wire */
	FRAME_LENT, /* a trusted one without its payload: lent.h */
	FRAME_TRUSTED, /* its ICRC was checked by another lcore, or it never left the engine unsummed */
	FRAME_RAW_LOOPED, /* a raw queue pair's, to be steered */
	FRAME_RAW_DELIVERED, /* steered: raw_arrived */
	FRAME_FOR_MEMBERS, /* for a group, from the lcore that received it: for the members here */
	FRAME_KINDS,
};

/*
 * Marks of frames inside the engine (mbuf.hash.usr): the kind in the low octet, and above that the
 * number of the queue pair that sent it; 0: it came by the port.
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
 * A frame that the queue pair `sender` made for one of our own addresses; false: no room, the frame
 * stays the caller's.
 */
bool loop_output(struct lcore *l, struct rte_mbuf *m, uint32_t sender, uint32_t dest_qpn,
		 enum frame_kind kind);

/* work.c: the oldest posted receive, copied to private memory; NULL: none. Then one of the two below. */
const struct recv_work *receive_peek(struct lcore *l, struct engine_qp *q, nanotime now);
void receive_taken(struct lcore *l, struct engine_qp *q);
/* It was not used. One of an SRQ goes back to all queue pairs. */
void receive_kept(struct lcore *l, const struct recv_work *offer);
/* Completes the posted receives of a queue pair in ERR as flushed. */
void receives_flush(struct lcore *l, struct engine_qp *q, nanotime now);

/* The queue pair goes. */

/* place.c */
struct copy_batch *copy_batch_create(void);
void copy_batch_destroy(struct copy_batch *b);
/* Makes (or starts) the copies and the atomic of an outcome; settles what is done at once. True: the mbuf was kept. */
bool place_outcome(struct lcore *l, struct engine_qp *q, const struct outcome *o,
		   const struct packet *p, struct rte_mbuf *m, nanotime now);
/* A ticket without copies: settled after the tickets before it. */
void place_nothing(struct lcore *l, struct engine_qp *q, uint64_t ticket, nanotime now);
/* Makes the batched peer copies and settles their tickets. */
void place_flush(struct lcore *l, nanotime now);
/* Takes the results of movers, and resumes what waited for them (moving.c). */
uint32_t place_poll(struct lcore *l, nanotime now);
/* Forgets a queue pair that is being detached (its copies are waited for or made harmless). */
void place_forget(struct lcore *l, struct engine_qp *q);

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

/*
 * notify.c: completions and events to programs. The time of the completion is filled in. The queue
 * pair fails if the CQ has no room; NULL: an operation of none.
 */
void cq_complete(struct lcore *l, struct engine_qp *q, struct engine_cq *cq, struct completion *c,
		 nanotime now);
/* Asynchronous events of a queue pair (QP_EVENT_*) to its program. */
void qp_raise(struct lcore *l, struct engine_qp *q, uint32_t events);
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
/*
 * Sends them in order, or keeps them in their outlet; what failed is reported to the core. The mbufs
 * are gone then.
 */
void frames_send(struct lcore *l, struct staged_frame *frame, uint32_t n, nanotime now);
/* Parts of it. Finished frames, at most LIMIT_BURST, in one burst; returns how many left. */
bool frame_goes_to_port(const struct staged_frame *s);
uint32_t frames_burst(struct lcore *l, struct staged_frame **s, uint32_t n);
/* One that does not go to the port alone. False: no room; the frame is still the caller's. */
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
