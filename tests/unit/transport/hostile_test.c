/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers and clients that keep to nothing. Whatever arrives or stands in the window: no octet
 * outside the registered range, one completion a request, bounded replies, and no crash.
 */
#include <criterion/criterion.h>

#include "pair.h"

static struct pair pair;
static struct pair_options o;
static uint8_t payload[4096];

static void start(void)
{
	o = pair_options();
	o.psn = 0xfffffe;
	pair_init(&pair, &o);
	pair_fill(payload, sizeof(payload), 5);
}

static void finish(void)
{
	pair_close(&pair);
}

TestSuite(hostile, .init = start, .fini = finish, .timeout = 400);

/* A request to b; payload of `length` octets. */
static struct packet request(uint8_t base, uint32_t psn, uint32_t length)
{
	struct packet p = pair_packet(&pair, &pair.b, base, psn);

	p.va = PAIR_IOVA;
	p.rkey = pair.b.key;
	p.payload = payload;
	p.payload_length = length;
	p.dma_length = length;
	p.pad = (uint8_t)(-length & 3);
	p.ack_req = true;
	return p;
}

static bool untouched(const uint8_t *memory)
{
	uint8_t different = 0;

	for (uint32_t i = 0; i < PAIR_MEMORY; i++)
		different |= memory[i] ^ 0xee;
	return different == 0;
}

static void expect_nak(uint8_t syndrome, uint32_t psn)
{
	struct packet p;

	cr_assert(pair_next(&pair, &pair.b, &p), "a reply was owed");
	cr_assert_eq(p.opcode, OPB_ACK);
	cr_assert_eq(p.syndrome, syndrome, "syndrome %#x, not %#x", p.syndrome, syndrome);
	cr_assert_eq(p.psn, psn & PSN_MASK);
	cr_assert_not(pair_next(&pair, &pair.b, &p), "one reply is enough");
}

/*
 * WRITEs whose RETH is wrong in one way each.
 * hostile H-16: a range that goes round; H-19: a length that is not what is sent.
 */
Test(hostile, write_headers)
{
	static const struct {
		uint8_t base;
		uint32_t payload, dma_length;
		uint64_t va;
		uint8_t syndrome;
		enum reason why;
	} rows[] = {
		{ OPB_WRITE_ONLY, 1024, 0x400, 0xfffffffffffffc00, 0x62, REASON_KEY_RANGE },
		{ OPB_WRITE_ONLY, 8, 9, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_WRITE_ONLY, 8, 7, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_WRITE_ONLY, 8, UINT32_MAX, PAIR_IOVA, 0x61, REASON_LENGTH_MESSAGE },
		{ OPB_WRITE_FIRST, 1024, 0x80000001, PAIR_IOVA, 0x61, REASON_LENGTH_MESSAGE },
		{ OPB_WRITE_FIRST, 1024, 0x80000000, PAIR_IOVA, 0x62, REASON_KEY_RANGE },
		{ OPB_WRITE_FIRST, 1024, 1024, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_WRITE_FIRST, 1020, 4096, PAIR_IOVA, 0x61, REASON_LENGTH_PAYLOAD },
		{ OPB_WRITE_FIRST, 0, 0, PAIR_IOVA, 0x61, REASON_LENGTH_PAYLOAD },
		{ OPB_WRITE_ONLY, 1025, 1025, PAIR_IOVA, 0x61, REASON_LENGTH_PAYLOAD },
		{ OPB_WRITE_ONLY, 8, 8, PAIR_IOVA + PAIR_MEMORY - 7, 0x62, REASON_KEY_RANGE },
		{ OPB_WRITE_ONLY, 8, 8, PAIR_IOVA - 1, 0x62, REASON_KEY_RANGE },
		{ OPB_WRITE_MIDDLE, 1024, 0, 0, 0x61, REASON_OPCODE_SEQUENCE },
		{ OPB_WRITE_LAST, 8, 0, 0, 0x61, REASON_OPCODE_SEQUENCE },
		{ OPB_SEND_LAST, 8, 0, 0, 0x61, REASON_OPCODE_SEQUENCE },
		{ OPB_FLUSH, 0, 8, PAIR_IOVA, 0x61, REASON_FLUSH_TYPE },
		{ OPB_ATOMIC_WRITE, 0, 0, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_ATOMIC_WRITE, 8, 0, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_ATOMIC_WRITE, 0, 8, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_ATOMIC_WRITE, 16, 16, PAIR_IOVA, 0x61, REASON_LENGTH_RETH },
		{ OPB_ATOMIC_WRITE, 8, 8, PAIR_IOVA + 4, 0x61, REASON_ATOMIC_ALIGNMENT },
		{ OPB_ATOMIC_WRITE, 8, 8, PAIR_IOVA + PAIR_MEMORY, 0x62, REASON_KEY_RANGE },
		{ OPB_READ_REQUEST, 0, 0x80000001, PAIR_IOVA, 0x61, REASON_LENGTH_MESSAGE },
		{ OPB_READ_REQUEST, 0, 8, PAIR_IOVA + PAIR_MEMORY - 7, 0x62, REASON_KEY_RANGE },
		{ OPB_CMP_SWAP, 0, 0, PAIR_IOVA + 4, 0x61, REASON_ATOMIC_ALIGNMENT },
		{ OPB_FETCH_ADD, 0, 0, PAIR_IOVA + PAIR_MEMORY, 0x62, REASON_KEY_RANGE },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct packet p = request(rows[i].base, o.psn, rows[i].payload);
		enum reason why;

		finish();
		start();
		memset(pair.b.memory, 0xee, PAIR_MEMORY);
		pair_post_receive(&pair.b, 0, 4096);
		p.va = rows[i].va;
		p.dma_length = rows[i].dma_length;
		p.rkey = pair.b.key;
		why = pair_inject(&pair, &pair.b, &p);
		cr_assert_eq(why, rows[i].why, "row %u: %s", i, reason_name(why));
		expect_nak(rows[i].syndrome, o.psn);
		cr_assert_eq(qp_state(pair.b.qp), QP_STATE_ERR);
		cr_assert(pair.b.events & (QP_EVENT_REQ_ERR | QP_EVENT_ACCESS_ERR), "row %u", i);
		cr_assert(untouched(pair.b.memory), "row %u wrote something", i);
	}
}

/* What the operations with headers of their own need to be good. */
static void fit(struct packet *p)
{
	if (p->opcode == OPB_ATOMIC_WRITE)
		p->dma_length = p->payload_length = 8;
	p->feth = FLUSH_GLOBAL;
	p->invalidate_rkey = pair.b.window->key;
}

/*
 * Every ordered pair of request opcodes: the second is legal or a sequence error (IBTA table
 * 38).
 * hostile H-24: every opcode behind every other.
 */
Test(hostile, ordered_pairs_of_opcodes)
{
	for (uint8_t first = 0; first < 32; first++) {
		for (uint8_t second = 0; second < 32; second++) {
			const struct opcode_info *f = &opcode_table[first];
			const struct opcode_info *s = &opcode_table[second];
			bool open = !(f->flags & OP_LAST), goes_on = !(s->flags & OP_FIRST);
			struct packet p;
			enum reason why;

			if (!(f->flags & OP_FIRST) || (f->flags & OP_RESPONSE) ||
			    (s->flags & OP_RESPONSE) || s->kind == KIND_UNDEFINED)
				continue;
			finish();
			start();
			pair_window(&pair, &pair.b);
			for (uint32_t i = 0; i < 3; i++)
				pair_post_receive(&pair.b, 0, 4096);
			p = request(first, o.psn, f->flags & OP_PAYLOAD ? 1024 : 0);
			p.dma_length = open ? 2048 : 1024;
			fit(&p);
			cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE, "%s", f->name);
			p = request(second, o.psn + 1, s->flags & OP_PAYLOAD ? 1024 : 0);
			p.dma_length = s->flags & OP_LAST ? 1024 : 2048;
			fit(&p);
			why = pair_inject(&pair, &pair.b, &p);
			if (open ? goes_on && s->kind == f->kind : !goes_on)
				cr_assert_neq(why, REASON_OPCODE_SEQUENCE, "%s, %s", f->name,
					      s->name);
			else
				cr_assert_eq(why, REASON_OPCODE_SEQUENCE, "%s, %s", f->name,
					     s->name);
		}
	}
}

/* hostile H-32: jumps of the PSN. */
Test(hostile, psn_jumps)
{
	static const struct {
		uint32_t jump;
		enum reason why;
	} rows[] = {
		{ 1, REASON_PSN_AHEAD },
		{ 2, REASON_PSN_AHEAD_AGAIN },
		{ 0x7fffff, REASON_PSN_AHEAD_AGAIN },
		{ 0x800000, REASON_DUPLICATE },
		{ 0xffffff, REASON_DUPLICATE },
	};
	struct packet p;
	uint32_t replies = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		p = request(OPB_WRITE_ONLY, o.psn + rows[i].jump, 8);
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), rows[i].why, "row %u", i);
	}
	while (pair_next(&pair, &pair.b, &p))
		replies++;
	cr_assert_eq(replies, 2, "one NAK for the gap, one ACK for both duplicates: %u", replies);
	cr_assert_eq(pair.b.memory[0], 0);
}

/*
 * READs and atomics beyond max_dest_rd_atomic (4) with no reply taken.
 * hostile H-26: more READs than were agreed on.
 */
Test(hostile, record_table_is_not_overrun)
{
	struct packet p;

	for (uint32_t i = 0; i < 5; i++) {
		enum reason why;

		p = request(OPB_READ_REQUEST, o.psn + i, 0);
		p.dma_length = 8;
		why = pair_inject(&pair, &pair.b, &p);
		cr_assert_eq(why, i < 4 ? REASON_NONE : REASON_RD_ATOMIC_LIMIT);
	}
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert(pair_next(&pair, &pair.b, &p));
		cr_assert_eq(p.opcode, OPB_READ_RESPONSE_ONLY,
			     "what was accepted is answered first");
	}
	expect_nak(0x61, o.psn + 4);
}

/* A repetition that was delayed on the way does not make a well-behaved peer exceed its depth. */
Test(hostile, delayed_repetition_of_an_old_read)
{
	struct packet p;

	for (uint32_t i = 0; i < 6; i++) {
		if (i >= 4) {
			p = request(OPB_READ_REQUEST, o.psn + i - 4, 0);
			p.dma_length = 8;
			cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_DUPLICATE);
		}
		p = request(OPB_READ_REQUEST, o.psn + i, 0);
		p.dma_length = 8;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE, "READ %u", i);
		if (i < 4)
			cr_assert(pair_next(&pair, &pair.b, &p));
	}
	p = request(OPB_READ_REQUEST, o.psn, 0);
	p.dma_length = 8;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_DUPLICATE_UNKNOWN);
}

Test(hostile, repeated_reads_match_their_record)
{
	static const struct {
		uint32_t psn;
		uint64_t va;
		uint32_t length, rkey_change;
		enum reason why;
	} rows[] = {
		{ 0, 0, 5000, 0, REASON_DUPLICATE },
		{ 2, 2048, 5000 - 2048, 0, REASON_DUPLICATE },
		{ 4, 4096, 904, 0, REASON_DUPLICATE },
		{ 0, 0, 5001, 0, REASON_DUPLICATE_UNKNOWN },
		{ 0, UINT64_MAX, 2, 0, REASON_DUPLICATE_UNKNOWN }, /* begins one before */
		{ 2, 2048, 5000, 0, REASON_DUPLICATE_UNKNOWN },
		{ 4, 0, 5000, 0, REASON_DUPLICATE_UNKNOWN }, /* more PSNs than are left */
		{ 0, 0xfffffffffffffc00, 0x400, 0, REASON_DUPLICATE_UNKNOWN },
		{ 0, 4999, UINT32_MAX, 0, REASON_DUPLICATE_UNKNOWN },
		{ 0, 0, 5000, 1, REASON_DUPLICATE_UNKNOWN },
		{ 0, 0, 0, 0, REASON_DUPLICATE_UNKNOWN },
	};
	struct packet p = request(OPB_READ_REQUEST, o.psn, 0);

	p.dma_length = 5000;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	while (pair_next(&pair, &pair.b, &p))
		;
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		p = request(OPB_READ_REQUEST, o.psn + rows[i].psn, 0);
		p.va = PAIR_IOVA + rows[i].va;
		p.dma_length = rows[i].length;
		p.rkey += rows[i].rkey_change;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), rows[i].why, "row %u", i);
		while (pair_next(&pair, &pair.b, &p))
			;
		cr_assert_eq(qp_state(pair.b.qp), QP_STATE_RTS);
	}
}

/*
 * The key goes away: a repetition is refused, never answered from old or new memory.
 * hostile H-30: a repeated READ whose key is gone.
 */
Test(hostile, repeated_read_after_deregistration)
{
	struct packet p = request(OPB_READ_REQUEST, o.psn, 0);

	p.dma_length = 8;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	cr_assert(pair_next(&pair, &pair.b, &p));
	key_withdraw(&pair.keys, pair.b.key);
	p = request(OPB_READ_REQUEST, o.psn, 0);
	p.dma_length = 8;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_DUPLICATE);
	expect_nak(0x62, o.psn);
}

/* With the smallest path MTU it takes half of all PSNs. */
Test(hostile, the_longest_read_is_refused_once)
{
	struct packet p;

	finish();
	o.mtu = 1;
	pair_init(&pair, &o);
	pair.b.region->length = LIMIT_MESSAGE;
	p = request(OPB_READ_REQUEST, o.psn, 0);
	p.dma_length = LIMIT_MESSAGE;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	key_withdraw(&pair.keys, pair.b.key);
	expect_nak(0x62, o.psn);
}

/* Numbers of records go round; what is remembered is not forgotten then. */
Test(hostile, repeated_reads_where_their_count_goes_round)
{
	struct responder *r = &pair.b.qp->resp;
	struct packet p;

	r->record_head = r->record_owed = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 6; i++) {
		p = request(OPB_READ_REQUEST, o.psn + i % 3, 0);
		p.dma_length = 8;
		cr_expect_eq(pair_inject(&pair, &pair.b, &p),
			     i < 3 ? REASON_NONE : REASON_DUPLICATE, "READ %u", i);
		cr_expect(pair_next(&pair, &pair.b, &p), "READ %u is not answered", i);
	}
}

/*
 * Responses acknowledge, too: what was acknowledged last stays near, however many there were.
 * hostile H-43: acknowledgements outside of the window.
 */
Test(hostile, an_acknowledgement_after_half_of_all_psns)
{
	uint32_t psn, packets = PAIR_MEMORY / 256;
	struct packet p;

	finish();
	o.mtu = 1;
	o.octets = PAIR_MEMORY;
	pair_init(&pair, &o);
	for (psn = o.psn; psn < o.psn + (1u << 23) + 16; psn += packets) {
		p = request(OPB_READ_REQUEST, psn, 0);
		p.psn = psn & PSN_MASK;
		p.dma_length = PAIR_MEMORY;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
		while (pair_next(&pair, &pair.b, &p))
			;
	}
	pair.b.hold = true;
	for (uint32_t i = 0; i < 2; i++) {
		p = request(OPB_WRITE_ONLY, psn + i, 8);
		p.psn = (psn + i) & PSN_MASK;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	}
	qp_copied(pair.b.qp, pair.b.first_held, true);
	cr_assert(pair_next(&pair, &pair.b, &p), "the first of two is in memory");
	cr_expect_eq(p.opcode, OPB_ACK);
	cr_expect_eq(p.psn, psn & PSN_MASK);
}

/*
 * Responses to a: PSN outside the window, wrong kinds, reserved syndromes.
 * hostile H-43: acknowledgements outside of the window; H-44: forged NAKs.
 */
Test(hostile, responses_outside_the_window)
{
	static const uint32_t psns[] = { 3, 4, 0x7fffff, 0x800000, 0xfffffe, 0xffffff };
	struct packet p, sent;

	for (uint32_t i = 0; i < 3; i++)
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	while (pair_next(&pair, &pair.a, &sent))
		;
	for (uint32_t i = 0; i < ARRAY_SIZE(psns); i++) {
		for (uint32_t s = 0; s < 256; s++) {
			p = pair_packet(&pair, &pair.a, OPB_ACK, o.psn + psns[i]);
			p.syndrome = (uint8_t)s;
			cr_assert_eq(pair_inject(&pair, &pair.a, &p), REASON_ACK_STALE);
		}
	}
	for (uint32_t s = 0x40; s < 256; s++) {
		if (s >= 0x60 && s <= 0x63)
			continue;
		p = pair_packet(&pair, &pair.a, OPB_ACK, o.psn + 1);
		p.syndrome = (uint8_t)s;
		cr_assert_eq(pair_inject(&pair, &pair.a, &p), REASON_SYNDROME_RESERVED, "%#x", s);
	}
	cr_assert_eq(pair.a.done_count, 0);
	cr_assert_eq(qp_state(pair.a.qp), QP_STATE_RTS);
}

/* hostile H-45: an answer with more than was asked for. */
Test(hostile, read_responses_never_leave_the_scatter_list)
{
	static const struct {
		uint8_t base;
		uint32_t psn, length;
		enum reason why;
	} rows[] = {
		{ OPB_READ_RESPONSE_ONLY, 0, 1024, REASON_RESPONSE_OPCODE },
		{ OPB_READ_RESPONSE_MIDDLE, 0, 1024, REASON_RESPONSE_OPCODE },
		{ OPB_READ_RESPONSE_LAST, 0, 1024, REASON_RESPONSE_OPCODE },
		{ OPB_READ_RESPONSE_FIRST, 0, 1023, REASON_RESPONSE_LENGTH },
		{ OPB_READ_RESPONSE_FIRST, 0, 2048, REASON_RESPONSE_LENGTH },
		{ OPB_READ_RESPONSE_MIDDLE, 1, 1024, REASON_RESPONSE_AHEAD },
		{ OPB_READ_RESPONSE_LAST, 1, 500, REASON_RESPONSE_AHEAD },
		{ OPB_READ_RESPONSE_FIRST, 2, 1024, REASON_ACK_STALE },
		{ OPB_ATOMIC_ACK, 0, 0, REASON_RESPONSE_OPCODE },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct packet p;
		enum reason why;

		finish();
		start();
		memset(pair.a.memory, 0xee, PAIR_MEMORY);
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, 1500, 0);
		cr_assert(pair_next(&pair, &pair.a, &p));
		p = pair_packet(&pair, &pair.a, rows[i].base, o.psn + rows[i].psn);
		p.payload = payload;
		p.payload_length = rows[i].length;
		why = pair_inject(&pair, &pair.a, &p);
		cr_assert_eq(why, rows[i].why, "row %u: %s", i, reason_name(why));
		cr_assert(untouched(pair.a.memory), "row %u wrote something", i);
		if (why == REASON_RESPONSE_OPCODE || why == REASON_RESPONSE_LENGTH)
			cr_assert_eq(pair.a.done[0].status, STATUS_BAD_RESP_ERR);
		else
			cr_assert_eq(pair.a.done_count, 0);
	}
}

/*
 * What a client writes into its send queue. The good request before and the bad one complete.
 * hostile H-89: too many elements; H-93: an opcode that does not exist; H-94: lengths whose sum
 * overflows; H-95: the sum of all elements; H-136: completions after bad requests; H-142: more
 * elements than there is room for.
 */
Test(hostile, malformed_requests_fail_in_their_turn)
{
	static const struct {
		uint8_t opcode, flags, num_sge;
		uint32_t inline_length, sge_length;
		uint8_t status;
	} rows[] = {
		{ WORK_RDMA_WRITE, 0, 5, 0, 8, STATUS_LOC_QP_OP_ERR },
		{ WORK_RDMA_WRITE, 0, 255, 0, 8, STATUS_LOC_QP_OP_ERR },
		{ WORK_RDMA_WRITE, WORK_INLINE, 0, 65, 8, STATUS_LOC_QP_OP_ERR },
		{ WORK_RDMA_WRITE, WORK_INLINE, 0, UINT32_MAX, 8, STATUS_LOC_QP_OP_ERR },
		{ WORK_RDMA_READ, WORK_INLINE, 0, 8, 8, STATUS_LOC_QP_OP_ERR },
		{ WORK_RDMA_WRITE, 0, 2, 0, 0x80000000, STATUS_LOC_LEN_ERR },
		{ WORK_RDMA_WRITE, 0, 4, 0, UINT32_MAX, STATUS_LOC_LEN_ERR },
		{ WORK_ATOMIC_CMP_AND_SWP, 0, 1, 0, 7, STATUS_LOC_LEN_ERR },
		{ WORK_ATOMIC_FETCH_AND_ADD, 0, 2, 0, 8, STATUS_LOC_LEN_ERR },
		{ WORK_LOCAL_INV, 0, 0, 0, 0, STATUS_MW_BIND_ERR },
		{ WORK_FLUSH, 0, 0, 0, 0, STATUS_LOC_QP_OP_ERR }, /* of no type */
		{ WORK_TSO, 0, 0, 0, 0, STATUS_LOC_QP_OP_ERR },
		{ WORK_ATOMIC_WRITE, 0, 1, 0, 4, STATUS_LOC_LEN_ERR },
		{ WORK_ATOMIC_WRITE, WORK_INLINE, 0, 9, 8, STATUS_LOC_LEN_ERR },
		{ 200, 0, 1, 0, 8, STATUS_LOC_QP_OP_ERR },
		{ WORK_RDMA_WRITE, 0, 1, 0, 8, STATUS_LOC_PROT_ERR }, /* a key of nobody */
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct work_sge sge[4];
		struct send_work w = { .wr_id = 77,
				       .opcode = rows[i].opcode,
				       .flags = rows[i].flags,
				       .num_sge = rows[i].num_sge,
				       .inline_length = rows[i].inline_length };

		finish();
		start();
		for (uint32_t k = 0; k < 4; k++)
			sge[k] = (struct work_sge){ PAIR_IOVA, rows[i].sge_length, pair.a.key };
		if (rows[i].status == STATUS_LOC_PROT_ERR)
			sge[0].lkey ^= 0x100;
		w.rkey = pair.b.key;
		w.remote_addr = PAIR_IOVA;
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 5000, 0);
		pair_post_work(&pair, &pair.a, &w, sge);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
		pair_run(&pair);
		cr_assert_eq(pair.a.done_count, 3, "row %u: %u completions", i, pair.a.done_count);
		cr_assert_eq(pair.a.done[0].status, STATUS_SUCCESS, "row %u", i);
		cr_assert_eq(pair.a.done[1].status, rows[i].status, "row %u: %u", i,
			     pair.a.done[1].status);
		cr_assert_eq(pair.a.done[1].wr_id, 77);
		cr_assert_eq(pair.a.done[2].status, STATUS_WR_FLUSH_ERR, "row %u", i);
		cr_assert_eq(pair.now, 0, "no timer was needed");
	}
}

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
	} while (!opcode_defined(p.opcode)); /* decode lets no other pass */
	p.psn = (near + roll(seed, 5) - (roll(seed, 4) == 0 ? 3 : 0)) & PSN_MASK;
	p.payload = payload;
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
	/* Mostly friendly, or nothing would live long. */
	p.syndrome = roll(seed, 8) ? 0x1f : syndromes[roll(seed, ARRAY_SIZE(syndromes))];
	return p;
}

/* Work of every kind; keys to invalidate are those of the end's window, mostly. */
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

		o.sig_all = true;
		o.octets = 1 << 13;
		o.xrc = xrc;
		pair_close(&pair);
		pair_init(&pair, &o);
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

Test(hostile, storms_of_random_packets)
{
	storm(3000, false);
}

/* Initiators and targets by turns; SRQs that are there, that are not, and others inside a message. */
Test(hostile, storms_of_random_packets_on_xrc)
{
	storm(1500, true);
}
