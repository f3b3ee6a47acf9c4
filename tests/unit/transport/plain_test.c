/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.h and request.c make the same packets of the same requests. One end uses plain.h, and alike.c for the middle of
 * a message. The other end has a rate limit that never holds it back, so request.c makes all of its packets.
 */
#include <criterion/criterion.h>

#include "pair.h"
#include "transport/requester/plain.h"

static struct pair pair;
static struct path paths[2];
static uint64_t state;
static uint32_t alike; /* packets that alike.c made */

static uint32_t pick(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static void limit(struct end *e)
{
	e->qp->req.rate = (struct rate){ .limit = UINT32_MAX, .burst = TIME_S };
}

static void open_pair(bool with_paths)
{
	struct pair_options o = pair_options();

	o.octets = 64 << 10; /* cleared for each pair */
	pair_init(&pair, &o);
	limit(&pair.b);
	if (!with_paths)
		return;
	for (uint32_t i = 0; i < 2; i++) {
		path_init(&paths[i]);
		if (state & 2)
			path_looked(&paths[i]);
	}
	qp_give_path(pair.a.qp, &paths[0]);
	qp_give_path(pair.b.qp, &paths[1]);
}

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(plain, .fini = close_pair, .timeout = 60);

/* Both ends post the same request; a wrong key is wrong at both. */
static void post_both(uint8_t opcode, uint8_t flags, uint32_t length, bool key_wrong)
{
	struct end *ends[] = { &pair.a, &pair.b };

	for (uint32_t i = 0; i < 2; i++) {
		struct send_work w = { .wr_id = length,
				       .opcode = opcode,
				       .flags = flags,
				       .num_sge = 1,
				       .imm = 77,
				       .rkey = 0x1234,
				       .remote_addr = PAIR_IOVA + 8 };
		struct work_sge sge = { PAIR_IOVA + 16, length, ends[i]->key ^ key_wrong };

		if (flags & WORK_INLINE) {
			w.num_sge = 0;
			w.inline_length = (uint16_t)length;
		}
		pair_post_work(&pair, ends[i], &w, &sge);
	}
}

static void post_any(void)
{
	static const uint8_t opcodes[] = { WORK_RDMA_WRITE, WORK_RDMA_WRITE_WITH_IMM,
					   WORK_SEND,	    WORK_SEND_WITH_IMM,
					   WORK_RDMA_READ,  WORK_SEND_WITH_INV };
	static const uint32_t lengths[] = {
		0, 1, 8, 64, 1023, 1024, 1025, 3000, 9000, 16384, 40000
	};
	uint8_t opcode = opcodes[pick(6) == 0 ? 4 : pick(4)];
	uint32_t length = lengths[pick(ARRAY_SIZE(lengths))];
	uint8_t flags = (uint8_t)(pick(2) * WORK_SIGNALED + pick(2) * WORK_SOLICITED);

	if (pick(20) == 0)
		flags |= WORK_FENCE;
	if (length <= 48 && opcode != WORK_RDMA_READ && pick(3) == 0)
		flags |= WORK_INLINE;
	post_both(opcode, flags, length, pick(500) == 0);
}

static enum next_packet next_of(struct end *e, struct packet *p, struct span_list *gather)
{
	nanotime not_before;

	memset(p, 0, sizeof(*p));
	memset(gather, 0, sizeof(*gather));
	return qp_next_packet(e->qp, &pair.keys, pair.now, p, gather, &not_before);
}

static void same_place(const struct span_list *a, const struct span_list *b)
{
	cr_assert_eq(a->count, b->count);
	cr_assert_eq(a->length, b->length);
	for (uint32_t i = 0; i < a->count; i++) {
		cr_assert_eq(a->span[i].length, b->span[i].length);
		cr_assert_eq((uint8_t *)a->span[i].direct - pair.a.memory,
			     (uint8_t *)b->span[i].direct - pair.b.memory);
	}
}

static void same_packet(const struct packet *a, const struct packet *b)
{
	cr_assert_eq(a->opcode, b->opcode);
	cr_assert_eq(a->psn, b->psn);
	cr_assert_eq(a->solicited, b->solicited);
	cr_assert_eq(a->ack_req, b->ack_req, "PSN %x", a->psn);
	cr_assert_eq(a->again, b->again);
	cr_assert_eq(a->payload_length, b->payload_length);
	cr_assert_eq(a->pad, b->pad);
	cr_assert_eq(a->payload == NULL, b->payload == NULL);
	if (opcode_is(a->opcode, OP_RETH)) {
		cr_assert_eq(a->va, b->va);
		cr_assert_eq(a->rkey, b->rkey);
		cr_assert_eq(a->dma_length, b->dma_length);
	}
	if (opcode_is(a->opcode, OP_IMM))
		cr_assert_eq(a->imm, b->imm);
	if (opcode_is(a->opcode, OP_IETH))
		cr_assert_eq(a->invalidate_rkey, b->invalidate_rkey);
}

static void same_cursors(const struct requester *a, const struct requester *b)
{
	cr_assert_eq(a->nxt, b->nxt);
	cr_assert_eq(a->begun, b->begun);
	cr_assert_eq(a->nxt_psn, b->nxt_psn);
	cr_assert_eq(a->top_psn, b->top_psn);
	cr_assert_eq(a->new_psn, b->new_psn);
	cr_assert_eq(a->unasked, b->unasked);
	cr_assert_eq(a->unasked_octets, b->unasked_octets);
	cr_assert_eq(a->flying, b->flying);
	cr_assert_eq(a->flying_psns, b->flying_psns);
	cr_assert_eq(a->sampling, b->sampling);
	for (uint32_t i = 0; i < a->sampling; i++)
		cr_assert_eq(a->sample[i].psn, b->sample[i].psn);
	cr_assert_eq(a->retry_at, b->retry_at);
	cr_assert_eq(a->board.probe_at, b->board.probe_at);
	cr_assert_eq(a->failed, b->failed);
	cr_assert_eq(a->held, b->held);
}

/* The middle of a message goes on: several packets at once at one end, one after the other at the other one. */
static uint32_t send_alike(const struct packet *before)
{
	struct packet a = *before, b;
	struct span_list ga, gb, part;
	uint32_t most = 1 + pick(16),
		 n = qp_next_alike(pair.a.qp, before, &pair.keys, most, pair.now, &ga);

	cr_assert_leq(n, most);
	cr_assert_eq(ga.length, n * pair.a.qp->mtu);
	cr_assert_eq(ga.count, n > 0);
	part = ga;
	part.length = part.span[0].length = pair.a.qp->mtu;
	a.ack_req = false;
	for (uint32_t i = 0; i < n; i++) {
		a.psn = psn_add(a.psn, 1);
		cr_assert_eq(next_of(&pair.b, &b, &gb), NEXT_PACKET);
		same_packet(&a, &b);
		same_place(&part, &gb);
		part.span[0].direct = (uint8_t *)part.span[0].direct + part.length;
	}
	same_cursors(&pair.a.qp->req, &pair.b.qp->req);
	alike += n;
	return n;
}

/* Sends all that may be sent, at both ends alike. Returns the number of packets. */
static uint32_t send_all(void)
{
	struct span_list ga, gb;
	struct packet a, b;
	uint32_t n = 0;

	for (;;) {
		enum next_packet next = next_of(&pair.a, &a, &ga);

		cr_assert_eq(next, next_of(&pair.b, &b, &gb));
		same_cursors(&pair.a.qp->req, &pair.b.qp->req);
		if (next != NEXT_PACKET)
			return n;
		same_packet(&a, &b);
		same_place(&ga, &gb);
		n++;
		if (pick(4) != 0)
			n += send_alike(&a); /* none, unless it is in the middle */
	}
}

/* Both get the response of the oldest request, a READ. */
static void answer_both(const struct message *m)
{
	static const uint8_t octets[4096];
	struct end *ends[] = { &pair.a, &pair.b };

	for (uint32_t i = 0; i < 2; i++) {
		struct packet p = pair_packet(&pair, ends[i], OPB_READ_RESPONSE_ONLY, m->first_psn);

		p.syndrome = SYNDROME_ACK_NO_CREDITS;
		p.payload = octets;
		p.payload_length = m->length;
		p.pad = (uint8_t)(-m->length & 3);
		cr_assert_eq(pair_inject(&pair, ends[i], &p), REASON_NONE);
	}
}

/* How many packets may be acknowledged before the response of a READ is wanted. */
static uint32_t before_read(const struct requester *r)
{
	for (uint32_t i = r->una; i != r->nxt; i++)
		if (message_at(r, i)->kind == KIND_READ_REQUEST)
			return (message_at(r, i)->first_psn - r->una_psn) & PSN_MASK;
	return (r->top_psn - r->una_psn) & PSN_MASK;
}

/* Tells both that this much has arrived. */
static void acknowledge_both(uint32_t psn)
{
	struct end *ends[] = { &pair.a, &pair.b };

	for (uint32_t i = 0; i < 2; i++) {
		struct packet ack = pair_packet(&pair, ends[i], OPB_ACK, psn);

		ack.syndrome = SYNDROME_ACK_NO_CREDITS;
		pair_inject(&pair, ends[i], &ack);
	}
}

static void run(bool with_paths, uint64_t seed)
{
	uint32_t sent = 0;

	state = seed;
	open_pair(with_paths);
	for (uint32_t round = 0; round < 200 && qp_state(pair.a.qp) == QP_STATE_RTS; round++) {
		struct requester *r = &pair.a.qp->req;
		const struct message *m;
		uint32_t n;

		for (n = pick(20); n > 0 && qp_window_slot(pair.a.qp) != NULL; n--)
			post_any();
		if (with_paths && pick(2) == 0)
			paths[0].window = paths[1].window = 4096u << pick(6);
		sent += send_all();
		pair.now += TIME_US;
		n = before_read(r);
		m = message_at(r, r->una);
		if (n > 0 && pick(4) != 0)
			acknowledge_both(psn_add(r->una_psn, pick(n)));
		else if (n == 0 && r->una != r->nxt && m->packets == 1)
			answer_both(m);
	}
	if (with_paths)
		cr_assert_eq(memcmp(&paths[0], &paths[1], sizeof(paths[0])), 0, "seed %lu", seed);
	cr_assert_gt(sent, 0);
}

Test(plain, packets_are_those_of_the_general_case)
{
	for (uint64_t seed = 1; seed <= 160; seed++) {
		run(seed & 1, seed);
		if (seed < 160)
			pair_close(&pair);
	}
	cr_assert_gt(alike, 1000);
}

static bool is_plain(struct end *e)
{
	struct span_list gather;
	struct packet p;

	memset(&p, 0, sizeof(p));
	span_list_clear(&gather);
	return plain_next(e->qp, &pair.keys, pair.now, &p, &gather);
}

Test(plain, what_is_small_goes_this_way)
{
	open_pair(false);
	post_both(WORK_RDMA_WRITE, 0, 8, false);
	post_both(WORK_SEND_WITH_IMM, WORK_SOLICITED, 1024, false);
	post_both(WORK_SEND, WORK_INLINE, 0, false);
	post_both(WORK_RDMA_READ, 0, 1000, false);
	post_both(WORK_RDMA_WRITE, 0, 1025, false);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert(is_plain(&pair.a), "message %u", i);
	cr_assert_not(is_plain(&pair.a), "it takes two packets");
	cr_assert_not(is_plain(&pair.b), "its rate is limited");
}

Test(plain, the_middle_of_a_message_goes_this_way)
{
	struct span_list gather;
	struct packet p;

	open_pair(false);
	post_both(WORK_SEND, 0, 3000, false);
	cr_assert_not(is_plain(&pair.a), "it is the first packet");
	cr_assert_eq(next_of(&pair.a, &p, &gather), NEXT_PACKET);
	cr_assert(is_plain(&pair.a));
	cr_assert_not(is_plain(&pair.a), "it is the last packet");
}

Test(plain, reads_are_as_many_as_the_peer_remembers)
{
	open_pair(false);
	for (uint32_t i = 0; i < 5; i++)
		post_both(WORK_RDMA_READ, 0, 8, false);
	for (uint32_t i = 0; i < 4; i++)
		cr_assert(is_plain(&pair.a));
	cr_assert_not(is_plain(&pair.a));
	cr_assert_eq(pair.a.qp->req.rd_atomic, 4);
}

Test(plain, what_is_not_plain_changes_nothing)
{
	struct requester before;

	open_pair(false);
	post_both(WORK_RDMA_WRITE, 0, 8, true);
	before = pair.a.qp->req;
	cr_assert_not(is_plain(&pair.a), "its key is wrong");
	cr_assert_eq(memcmp(&before, &pair.a.qp->req, sizeof(before)), 0);
}

/* The end posts it with so many elements, of which only the first has octets; what the core makes of it. */
static const struct message *checked(struct end *e, uint8_t opcode, uint8_t flags, uint32_t length,
				     uint8_t elements)
{
	struct send_work w = { .opcode = opcode, .flags = flags, .num_sge = elements };
	struct work_sge sge[PAIR_SGE] = { { PAIR_IOVA, length, e->key } };
	const struct requester *r = &e->qp->req;
	uint32_t index = r->tail;

	pair_post_work(&pair, e, &w, sge);
	return message_at(r, index);
}

/* request_check.c looks at requests of one element first, and at all others together. */
Test(plain, a_request_of_one_element_is_judged_as_one_of_two_with_an_empty_one)
{
	static const uint32_t lengths[] = { 0, 8, 4097, LIMIT_MESSAGE, LIMIT_MESSAGE + 1u };

	state = 1;
	for (uint32_t n = 0; n < 500; n++) {
		uint8_t opcode = (uint8_t)(pick(10) == 0 ? pick(256) : pick(16));
		uint8_t flags = (uint8_t)(pick(8) << pick(2) & ~(uint32_t)WORK_INLINE);
		uint32_t length = lengths[pick(ARRAY_SIZE(lengths))];
		const struct message *one, *two;

		open_pair(false);
		one = checked(&pair.a, opcode, flags, length, 1);
		two = checked(&pair.b, opcode, flags, length, 2);
		cr_assert_eq(one->kind, two->kind, "opcode %u", opcode);
		cr_assert_eq(one->fault, two->fault, "opcode %u, %u octets", opcode, length);
		cr_assert(one->fault == REASON_NONE || one->fault_status == two->fault_status);
		cr_assert_eq(one->length, two->length);
		cr_assert_eq(one->plain, two->plain, "opcode %u, flags %x", opcode, flags);
		close_pair();
	}
	open_pair(false);
}
