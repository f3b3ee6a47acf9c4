/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "transport/responder/receive.h"

static struct receive_done ring[4];
static struct receives receives;

static void start(void)
{
	/* The cursors run freely, across the wrap too. */
	receives = (struct receives){
		.taken = UINT32_MAX - 1, .done = UINT32_MAX - 1, .mask = 3, .ring = ring
	};
}

static void push(uint32_t ticket)
{
	struct receive_done d = { .wr_id = ticket, .ticket = ticket, .status = STATUS_SUCCESS };

	receive_push(&receives, &d);
}

TestSuite(receive, .init = start, .timeout = 60);

Test(receive, requests_are_done_in_their_order)
{
	cr_assert_not(receives_waiting(&receives));
	for (uint32_t i = 1; i <= 4; i++)
		push(i);
	for (uint64_t i = 1; i <= 4; i++) {
		cr_assert(receives_waiting(&receives));
		cr_expect_eq(receive_at(&receives, receives.taken++)->wr_id, i);
	}
	cr_assert_not(receives_waiting(&receives));
}

/* The first request that a failed copy spoils has the reason; those behind it are flushed. */
Test(receive, what_is_behind_a_failed_copy_fails)
{
	static const struct {
		uint8_t status, reason;
	} after[] = {
		{ STATUS_SUCCESS, REASON_NONE },
		{ STATUS_LOC_PROT_ERR, REASON_RECEIVE_MEMORY },
		{ STATUS_WR_FLUSH_ERR, REASON_FLUSHED },
		{ STATUS_WR_FLUSH_ERR, REASON_FLUSHED },
	};

	for (uint32_t i = 0; i < 4; i++)
		push(UINT32_MAX + i); /* UINT32_MAX, 0, 1, 2 */
	receives_fail_behind(&receives, UINT64_C(0x100000000), STATUS_LOC_PROT_ERR,
			     REASON_RECEIVE_MEMORY);
	for (uint32_t i = 0; i < 4; i++) {
		const struct receive_done *d = receive_at(&receives, receives.taken + i);

		cr_expect_eq(d->status, after[i].status, "%u", i);
		cr_expect_eq(d->reason, after[i].reason, "%u", i);
	}
}
