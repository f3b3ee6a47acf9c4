/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of the round trip: from the departure of a packet that asks for an acknowledgement, and
 * was never sent again, to its acknowledgement. One at a time. Whatever is sent again meanwhile
 * ends it: an acknowledgement might be that of either packet, or late for want of the one before
 * (Karn's rule). But the first sample of a path may be too long: otherwise one that is longer than
 * the wait for a probe would never be known.
 */
#ifndef TRANSPORT_SAMPLE_H
#define TRANSPORT_SAMPLE_H

#include "transport/qp.h"

static inline void sample_reset(struct requester *r)
{
	r->sampling = false;
}

/* A packet that is acknowledged was made. It leaves at once unless sample_left says later. */
static inline void sample_made(struct qp *qp, const struct packet *p, bool asks, nanotime now)
{
	struct requester *r = &qp->req;

	if (p->again) {
		r->sampling &= path_srtt(qp->path) == 0;
	} else if (asks && !r->sampling) {
		r->sampling = true;
		r->sample_psn = p->psn;
		r->sample_at = now;
	}
}

static inline void sample_left(struct requester *r, const struct packet *p, nanotime now)
{
	if (r->sampling && r->sample_psn == p->psn)
		r->sample_at = now;
}

/* una_psn moved on. */
static inline void sample_acknowledged(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;

	if (!r->sampling || !psn_after(r->una_psn, r->sample_psn))
		return;
	r->sampling = false;
	path_answered(qp->path, r->sample_at);
	/* In the poll that sent it, the clock was read before: then the time is unknown. */
	if (qp->path != NULL && now > r->sample_at)
		path_rtt(qp->path, now - r->sample_at, now);
}

#endif
