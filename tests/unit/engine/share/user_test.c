/* SPDX-License-Identifier: BSD-3-Clause */
/* How much each user may have, and how much is left for others. */
#include <criterion/criterion.h>
#include <string.h>

#include "control/share/user.h"

static struct users all;
static struct account greedy, second, other;

static void begin(void)
{
	users_open(&all);
	cr_assert(account_open(&greedy, &all, 1000, false));
	cr_assert(account_open(&second, &all, 1000, false));
	cr_assert(account_open(&other, &all, 2000, false));
}

TestSuite(user, .init = begin);

static uint64_t take_all(struct account *a, enum resource r)
{
	uint64_t before = a->has[r];

	for (uint64_t n = UINT64_C(1) << 62; n > 0; n >>= 1)
		while (account_take(a, r, n))
			;
	return a->has[r] - before;
}

static void give_all(struct account *a)
{
	for (uint32_t r = 0; r < RESOURCE_COUNT; r++)
		account_give(a, r, a->has[r]);
	account_close(a);
}

static void end(void)
{
	give_all(&greedy);
	give_all(&second);
	give_all(&other);
	cr_assert(LIST_EMPTY(&all.list), "users of whom nothing is left are forgotten");
	for (uint32_t r = 0; r < RESOURCE_COUNT; r++)
		cr_expect_eq(all.all[r], 0, "resource %u", r);
}

/* hostile H-122: of everything that is bounded another user finds some. */
Test(user, leaves_a_share_of_each_resource)
{
	for (uint32_t r = 0; r < RESOURCE_COUNT; r++) {
		uint64_t most = all.limit[r], n = 0;

		if (most == NO_LIMIT)
			continue;
		cr_assert_gt(most, 64, "resource %u", r);
		for (int i = 0; i < 2; i++)
			n += take_all(i == 0 ? &greedy : &second, r);
		cr_expect_leq(n, most - most / 4, "resource %u", r);
		cr_expect_eq(take_all(&other, r) > 0, true, "resource %u", r);
		cr_expect_geq(other.has[r],
			      all.of_program[r] < most / 16 ? all.of_program[r] : most / 16,
			      "resource %u", r);
	}
	end();
}

Test(user, one_program_has_what_is_announced)
{
	static const struct {
		enum resource r;
		uint64_t announced;
	} of_device[] = {
		{ RESOURCE_QPS, LIMIT_QPS },	       { RESOURCE_CQS, LIMIT_CQS },
		{ RESOURCE_MRS, LIMIT_MRS },	       { RESOURCE_PDS, LIMIT_PDS },
		{ RESOURCE_AHS, LIMIT_AHS },	       { RESOURCE_SRQS, LIMIT_SRQS },
		{ RESOURCE_FLOWS, LIMIT_FLOWS },       { RESOURCE_GROUPS, LIMIT_MCAST_GROUPS },
		{ RESOURCE_TABLES, LIMIT_RWQ_TABLES }, { RESOURCE_DM_OCTETS, LIMIT_DM_BYTES },
	};

	for (size_t i = 0; i < sizeof(of_device) / sizeof(of_device[0]); i++)
		cr_expect(account_take(&greedy, of_device[i].r, of_device[i].announced),
			  "resource %u", of_device[i].r);
	end();
}

Test(user, is_told_why)
{
	char why[104];

	take_all(&greedy, RESOURCE_CM_IDS);
	account_explain(&greedy, RESOURCE_CM_IDS, 1, why, sizeof(why));
	cr_expect_str_eq(why, "a program may have at most 32768 ids");
	take_all(&greedy, RESOURCE_MRS);
	take_all(&second, RESOURCE_MRS);
	account_explain(&second, RESOURCE_MRS, 1, why, sizeof(why));
	cr_expect_str_eq(why, "the per-user limit is reached: 393216 of 524288 regions and "
			      "windows");
	take_all(&other, RESOURCE_MRS);
	cr_expect_eq(other.has[RESOURCE_MRS], 524288 / 16);
	cr_expect_gt(all.refused, 0);
	end();
}

/* Another account takes over part of what the greedy one had. */
Test(user, inherits)
{
	take_all(&greedy, RESOURCE_QPS);
	account_move(&greedy, &other, RESOURCE_QPS, 5);
	cr_expect_eq(other.has[RESOURCE_QPS], 5);
	cr_expect_eq(other.user->has[RESOURCE_QPS], 5);
	cr_expect_eq(greedy.has[RESOURCE_QPS], LIMIT_QPS - 5);
	end();
}

/* The embedding program can only use up its own descriptors. */
Test(user, the_embedding_program_has_its_own_process)
{
	struct account own;
	char why[104];

	cr_assert(account_open(&own, &all, 0, true));
	cr_expect(account_take(&own, RESOURCE_DESCRIPTORS, all.limit[RESOURCE_DESCRIPTORS]));
	cr_expect(account_take(&own, RESOURCE_CQS, LIMIT_ENGINE_CQS));
	cr_expect_not(account_take(&own, RESOURCE_CQS, 1), "there are no more");
	account_explain(&own, RESOURCE_CQS, 1, why, sizeof(why));
	cr_expect_eq(strncmp(why, "the engine's limit is reached: ", 31), 0, "%s", why);
	give_all(&own);
	end();
}
