/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/turns/ahead.h"

#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "wire/peek.h"

#define LINE 64u

/* Packets and turns use the beginning of the struct. */
static void qp_lines(const struct engine_qp *q)
{
	for (size_t at = 0; at < offsetof(struct engine_qp, posted); at += LINE)
		rte_prefetch0((const uint8_t *)q + at);
}

/* Collects the queue pair numbers of these frames. A run of the same number counts once. */
static uint32_t numbers_of(struct rte_mbuf *const *m, uint32_t n, uint32_t *qpn)
{
	uint32_t count = 0, last = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t number =
			packet_peek(rte_pktmbuf_mtod(m[i], const uint8_t *), m[i]->data_len);

		if (number != 0 && number != last)
			qpn[count++] = last = number;
	}
	return count;
}

void ahead_of_frames(struct lcore *l, struct rte_mbuf *const *m, uint32_t n)
{
	uint32_t qpn[LIMIT_BURST], count = numbers_of(m, n, qpn);
	const struct engine_qp *q[LIMIT_BURST];

	for (uint32_t i = 0; i < count; i++)
		rte_prefetch0(directory_slot(l->engine, qpn[i]));
	for (uint32_t i = 0; i < count; i++) {
		q[i] = directory_look(l->engine, qpn[i]);
		if (q[i] != NULL)
			qp_lines(q[i]);
	}
	for (uint32_t i = 0; i < count; i++)
		if (q[i] != NULL && qp_lcore(q[i]) == l)
			qp_ahead(q[i]->core);
}

static void ahead_of_next(const struct engine_qp *next, const struct engine_qp *behind)
{
	if (next != NULL)
		qp_ahead(next->core);
	if (behind != NULL)
		qp_lines(behind);
}

void ahead_of_turn(const struct engine_qp *q)
{
	const struct engine_qp *next = TAILQ_FIRST(q->stands_in);

	qp_requests_ahead(q->core);
	if (next != q)
		ahead_of_next(next, TAILQ_NEXT(next, ready_link));
}

void ahead_of_parked(const struct engine_qp *q)
{
	const struct engine_qp *next = TAILQ_NEXT(q, park_link);

	if (next != NULL)
		ahead_of_next(next, TAILQ_NEXT(next, park_link));
}

static const struct engine_qp *of_handle(const struct client *c, const uint32_t *handle,
					 uint32_t at, uint32_t n)
{
	if (at >= n || handle[at] > LIMIT_QPS)
		return NULL;
	return __atomic_load_n(&c->qp[handle[at]], __ATOMIC_ACQUIRE);
}

void ahead_of_bell(const struct client *c, const uint32_t *handle, uint32_t at, uint32_t n)
{
	ahead_of_next(of_handle(c, handle, at + 1, n), of_handle(c, handle, at + 2, n));
}
