/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates that `uroce top` computes from sequence numbers of queue pairs, and their order. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "look.h"
#include "ranks.h"
#include "transport/attributes.h"

TestSuite(top, .timeout = 60);

static struct listed_qp pair(uint32_t qpn, uint32_t send_psn, uint32_t receive_psn)
{
	return (struct listed_qp){ .qpn = qpn,
				   .dest_qpn = 0x10,
				   .send_psn = send_psn,
				   .receive_psn = receive_psn,
				   .pid = 7,
				   .peer.octet[15] = 1,
				   .state = QP_STATE_RTS };
}

/* What a queue pair has done between two looks. */
static const struct seen_qp *follow(struct look *now, struct look *before,
				    const struct listed_qp *from, const struct listed_qp *to)
{
	look_clear(before);
	look_clear(now);
	cr_assert(look_add(before, from));
	cr_assert(look_add(now, to));
	look_follow(now, before);
	return &now->qp[0];
}

Test(top, packets_between_two_looks)
{
	static const struct {
		uint32_t from, to;
		uint64_t packets;
	} rows[] = {
		{ 0, 0, 0 },
		{ 5, 9, 4 },
		{ 0xfffffe, 3, 5 }, /* across the wrap */
		{ 0, 0x7fffff, 0x7fffff }, /* the largest step that can be told from one back */
		{ 0, 0x800000, 0 }, /* a step back: the queue pair began again */
		{ 9, 5, 0 },
	};
	struct look now = { 0 }, before = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct listed_qp from = pair(2, rows[i].from, 100);
		struct listed_qp to = pair(2, rows[i].to, 103);
		const struct seen_qp *q = follow(&now, &before, &from, &to);

		cr_expect_eq(q->sent, rows[i].packets, "row %zu: %lu", i, (unsigned long)q->sent);
		cr_expect_eq(q->received, 3);
	}
	look_free(&now);
	look_free(&before);
}

/* Datagrams and raw frames have no number that is expected next, so packets count. */
Test(top, packets_of_queue_pairs_without_numbers)
{
	static const uint8_t type[] = { QP_TYPE_UD, QP_TYPE_RAW_PACKET };
	struct look now = { 0 }, before = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(type); i++) {
		struct listed_qp from = pair(2, 100, 100), to = pair(2, 100, 100);
		const struct seen_qp *q;

		from.type = to.type = type[i];
		from.sent = 1000;
		to.sent = 1007;
		from.received = 2000;
		to.received = 2300;
		q = follow(&now, &before, &from, &to);
		cr_expect_eq(q->sent, 7);
		cr_expect_eq(q->received, 300);
		to.sent = to.received = 5;
		q = follow(&now, &before, &from, &to);
		cr_expect(q->sent == 0 && q->received == 0, "another queue pair of this number");
	}
	look_free(&now);
	look_free(&before);
}

/* Sequence numbers of another connection, or of none, mean nothing. */
Test(top, another_connection_begins_with_nothing)
{
	struct listed_qp from = pair(2, 100, 200), to = pair(2, 110, 220), other;
	struct look now = { 0 }, before = { 0 };
	const struct seen_qp *q;

	q = follow(&now, &before, &from, &to);
	cr_expect(q->sent == 10 && q->received == 20);
	other = from;
	other.pid = 8;
	cr_expect_eq(follow(&now, &before, &other, &to)->sent, 0, "another program");
	other = from;
	other.dest_qpn = 0x11;
	cr_expect_eq(follow(&now, &before, &other, &to)->sent, 0, "another peer's queue pair");
	other = from;
	other.peer.octet[15] = 2;
	cr_expect_eq(follow(&now, &before, &other, &to)->sent, 0, "another peer");
	other = from;
	other.qpn = 3;
	cr_expect_eq(follow(&now, &before, &other, &to)->sent, 0, "another queue pair");
	other = from;
	other.state = QP_STATE_RTR;
	q = follow(&now, &before, &other, &to);
	cr_expect(q->sent == 0 && q->received == 20, "it could receive before it could send");
	other.state = QP_STATE_INIT;
	q = follow(&now, &before, &other, &to);
	cr_expect(q->sent == 0 && q->received == 0);
	look_free(&now);
	look_free(&before);
}

/* Many looks make one window: its counts are kept until the next window begins. */
Test(top, a_window_of_many_looks)
{
	struct look look[2] = { 0 };
	struct look *now = &look[0], *before = &look[1], *swap;

	for (uint32_t i = 0; i < 40; i++) {
		struct listed_qp steady = pair(2, i * 0x700000 & 0xffffff, 0);
		struct listed_qp late = pair(3, i * 3, 0);

		swap = before;
		before = now;
		now = swap;
		look_clear(now);
		if (i >= 20)
			cr_assert(look_add(now, &late));
		cr_assert(look_add(now, &steady));
		look_follow(now, before);
		if (i == 9)
			look_restart(now);
	}
	cr_assert_eq(now->qps, 2);
	cr_expect_eq(now->qp[0].sent, 30 * UINT64_C(0x700000));
	cr_expect_eq(now->qp[1].qp.qpn, 3, "by their numbers");
	cr_expect_eq(now->qp[1].sent, 19 * UINT64_C(3));
	look_free(&look[0]);
	look_free(&look[1]);
}

/* Queue pairs arrive in parts and in no order; there may be very many. */
Test(top, many)
{
	enum {
		MANY = 20000
	};
	struct look now = { 0 }, before = { 0 };

	for (uint32_t i = 0; i < MANY; i++) {
		struct listed_qp q = pair(2 + i * 7919 % MANY, i, 0);

		cr_assert(look_add(&before, &q));
		q.send_psn += q.qpn;
		cr_assert(look_add(&now, &q));
	}
	look_follow(&before, &(struct look){ 0 });
	look_follow(&now, &before);
	for (uint32_t i = 0; i < MANY; i++) {
		cr_assert_eq(now.qp[i].qp.qpn, 2 + i);
		cr_assert_eq(now.qp[i].sent, 2 + i);
	}
	look_free(&now);
	look_free(&before);
}

static void add(struct look *l, uint32_t qpn, uint32_t pid, uint8_t peer, uint64_t sent,
		uint64_t received)
{
	struct listed_qp q = pair(qpn, 0, 0);

	q.pid = pid;
	q.peer.octet[15] = peer;
	cr_assert(look_add(l, &q));
	l->qp[l->qps - 1].sent = sent;
	l->qp[l->qps - 1].received = received;
}

Test(top, ranks)
{
	static const struct listed_program program[] = { { .pid = 9 }, { .pid = 8 }, { .pid = 7 } };
	struct look l = { 0 };
	struct ranks r;

	add(&l, 2, 7, 1, 10, 0);
	add(&l, 3, 8, 2, 0, 400);
	add(&l, 4, 7, 2, 100, 20);
	add(&l, 5, 6, 0, 30, 0); /* of a program that has attached since; not connected */
	add(&l, 6, 7, 1, 10, 0);
	cr_assert(ranks_make(&r, &l, 2, program, ARRAY_SIZE(program)));
	cr_expect_eq(r.qps, 5);
	cr_expect(r.all.sends == 75 && r.all.receives == 210);
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(r.qp[i].qp.qpn, ((const uint32_t[]){ 3, 4, 5, 2, 6 })[i], "%zu", i);
	cr_expect(r.qp[1].rates.sends == 50 && r.qp[1].rates.receives == 10);
	cr_expect_eq(r.programs, 3);
	for (size_t i = 0; i < 3; i++)
		cr_expect_eq(r.program[i].program.pid, ((const uint32_t[]){ 8, 7, 9 })[i], "%zu",
			     i);
	cr_expect(r.program[1].rates.sends == 60 && r.program[1].rates.receives == 10);
	cr_expect(r.program[2].rates.sends == 0);
	cr_expect_eq(r.peers, 2);
	cr_expect(r.peer[0].gid.octet[15] == 2 && r.peer[0].qps == 2);
	cr_expect(r.peer[0].rates.sends == 50 && r.peer[0].rates.receives == 210);
	cr_expect(r.peer[1].gid.octet[15] == 1 && r.peer[1].qps == 2);
	ranks_free(&r);
	look_free(&l);
}

Test(top, nothing_to_rank)
{
	struct look l = { 0 };
	struct ranks r;

	look_follow(&l, &(struct look){ 0 });
	cr_assert(ranks_make(&r, &l, 0, NULL, 0));
	cr_expect(r.qps == 0 && r.programs == 0 && r.peers == 0 && r.all.sends == 0);
	ranks_free(&r);
	add(&l, 2, 7, 1, 10, 10);
	cr_assert(ranks_make(&r, &l, 0, NULL, 0));
	cr_expect(r.qp[0].rates.sends == 0, "no time has passed");
	ranks_free(&r);
	look_free(&l);
}
