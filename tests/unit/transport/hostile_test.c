/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that keep no rules: requests. Whatever arrives, no octet outside the registered range
 * changes, replies are bounded, and nothing crashes.
 */
#include <criterion/criterion.h>

#include "hostile.h"

TestSuite(hostile, .init = hostile_begin, .fini = hostile_end, .timeout = 400);
TestSuite(hostile_half, .init = hostile_begin, .fini = hostile_end, .timeout = 400);

/* A request to b; payload of `length` octets. */
static struct packet request(uint8_t base, uint32_t psn, uint32_t length)
{
	struct packet p = pair_packet(&pair, &pair.b, base, psn);

	p.va = PAIR_IOVA;
	p.rkey = pair.b.key;
	p.payload = hostile_payload;
	p.payload_length = length;
	p.dma_length = length;
	p.pad = (uint8_t)(-length & 3);
	p.ack_req = true;
	return p;
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
		struct packet p = request(rows[i].base, hostile_options.psn, rows[i].payload);
		enum reason why;

		hostile_end();
		hostile_begin();
		memset(pair.b.memory, 0xee, PAIR_MEMORY);
		pair_post_receive(&pair.b, 0, 4096);
		p.va = rows[i].va;
		p.dma_length = rows[i].dma_length;
		p.rkey = pair.b.key;
		why = pair_inject(&pair, &pair.b, &p);
		cr_assert_eq(why, rows[i].why, "row %u: %s", i, reason_name(why));
		expect_nak(rows[i].syndrome, hostile_options.psn);
		cr_assert_eq(qp_state(pair.b.qp), QP_STATE_ERR);
		cr_assert(pair.b.events & (QP_EVENT_REQ_ERR | QP_EVENT_ACCESS_ERR), "row %u", i);
		cr_assert(hostile_untouched(pair.b.memory), "row %u wrote something", i);
	}
}

/* Good values for the operations with headers of their own. */
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
			hostile_end();
			hostile_begin();
			pair_window(&pair, &pair.b);
			for (uint32_t i = 0; i < 3; i++)
				pair_post_receive(&pair.b, 0, 4096);
			p = request(first, hostile_options.psn, f->flags & OP_PAYLOAD ? 1024 : 0);
			p.dma_length = open ? 2048 : 1024;
			fit(&p);
			cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE, "%s", f->name);
			p = request(second, hostile_options.psn + 1,
				    s->flags & OP_PAYLOAD ? 1024 : 0);
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
		p = request(OPB_WRITE_ONLY, hostile_options.psn + rows[i].jump, 8);
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

		p = request(OPB_READ_REQUEST, hostile_options.psn + i, 0);
		p.dma_length = 8;
		why = pair_inject(&pair, &pair.b, &p);
		cr_assert_eq(why, i < 4 ? REASON_NONE : REASON_RD_ATOMIC_LIMIT);
	}
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert(pair_next(&pair, &pair.b, &p));
		cr_assert_eq(p.opcode, OPB_READ_RESPONSE_ONLY,
			     "what was accepted is answered first");
	}
	expect_nak(0x61, hostile_options.psn + 4);
}

/* A repetition that was delayed on the way does not make a well-behaved peer exceed its depth. */
Test(hostile, delayed_repetition_of_an_old_read)
{
	struct packet p;

	for (uint32_t i = 0; i < 6; i++) {
		if (i >= 4) {
			p = request(OPB_READ_REQUEST, hostile_options.psn + i - 4, 0);
			p.dma_length = 8;
			cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_DUPLICATE);
		}
		p = request(OPB_READ_REQUEST, hostile_options.psn + i, 0);
		p.dma_length = 8;
		cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE, "READ %u", i);
		if (i < 4)
			cr_assert(pair_next(&pair, &pair.b, &p));
	}
	p = request(OPB_READ_REQUEST, hostile_options.psn, 0);
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
	struct packet p = request(OPB_READ_REQUEST, hostile_options.psn, 0);

	p.dma_length = 5000;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	while (pair_next(&pair, &pair.b, &p))
		;
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		p = request(OPB_READ_REQUEST, hostile_options.psn + rows[i].psn, 0);
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
	struct packet p = request(OPB_READ_REQUEST, hostile_options.psn, 0);

	p.dma_length = 8;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	cr_assert(pair_next(&pair, &pair.b, &p));
	key_withdraw(&pair.keys, pair.b.key);
	p = request(OPB_READ_REQUEST, hostile_options.psn, 0);
	p.dma_length = 8;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_DUPLICATE);
	expect_nak(0x62, hostile_options.psn);
}

/* With the smallest path MTU it takes half of all PSNs. */
Test(hostile, the_longest_read_is_refused_once)
{
	struct packet p;

	hostile_end();
	hostile_options.mtu = 1;
	pair_init(&pair, &hostile_options);
	pair.b.region->length = LIMIT_MESSAGE;
	p = request(OPB_READ_REQUEST, hostile_options.psn, 0);
	p.dma_length = LIMIT_MESSAGE;
	cr_assert_eq(pair_inject(&pair, &pair.b, &p), REASON_NONE);
	key_withdraw(&pair.keys, pair.b.key);
	expect_nak(0x62, hostile_options.psn);
}

/* Numbers of records wrap; what is remembered is not forgotten then. */
Test(hostile, repeated_reads_where_their_count_goes_round)
{
	struct responder *r = &pair.b.qp->resp;
	struct packet p;

	r->record_head = r->record_owed = UINT32_MAX - 1;
	for (uint32_t i = 0; i < 6; i++) {
		p = request(OPB_READ_REQUEST, hostile_options.psn + i % 3, 0);
		p.dma_length = 8;
		cr_expect_eq(pair_inject(&pair, &pair.b, &p),
			     i < 3 ? REASON_NONE : REASON_DUPLICATE, "READ %u", i);
		cr_expect(pair_next(&pair, &pair.b, &p), "READ %u is not answered", i);
	}
}

/*
 * Responses acknowledge, too: the last acknowledged PSN stays near, however many responses there
 * were. hostile H-43: acknowledgements outside of the window.
 */
Test(hostile_half, an_acknowledgement_after_half_of_all_psns)
{
	uint32_t psn, packets = PAIR_MEMORY / 256;
	struct packet p;

	hostile_end();
	hostile_options.mtu = 1;
	hostile_options.octets = PAIR_MEMORY;
	pair_init(&pair, &hostile_options);
	for (psn = hostile_options.psn; psn < hostile_options.psn + (1u << 23) + 16;
	     psn += packets) {
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
