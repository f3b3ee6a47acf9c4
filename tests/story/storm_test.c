/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile peers and hostile programs of the services without acknowledgements. Whatever arrives,
 * the queue pair sends no answer, writes only memory that was offered, and is never taken to ERR by
 * a packet. Every request completes once and in order.
 */
#include "sim/seeds.h"
#include "story/story.h"

static void again(uint32_t type, uint32_t seed)
{
	static bool begun;

	if (begun) {
		node_free(&a->node);
		node_free(&b->node);
	}
	begun = true;
	story(.type = type, .hold_sent = true, .sq_sig_all = true, .delay_copies = seed % 2 == 0,
	      .srq = seed % 3 == 0);
}

/*
 * hostile H-4: every opcode, to every type of queue pair, with every short length
 * hostile H-151: errors in headers.
 */
Test(storm, every_opcode_at_every_length_on_every_type, .timeout = 300)
{
	static const uint32_t types[] = { QP_TYPE_RC, QP_TYPE_UC, QP_TYPE_UD };

	for (uint32_t t = 0; t < ARRAY_SIZE(types); t++) {
		again(types[t], 1);
		for (uint32_t i = 0; i < 256 * 201; i++) {
			const struct opcode_info *op = &opcode_table[i % 256];
			struct packet p = { .opcode = (uint8_t)i,
					    .payload_length = i / 256,
					    .psn = A_PSN,
					    .pkey = 0xffff,
					    .dest_qpn = B_QPN,
					    .va = BASE,
					    .dma_length = i / 256 };

			/* A legal RC request is tested elsewhere. */
			if (types[t] == QP_TYPE_RC && op->service == SERVICE_RC)
				continue;
			cr_assert(story_inject(b, &p) != REASON_NONE ||
					  (op->kind == KIND_WRITE && p.payload_length == 0),
				  "type %u, %s, %u octets", types[t], op->name, p.payload_length);
			cr_assert_eq(qp_state(b->q->core), QP_STATE_RTS);
			cr_assert_not(qp_has_packet(b->q->core));
			cr_assert_eq(qp_deadline(b->q->core), TIME_NEVER);
		}
		expect_no_completion(b);
		expect_events(b, 0);
		expect_untouched(b, 0, MEMORY);
	}
}

static uint32_t roll(uint64_t *seed, uint32_t n)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (uint32_t)(*seed >> 33) % n;
}

static void inject_random(uint64_t *seed)
{
	static const uint32_t lengths[] = { 0, 1, 60, MTU - 1, MTU, MTU + 1 };
	struct packet p = { .pkey = 0xffff, .dest_qpn = B_QPN, .src_qpn = 5, .va = BASE + LANDS };

	do {
		p.opcode = OPCODE(service_of_story(), roll(seed, 32));
	} while (!opcode_defined(p.opcode));
	p.psn = psn_add(A_PSN, roll(seed, 4));
	p.qkey = roll(seed, 8) ? QKEY : 1;
	p.rkey = roll(seed, 8) ? b->key : 0;
	p.invalidate_rkey = b->key;
	p.payload_length = roll(seed, 3) ? MTU : lengths[roll(seed, ARRAY_SIZE(lengths))];
	p.dma_length = roll(seed, 4) ? p.payload_length : roll(seed, 5000);
	p.ack_req = roll(seed, 2);
	story_inject(b, &p);
}

/* Valid and invalid requests; b's keys are valid only for b. */
static void post_random(uint64_t *seed, uint64_t wr_id)
{
	static const uint8_t opcodes[] = { WORK_SEND,	    WORK_SEND, WORK_SEND_WITH_IMM,
					   WORK_RDMA_WRITE, WORK_TSO,  WORK_RDMA_READ };

	/* Frames that have to be segmented are longer than a node can send, so only UD has them. */
	bool cut = b->q->caps.type == QP_TYPE_UD && roll(seed, 4);

	post(b, .wr_id = wr_id, .opcode = opcodes[roll(seed, roll(seed, 8) ? 2 : 6)],
	     .length = roll(seed, 8) ? 14 + roll(seed, 600) : roll(seed, 70000),
	     .lkey = roll(seed, 16) ? 0 : 0xbad, .header = cut ? "a TCP/IP header" : NULL,
	     .mss = (uint16_t)(roll(seed, 4) ? 1 + roll(seed, 1000) : roll(seed, 65536)));
}

#define ON_THE_WAY 32u

struct on_the_way {
	struct packet packet[ON_THE_WAY];
	uint32_t count;
};

/* Reports some of the oldest packets as sent, or takes the others back, the last one first. */
static void report_random(uint64_t *seed, struct on_the_way *w)
{
	uint32_t fate = roll(seed, 8), n = w->count == 0 ? 0 : 1 + roll(seed, w->count);

	if (fate == 0) {
		while (w->count > 0)
			unsent(b, &w->packet[--w->count]);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (fate == 1 && i + 1 == n)
			gather_failed(b, &w->packet[i]);
		else
			sent(b, &w->packet[i]);
	}
	w->count -= n;
	memmove(w->packet, w->packet + n, w->count * sizeof(w->packet[0]));
}

static void send_random(uint64_t *seed, struct on_the_way *w)
{
	for (uint32_t n = roll(seed, 5); n > 0 && w->count < ON_THE_WAY; n--) {
		struct packet *p = &w->packet[w->count];

		if (!node_next(b->q, 0, p, b->payload))
			return;
		cr_assert_not(opcode_is(p->opcode, OP_RESPONSE), "nothing is answered");
		w->count++;
	}
}

struct counted {
	uint64_t sent, received; /* wr_id of the next completion */
	bool may_fail; /* a receive copy failed */
};

static void count_completions(struct counted *c, uint64_t seed)
{
	struct node_completion n;

	while (node_take(b->q, &n)) {
		uint64_t *next = n.from_receive ? &c->received : &c->sent;

		cr_assert_eq(n.c.wr_id, *next, "seed %lu: %s %lu where %lu is next", seed,
			     n.from_receive ? "receive" : "request", n.c.wr_id, *next);
		(*next)++;
	}
	cr_assert(c->may_fail || qp_state(b->q->core) != QP_STATE_ERR, "seed %lu: ERR", seed);
}

static void storm(uint32_t type, uint64_t number)
{
	struct qp_attributes none = { 0 };
	struct on_the_way way = { .count = 0 };
	struct counted counted = { .sent = 0 };
	uint64_t seed = number, posted = 0, receives = 0;

	again(type, (uint32_t)number);
	for (uint32_t step = 0; step < 80; step++) {
		if (roll(&seed, 3) == 0 && receives < 31) /* its memory has room for 31 */
			post_receive(b, receives++, 1 + roll(&seed, 700));
		if (roll(&seed, 2) && qp_window_slot(b->q->core) != NULL)
			post_random(&seed, posted++);
		inject_random(&seed);
		send_random(&seed, &way);
		if (roll(&seed, 2))
			report_random(&seed, &way);
		if (roll(&seed, 3) == 0 && b->q->copy_head != b->q->copy_tail) {
			bool ok = roll(&seed, 20) != 0;

			counted.may_fail |= !ok;
			settle(b, ok);
		}
		count_completions(&counted, number);
		if (qp_state(b->q->core) == QP_STATE_SQE && roll(&seed, 3) == 0)
			cr_assert_eq(modify(b, QP_STATE_RTS, 0, &none), 0);
	}
	counted.may_fail = true;
	while (b->q->copy_head != b->q->copy_tail)
		settle(b, true);
	cr_assert_eq(modify(b, QP_STATE_ERR, 0, &none), 0);
	count_completions(&counted, number);
	cr_assert_eq(counted.sent, posted, "seed %lu: %lu of %lu", number, counted.sent, posted);
	/* An SRQ keeps requests that were not taken. */
	cr_assert_eq(counted.received, receives - node_receives_posted(b->q),
		     "seed %lu: %lu received", number, counted.received);
}

/* hostile H-4: every opcode at every length. */
Test(storm, uc, .timeout = 300)
{
	for (uint64_t i = 1; i <= SEEDS(1500); i++)
		storm(QP_TYPE_UC, i);
}

/* hostile H-4: every opcode at every length. */
Test(storm, ud, .timeout = 300)
{
	for (uint64_t i = 1; i <= SEEDS(1500); i++)
		storm(QP_TYPE_UD, i);
}

/* hostile H-4: every opcode at every length. */
Test(storm, raw, .timeout = 300)
{
	for (uint64_t i = 1; i <= SEEDS(1500); i++)
		storm(QP_TYPE_RAW_PACKET, i);
}
