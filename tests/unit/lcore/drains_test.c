/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs take turns, and the queue pairs of a program among themselves. */
#include <criterion/criterion.h>
#include <string.h>

#include "lcore/turns/drains.h"

#define MANY 1000u

static struct drains drains;
static struct client program[] = { { .number = 0 }, { .number = LIMIT_CLIENTS - 1 } };
static struct engine_qp qp[MANY];

static void begin(void)
{
	memset(&drains, 0, sizeof(drains));
	memset(qp, 0, sizeof(qp));
	cr_assert(drains_open(&drains));
}

static void end(void)
{
	drains_close(&drains);
}

TestSuite(drains, .init = begin, .fini = end);

static void add(uint32_t i, uint32_t of)
{
	qp[i].client = &program[of];
	drains_add(&drains, &qp[i]);
}

Test(drains, in_their_order)
{
	cr_expect(drains_none(&drains));
	cr_expect_null(drains_take(&drains));
	add(0, 0);
	add(1, 0);
	add(0, 0);
	cr_expect_eq(drains.count, 2, "each stands here once");
	cr_expect_eq(drains_take(&drains), &qp[0]);
	add(0, 0);
	cr_expect_eq(drains_take(&drains), &qp[1]);
	cr_expect_eq(drains_take(&drains), &qp[0]);
	cr_expect_null(qp[0].drains);
	cr_expect(drains_none(&drains));
}

/* hostile H-25: full rings of one program, and a request of another one that comes last. */
Test(drains, many_queue_pairs_are_no_more_than_one)
{
	for (uint32_t i = 0; i < MANY - 1; i++)
		add(i, 0);
	add(MANY - 1, 1);
	for (uint32_t i = 0; i < 3; i++) {
		cr_expect_eq(drains_take(&drains), &qp[i]);
		cr_expect_eq(drains_take(&drains), &qp[MANY - 1]);
		add(i, 0);
		add(MANY - 1, 1);
	}
}

Test(drains, who_goes_is_forgotten)
{
	add(0, 0);
	add(1, 1);
	add(2, 1);
	drains_remove(&drains, &qp[0]);
	drains_remove(&drains, &qp[0]);
	drains_remove(&drains, &qp[1]);
	cr_expect_eq(drains.count, 1);
	cr_expect_eq(drains_take(&drains), &qp[2]);
	cr_expect_null(drains_take(&drains));
}
