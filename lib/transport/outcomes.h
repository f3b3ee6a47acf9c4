/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outcomes of a queue pair: what a received packet asks for, the next packet, completions,
 * asynchronous events and the next deadline.
 */
#ifndef TRANSPORT_OUTCOMES_H
#define TRANSPORT_OUTCOMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"
#include "base/time.h"
#include "base/work.h"
#include "memory/check.h"
#include "memory/spans.h"
#include "wire/packet.h"

struct qp;

/* An atomic that the caller is to execute on eight octets of memory, in host order. */
struct atomic_request {
	bool compare_swap; /* else fetch-and-add */
	uint64_t swap_add;
	uint64_t compare;
	struct span target; /* length 8 */
};

enum outcome_flag {
	OUTCOME_RECEIVE_USED =
		1 << 0, /* the offered receive request was taken: remove it from its queue */
	/*
	 * Copy `source` to `place`, then report the ticket. ATOMIC WRITE: one span of eight octets
	 * at a multiple of eight. Nobody may see it half written, so the caller copies such a span
	 * by one store.
	 */
	OUTCOME_PLACE = 1 << 1,
	OUTCOME_ATOMIC = 1 << 2, /* execute `atomic`, then report the ticket */
	/*
	 * SEND with invalidate: make `invalidate` unusable after the copies of `ticket` (if any).
	 * Report invalidate_ticket by qp_copied once no lcore can use the key any more. The core
	 * has checked that this queue pair may invalidate it (key_check_invalidate).
	 */
	OUTCOME_INVALIDATE = 1 << 3,
	/*
	 * The packet came ahead of others that must be passed in first. The caller drops it, or
	 * keeps it: then the caller says qp_held, and passes the packet in once more when
	 * qp_waits() is false.
	 */
	OUTCOME_HOLD = 1 << 4,
};

/* What a received packet asks for. Scratch memory of the caller; valid until the next call. */
struct outcome {
	enum reason reason; /* REASON_NONE: accepted. Else why it was dropped or refused */
	uint32_t flags; /* enum outcome_flag */
	uint64_t ticket; /* with PLACE or ATOMIC */
	const uint8_t *source; /* place.length octets: in the packet, or in `value` */
	uint64_t value;
	uint32_t invalidate; /* key */
	uint64_t invalidate_ticket;
	struct atomic_request atomic;
	struct span_list place;
};

/* Cheap: whether qp_next_packet is worth a call. */
bool qp_has_packet(const struct qp *qp);

enum next_packet {
	NEXT_NOTHING, /* nothing to send until another event */
	NEXT_PACKET, /* *p (and *gather) */
	NEXT_NOT_BEFORE, /* something to send, but not before *not_before: a deadline like any other */
	NEXT_HELD, /* its path holds requests back until qp_resume; *not_before says when to look */
	NEXT_OPERATION, /* nothing to send: execute qp_operation() */
};

/*
 * The next packet to send: owed replies first (in the requests' order), then requests. The core has
 * then counted it as sent. A request whose memory is not registered may fail here: so completions
 * and events may be due after NEXT_NOTHING, too. p->payload points to inline octets in the window,
 * or is NULL and the payload is to be gathered from *gather (gather->length == p->payload_length).
 * The caller reads this memory before it passes in the next event of this queue pair.
 */
enum next_packet qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				struct packet *p, struct span_list *gather, nanotime *not_before);

/*
 * How many packets follow *before that differ from it in PSN and payload alone, and do not ask for an acknowledgement:
 * at most `most`. *before: the packet that qp_next_packet() or this function made last, with no event since then. The
 * core has counted them as sent. Their payloads are one direct span in *gather, one path MTU for each. 0: *before is not
 * in the middle of a message, or was sent again, or what is next needs qp_next_packet().
 */
uint32_t qp_next_alike(struct qp *qp, const struct packet *before, const struct key_table *keys,
		       uint32_t most, nanotime now, struct span_list *gather);

/*
 * How many packets of *before's message are still to be made. *before: as for qp_next_alike(). 0: *before ends its message, or
 * was sent again, or is not of a message that the queue pair is making.
 */
uint32_t qp_message_rest(const struct qp *qp, const struct packet *before);

/*
 * After NEXT_HELD the queue pair waits for its path, which other queue pairs may share. It waits
 * for no timer, and replies are sent as ever. The caller keeps the waiting queue pairs in order,
 * and resumes the first ones when qp_may_resume() says so: at qp_resumes_at() at the latest.
 * TIME_NEVER: an event of some queue pair of the path brings it. A queue pair whose qp_is_held() is
 * false waits no more (it failed, or has another path). A deadline passes if nobody on the path is
 * answered for an ACK timeout: the queue pair's oldest packet leaves out of turn then.
 */
void qp_resume(struct qp *qp);
bool qp_is_held(const struct qp *qp);
bool qp_may_resume(const struct qp *qp, nanotime now);
nanotime qp_resumes_at(const struct qp *qp, nanotime now);

/* A request without a packet: bind a memory window, or invalidate a key. */
struct key_operation {
	uint32_t key; /* the window's, or the one to invalidate */
	uint32_t new_key; /* bind: the window's new key (same index) */
	uint32_t region_key; /* bind: lkey of the region */
	uint32_t access; /* bind: enum access_flag */
	bool bind; /* else invalidate `key` */
	uint64_t address; /* bind: address of the first octet in the region */
	uint64_t length; /* bind: octets */
	struct key_user user; /* on whose behalf */
};

/*
 * What to execute after NEXT_OPERATION, until qp_operation_done; NULL otherwise. Every earlier
 * request is complete by then. No later request is sent meanwhile, but replies to the peer are.
 */
const struct key_operation *qp_operation(const struct qp *qp);

/*
 * The next completion of either queue, if one is due: send completions in post order, receive
 * completions in arrival order, nothing before its ticket is settled. In ERR the rest of the send
 * window comes as flushed. *from_receive says which CQ it is for.
 */
bool qp_take_completion(struct qp *qp, struct completion *c, bool *from_receive);

/* A request of the program is done, so its slot and its completion may be taken. */
bool qp_has_done(const struct qp *qp);

/* The completion of a receive request that the caller took from a queue pair in ERR. */
void qp_flush_receive(const struct qp *qp, const struct recv_work *work, struct completion *c);

/*
 * How many of the program's requests have left the window since creation, modulo 2^32 (the client
 * may post that many more).
 */
uint32_t qp_retired(const struct qp *qp);
/* How many came into it: what qp_retired will say when all of them have left. */
uint32_t qp_taken(const struct qp *qp);

/* Asynchronous events, a set. */
enum qp_event {
	QP_EVENT_FATAL = 1 << 0,
	QP_EVENT_REQ_ERR = 1 << 1,
	QP_EVENT_ACCESS_ERR = 1 << 2,
	QP_EVENT_COMM_EST = 1 << 3,
	QP_EVENT_SQ_DRAINED = 1 << 4,
	QP_EVENT_LAST_WQE_REACHED = 1 << 5,
	QP_EVENT_REFUSED_ACCESS =
		1 << 18, /* not for programs: the peer is told that it may not reach the memory */
	QP_EVENT_SQ_ERROR = 1 << 17, /* not for programs: the send queue alone failed, to SQE */
	QP_EVENT_ENTERED_ERR =
		1 << 16, /* not for programs: the receive queue is to be flushed now */
};
uint32_t qp_take_events(struct qp *qp);

/* When qp_expired is to be called: TIME_NEVER or an instant. May move later without notice. */
nanotime qp_deadline(const struct qp *qp);

/* How often the retransmission timer fired, for statistics. */
uint32_t qp_timeouts(const struct qp *qp);

#endif
