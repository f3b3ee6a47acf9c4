/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * respond.c takes whatever expected.h takes, with the same effects. Both ends get the same packets.
 * One end always counts as having reported a gap, so all of its packets go to respond.c.
 */
#include <criterion/criterion.h>

#include "pair.h"
#include "transport/path.h"
#include "transport/responder/behind.h"
#include "transport/responder/expected.h"
#include "transport/responder/respond.h"

static struct pair pair;
static struct path path[2];
static uint64_t state;
static struct {
	struct recv_work work;
	struct work_sge sge[PAIR_SGE];
} receive[2];

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

TestSuite(expected, .fini = close_pair, .timeout = 240);

static struct end *end_of(uint32_t i)
{
	return i == 0 ? &pair.a : &pair.b;
}

static void make_receives(uint32_t room, uint16_t strip)
{
	for (uint32_t i = 0; i < 2; i++) {
		receive[i].work = (struct recv_work){ .wr_id = 5, .num_sge = 1, .strip = strip };
		receive[i].sge[0] = (struct work_sge){ PAIR_IOVA + 64, room, end_of(i)->key };
	}
}

/* Nearly always a well-formed one. */
static struct packet make(uint32_t i, uint8_t base, uint32_t n, uint32_t flaw)
{
	static const uint8_t octets[4096];
	struct end *e = end_of(i);
	struct packet p = pair_packet(&pair, e, base, e->qp->resp.expected_psn);

	p.payload = octets;
	p.payload_length = base == OPB_READ_REQUEST ? 0 : n;
	p.pad = (uint8_t)((-p.payload_length + (flaw == 1)) & 3);
	p.va = PAIR_IOVA + 128;
	p.rkey = e->key ^ (flaw == 2);
	p.dma_length = (base == OPB_WRITE_FIRST ? 3200 : n) + (flaw == 3);
	p.psn = psn_add(p.psn, flaw == 4 ? 1 : flaw == 5 ? PSN_MASK : 0);
	p.ack_req = n & 1;
	p.solicited = n & 2;
	p.imm = 9;
	return p;
}

static void same_outcome(const struct outcome *a, const struct outcome *b)
{
	cr_assert_eq(a->reason, b->reason, "%s, %s", reason_name(a->reason),
		     reason_name(b->reason));
	cr_assert_eq(a->flags, b->flags);
	cr_assert_eq(a->ticket, b->ticket);
	cr_assert_eq(a->place.length, b->place.length);
	if (a->flags & OUTCOME_PLACE) {
		cr_assert_eq(a->source, b->source);
		cr_assert_eq((uint8_t *)a->place.span[0].direct - pair.a.memory,
			     (uint8_t *)b->place.span[0].direct - pair.b.memory);
	}
}

static void same_state(const struct qp *a, const struct qp *b)
{
	cr_assert_eq(qp_state(a), qp_state(b));
	cr_assert_eq(a->resp.expected_psn, b->resp.expected_psn);
	cr_assert_eq(a->resp.msn, b->resp.msn);
	cr_assert_eq(a->resp.open, b->resp.open);
	if (a->resp.open != KIND_UNDEFINED)
		cr_assert_eq(a->resp.offset, b->resp.offset);
	cr_assert_eq(a->resp.nak, b->resp.nak);
	cr_assert_eq(a->resp.ack_due, b->resp.ack_due);
	cr_assert_eq(a->resp.ack_due_psn, b->resp.ack_due_psn);
	cr_assert_eq(a->resp.selection_due, b->resp.selection_due);
	cr_assert_eq(a->resp.nak_at, b->resp.nak_at);
	cr_assert_eq(a->resp.holding, b->resp.holding);
	for (uint32_t i = 0; i < LIMIT_WINDOW; i++) {
		uint32_t psn = psn_add(a->resp.expected_psn, i);

		cr_assert_eq(behind_has(&a->resp, psn), behind_has(&b->resp, psn), "%u", i);
	}
	cr_assert_eq(a->tickets.placing, b->tickets.placing);
	cr_assert_eq(a->receives.done, b->receives.done);
}

static void same_completions(void)
{
	struct completion a, b;
	bool of_a, of_b;

	while (qp_take_completion(pair.a.qp, &a, &of_a)) {
		cr_assert(qp_take_completion(pair.b.qp, &b, &of_b));
		cr_assert(of_a && of_b);
		cr_assert_eq(a.wr_id, b.wr_id);
		cr_assert_eq(a.status, b.status);
		cr_assert_eq(a.opcode, b.opcode);
		cr_assert_eq(a.byte_len, b.byte_len);
		cr_assert_eq(a.imm, b.imm);
		cr_assert_eq(a.wc_flags, b.wc_flags);
		cr_assert_eq(a.solicited, b.solicited);
		cr_assert_eq(a.work_index, b.work_index);
	}
	cr_assert_not(qp_take_completion(pair.b.qp, &b, &of_b));
}

static void same_replies(void)
{
	struct span_list ga, gb;
	struct packet a, b;
	nanotime t;

	while (qp_next_packet(pair.a.qp, &pair.keys, pair.now, &a, &ga, &t) == NEXT_PACKET) {
		cr_assert_eq(qp_next_packet(pair.b.qp, &pair.keys, pair.now, &b, &gb, &t),
			     NEXT_PACKET);
		cr_assert_eq(a.opcode, b.opcode);
		cr_assert_eq(a.psn, b.psn);
		cr_assert_eq(a.msn, b.msn);
		cr_assert_eq(a.payload_length, b.payload_length);
	}
	cr_assert_neq(qp_next_packet(pair.b.qp, &pair.keys, pair.now, &b, &gb, &t), NEXT_PACKET);
}

/* Both ends get the packet, and their programs the results. */
static void receive_both(uint8_t base, uint32_t n, uint32_t flaw, bool offer)
{
	struct outcome out[2];

	pair.b.qp->resp.reported |= flaw < 4;
	for (uint32_t i = 0; i < 2; i++) {
		struct packet p = make(i, base, n, flaw);
		struct qp *qp = end_of(i)->qp;

		qp_received(qp, &p, offer ? &receive[i].work : NULL, &pair.keys, pair.now, &out[i]);
	}
	same_outcome(&out[0], &out[1]);
	same_state(pair.a.qp, pair.b.qp);
	qp_copied(pair.a.qp, out[0].ticket, true);
	qp_copied(pair.b.qp, out[1].ticket, true);
	same_completions();
	same_replies();
}

/* A packet comes ahead of others, and both callers keep it. */
static void hold_both(uint32_t places)
{
	struct outcome out[2];

	pair.b.qp->resp.reported = pair.a.qp->resp.reported;
	for (uint32_t i = 0; i < 2; i++) {
		struct packet p = make(i, OPB_WRITE_ONLY, 8, 0);

		p.psn = psn_add(p.psn, places);
		qp_received(end_of(i)->qp, &p, NULL, &pair.keys, pair.now, &out[i]);
		if (out[i].flags & OUTCOME_HOLD)
			qp_held(end_of(i)->qp, &p, pair.now);
	}
	same_outcome(&out[0], &out[1]);
	same_state(pair.a.qp, pair.b.qp);
	same_replies();
}

/* Both peers tell at once what they hold, so they need not go back. */
static void give_paths(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		path_init(&path[i]);
		qp_give_path(end_of(i)->qp, &path[i]);
		end_of(i)->qp->selective = true;
	}
}

/* How the open message goes on; without one, what begins a message. */
static uint8_t next_base(uint32_t *length)
{
	static const uint8_t bases[] = { OPB_WRITE_ONLY, OPB_SEND_ONLY,	    OPB_WRITE_ONLY_IMM,
					 OPB_SEND_FIRST, OPB_SEND_ONLY_IMM, OPB_WRITE_FIRST,
					 OPB_WRITE_LAST, OPB_SEND_MIDDLE,   OPB_READ_REQUEST };
	static const uint32_t lengths[] = { 0, 1, 2, 3, 8, 100, 1023, 1024, 1025 };
	const struct responder *r = &pair.a.qp->resp;
	uint32_t rest = r->length - r->offset;
	uint8_t base = bases[pick(3) == 0 ? pick(ARRAY_SIZE(bases)) : pick(2)];

	*length = lengths[pick(ARRAY_SIZE(lengths) - (pick(40) != 0))];
	if (r->open != KIND_UNDEFINED && pick(30) != 0) {
		*length = MIN_OF(rest, 1024u);
		if (r->open == KIND_WRITE)
			return rest <= 1024 ? OPB_WRITE_LAST : OPB_WRITE_MIDDLE;
		return pick(3) == 0 ? OPB_SEND_LAST : OPB_SEND_MIDDLE;
	}
	if ((base == OPB_WRITE_FIRST || base == OPB_SEND_FIRST) && pick(10) != 0)
		*length = 1024;
	return base;
}

static void run(uint64_t seed)
{
	state = seed;
	open_pair();
	if (seed % 2 == 0)
		give_paths();
	if (seed % 3 == 0)
		pair.a.qp->state = pair.b.qp->state = QP_STATE_RTR; /* they only serve */
	for (uint32_t n = 0; n < 300 && qp_state(pair.a.qp) != QP_STATE_ERR; n++) {
		uint32_t length;
		uint8_t base = next_base(&length);

		make_receives(pick(30) == 0 ? 50 : 4096, pick(10) == 0 ? 16 : 0);
		pair.now += TIME_US;
		if (seed % 2 == 0 && pick(8) == 0)
			hold_both(1 + pick(20));
		receive_both(base, length, pick(20) == 0 ? pick(6) : 0, pick(30) != 0);
	}
}

Test(expected, effects_are_those_of_the_general_case)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		run(seed);
		if (seed < 200)
			pair_close(&pair);
	}
}

static bool is_taken(uint8_t base, uint32_t n, uint32_t flaw)
{
	struct packet p = make(0, base, n, flaw);
	struct outcome out;

	out.flags = 0;
	span_list_clear(&out.place);
	if (!expected_received(pair.a.qp, &p, &opcode_table[p.opcode], &receive[0].work, &pair.keys,
			       &out))
		return false;
	if (pair.a.qp->resp.holding > 0 || pair.a.qp->resp.nak_at != TIME_NEVER)
		respond_passed(pair.a.qp, p.psn, pair.now);
	return true;
}

/* A program that only serves WRITEs and READs (perftest's server) stays in RTR. */
Test(expected, the_first_packet_in_rtr_raises_an_event_and_later_ones_are_as_in_rts)
{
	open_pair();
	pair.a.qp->state = pair.b.qp->state = QP_STATE_RTR;
	make_receives(4096, 0);
	cr_expect_not(is_taken(OPB_WRITE_ONLY, 8, 0));
	receive_both(OPB_WRITE_ONLY, 8, 0, true);
	cr_expect_eq(pair.a.qp->events, QP_EVENT_COMM_EST);
	cr_expect(is_taken(OPB_WRITE_ONLY, 8, 0));
	cr_expect(is_taken(OPB_READ_REQUEST, 8, 0));
	cr_expect(is_taken(OPB_SEND_ONLY, 8, 0));
}

Test(expected, what_is_small_goes_this_way)
{
	open_pair();
	make_receives(4096, 0);
	cr_assert(is_taken(OPB_WRITE_ONLY, 8, 0));
	cr_assert(is_taken(OPB_SEND_ONLY, 1024, 0));
	cr_assert(is_taken(OPB_READ_REQUEST, 0, 3));
	cr_assert_not(is_taken(OPB_WRITE_ONLY_IMM, 8, 0));
	cr_assert_not(is_taken(OPB_SEND_FIRST, 1024, 0));
	cr_assert_not(is_taken(OPB_WRITE_MIDDLE, 1024, 0), "nothing is open");
	for (uint32_t flaw = 1; flaw <= 5; flaw++)
		cr_assert_not(is_taken(OPB_WRITE_ONLY, 8, flaw), "flaw %u", flaw);
}

Test(expected, the_middle_of_a_message_goes_this_way)
{
	open_pair();
	make_receives(4096, 0);
	receive_both(OPB_WRITE_FIRST, 1024, 0, false);
	cr_assert_not(is_taken(OPB_SEND_MIDDLE, 1024, 0), "a WRITE is open");
	cr_assert_not(is_taken(OPB_WRITE_MIDDLE, 1020, 0), "it is not full");
	cr_assert(is_taken(OPB_WRITE_MIDDLE, 1024, 0));
	cr_assert(is_taken(OPB_WRITE_MIDDLE, 1024, 0));
	cr_assert_not(is_taken(OPB_WRITE_MIDDLE, 1024, 0), "128 octets are left");
	cr_assert_not(is_taken(OPB_WRITE_LAST, 128, 0), "it is not in the middle");
}

Test(expected, what_goes_on_behind_a_gap_goes_this_way)
{
	open_pair();
	give_paths();
	make_receives(4096, 0);
	hold_both(1);
	hold_both(3);
	cr_assert(is_taken(OPB_WRITE_ONLY, 8, 0), "what was missing");
	cr_assert_eq(pair.a.qp->resp.holding, 2);
	cr_assert(is_taken(OPB_WRITE_ONLY, 8, 0), "what was held");
	cr_assert_eq(pair.a.qp->resp.holding, 1);
	cr_assert_neq(pair.a.qp->resp.nak_at, TIME_NEVER, "another one is missing");
	cr_assert(is_taken(OPB_READ_REQUEST, 0, 3), "a READ");
	cr_assert(is_taken(OPB_SEND_ONLY, 8, 0), "what was held");
	cr_assert_eq(pair.a.qp->resp.holding, 0);
	cr_assert_eq(pair.a.qp->resp.nak_at, TIME_NEVER, "nothing is missing");
}

Test(expected, a_selection_says_what_came)
{
	struct responder *r;

	open_pair();
	give_paths();
	r = &pair.a.qp->resp;
	for (uint32_t n = 1; n < LIMIT_WINDOW; n += 1 + n % 5)
		behind_add(r, psn_add(r->expected_psn, n));
	for (uint32_t at = 0; at < 2 * LIMIT_WINDOW; at++) {
		uint32_t from = psn_add(r->expected_psn, at - 100);
		uint64_t bits = behind_came(r, from);

		for (uint32_t n = 0; n < 64; n++) {
			uint32_t psn = psn_add(from, n);

			cr_assert_eq(bits >> n & 1,
				     psn_after(r->expected_psn, psn) || behind_has(r, psn),
				     "%u, %u", at, n);
		}
	}
}
