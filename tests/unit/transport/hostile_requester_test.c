/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers and clients that keep no rules: answers, and the window's contents. No octet goes outside
 * the scatter list, and each request completes once.
 */
#include <criterion/criterion.h>

#include "hostile.h"

TestSuite(hostile_requester, .init = hostile_begin, .fini = hostile_end, .timeout = 400);

/*
 * Responses to a: PSN outside the window, wrong kinds, reserved syndromes.
 * hostile H-43: acknowledgements outside of the window; H-44: forged NAKs.
 */
Test(hostile_requester, responses_outside_the_window)
{
	static const uint32_t psns[] = { 3, 4, 0x7fffff, 0x800000, 0xfffffe, 0xffffff };
	struct packet p, sent;

	for (uint32_t i = 0; i < 3; i++)
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 0);
	while (pair_next(&pair, &pair.a, &sent))
		;
	for (uint32_t i = 0; i < ARRAY_SIZE(psns); i++) {
		for (uint32_t s = 0; s < 256; s++) {
			p = pair_packet(&pair, &pair.a, OPB_ACK, hostile_options.psn + psns[i]);
			p.syndrome = (uint8_t)s;
			cr_assert_eq(pair_inject(&pair, &pair.a, &p), REASON_ACK_STALE);
		}
	}
	for (uint32_t s = 0x40; s < 256; s++) {
		if (s >= 0x60 && s <= 0x63)
			continue;
		p = pair_packet(&pair, &pair.a, OPB_ACK, hostile_options.psn + 1);
		p.syndrome = (uint8_t)s;
		cr_assert_eq(pair_inject(&pair, &pair.a, &p), REASON_SYNDROME_RESERVED, "%#x", s);
	}
	cr_assert_eq(pair.a.done_count, 0);
	cr_assert_eq(qp_state(pair.a.qp), QP_STATE_RTS);
}

/* hostile H-45: an answer with more than was asked for. */
Test(hostile_requester, read_responses_never_leave_the_scatter_list)
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

		hostile_end();
		hostile_begin();
		memset(pair.a.memory, 0xee, PAIR_MEMORY);
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, 1500, 0);
		cr_assert(pair_next(&pair, &pair.a, &p));
		p = pair_packet(&pair, &pair.a, rows[i].base, hostile_options.psn + rows[i].psn);
		p.payload = hostile_payload;
		p.payload_length = rows[i].length;
		why = pair_inject(&pair, &pair.a, &p);
		cr_assert_eq(why, rows[i].why, "row %u: %s", i, reason_name(why));
		cr_assert(hostile_untouched(pair.a.memory), "row %u wrote something", i);
		if (why == REASON_RESPONSE_OPCODE || why == REASON_RESPONSE_LENGTH)
			cr_assert_eq(pair.a.done[0].status, STATUS_BAD_RESP_ERR);
		else
			cr_assert_eq(pair.a.done_count, 0);
	}
}

/*
 * A client writes bad requests into its send queue. The good request before and the bad one
 * complete. hostile H-89: too many elements; H-93: an opcode that does not exist; H-94: lengths
 * whose sum overflows; H-95: the sum of all elements; H-136: completions after bad requests; H-142:
 * more elements than there is room for.
 */
Test(hostile_requester, malformed_requests_fail_in_their_turn)
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

		hostile_end();
		hostile_begin();
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
