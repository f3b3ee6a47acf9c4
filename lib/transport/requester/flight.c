/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/requester/flight.h"
#include "transport/transport.h"

/* All PSNs of both sets are among these `all`; the sets may be much larger. */
static uint32_t count(struct psn_set a, struct psn_set b, uint32_t from, uint32_t all)
{
	uint32_t n = 0, words = MIN_OF((from % 64 + all + 63) / 64, a.words);

	for (uint32_t i = 0, at = from / 64; i < words; i++, at++) {
		uint64_t both = a.word[at & (a.words - 1)] | b.word[at & (a.words - 1)];

		n += both != 0 ? bits_in(both) : 0;
	}
	return n;
}

/* Sent, and neither acknowledged nor lost, as far as is known. */
static uint32_t on_their_way(const struct requester *r)
{
	uint32_t all = (r->top_psn - r->una_psn) & PSN_MASK;

	const struct board *b = &r->board;

	if (b->clean)
		return all;
	return all - MIN_OF(all, count(board_set(b, BOARD_LOST), board_set(b, BOARD_HELD),
				       r->una_psn, all));
}

void flight_trim(struct qp *qp, bool arrived)
{
	struct requester *r = &qp->req;
	uint32_t now_there;

	flight_follow(qp);
	if (r->flying_psns == 0)
		return;
	now_there = on_their_way(r);
	if (now_there < r->flying_psns)
		flight_gone(qp, r->flying_psns - now_there, arrived);
}

void flight_over(struct qp *qp)
{
	flight_follow(qp);
	if (qp->req.flying_psns > 0)
		flight_gone(qp, qp->req.flying_psns, false);
	assert(qp->req.flying == 0 && "the last one takes all octets");
}

uint32_t flight_window(const struct qp *qp)
{
	if (qp->path == NULL || !qp->selective)
		return LIMIT_WINDOW;
	return (uint32_t)MIN_OF(
		board_window(&qp->req.board),
		MAX_OF(LIMIT_WINDOW, LIMIT_WINDOW_US * (path_min_rtt(qp->path) / TIME_US)));
}

uint32_t flight_way(const struct qp *qp)
{
	if (qp->path == NULL)
		return flight_window(qp);
	return (uint32_t)MAX_OF(qp->path->window / flight_octets(1, qp->mtu), 1);
}

uint32_t flight_read_octets(const struct qp *qp, uint32_t length)
{
	uint32_t packets = MAX_OF((length + qp->mtu - 1) >> qp->mtu_shift, 1);
	uint64_t all = (uint64_t)packets * FLIGHT_HEADER + length;

	return (uint32_t)MAX_OF(MIN_OF(all, qp->path->window / 2),
				flight_octets(1, MIN_OF(length, qp->mtu)));
}

static void watch_path(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	r->heard = qp->path->heard;
	r->unheard_at = r->timeout != TIME_NEVER ? now + r->timeout : TIME_NEVER;
}

void flight_hold(struct qp *qp, uint32_t octets, nanotime now)
{
	assert(qp->path != NULL && !qp->req.held && "it was to send");
	qp->req.held = true;
	qp->req.wanted = octets;
	qp->req.resumed = 0;
	if (qp->req.nxt_psn == qp->req.una_psn)
		watch_path(qp, now);
	qp->path->held++;
	path_count(qp->path, PATH_WAIT);
}

/*
 * Its turn does not come while others wait for a peer that may be gone. Each of them holds the path
 * until its timer fires, so hundreds would find out one after the other.
 */
void flight_expired(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	if (now < r->unheard_at)
		return;
	r->unheard_at = TIME_NEVER;
	if (r->heard == qp->path->heard)
		flight_alone(qp);
	else
		watch_path(qp, now);
}

void flight_alone(struct qp *qp)
{
	if (qp->path == NULL)
		return;
	flight_release(qp);
	flight_over(qp);
	qp->req.alone = true;
}

void flight_sent_alone(struct qp *qp, uint32_t octets, bool again, nanotime now)
{
	if (qp->path == NULL)
		return;
	flight_over(qp);
	if (!again)
		path_sent_alone(qp->path, octets, now);
}

void flight_release(struct qp *qp)
{
	if (!qp->req.held)
		return;
	assert(qp->path->held > 0);
	qp->req.held = false;
	qp->req.unheard_at = TIME_NEVER;
	qp->path->held--;
}

void qp_resume(struct qp *qp)
{
	if (!qp->req.held)
		return;
	flight_release(qp);
	qp->req.resumed = LIMIT_TURN;
}

bool qp_is_held(const struct qp *qp)
{
	return qp->req.held;
}

bool qp_may_resume(const struct qp *qp, nanotime now)
{
	return !qp->req.held || path_may_send(qp->path, qp->req.wanted, now);
}

nanotime qp_resumes_at(const struct qp *qp, nanotime now)
{
	return qp->req.held ? path_opens_at(qp->path, qp->req.wanted, now) : now;
}

void qp_give_path(struct qp *qp, struct path *path)
{
	struct requester *r = &qp->req;
	uint64_t octets;
	uint32_t psns;

	flight_follow(qp);
	octets = r->flying;
	psns = r->flying_psns;
	flight_release(qp);
	flight_over(qp);
	r->sampling = 0; /* counted on the other path */
	qp->path = path;
	if (path == NULL)
		return;
	/* Packets in flight count on the new path from now on, for want of better knowledge. */
	path->flying += octets;
	r->given_up = path->given_up;
	r->flying = octets;
	r->flying_psns = psns;
}
