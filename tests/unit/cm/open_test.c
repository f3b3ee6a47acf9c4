/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long each side waits for the other: as long as the other one says that it needs (IBTA
 * 12.6.5).
 */
#include <criterion/criterion.h>

#include "cm/cm.h"

#define START	      1000u
#define ACTIVE_NEEDS  20u /* exponents of 4.096 us, all in range */
#define PASSIVE_NEEDS 18u
#define FLIGHT	      16u

static const struct cm_message req = {
	.attribute = CM_REQ,
	.local_id = 5,
	.qpn = 77,
	.ca_guid = 9,
	.local_response_timeout = ACTIVE_NEEDS,
	.remote_response_timeout = PASSIVE_NEEDS,
	.primary.ack_timeout = FLIGHT,
	.max_cm_retries = 1,
};

static nanotime time_of(uint32_t exponent)
{
	return UINT64_C(4096) << exponent;
}

Test(open, the_active_side_waits_for_the_other_sides_time)
{
	struct cm_connection c = { 0 };

	cr_assert_eq(cm_connect(&c, &req, START), 0);
	cr_expect_eq(cm_deadline(&c), START + time_of(PASSIVE_NEEDS) + time_of(FLIGHT));
}

Test(open, the_passive_side_waits_for_the_other_sides_time)
{
	const struct cm_message rep = { .attribute = CM_REP, .qpn = 78 };
	struct cm_connection c;

	cm_requested(&c, &req, 6);
	cr_assert_eq(cm_accept(&c, &rep, START), 0);
	cr_expect_eq(cm_deadline(&c), START + time_of(ACTIVE_NEEDS) + time_of(FLIGHT));
}
