/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of the round trip: from the departure of a packet that asks for an acknowledgement, and
 * was never repeated, to its acknowledgement. One runs at a time. On a long way (more than
 * LIMIT_WINDOW packets) SAMPLES run, a part of a round trip apart, because a queue would show too
 * late otherwise.
 *
 * Any repetition meanwhile ends them: the acknowledgement might be that of either packet, or late
 * for want of the one before (Karn's rule). But the first sample of a path may be too long:
 * otherwise a round trip longer than the wait for a probe would never be known. And on a long way
 * something is always repeated; there only a selective acknowledgement, which comes when its packet
 * does, ends the doubt.
 */
#ifndef TRANSPORT_SAMPLE_H
#define TRANSPORT_SAMPLE_H

#include "transport/qp.h"

static inline void sample_reset(struct requester *r)
{
	r->sampling = 0;
}

/* More is in flight than a short way ever has. */
static inline bool sample_way_is_long(const struct requester *r)
{
	return r->samples > 1 && ((r->top_psn - r->una_psn) & PSN_MASK) > LIMIT_WINDOW;
}

/* Few packets need this: repetitions, and packets on a long way. */
void sample_again(struct qp *qp, const struct packet *p);
void sample_another(struct qp *qp, const struct packet *p, nanotime now);

static inline void sample_begin(struct requester *r, const struct packet *p, nanotime now)
{
	r->sample[r->sampling++] = (struct sample){ .psn = p->psn, .at = now };
}

/* A packet that is acknowledged was made. It leaves at once unless sample_left says later. */
static inline void sample_made(struct qp *qp, const struct packet *p, bool asks, nanotime now)
{
	struct requester *r = &qp->req;

	if (p->again)
		sample_again(qp, p);
	else if (asks && r->sampling == 0)
		sample_begin(r, p, now);
	else if (asks && r->sampling < r->samples && sample_way_is_long(r))
		sample_another(qp, p, now);
}

static inline void sample_left(struct requester *r, const struct packet *p, nanotime now)
{
	if (r->sampling > 0 && r->sample[r->sampling - 1].psn == p->psn)
		r->sample[r->sampling - 1].at = now;
}

/* The packets of the first `n` samples have arrived; the newest is one sample. */
void sample_over(struct qp *qp, uint32_t n, bool selected, nanotime now);

/* una_psn moved on. */
static inline void sample_acknowledged(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;
	uint32_t n = 0;

	while (n < r->sampling && psn_after(r->una_psn, r->sample[n].psn))
		n++;
	if (n > 0)
		sample_over(qp, n, false, now);
}

/* The peer has this packet, which was sent once. */
static inline void sample_selected(struct qp *qp, uint32_t psn, nanotime now)
{
	const struct requester *r = &qp->req;

	for (uint32_t n = 0; n < r->sampling; n++)
		if (r->sample[n].psn == psn)
			sample_over(qp, n + 1, true, now);
}

#endif
