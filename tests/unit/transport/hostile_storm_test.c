/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that keep no rules: random packets at random work. Each request completes once, in order.
 */
#include <criterion/criterion.h>

#include "hostile.h"

TestSuite(hostile_storm, .init = hostile_begin, .fini = hostile_end, .timeout = 400);

static uint32_t roll(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*seed >> 33) % n;
}

static struct packet random_packet(uint64_t *seed, struct end *to)
{
	static const uint32_t lengths[] = { 0, 1, 8, 1023, 1024, 1025 };
	static const uint8_t syndromes[] = { 0x1f, 0x00, 0x20, 0x60, 0x61, 0x62, 0x63, 0x7f, 0xc0 };
	struct responder *r = &to->qp->resp;
	uint32_t near = roll(seed, 2) ? r->expected_psn : to->qp->req.una_psn;
	struct packet p;

	do {
		p = pair_packet(&pair, to, (uint8_t)roll(seed, 32), 0);
	} while (!opcode_defined(p.opcode)); /* decode passes no other */
	p.psn = (near + roll(seed, 5) - (roll(seed, 4) == 0 ? 3 : 0)) & PSN_MASK;
	p.payload = hostile_payload;
	p.payload_length = lengths[roll(seed, ARRAY_SIZE(lengths))];
	p.pad = (uint8_t)(-p.payload_length & 3);
	p.dma_length = roll(seed, 4) ? p.payload_length : roll(seed, 5000);
	p.va = PAIR_IOVA + roll(seed, 8) * 8;
	p.rkey = to->key;
	p.invalidate_rkey = roll(seed, 8) ? to->window->key : to->key;
	p.feth = roll(seed, 8) ? FLUSH_GLOBAL : roll(seed, 64);
	p.srqn = roll(seed, 8) ? 1 : roll(seed, 4);
	p.ack_req = roll(seed, 2);
	p.solicited = roll(seed, 2);
	/* Mostly friendly, or no connection would live long. */
	p.syndrome = roll(seed, 8) ? 0x1f : syndromes[roll(seed, ARRAY_SIZE(syndromes))];
	return p;
}

/* Work of every kind; keys to invalidate are mostly those of the end's window. */
static void post_random(uint64_t *seed, struct end *e)
{
	static const uint8_t opcodes[] = { WORK_RDMA_WRITE,
					   WORK_SEND,
					   WORK_RDMA_READ,
					   WORK_RDMA_WRITE_WITH_IMM,
					   WORK_ATOMIC_FETCH_AND_ADD,
					   WORK_SEND_WITH_INV,
					   WORK_LOCAL_INV,
					   WORK_ATOMIC_WRITE,
					   WORK_FLUSH };
	uint8_t op = opcodes[roll(seed, ARRAY_SIZE(opcodes))];
	bool word = op == WORK_ATOMIC_FETCH_AND_ADD || op == WORK_ATOMIC_WRITE;
	struct work_sge sge = { PAIR_IOVA + 64, word ? 8 : roll(seed, 4000), e->key };
	struct send_work w = { .wr_id = e->qp->req.tail,
			       .opcode = op,
			       .flags = roll(seed, 2) ? WORK_FENCE : 0,
			       .num_sge = 1,
			       .imm = e->window->key,
			       .rkey = e->key,
			       .remote_addr = PAIR_IOVA };

	if (op == WORK_FLUSH)
		w.flush_type = FLUSH_GLOBAL;
	pair_post_work(&pair, e, &w, &sge);
}

/* All opcodes near the expected numbers, copies late; each seed a connection. */
static void storm(uint64_t seeds, bool xrc)
{
	for (uint64_t s = 1; s <= seeds; s++) {
		struct end *e = xrc && s % 2 == 0 ? &pair.b : &pair.a;
		uint64_t seed = s;
		uint32_t posted = 0;
		struct qp_attributes err = { .state = QP_STATE_ERR };

		hostile_options.sig_all = true;
		hostile_options.octets = 1 << 13;
		hostile_options.xrc = xrc;
		pair_close(&pair);
		pair_init(&pair, &hostile_options);
		pair_window(&pair, e);
		for (uint32_t step = 0; step < 60; step++) {
			struct packet p = random_packet(&seed, e);
			uint32_t replies = 0;

			e->hold = roll(&seed, 3) == 0;
			if (roll(&seed, 3) == 0 && qp_window_slot(e->qp) != NULL) {
				post_random(&seed, e);
				posted++;
			}
			if (roll(&seed, 3) == 0 && e->qp->type != QP_TYPE_XRC_SEND)
				pair_post_receive(e, 0, 1500);
			if (roll(&seed, 3) == 0)
				while (replies < 50 && pair_next(&pair, e, &p))
					replies++;
			p = random_packet(&seed, e);
			pair_inject(&pair, e, &p);
			if (roll(&seed, 4) == 0)
				pair_settle(&pair, e, roll(&seed, 30) != 0);
			if (roll(&seed, 20) == 0 && qp_deadline(e->qp) != TIME_NEVER) {
				pair.now = qp_deadline(e->qp);
				qp_expired(e->qp, pair.now);
			}
		}
		qp_modify(e->qp, &err, QP_ATTR_STATE, NULL);
		pair_settle(&pair, e, true);
		uint32_t sent = 0, received = 0;

		for (uint32_t i = 0; i < e->done_count; i++) {
			if (e->done_receive[i])
				cr_assert_eq(e->done[i].wr_id, received++, "seed %lu", s);
			else
				cr_assert_eq(e->done[i].wr_id, sent++, "seed %lu", s);
		}
		cr_assert_eq(sent, posted, "seed %lu: %u of %u", s, sent, posted);
		cr_assert_eq(received, e->receive_head, "seed %lu", s);
	}
}

Test(hostile_storm, storms_of_random_packets)
{
	storm(3000, false);
}

/* Initiators and targets in turn; SRQs that exist, that do not, and changes of SRQ inside a
 * message.
 */
Test(hostile_storm, storms_of_random_packets_on_xrc)
{
	storm(1500, true);
}
