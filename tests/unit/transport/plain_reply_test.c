/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reply.c makes whatever plain_reply.h makes, with the same effects. Both ends get the same
 * requests. One end asks plain_reply.h first, and alike.c for the middle of a READ; the other only reply.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "pair.h"
#include "transport/responder/plain_reply.h"
#include "transport/responder/reply.h"

static struct pair pair;
static uint64_t state;
static uint32_t plain, alike; /* replies that were */

static uint32_t pick(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static void open_pair(void)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
}

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(plain_reply, .fini = close_pair, .timeout = 60);

static struct end *end_of(uint32_t i)
{
	return i == 0 ? &pair.a : &pair.b;
}

/* `back`: a repetition of the READ so many PSNs before, of which the first `skip` octets are not asked for. */
static void read_both(uint32_t back, uint32_t skip, uint32_t n)
{
	static const uint8_t octets[8];

	for (uint32_t i = 0; i < 2; i++) {
		struct end *e = end_of(i);
		struct packet p = pair_packet(&pair, e, OPB_READ_REQUEST,
					      psn_add(e->qp->resp.expected_psn, -back & PSN_MASK));
		struct outcome o = { 0 };

		p.payload = octets;
		p.va = PAIR_IOVA + 128 + skip;
		p.rkey = e->key;
		p.dma_length = n;
		qp_received(e->qp, &p, NULL, &pair.keys, pair.now, &o);
	}
}

/* A WRITE whose copy may be open for a while: later answers wait. */
static uint64_t write_to(uint32_t i)
{
	static const uint8_t octets[8];
	struct end *e = end_of(i);
	struct packet p = pair_packet(&pair, e, OPB_WRITE_ONLY, e->qp->resp.expected_psn);
	struct outcome o = { 0 };

	p.payload = octets;
	p.payload_length = p.dma_length = 8;
	p.va = PAIR_IOVA;
	p.rkey = e->key;
	p.ack_req = true;
	qp_received(e->qp, &p, NULL, &pair.keys, pair.now, &o);
	return o.ticket;
}

static void same_packets(const struct packet *p, const struct span_list *gather)
{
	cr_assert_eq(p[0].opcode, p[1].opcode);
	cr_assert_eq(p[0].psn, p[1].psn);
	cr_assert_eq(p[0].msn, p[1].msn);
	cr_assert_eq(p[0].syndrome, p[1].syndrome);
	cr_assert_eq(p[0].pad, p[1].pad);
	cr_assert_eq(p[0].payload_length, p[1].payload_length);
	cr_assert_eq(gather[0].length, gather[1].length);
	if (gather[0].length > 0)
		cr_assert_eq((uint8_t *)gather[0].span[0].direct - pair.a.memory,
			     (uint8_t *)gather[1].span[0].direct - pair.b.memory);
}

static void same_responders(const struct qp *a, const struct qp *b)
{
	cr_assert_eq(qp_state(a), qp_state(b));
	cr_assert_eq(a->resp.record_owed, b->resp.record_owed);
	cr_assert_eq(a->resp.record_head, b->resp.record_head);
	cr_assert_eq(a->resp.ack_due, b->resp.ack_due);
	cr_assert_eq(a->resp.acked_psn, b->resp.acked_psn);
	cr_assert_eq(a->resp.nak, b->resp.nak);
	for (uint32_t i = 1; i <= a->resp.remembered; i++) {
		const struct record *x = record_at(&a->resp, a->resp.record_head - i),
				    *y = record_at(&b->resp, b->resp.record_head - i);

		cr_assert_eq(x->owed, y->owed);
		cr_assert_eq(x->replied, y->replied);
	}
}

/* Several packets at once at one end, one after the other at the other one. */
static void replies_alike(const struct packet *before)
{
	struct span_list gather[2];
	struct packet p[2] = { *before, *before };
	uint32_t most = 1 + pick(16),
		 n = qp_next_alike(pair.a.qp, before, &pair.keys, most, pair.now, &gather[0]);

	cr_assert_leq(n, most);
	cr_assert_eq(gather[0].length, n * pair.a.qp->mtu);
	gather[0].length = gather[0].span[0].length = pair.a.qp->mtu;
	for (uint32_t i = 0; i < n; i++) {
		p[0].psn = psn_add(p[0].psn, 1);
		memset(&gather[1], 0, sizeof(gather[1]));
		cr_assert(reply_next(pair.b.qp, &pair.keys, &p[1], &gather[1]));
		same_packets(p, gather);
		gather[0].span[0].direct = (uint8_t *)gather[0].span[0].direct + pair.a.qp->mtu;
	}
	same_responders(pair.a.qp, pair.b.qp);
	alike += n;
}

/* The next reply of both. False: there is none. */
static bool reply_both(void)
{
	struct span_list gather[2];
	struct packet p[2];
	bool made[2];

	for (uint32_t i = 0; i < 2; i++) {
		struct qp *qp = end_of(i)->qp;
		bool done = false;

		memset(&p[i], 0, sizeof(p[i]));
		memset(&gather[i], 0, sizeof(gather[i]));
		if (i == 0)
			done = plain_reply(qp, &pair.keys, &p[i], &gather[i]);
		plain += done;
		made[i] = done || reply_next(qp, &pair.keys, &p[i], &gather[i]);
	}
	cr_assert_eq(made[0], made[1]);
	if (made[0])
		same_packets(p, gather);
	same_responders(pair.a.qp, pair.b.qp);
	if (made[0] && pick(4) != 0)
		replies_alike(&p[0]); /* none, unless it is in the middle */
	return made[0];
}

static void ask(void)
{
	static const uint32_t lengths[] = { 0, 1, 7, 8, 1023, 1024, 1025, 3000, 20000 };
	uint32_t n = lengths[pick(ARRAY_SIZE(lengths))];
	const struct responder *r = &pair.a.qp->resp;

	read_both(0, 0, n);
	if (pick(4) == 0) { /* once more, or the end of it */
		const struct record *rec = record_at(r, r->record_head - 1);
		uint32_t skip = pick(2) * pick(MIN_OF(n, 1024u) + 1);

		if (skip == n)
			skip = 0;
		read_both(rec->packets, skip, n - skip);
	}
	if (pick(50) == 0) /* what is owed loses its memory */
		pair.a.region->access = pair.b.region->access = 0;
}

static void run(uint64_t seed)
{
	uint64_t ticket[2];

	state = seed;
	open_pair();
	for (uint32_t round = 0; round < 100 && qp_state(pair.a.qp) == QP_STATE_RTS; round++) {
		bool open = pick(3) == 0;

		for (uint32_t i = 0; open && i < 2; i++)
			ticket[i] = write_to(i);
		ask();
		if (open && pick(2) == 0)
			reply_both(); /* it waits */
		for (uint32_t i = 0; open && i < 2; i++)
			qp_copied(end_of(i)->qp, ticket[i], true);
		while (reply_both())
			;
	}
}

Test(plain_reply, replies_are_those_of_the_general_case)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		run(seed);
		if (seed < 60)
			pair_close(&pair);
	}
	cr_assert_gt(plain, 1000);
	cr_assert_gt(alike, 1000);
}
