/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's verdicts, row by row as IBTA 9.7.5.2 and 9.9.3 have them. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "base/work.h"
#include "transport/outcomes.h"
#include "transport/responder/verdict.h"

Test(verdict, every_reason)
{
	static const struct {
		enum reason why;
		uint8_t reply, syndrome;
		bool fatal;
		uint32_t event;
	} rows[] = {
		{ REASON_PSN_AHEAD, VERDICT_NAK, 0x60, false, 0 },
		{ REASON_PSN_AHEAD_AGAIN, VERDICT_SILENT, 0, false, 0 },
		{ REASON_DUPLICATE, VERDICT_AGAIN, 0, false, 0 },
		{ REASON_DUPLICATE_UNKNOWN, VERDICT_SILENT, 0, false, 0 },
		{ REASON_RECEIVE_NOT_READY, VERDICT_RNR, 0, false, 0 },
		{ REASON_OPCODE_SEQUENCE, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_OPCODE_UNSUPPORTED, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_ACCESS_FLAGS, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_RD_ATOMIC_LIMIT, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_LENGTH_PAYLOAD, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_LENGTH_MESSAGE, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_LENGTH_RETH, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_LENGTH_RECEIVE, VERDICT_NAK, 0x61, true, 0 },
		{ REASON_ATOMIC_ALIGNMENT, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_KEY_UNKNOWN, VERDICT_NAK, 0x62, true, QP_EVENT_ACCESS_ERR },
		{ REASON_KEY_PD, VERDICT_NAK, 0x62, true, QP_EVENT_ACCESS_ERR },
		{ REASON_KEY_ACCESS, VERDICT_NAK, 0x62, true, QP_EVENT_ACCESS_ERR },
		{ REASON_KEY_RANGE, VERDICT_NAK, 0x62, true, QP_EVENT_ACCESS_ERR },
		{ REASON_MEMORY_FAULT, VERDICT_NAK, 0x62, true, QP_EVENT_ACCESS_ERR },
		{ REASON_SRQ_UNKNOWN, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_FLUSH_TYPE, VERDICT_NAK, 0x61, true, QP_EVENT_REQ_ERR },
		{ REASON_INVALIDATE_KEY, VERDICT_NAK, 0x62, true, 0 },
		{ REASON_RECEIVE_MEMORY, VERDICT_NAK, 0x63, true, 0 },
		{ REASON_WORK_MALFORMED, VERDICT_NAK, 0x63, true, 0 },
	};
	bool listed[REASON_COUNT] = { false };

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct verdict *v = verdict_of(rows[i].why);

		listed[rows[i].why] = true;
		cr_expect_eq(v->reply, rows[i].reply, "%s", reason_name(rows[i].why));
		cr_expect_eq(v->syndrome, rows[i].syndrome, "%s", reason_name(rows[i].why));
		cr_expect_eq(v->fatal, rows[i].fatal, "%s", reason_name(rows[i].why));
		cr_expect_eq(v->event, rows[i].event, "%s", reason_name(rows[i].why));
		cr_expect_eq(v->fatal, v->receive_status != STATUS_SUCCESS,
			     "%s: a receive request at hand completes with an error",
			     reason_name(rows[i].why));
	}
	for (uint32_t i = 0; i < REASON_COUNT; i++) {
		if (listed[i])
			continue;
		cr_expect_eq(verdict_of(i)->reply, VERDICT_SILENT, "%s", reason_name(i));
		cr_expect_not(verdict_of(i)->fatal, "%s", reason_name(i));
	}
}

/* The unreliable services answer nothing, and only the program's own faults are fatal. */
Test(verdict, nobody_answers_where_nothing_is_acknowledged)
{
	for (uint32_t why = 0; why < REASON_COUNT; why++) {
		const struct verdict *v = verdict_of_unreliable(why);
		bool own = why == REASON_RECEIVE_MEMORY || why == REASON_WORK_MALFORMED;

		cr_assert_eq(v->reply, VERDICT_SILENT, "%s", reason_name(why));
		cr_assert_eq(v->event, 0, "%s", reason_name(why));
		cr_assert_eq(v->fatal, own, "%s", reason_name(why));
		cr_assert(!own || v->receive_status != STATUS_SUCCESS, "%s", reason_name(why));
	}
}
