/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer.c takes whatever plain_answer.h takes, with the same effects. Both ends get the same
 * responses of the same READs; those of one end go to answer.c.
 */
#include <criterion/criterion.h>

#include "pair.h"
#include "transport/requester/answer.h"
#include "transport/requester/plain_answer.h"

static struct pair pair;
static struct path paths[2];
static uint64_t state;
static uint32_t answers; /* that were compared */

static uint32_t pick(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static void open_pair(bool with_paths)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
	if (!with_paths)
		return;
	path_init(&paths[0]);
	path_init(&paths[1]);
	qp_give_path(pair.a.qp, &paths[0]);
	qp_give_path(pair.b.qp, &paths[1]);
}

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(plain_answer, .fini = close_pair, .timeout = 60);

static struct end *end_of(uint32_t i)
{
	return i == 0 ? &pair.a : &pair.b;
}

/* `wrong`: its elements are too many, so it fails in its turn. */
static void post_both(enum work_opcode opcode, uint32_t length, bool wrong)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct send_work w = { .opcode = (uint8_t)opcode,
				       .num_sge = wrong ? LIMIT_SGE + 1 : 1,
				       .rkey = 0x1234,
				       .remote_addr = PAIR_IOVA + 8 };
		struct work_sge sge[PAIR_SGE] = { { PAIR_IOVA + 16, length, end_of(i)->key } };

		pair_post_work(&pair, end_of(i), &w, sge);
	}
}

static void send_both(void)
{
	struct packet p;
	bool more;

	for (uint32_t i = 0; i < 2; i++)
		qp_resume(end_of(i)->qp); /* no other queue pair has the path */
	do {
		more = pair_next(&pair, &pair.a, &p);
		cr_assert_eq(more, pair_next(&pair, &pair.b, &p));
	} while (more);
}

/* The next response, or nearly. */
static struct packet response(struct end *e, uint32_t flaw)
{
	static const uint8_t octets[4096];
	const struct message *m = message_at(&e->qp->req, e->qp->req.una);
	uint32_t done = (e->qp->req.una_psn - m->first_psn) & PSN_MASK;
	struct part part = part_of(m, done);
	bool first = (done == part.begin) != (flaw == 1);
	bool last = (done + 1 == part.end) != (flaw == 2);
	uint8_t base = first && last ? OPB_READ_RESPONSE_ONLY
		       : first	     ? OPB_READ_RESPONSE_FIRST
		       : last	     ? OPB_READ_RESPONSE_LAST
				     : OPB_READ_RESPONSE_MIDDLE;
	struct packet p = pair_packet(&pair, e, base, e->qp->req.una_psn);

	p.psn = psn_add(p.psn, flaw == 3 ? 1 : flaw == 4 ? PSN_MASK : 0);
	p.syndrome = flaw == 5 ? SYNDROME_RNR : SYNDROME_ACK_NO_CREDITS;
	p.payload = octets;
	p.payload_length = MIN_OF(m->length - (done << e->qp->mtu_shift), e->qp->mtu);
	p.payload_length -= flaw == 6;
	return p;
}

static struct outcome given(uint32_t i, const struct packet *p)
{
	struct qp *qp = end_of(i)->qp;
	struct outcome o = { 0 };

	if (i == 0)
		qp_received(qp, p, NULL, &pair.keys, pair.now, &o);
	else
		o.reason = answer_received(qp, p, &pair.keys, pair.now, &o);
	if (o.flags & OUTCOME_PLACE)
		qp_copied(qp, o.ticket, true);
	return o;
}

static void same_outcome(const struct outcome *a, const struct outcome *b)
{
	cr_assert_eq(a->reason, b->reason, "%s, %s", reason_name(a->reason),
		     reason_name(b->reason));
	cr_assert_eq(a->flags, b->flags);
	cr_assert_eq(a->ticket, b->ticket);
	cr_assert_eq(a->place.length, b->place.length);
	if (!(a->flags & OUTCOME_PLACE))
		return;
	cr_assert_eq(a->source, b->source);
	cr_assert_eq((uint8_t *)a->place.span[0].direct - pair.a.memory,
		     (uint8_t *)b->place.span[0].direct - pair.b.memory);
}

static void same_requesters(const struct qp *a, const struct qp *b)
{
	const struct requester *x = &a->req, *y = &b->req;

	cr_assert_eq(a->state, b->state);
	cr_assert_eq(a->events, b->events);
	cr_assert_eq(a->tickets.settled, b->tickets.settled);
	cr_assert_eq(x->una, y->una);
	cr_assert_eq(x->una_psn, y->una_psn);
	cr_assert_eq(x->nxt, y->nxt);
	cr_assert_eq(x->nxt_psn, y->nxt_psn);
	cr_assert_eq(x->landing, y->landing);
	cr_assert_eq(x->rd_atomic, y->rd_atomic);
	cr_assert_eq(x->more_parts, y->more_parts);
	cr_assert_eq(x->sampling, y->sampling);
	cr_assert_eq(x->flying, y->flying);
	cr_assert_eq(x->flying_psns, y->flying_psns);
	cr_assert_eq(x->retry_at, y->retry_at);
	cr_assert_eq(x->retries, y->retries);
	cr_assert_eq(x->heard, y->heard);
	cr_assert_eq(x->board.probe_at, y->board.probe_at);
	cr_assert_eq(x->board.quiet_at, y->board.quiet_at);
	cr_assert_eq(x->board.clean, y->board.clean);
	cr_assert_eq(x->failed, y->failed);
	cr_assert_eq(x->failed_reason, y->failed_reason);
}

static bool response_is_next(const struct requester *r)
{
	return r->una != r->begun && message_at(r, r->una)->kind == KIND_READ_REQUEST &&
	       r->una_psn != r->top_psn;
}

/* For an answer. */
static bool is_waiting(const struct qp *qp)
{
	return qp->state == QP_STATE_RTS && qp->req.una_psn != qp->req.top_psn;
}

static void answer_both(bool flawed)
{
	struct requester *r = &pair.a.qp->req;
	struct packet p[2];
	struct outcome o[2];

	if (response_is_next(r)) {
		uint32_t flaw = flawed ? 1 + pick(6) : 0;

		for (uint32_t i = 0; i < 2; i++)
			p[i] = response(end_of(i), flaw);
	} else {
		for (uint32_t i = 0; i < 2; i++) {
			p[i] = pair_packet(&pair, end_of(i), OPB_ACK, r->una_psn);
			p[i].syndrome = SYNDROME_ACK_NO_CREDITS;
		}
	}
	for (uint32_t i = 0; i < 2; i++)
		o[i] = given(i, &p[i]);
	same_outcome(&o[0], &o[1]);
	same_requesters(pair.a.qp, pair.b.qp);
}

static void complete_both(void)
{
	struct completion c;
	bool receive;

	for (uint32_t i = 0; i < 2; i++)
		while (qp_take_completion(end_of(i)->qp, &c, &receive))
			cr_assert_not(receive);
}

static void run(bool with_paths, uint64_t seed)
{
	static const uint32_t lengths[] = { 0, 1, 8, 1023, 1024, 1025, 5000, 70000 };

	state = seed;
	open_pair(with_paths);
	for (uint32_t round = 0; round < 300 && qp_state(pair.a.qp) == QP_STATE_RTS; round++) {
		for (uint32_t n = pick(4); n > 0 && qp_window_slot(pair.a.qp) != NULL; n--)
			post_both(pick(5) == 0 ? WORK_RDMA_WRITE : WORK_RDMA_READ,
				  lengths[pick(ARRAY_SIZE(lengths))], pick(300) == 0);
		send_both();
		pair.now += pick(3) * TIME_US;
		paths[0].doubt = paths[1].doubt = (uint8_t)pick(2);
		for (uint32_t n = pick(30); n > 0 && is_waiting(pair.a.qp); n--) {
			answer_both(pick(1000) == 0);
			answers++;
		}
		complete_both();
	}
	if (with_paths)
		cr_assert_eq(memcmp(&paths[0], &paths[1], sizeof(paths[0])), 0, "seed %lu", seed);
}

Test(plain_answer, responses_do_what_they_do_in_the_general_case)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		run(seed & 1, seed);
		if (seed < 60)
			pair_close(&pair);
	}
	cr_assert_gt(answers, 10000);
}

static bool is_plain(struct packet *p)
{
	struct outcome o = { 0 };
	bool plain = plain_answer_received(pair.a.qp, p, &opcode_table[p->opcode], &pair.keys,
					   pair.now, &o);

	cr_assert_eq(!plain, o.flags == 0);
	return plain;
}

Test(plain_answer, each_response_of_a_read_goes_this_way)
{
	open_pair(false);
	post_both(WORK_RDMA_READ, 3000, false);
	post_both(WORK_RDMA_READ, 8, false);
	send_both();
	for (uint32_t i = 0; i < 4; i++) {
		struct packet p = response(&pair.a, 0);

		cr_assert(is_plain(&p), "response %u", i);
	}
	cr_assert_eq(pair.a.qp->req.rd_atomic, 0);
}

Test(plain_answer, what_is_not_plain_changes_nothing)
{
	struct requester before;

	open_pair(false);
	post_both(WORK_RDMA_READ, 3000, false);
	send_both();
	for (uint32_t flaw = 1; flaw <= 6; flaw++) {
		struct packet p = response(&pair.a, flaw);

		before = pair.a.qp->req;
		cr_assert_not(is_plain(&p), "flaw %u", flaw);
		cr_assert_eq(memcmp(&before, &pair.a.qp->req, sizeof(before)), 0, "flaw %u", flaw);
	}
}
