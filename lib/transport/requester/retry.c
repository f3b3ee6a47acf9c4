/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester's clock.
 *
 * The retransmission timer runs while something is unacknowledged. It is set with the first packet
 * in flight, restarts with every forward progress, and stops when nothing is left or an RNR wait
 * begins. A packet that the port refuses is not in flight, so a port that refuses for long takes no
 * retries. When the timer fires, all packets in flight are sent again, which takes one of retry_cnt
 * retries. Only forward progress (IBTA 9.9.2.1) and a new retry_cnt restore them. 7 means seven.
 * Losses that are found without the timer (recovery.c) take none. A retry without progress waits
 * longer than the one before.
 *
 * An RNR wait holds back everything until the time that the peer named has passed; nothing shortens
 * it. It takes one of rnr_retry retries; 7 means for ever (IBTA 9.7.5.2.8).
 *
 * A peer reports a gap again and again while old packets arrive, so there is one recovery per gap,
 * until something is acknowledged or the timer fires. It takes no retry, and does not delay the
 * timer.
 */
#include <assert.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/events.h"
#include "transport/qp.h"
#include "transport/requester/flight.h"
#include "transport/requester/recovery.h"
#include "transport/requester/request.h"
#include "transport/requester/retry.h"
#include "transport/requester/sample.h"
#include "wire/opcode.h"

#define RNR_RETRY_FOREVER 7
#define TIMEOUT_DOUBLINGS 2u
#define TIMEOUT_MOST	  (1u << TIMEOUT_DOUBLINGS) /* times as long at most (IBTA 9.7.6.1.3) */

void retry_reset(struct qp *qp)
{
	struct requester *r = &qp->req;

	r->una_psn = r->nxt_psn = r->top_psn = r->new_psn = 0;
	r->landing = qp->tickets.settled;
	r->unasked = 0;
	r->recovering = false;
	sample_reset(r);
	recovery_reset(qp);
	r->timeout = TIME_NEVER;
	r->retry_at = TIME_NEVER;
	r->unheard_at = TIME_NEVER;
	r->alone = false;
	r->rnr_until = TIME_NEVER;
	r->paced_until = TIME_NEVER;
	r->resumed = 0;
}

/*
 * A host that is short of processors, or a virtual machine that waits for one, may answer nobody
 * for half a second. Eight equal tries of 67 ms, which many programs ask for, would be over by
 * then. So each retry waits twice as long as the one before, up to TIMEOUT_MOST timeouts and to
 * LIMIT_SILENCE_MS. A timeout of more than that stays as the program asked for it.
 */
static nanotime least_wait(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	unsigned int tried = qp->attr.retry_cnt - r->retries;

	assert(r->retries <= qp->attr.retry_cnt && "only progress restores them");
	return MAX_OF(r->timeout, MIN_OF(r->timeout << MIN_OF(tried, TIMEOUT_DOUBLINGS),
					 LIMIT_SILENCE_MS * TIME_MS));
}

/*
 * A timer shorter than the round trip would repeat everything again and again, and Karn's rule
 * would leave no sample to tell so. IBTA 9.7.6.1.3 lets a requester detect a timeout late.
 */
static nanotime timer_from(const struct qp *qp, nanotime now)
{
	nanotime least = qp->req.timeout, trip = path_longest(qp->path);

	assert(now != TIME_NEVER);
	if (least == TIME_NEVER)
		return TIME_NEVER;
	return now + MIN_OF(MAX_OF(least_wait(qp), trip), TIMEOUT_MOST * least);
}

void retry_started(struct qp *qp, nanotime now)
{
	assert(qp->req.una != qp->req.begun && "something is on its way");
	if (qp->req.retry_at == TIME_NEVER) {
		qp->req.retry_at = timer_from(qp, now);
		qp->req.heard = path_heard(qp->path);
	}
	if (qp->req.board.probe_at == TIME_NEVER)
		recovery_wait(qp, now);
}

/*
 * A packet that was made did not leave, and is the next one again. A timer that runs for it stops.
 * A timer that runs for others restarts, because the packet that would ask for their
 * acknowledgement may not have left either. The delay is seldom long: packets that do leave fill
 * the window, and then no packet is made that can be refused.
 */
void retry_held_back(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	r->retry_at = r->una_psn == r->nxt_psn ? TIME_NEVER : timer_from(qp, now);
	recovery_wait(qp, now);
}

void qp_left(struct qp *qp, const struct packet *p, nanotime now)
{
	struct requester *r = &qp->req;

	if (opcode_is(p->opcode, OP_RESPONSE))
		return;
	sample_left(r, p, now);
	/* Later requests do not delay the timer of an earlier one. */
	if (p->psn != r->una_psn)
		return;
	if (r->retry_at != TIME_NEVER)
		r->retry_at = timer_from(qp, now);
	if (r->board.probe_at != TIME_NEVER)
		recovery_wait(qp, now);
}

void qp_delayed(struct qp *qp, nanotime by)
{
	struct requester *r = &qp->req;

	if (r->retry_at != TIME_NEVER)
		r->retry_at += by;
	if (r->board.probe_at != TIME_NEVER)
		r->board.probe_at += by;
}

void retry_progress(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	r->retries = qp->attr.retry_cnt;
	r->rnr_retries = qp->attr.rnr_retry;
	r->recovering = false;
	r->heard = path_heard(qp->path);
	r->retry_at = r->una_psn == r->nxt_psn ? TIME_NEVER : timer_from(qp, now);
	if (r->una_psn == r->top_psn)
		recovery_stop(qp);
	else
		recovery_wait(qp, now);
}

void retry_go_back(struct qp *qp)
{
	struct requester *r = &qp->req;

	assert(!psn_after(r->una_psn, r->nxt_psn) && "back, or not at all");
	recovery_all_lost(qp);
	request_resume(qp);
	r->unasked = 0;
	r->retry_at = TIME_NEVER;
}

static bool take_retry(struct qp *qp)
{
	struct requester *r = &qp->req;

	assert(r->una != r->begun && "what is tried again was sent before");
	if (r->retries == 0) {
		request_failed(qp, r->una, STATUS_RETRY_EXC_ERR, REASON_RETRIES_EXHAUSTED);
		return false;
	}
	r->retries--;
	return true;
}

/* The peer said selectively what it keeps behind this gap, so it did not drop that. */
static bool is_known(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	const struct board *b = &r->board;
	uint32_t n = (r->top_psn - r->una_psn) & PSN_MASK;

	return qp->selective && !b->clean && b->gap == r->una_psn &&
	       psn_set_first(board_set(b, BOARD_HELD), b->gap, n) < n;
}

void retry_gap(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	if (qp->state == QP_STATE_ERR || r->rnr_until != TIME_NEVER || r->una == r->begun ||
	    (r->recovering && r->recovery_psn == r->una_psn) || is_known(qp))
		return;
	r->recovering = true;
	r->recovery_psn = r->una_psn;
	path_count(qp->path, PATH_REPORTED);
	if (qp->path != NULL)
		path_lost(qp->path, true, now);
	recovery_all_lost(qp);
	request_resume(qp);
	r->unasked = 0;
}

/* IBTA table 45, in units of 10 us. */
nanotime rnr_time(uint8_t code)
{
	static const uint16_t table[32] = { 0,	  1,	2,    3,     4,	    6,	   8,	  12,
					    16,	  24,	32,   48,    64,    96,	   128,	  192,
					    256,  384,	512,  768,   1024,  1536,  2048,  3072,
					    4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152 };
	uint32_t units = table[code & 31]; /* five bits of a syndrome */

	return (units == 0 ? 65536 : units) * (10 * TIME_US); /* code 0 is the longest */
}

void retry_not_ready(struct qp *qp, uint8_t code, nanotime now)
{
	struct requester *r = &qp->req;

	if (qp->state == QP_STATE_ERR || r->rnr_until != TIME_NEVER)
		return;
	if (qp->attr.rnr_retry != RNR_RETRY_FOREVER) {
		if (r->rnr_retries == 0) {
			request_failed(qp, r->una, STATUS_RNR_RETRY_EXC_ERR,
				       REASON_RNR_RETRIES_EXHAUSTED);
			return;
		}
		r->rnr_retries--;
	}
	assert(r->una != r->begun && "the peer was not ready for something");
	retry_go_back(qp);
	recovery_stop(qp);
	r->rnr_until = now + rnr_time(code);
}

uint32_t qp_timeouts(const struct qp *qp)
{
	return qp->req.timeouts;
}

void retry_expired(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	if (r->retry_at == TIME_NEVER || now < r->retry_at)
		return;
	r->timeouts++;
	path_count(qp->path, PATH_TIMEOUT);
	r->retry_at = TIME_NEVER;
	r->recovering = false;
	if (!take_retry(qp))
		return;
	/*
	 * If others are answered, the peer has ended and the way works. A queue pair that was alone
	 * before says nothing new: its timers would close the path while others send nothing.
	 */
	if (qp->path != NULL && !r->alone && r->heard == path_heard(qp->path))
		path_silent(qp->path, now);
	recovery_start_over(qp);
	retry_go_back(qp);
	flight_alone(qp);
}
