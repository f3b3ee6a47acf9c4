/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of a queue pair in flight, as its path counts them: octets of frames, and their PSNs.
 * Octets are not remembered for each PSN: a PSN that leaves takes the average. When nothing is in
 * flight, both are 0.
 */
#ifndef TRANSPORT_FLIGHT_H
#define TRANSPORT_FLIGHT_H

#include <assert.h>

#include "transport/qp.h"

/* About the headers and ICRC of a frame. */
#define FLIGHT_HEADER 74u

/* Octets of the frames of so many packets with this payload together (a READ request: of its
 * responses).
 */
static inline uint32_t flight_octets(uint32_t packets, uint32_t payload)
{
	return packets * FLIGHT_HEADER + payload;
}

/* A packet was made; `psns`: with its responses; `lost`: see path_sent. */
static inline void flight_sent(struct qp *qp, uint32_t psns, uint32_t octets, uint32_t lost,
			       nanotime now)
{
	struct requester *r = &qp->req;

	if (qp->path == NULL)
		return;
	path_sent(qp->path, octets, lost, now);
	r->flying += octets;
	r->flying_psns += psns;
	r->unasked_octets = (r->unasked > 0 ? r->unasked_octets : 0) + octets;
	if (r->resumed > 0)
		r->resumed--;
}

/* So many of them are not in flight any more. */
static inline void flight_gone(struct qp *qp, uint32_t psns, bool arrived)
{
	struct requester *r = &qp->req;
	uint64_t octets = r->flying;

	assert(psns <= r->flying_psns && psns > 0);
	if (psns < r->flying_psns)
		octets = octets * psns / r->flying_psns;
	r->flying -= octets;
	r->flying_psns -= psns;
	path_gone(qp->path, octets, arrived);
}

/*
 * Counts packets that are not in flight any more, because they arrived or are lost. `arrived`:
 * something did.
 */
void flight_trim(struct qp *qp, bool arrived);

/* The same when something arrived, no loss is known and the path stands (flight_follow). */
static inline void flight_arrived(struct qp *qp)
{
	const struct requester *r = &qp->req;
	uint32_t there = (r->top_psn - r->una_psn) & PSN_MASK;

	assert(r->board.clean && "all that was sent and not acknowledged is on its way");
	if (there < r->flying_psns)
		flight_gone(qp, r->flying_psns - there, true);
}

/* Nothing is in flight. */
void flight_over(struct qp *qp);

/*
 * How many packets may be unacknowledged. More than LIMIT_WINDOW only on a long way, to a peer that
 * tells what it holds behind a gap: a lost packet stops the window for one more round trip, so full
 * use of the way takes two.
 */
uint32_t flight_window(const struct qp *qp);

/* How many packets are unacknowledged. */
static inline bool flight_has_window(const struct qp *qp, uint32_t packets)
{
	return packets <= LIMIT_WINDOW || packets <= flight_window(qp);
}

/* How many full packets the path's window has room for, at least one; without a path, as above. */
uint32_t flight_way(const struct qp *qp);

/*
 * The octets that need room before a READ asks for so many: with their headers, but half of the window at most. A
 * part is longer than that only if the peer has room for few READs.
 */
uint32_t flight_read_octets(const struct qp *qp, uint32_t length);
/*
 * Whether the path lets a frame of this many octets go. While others wait, only a queue pair that
 * was resumed may send. One more packet may follow if none in flight asked for an acknowledgement:
 * this one asks.
 */
static inline bool flight_may_send(const struct qp *qp, uint32_t octets, nanotime now)
{
	const struct requester *r = &qp->req;

	if (qp->path->held > 0 && r->resumed == 0)
		return r->unasked > 0;
	return path_may_send(qp->path, octets, now) || r->unasked > 0;
}

/* Whether a packet of any size may follow at once; if not, the last one asks for an
 * acknowledgement.
 */
static inline bool flight_may_follow(const struct qp *qp, nanotime now)
{
	if (qp->path == NULL)
		return true;
	return path_may_send(qp->path, flight_octets(1, qp->mtu), now) &&
	       (qp->path->held == 0 || qp->req.resumed > 0);
}

/*
 * Whether this packet asks for an acknowledgement because so many before it did not. At least four
 * packets of a window ask: with only one acknowledgement a window, the sender waits while the peer
 * works, and works while the peer waits.
 */
static inline bool flight_should_ask(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return r->unasked >= LIMIT_ACK_EVERY ||
	       (qp->path != NULL && 4 * r->unasked_octets > qp->path->window);
}

/*
 * A queue pair that gets no answers. Its peer may be gone while others on the path get answers, so
 * its packets on the way must not keep their room: they no longer count. Until something is heard,
 * its oldest packet alone is sent, whether the path has room or not. That is seldom: probes,
 * one packet for each ACK timeout, and one when the path is given up.
 *
 *	LIMIT_PROBES_ALONE probes without an answer, or the retransmission timer		-> alone
 *	held for an ACK timeout in which the path heard nothing			-> alone
 *	the path is given up (path_ask) while it waits, or for an answer		-> alone
 *	any answer								-> as before
 */
void flight_alone(struct qp *qp);
/*
 * It sent a packet while it is alone. Probes and timers keep repetitions apart. The path does so
 * with the first packets of those that waited for it.
 */
void flight_sent_alone(struct qp *qp, uint32_t octets, bool again, nanotime now);

/*
 * The path was given up: nothing is in flight any more. Queue pairs that wait for their turn are
 * alone, too: those whose peer is gone would fill the path again, turn by turn, and each time it
 * would have to be given up. Those that had nothing to send go on as before.
 */
static inline void flight_follow(struct qp *qp)
{
	struct requester *r = &qp->req;

	if (qp->path == NULL || r->given_up == qp->path->given_up)
		return;
	r->given_up = qp->path->given_up;
	r->alone |= r->held || r->resumed > 0 || r->una_psn != r->top_psn;
	r->flying = 0;
	r->flying_psns = 0;
}

/* The next packet is the oldest; it goes whether or not the path has room. */
static inline bool flight_is_alone(const struct requester *r)
{
	return (r->board.probes > 0 || r->alone) && r->nxt_psn == r->una_psn;
}

/* Something was heard. */
static inline void flight_heard(struct qp *qp)
{
	flight_follow(qp);
	qp->req.alone = false;
	if (qp->path != NULL)
		qp->path->heard++;
}

/* The queue pair waits for its path. */
static inline bool flight_waits(const struct requester *r)
{
	return r->held && !flight_is_alone(r);
}

/*
 * The queue pair is held back until qp_resume: it wants to send so many octets. With nothing of its
 * own in flight, it waits at most for an ACK timeout of silence on its path (flight_expired).
 */
void flight_hold(struct qp *qp, uint32_t octets, nanotime now);
void flight_expired(struct qp *qp, nanotime now);
/* The queue pair is not held back any more: it has nothing to send, or another path. */
void flight_release(struct qp *qp);

#endif
