/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/bits.h"
#include "transport/requester/sample.h"

void sample_again(struct qp *qp, const struct packet *p)
{
	struct requester *r = &qp->req;
	uint8_t kept = 0;

	if (!qp->selective || !sample_way_is_long(r)) {
		if (path_srtt(qp->path) != 0)
			sample_reset(r);
		return;
	}
	for (uint32_t i = 0; i < r->sampling; i++) {
		if (r->sample[i].psn == p->psn)
			continue;
		r->sample[kept] = r->sample[i];
		r->sample[kept++].doubted = true;
	}
	r->sampling = kept;
}

void sample_another(struct qp *qp, const struct packet *p, nanotime now)
{
	struct requester *r = &qp->req;

	if (now >= r->sample[r->sampling - 1].at + path_srtt(qp->path) / r->samples)
		sample_begin(r, p, now);
}

void sample_over(struct qp *qp, uint32_t n, bool selected, nanotime now)
{
	struct requester *r = &qp->req;
	struct sample s = r->sample[n - 1];

	assert(n > 0 && n <= r->sampling);
	r->sampling = (uint8_t)(r->sampling - n);
	memmove(r->sample, r->sample + n, r->sampling * sizeof(*r->sample));
	path_answered(qp->path, s.at);
	/* A caller that last polled before the packet left does not know when the answer came. */
	if (qp->path != NULL && now > s.at && (selected || !s.doubted))
		path_rtt(qp->path, now - s.at, now);
}
