/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches what a queue pair is about to touch. */
#include "base/bits.h"
#include "transport/qp.h"
#include "transport/transport.h"

#define LINE 64u

static void ask(const void *memory, size_t octets)
{
	for (size_t at = 0; at < octets; at += LINE)
		__builtin_prefetch((const uint8_t *)memory + at);
}

void qp_ahead(const struct qp *qp)
{
	ask(qp, sizeof(*qp));
}

void qp_requests_ahead(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	uint32_t n = MIN_OF(r->tail - r->nxt, LIMIT_TURN);

	for (uint32_t i = 0; i < n; i++) {
		ask(request_at(r, r->nxt + i), MIN_OF(r->stride, 2 * LINE));
		ask(message_at(r, r->nxt + i), 1);
	}
}
