/* SPDX-License-Identifier: BSD-3-Clause */
#include "look.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "transport/attributes.h"

#define PSN_MASK 0xffffffu
#define HALF	 (1u << 23)
#define AT_FIRST 64u

bool look_add(struct look *l, const struct listed_qp *qp)
{
	uint32_t room = MAX_OF(2 * l->room, AT_FIRST);
	struct seen_qp *larger;

	if (l->qps == l->room) {
		larger = reallocarray(l->qp, room, sizeof(*larger));
		if (larger == NULL)
			return false;
		l->qp = larger;
		l->room = room;
	}
	l->qp[l->qps++] = (struct seen_qp){ .qp = *qp };
	return true;
}

static int by_number(const void *a_, const void *b_)
{
	const struct seen_qp *a = a_, *b = b_;

	return a->qp.qpn < b->qp.qpn ? -1 : a->qp.qpn > b->qp.qpn;
}

/* A step back is another start, by a program that has reset its queue pair. */
static uint32_t moved(uint32_t before, uint32_t now)
{
	uint32_t by = (now - before) & PSN_MASK;

	return by < HALF ? by : 0;
}

/* A smaller count is another queue pair's, which got the same number. */
static uint64_t grown(uint64_t before, uint64_t now)
{
	return now > before ? now - before : 0;
}

/* Datagrams are expected with any PSN, and raw frames have none. */
static bool has_psns(const struct listed_qp *q)
{
	return q->type != QP_TYPE_UD && q->type != QP_TYPE_RAW_PACKET;
}

/* The numbers begin when these states do. */
static void count_psns(struct seen_qp *n, const struct listed_qp *before)
{
	if (before->state >= QP_STATE_RTS)
		n->sent += moved(before->send_psn, n->qp.send_psn);
	if (before->state >= QP_STATE_RTR)
		n->received += moved(before->receive_psn, n->qp.receive_psn);
}

static bool same_connection(const struct listed_qp *a, const struct listed_qp *b)
{
	return a->pid == b->pid && a->type == b->type && a->dest_qpn == b->dest_qpn &&
	       memcmp(&a->peer, &b->peer, sizeof(a->peer)) == 0;
}

void look_follow(struct look *now, const struct look *before)
{
	if (now->qps > 0) /* none: perhaps no table either, which qsort() must get */
		qsort(now->qp, now->qps, sizeof(*now->qp), by_number);
	for (uint32_t i = 0; i < now->qps && before->qps > 0; i++) {
		struct seen_qp *n = &now->qp[i];
		const struct seen_qp *b =
			bsearch(n, before->qp, before->qps, sizeof(*b), by_number);

		if (b == NULL || !same_connection(&n->qp, &b->qp))
			continue;
		n->sent = b->sent;
		n->received = b->received;
		if (has_psns(&n->qp)) {
			count_psns(n, &b->qp);
			continue;
		}
		n->sent += grown(b->qp.sent, n->qp.sent);
		n->received += grown(b->qp.received, n->qp.received);
	}
}

void look_restart(struct look *l)
{
	for (uint32_t i = 0; i < l->qps; i++)
		l->qp[i].sent = l->qp[i].received = 0;
}

void look_clear(struct look *l)
{
	l->qps = 0;
}

void look_free(struct look *l)
{
	free(l->qp);
	*l = (struct look){ 0 };
}
