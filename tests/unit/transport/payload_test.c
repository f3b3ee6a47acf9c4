/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the octets of a packet in flight are: as when it was made, and nowhere once it is
 * acknowledged.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "pair.h"

#define MTU 1024u

static struct pair pair;
static struct packet p;
static struct span_list made;

static void open_pair(void)
{
	struct pair_options o = pair_options();

	o.mtu = 3; /* 1024 */
	o.psn = 0xfffffa;
	pair_init(&pair, &o);
}

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(payload, .init = open_pair, .fini = close_pair, .timeout = 60);

static void make(void)
{
	nanotime not_before;

	memset(&p, 0, sizeof(p));
	span_list_clear(&made);
	cr_assert_eq(qp_next_packet(pair.a.qp, &pair.keys, pair.now, &p, &made, &not_before),
		     NEXT_PACKET);
}

static enum reason ask(struct span_list *g)
{
	span_list_clear(g);
	return qp_payload_of(pair.a.qp, &p, &pair.keys, g);
}

static void expect_same(void)
{
	struct span_list g;

	cr_assert_eq(ask(&g), REASON_NONE, "PSN %x", p.psn);
	cr_assert_eq(g.count, made.count);
	cr_assert_eq(g.length, made.length);
	for (uint32_t i = 0; i < g.count; i++) {
		cr_expect_eq(g.span[i].direct, made.span[i].direct);
		cr_expect_eq(g.span[i].length, made.span[i].length);
	}
}

static void expect_gone(void)
{
	struct span_list g;

	cr_expect_neq(ask(&g), REASON_NONE);
	cr_expect_eq(g.count, 0);
}

/* The peer has all that was made so far. */
static void acknowledge(void)
{
	struct packet ack = pair_packet(&pair, &pair.a, OPB_ACK, p.psn);

	ack.syndrome = SYNDROME_ACK_NO_CREDITS;
	ack.msn = 1;
	cr_expect_eq(pair_inject(&pair, &pair.a, &ack), REASON_NONE);
}

Test(payload, is_where_it_was_when_the_packet_was_made)
{
	static const struct {
		uint8_t opcode;
		uint32_t at, length;
	} row[] = { { WORK_RDMA_WRITE, 0, 5 * MTU }, { WORK_SEND, 7, MTU },
		    { WORK_RDMA_READ, 0, 2 * MTU },  { WORK_RDMA_WRITE, 9999, 2 * MTU + 1 },
		    { WORK_SEND, 20000, MTU + 3 },   { WORK_SEND_WITH_IMM, 3, MTU - 1 } };
	uint32_t seen = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(row); i++)
		pair_post(&pair, &pair.a, row[i].opcode, 0, row[i].at, row[i].length, 0);
	while (qp_has_packet(pair.a.qp)) {
		make();
		if (p.payload_length == 0)
			expect_gone(); /* a READ carries nothing */
		else
			expect_same();
		seen++;
	}
	cr_expect_geq(seen, 5 + 1 + 1 + 3 + 2 + 1);
}

Test(payload, is_gone_with_the_acknowledgement)
{
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, MTU, 0);
	make();
	expect_same();
	acknowledge();
	expect_gone();
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, MTU, 0);
	expect_gone();
}

/* hostile H-38: the key is checked again. */
Test(payload, is_gone_with_its_region)
{
	const struct region *r;

	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, MTU, 0);
	make();
	r = key_withdraw(&pair.keys, pair.a.key);
	expect_gone();
	key_publish(&pair.keys, pair.a.key, r);
	expect_same();
	pair.a.region->length = MTU - 1;
	expect_gone();
	pair.a.region->length = PAIR_MEMORY;
	pair.a.region->pd++;
	expect_gone();
	pair.a.region->pd--;
}

/* What has begun goes on. */
Test(payload, stays_while_the_send_queue_drains)
{
	const struct qp_attributes drain = { .state = QP_STATE_SQD };

	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, MTU, 0);
	make();
	cr_assert_eq(qp_modify(pair.a.qp, &drain, QP_ATTR_STATE, NULL), 0);
	expect_same();
	acknowledge();
	expect_gone();
}

Test(payload, is_gone_when_the_queue_pair_fails)
{
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, MTU, 0);
	make();
	qp_fail(pair.a.qp, REASON_CQ_OVERRUN);
	expect_gone();
}

/* A frame of another request that had the same number before. */
Test(payload, is_of_this_length)
{
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, MTU, 0);
	make();
	p.payload_length--;
	expect_gone();
	p.payload_length++;
	p.psn = psn_add(p.psn, 1);
	expect_gone();
	p.psn = psn_add(p.psn, PSN_MASK - 1);
	expect_gone();
}

/* A response has the numbers of the peer's requests, which may be the same. */
Test(payload, is_of_a_request)
{
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, 0, MTU, 0);
	make();
	p.opcode = OPCODE(SERVICE_RC, OPB_READ_RESPONSE_ONLY);
	expect_gone();
	p.opcode = OPCODE(SERVICE_RC, OPB_SEND_ONLY);
	expect_gone();
}
