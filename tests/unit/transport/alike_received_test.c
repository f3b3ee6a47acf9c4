/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that are taken in one step do what they do one by one. Both ends get the same packets of the same messages: end
 * a in steps wherever it may, end b one by one.
 */
#include <criterion/criterion.h>

#include "pair.h"
#include "transport/requester/kind.h"
#include "transport/requester/request_check.h"
#include "wire/header.h"
#include "wire/opcode.h"

#define MTU 1024u

static struct pair pair;
static struct path paths[2];
static uint64_t state;
static uint32_t steps, in_steps,
	behind_gaps; /* packets of the latter, and those of them behind gaps */

static uint32_t pick(uint32_t below)
{
	state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

static struct end *end_of(uint32_t i)
{
	return i == 0 ? &pair.a : &pair.b;
}

static void open_pair(void)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
	for (uint32_t i = 0; i < 2; i++) {
		path_init(&paths[i]);
		path_looked(&paths[i]);
		paths[i].window = LIMIT_PATH_WINDOW; /* READs are asked for at once */
		qp_give_path(end_of(i)->qp, &paths[i]);
	}
}

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(alike_received, .fini = close_pair, .timeout = 60);

/* A SEND, WRITE or READ response of so many packets, whose packets are asked for by their place. */
struct train {
	uint8_t kind;
	uint32_t packets, done, first_psn;
	uint64_t asks; /* bits of packets with AckReq */
	uint32_t rest; /* octets of the last packet */
};

static uint8_t base_of(const struct train *f)
{
	static const uint8_t middle[] = { [KIND_SEND] = OPB_SEND_MIDDLE,
					  [KIND_WRITE] = OPB_WRITE_MIDDLE,
					  [KIND_READ_RESPONSE] = OPB_READ_RESPONSE_MIDDLE };
	static const uint8_t one[] = { [KIND_SEND] = OPB_SEND_ONLY,
				       [KIND_WRITE] = OPB_WRITE_ONLY,
				       [KIND_READ_RESPONSE] = OPB_READ_RESPONSE_ONLY };
	uint8_t base = middle[f->kind];

	if (f->packets == 1)
		return one[f->kind];
	if (f->done == 0)
		return base - 1;
	return base + (f->done + 1 == f->packets);
}

static struct packet packet_of(uint32_t i, const struct train *f)
{
	static const uint8_t octets[MTU];
	struct end *e = end_of(i);
	struct packet p = pair_packet(&pair, e, base_of(f), psn_add(f->first_psn, f->done));
	bool last = f->done + 1 == f->packets;

	p.payload = octets;
	p.payload_length = last ? f->rest : MTU;
	p.pad = (uint8_t)(-p.payload_length & 3);
	p.va = PAIR_IOVA + 128;
	p.rkey = e->key;
	p.dma_length = (f->packets - 1) * MTU + f->rest;
	p.syndrome = SYNDROME_ACK_NO_CREDITS;
	p.ack_req = f->kind != KIND_READ_RESPONSE && (f->asks >> (f->done & 63) & 1);
	return p;
}

static const struct recv_work *offer(uint32_t i, const struct packet *p)
{
	static struct {
		struct recv_work work;
		struct work_sge sge;
	} receive[2];

	if (!qp_wants_receive(end_of(i)->qp, p))
		return NULL;
	receive[i].work = (struct recv_work){ .wr_id = 5, .num_sge = 1 };
	receive[i].sge = (struct work_sge){ PAIR_IOVA + 64, 64 * MTU, end_of(i)->key };
	return &receive[i].work;
}

/* Where the octets go, from the end's memory on. */
static ptrdiff_t one_by_one(uint32_t i, const struct packet *p)
{
	struct outcome o = { 0 };

	qp_received(end_of(i)->qp, p, offer(i, p), &pair.keys, pair.now, &o);
	cr_assert_eq(o.reason, REASON_NONE, "%s", reason_name(o.reason));
	cr_assert(o.flags & OUTCOME_PLACE);
	qp_copied(end_of(i)->qp, o.ticket, true);
	return (uint8_t *)o.place.span[0].direct - end_of(i)->memory;
}

/* A packet takes the average of those in flight, and each answer rounds it down. */
static void near(uint64_t octets, uint64_t others)
{
	cr_assert_leq(octets - others + 64, 128u, "%lu, not %lu", octets, others);
}

static void same_board(const struct board *a, const struct board *b)
{
	cr_assert_eq(a->clean, b->clean);
	cr_assert_eq(a->probes, b->probes);
	if (a->clean)
		return;
	cr_assert_eq(a->passed, b->passed);
	cr_assert_eq(a->passed_data, b->passed_data);
	cr_assert_eq(a->acked, b->acked);
	cr_assert_eq(a->late, b->late);
	cr_assert_eq(a->late_at, b->late_at);
	cr_assert_eq(a->episode, b->episode);
	cr_assert_eq(a->rounds, b->rounds);
	cr_assert_arr_eq(board_bits(a), board_bits(b), BOARD_SETS * a->words * sizeof(uint64_t));
}

static void same_state(void)
{
	const struct qp *a = pair.a.qp, *b = pair.b.qp;
	const struct responder *r = &a->resp, *s = &b->resp;
	const struct requester *x = &a->req, *y = &b->req;

	cr_assert_eq(a->state, b->state);
	cr_assert_eq(a->events, b->events);
	cr_assert_eq(a->tickets.issued, b->tickets.issued);
	cr_assert_eq(a->tickets.settled, b->tickets.settled);
	cr_assert_eq(a->tickets.placing, b->tickets.placing);
	cr_assert_eq(r->expected_psn, s->expected_psn);
	cr_assert_eq(r->open, s->open);
	cr_assert_eq(r->offset, s->offset);
	cr_assert_eq(r->msn, s->msn);
	cr_assert_eq(r->ack_due, s->ack_due);
	cr_assert_eq(r->ack_due_psn, s->ack_due_psn);
	cr_assert_eq(r->nak, s->nak);
	cr_assert_eq(r->nak_at, s->nak_at);
	cr_assert_eq(x->una, y->una);
	cr_assert_eq(x->una_psn, y->una_psn);
	cr_assert_eq(x->landing, y->landing);
	cr_assert_eq(x->rd_atomic, y->rd_atomic);
	cr_assert_eq(x->sampling, y->sampling);
	near(x->flying, y->flying);
	cr_assert_eq(x->flying_psns, y->flying_psns);
	cr_assert_eq(x->retry_at, y->retry_at);
	cr_assert_eq(x->retries, y->retries);
	cr_assert_eq(x->heard, y->heard);
	cr_assert_eq(x->alone, y->alone);
	cr_assert_eq(x->board.probe_at, y->board.probe_at);
	cr_assert_eq(x->board.quiet_at, y->board.quiet_at);
	cr_assert_eq(paths[0].heard, paths[1].heard);
	near(paths[0].flying, paths[1].flying);
	cr_assert_eq(paths[0].samples, paths[1].samples);
	cr_assert_eq(paths[0].srtt, paths[1].srtt);
	cr_assert_eq(paths[0].doubt, paths[1].doubt);
	cr_assert_eq(paths[0].reordered_at, paths[1].reordered_at);
	same_board(&x->board, &y->board);
}

/* In the middle of the message, so many more packets at most; returns how many came in one step. */
static uint32_t step(struct train *f, const struct packet *before, uint32_t most)
{
	struct span_list place;
	uint32_t n, asked = 0;

	n = qp_expects_alike(pair.a.qp, before, &pair.keys, most, &place);
	cr_assert_leq(n, most);
	cr_assert_eq(place.length, n * MTU);
	for (uint32_t k = 0; k < n; k++, f->done++) {
		struct packet p = packet_of(1, f);

		cr_assert(opcode_is_middle(p.opcode) || f->kind == KIND_SEND);
		cr_assert_eq(one_by_one(1, &p),
			     (uint8_t *)place.span[0].direct - pair.a.memory + (ptrdiff_t)k * MTU);
		asked = p.ack_req ? k + 1 : asked;
	}
	if (n > 0)
		qp_received_alike(pair.a.qp, before, n, asked, pair.now);
	steps += n > 0;
	in_steps += n;
	behind_gaps += pair.a.qp->req.board.clean ? 0 : n;
	return n;
}

/* So many packets of the message arrive at once. */
static void arrive(struct train *f, uint32_t burst)
{
	while (burst > 0 && f->done < f->packets) {
		struct packet p = packet_of(0, f), q = packet_of(1, f);
		uint32_t middles;

		cr_assert_eq(one_by_one(0, &p), one_by_one(1, &q));
		f->done++;
		burst--;
		same_state();
		/* the last packet is none of the middle, as its opcode says */
		middles = f->done + 1 < f->packets ? f->packets - 1 - f->done : 0;
		burst -= step(f, &p, MIN_OF(burst, middles));
		same_state();
	}
}

static struct train new_train(uint8_t kind, uint32_t psn)
{
	return (struct train){ .kind = kind,
			       .packets = 1 + pick(40),
			       .first_psn = psn,
			       .asks = (uint64_t)pick(1u << 31) << 32 | pick(1u << 31),
			       .rest = 1 + pick(MTU) };
}

static void post_reads(const struct train *f)
{
	for (uint32_t i = 0; i < 2; i++)
		pair_post(&pair, end_of(i), WORK_RDMA_READ, 0, 16, (f->packets - 1) * MTU + f->rest,
			  8);
}

static void leave(void)
{
	struct packet p;

	for (uint32_t i = 0; i < 2; i++) {
		qp_resume(end_of(i)->qp);
		while (pair_next(&pair, end_of(i), &p))
			;
	}
}

static void complete(void)
{
	struct completion c;
	bool receive;

	for (uint32_t i = 0; i < 2; i++)
		while (qp_take_completion(end_of(i)->qp, &c, &receive))
			cr_assert_eq(c.status, STATUS_SUCCESS);
}

static void read_answers(void)
{
	struct requester *r = &pair.a.qp->req;
	struct train f = new_train(KIND_READ_RESPONSE, r->nxt_psn);
	const struct message *m;

	post_reads(&f);
	leave();
	m = message_at(r, r->una);
	cr_assert_eq(m->asked_to, f.packets, "asked for at once");
	while (f.done < f.packets) {
		pair.now += pick(3) * TIME_US;
		arrive(&f, 1 + pick(32));
	}
	complete();
}

/*
 * Some responses of several READs are lost, and come when they were asked for again; others come late. So most come
 * behind a gap.
 */
static void read_answers_with_gaps(void)
{
	struct train f[3], missing[3 * 40];
	uint32_t psn = pair.a.qp->req.nxt_psn, gaps = 0;

	pair.a.qp->selective = pair.b.qp->selective =
		pick(2); /* towards others more places may change */
	for (uint32_t i = 0; i < ARRAY_SIZE(f); i++) {
		f[i] = new_train(KIND_READ_RESPONSE, psn);
		psn = psn_add(psn, f[i].packets);
		post_reads(&f[i]);
	}
	for (uint32_t i = 0; i < 2; i++) {
		paths[i].window = LIMIT_PATH_WINDOW; /* losses made it smaller, */
		paths[i].places = 0; /* ... and late packets this larger */
	}
	leave();
	for (uint32_t i = 0; i < ARRAY_SIZE(f); i++) {
		while (f[i].done < f[i].packets) {
			pair.now += pick(3) * TIME_US;
			if (pick(4) == 0) {
				missing[gaps++] = f[i];
				f[i].done++;
			}
			arrive(&f[i], 1 + pick(16));
			if (pick(4) == 0)
				leave(); /* what is lost is asked for again */
			if (gaps > 0 && pick(4) == 0)
				arrive(&missing[--gaps], 1);
		}
	}
	while (gaps > 0)
		arrive(&missing[--gaps], 1);
	complete();
	cr_assert_eq(pair.a.qp->req.una, pair.a.qp->req.begun);
}

static void requests(void)
{
	struct train f = new_train(pick(2) ? KIND_WRITE : KIND_SEND, pair.a.qp->resp.expected_psn);

	while (f.done < f.packets) {
		pair.now += pick(3) * TIME_US;
		arrive(&f, 1 + pick(32));
		if (pick(3) == 0)
			leave(); /* acknowledgements */
	}
	complete();
}

Test(alike_received, in_one_step_or_one_by_one)
{
	open_pair();
	state = 1;
	for (uint32_t i = 0; i < 2000; i++) {
		if (pick(2))
			requests();
		else
			read_answers();
	}
	cr_assert_gt(in_steps, 10000, "%u packets in %u steps", in_steps, steps);
}

Test(alike_received, in_one_step_or_one_by_one_behind_gaps)
{
	open_pair();
	state = 2;
	for (uint32_t i = 0; i < 2000; i++)
		read_answers_with_gaps();
	cr_assert_gt(behind_gaps, 10000, "%u packets in %u steps, %u behind gaps", in_steps, steps,
		     behind_gaps);
}

/* ---- what ends a step ---- */

static struct packet before;
static struct train train;
static struct span_list place;

/* Two packets of eight have come. */
static void begin(uint8_t kind)
{
	open_pair();
	train = (struct train){ .kind = kind, .packets = 8, .rest = MTU };
	if (kind == KIND_READ_RESPONSE) {
		train.first_psn = pair.a.qp->req.nxt_psn;
		post_reads(&train);
		leave();
	} else {
		train.first_psn = pair.a.qp->resp.expected_psn;
	}
	for (; train.done < 2; train.done++) {
		before = packet_of(0, &train);
		one_by_one(0, &before);
	}
}

static uint32_t expects(uint32_t most)
{
	return qp_expects_alike(pair.a.qp, &before, &pair.keys, most, &place);
}

Test(alike_received, the_last_packet_goes_the_ordinary_way)
{
	begin(KIND_WRITE);
	cr_expect_eq(expects(20), 5, "six are left, of which one is the last");
	cr_expect_eq(expects(3), 3);
	close_pair();
	begin(KIND_READ_RESPONSE);
	cr_expect_eq(expects(20), 5);
	close_pair();
	begin(KIND_SEND);
	cr_expect_eq(expects(20), 20, "a receive request may be longer");
}

Test(alike_received, not_beyond_the_receive_request)
{
	begin(KIND_SEND);
	cr_expect_eq(expects(100), 62, "64 path MTUs, of which two have come");
}

/* The first packet of a connection raises an event; those of this message were later. */
Test(alike_received, in_rtr_as_in_rts)
{
	begin(KIND_WRITE);
	pair.a.qp->state = QP_STATE_RTR;
	cr_expect_eq(expects(20), 0, "no packet came in this state");
	pair.a.qp->established = true;
	cr_expect_eq(expects(20), 5);
}

Test(alike_received, not_behind_the_first_packet)
{
	begin(KIND_WRITE);
	before.opcode--; /* FIRST */
	cr_expect_eq(expects(20), 0);
}

Test(alike_received, not_behind_a_packet_that_was_not_taken)
{
	begin(KIND_WRITE);
	before.psn = psn_add(before.psn, 1);
	cr_expect_eq(expects(20), 0, "it is the expected one itself");
	close_pair();
	begin(KIND_READ_RESPONSE);
	before.psn = psn_add(before.psn, 1);
	cr_expect_eq(expects(20), 0);
}

Test(alike_received, not_while_a_copy_is_under_way)
{
	struct outcome o = { 0 };

	begin(KIND_WRITE);
	before = packet_of(0, &train);
	qp_received(pair.a.qp, &before, NULL, &pair.keys, pair.now, &o);
	cr_expect_eq(expects(20), 0);
	qp_copied(pair.a.qp, o.ticket, true);
	cr_expect_eq(expects(20), 4);
}

Test(alike_received, each_mark_of_the_network_is_looked_at)
{
	begin(KIND_WRITE);
	before.ecn = ECN_CE;
	cr_expect_eq(expects(20), 0);
}

Test(alike_received, not_behind_a_gap)
{
	struct packet p;
	struct outcome o = { 0 };

	begin(KIND_WRITE);
	train.done++; /* is missing */
	p = packet_of(0, &train);
	qp_received(pair.a.qp, &p, NULL, &pair.keys, pair.now, &o);
	cr_expect_eq(o.flags, OUTCOME_HOLD);
	cr_expect_eq(expects(20), 0, "the gap is to be reported");
	qp_held(pair.a.qp, &p, pair.now);
	cr_expect_eq(expects(20), 0, "a kept packet waits for the next one");
}

/* The third response is missing, and `before` is the fourth. */
static void begin_behind_a_gap(void)
{
	begin(KIND_READ_RESPONSE);
	train.done++;
	before = packet_of(0, &train);
	one_by_one(0, &before);
}

Test(alike_received, responses_behind_a_gap)
{
	begin_behind_a_gap();
	cr_expect_eq(expects(20), 3, "four are left, of which one is the last");
	before.psn = psn_add(before.psn, 1);
	cr_expect_eq(expects(20), 0, "it has not come");
	before.psn = psn_add(before.psn, PSN_MASK - 2);
	cr_expect_eq(expects(20), 0, "it came before the gap");
}

/* ... only behind the newest one, and up to one that has come. */
Test(alike_received, not_behind_a_response_that_came_late)
{
	struct train late;
	struct packet newer;

	begin_behind_a_gap();
	late = train;
	train.done += 2;
	newer = packet_of(0, &train);
	one_by_one(0, &newer);
	cr_expect_eq(expects(20), 0);
	late.done++;
	before = packet_of(0, &late);
	one_by_one(0, &before);
	cr_expect_eq(expects(20), 0);
	before = newer;
	cr_expect_eq(expects(20), 1);
}

Test(alike_received, not_responses_that_were_asked_for_again)
{
	struct requester *r;

	begin_behind_a_gap();
	r = &pair.a.qp->req;
	psn_set_add(board_set(&r->board, BOARD_YOUNG), psn_add(before.psn, 3));
	cr_expect_eq(expects(20), 2);
	psn_set_add(board_set(&r->board, BOARD_LOST), psn_add(before.psn, 1));
	cr_expect_eq(expects(20), 0);
}

Test(alike_received, not_while_a_probe_waits_for_its_answer)
{
	begin_behind_a_gap();
	pair.a.qp->req.board.probes = 1;
	cr_expect_eq(expects(20), 0);
}

Test(alike_received, not_if_an_earlier_request_has_failed)
{
	begin(KIND_READ_RESPONSE);
	request_set_fault(message_at(&pair.a.qp->req, pair.a.qp->req.una), STATUS_LOC_PROT_ERR,
			  REASON_MEMORY_FAULT);
	cr_expect_eq(expects(20), 0);
}

static void expect_needs_key(uint8_t kind)
{
	begin(kind);
	key_withdraw(&pair.keys, pair.a.key);
	cr_expect_eq(expects(20), 0);
	key_publish(&pair.keys, pair.a.key, pair.a.region);
	cr_expect_gt(expects(20), 0);
	pair.a.region->piece[0].direct = NULL;
	cr_expect_eq(expects(20), 0, "a peer's memory is written by its mover");
	pair.a.region->piece[0].direct = pair.a.memory;
	close_pair();
}

Test(alike_received, a_key_that_is_gone_or_memory_of_a_peer_ends_it)
{
	expect_needs_key(KIND_WRITE);
	expect_needs_key(KIND_SEND);
	expect_needs_key(KIND_READ_RESPONSE);
	begin(KIND_WRITE);
}
