/* SPDX-License-Identifier: BSD-3-Clause */
/* How many of the queues that a device announces are used. */
#include <criterion/criterion.h>

#include "offers.h"

TestSuite(queues, .init = offers_begin, .timeout = 60);

static void expect_queues(const char *name, uint16_t queues)
{
	char why[256] = "";
	struct port *p = offers_open(name, 0, 0, why, sizeof(why));

	cr_assert_not_null(p, "%s", why);
	cr_expect_eq(p->queues, queues, "%u", p->queues);
	p->ops->close(p);
}

Test(queues, as_many_as_are_wanted_and_announced)
{
	offers.queues = 2;
	expect_queues("net_offers0", 2);
}

/*
 * The second queue of an 8254x does not exist. An engine with two lcores lost everything that the
 * second one sent.
 */
Test(queues, of_net_e1000_em_only_one)
{
	offers.queues = 2;
	expect_queues("net_e1000_em0", 1);
}
