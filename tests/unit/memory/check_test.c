/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <criterion/criterion.h>

#include "base/bits.h"
#include "memory/check.h"
#include "rig.h"

TestSuite(check, .fini = drop_table, .timeout = 400);

/* hostile H-34: a key of another domain, an unused key, a key of another variant. */
Test(check, the_first_reason_counts)
{
	struct region *r;
	const struct region *found = NULL;
	uint32_t unused;
	const uint64_t base = 0x10000, length = 0x1000;

	make_table(1000, 5);
	r = make_region(1, base, length, RW);
	unused = key_allocate(&table, 1);
	cr_assert_eq(key_check(&table, r->key, USER, ACCESS_REMOTE_WRITE, base, length, &found),
		     REASON_NONE);
	cr_assert_eq(found, r);
#define CHECK(key, pd, access, address, len) \
	key_check(&table, key, (struct key_user){ pd, 5 }, access, address, len, &found)
	/* Each row is wrong in all that follows it, too: the first reason counts. */
	cr_expect_eq(CHECK(r->key ^ 1, PD + 1, ACCESS_REMOTE_READ, 0, 1), REASON_KEY_UNKNOWN);
	cr_expect_eq(CHECK(unused, PD, 0, base, 1), REASON_KEY_UNKNOWN, "allocated, not published");
	cr_expect_eq(CHECK(0, PD, 0, base, 1), REASON_KEY_UNKNOWN);
	cr_expect_eq(CHECK(UINT32_MAX, PD, 0, base, 1), REASON_KEY_UNKNOWN);
	cr_expect_eq(CHECK(r->key, PD + 1, ACCESS_REMOTE_READ, 0, 1), REASON_KEY_PD);
	cr_expect_eq(CHECK(r->key, PD, ACCESS_REMOTE_READ, 0, 1), REASON_KEY_ACCESS);
	cr_expect_eq(CHECK(r->key, PD, ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE, 0, 1),
		     REASON_KEY_ACCESS);
	static const struct {
		uint64_t address, length;
		enum reason why;
	} ranges[] = {
		{ 0x10000, 1, REASON_NONE },
		{ 0x10fff, 1, REASON_NONE },
		{ 0xffff, 1, REASON_KEY_RANGE },
		{ 0x11000, 1, REASON_KEY_RANGE },
		{ 0x11000, 0, REASON_NONE },
		{ 0x10000, 0x1001, REASON_KEY_RANGE },
		{ 0x10001, 0x1000, REASON_KEY_RANGE },
		{ 0xfffffffffffffc00, 0x400, REASON_KEY_RANGE },
		{ 0xfffffffffffffc00, 0x10800, REASON_KEY_RANGE },
		{ 0x10800, UINT64_MAX, REASON_KEY_RANGE },
		{ 0x10800, UINT64_MAX - 0x10800 + 1, REASON_KEY_RANGE },
		{ 0, UINT64_MAX, REASON_KEY_RANGE },
	};
	for (uint32_t i = 0; i < ARRAY_SIZE(ranges); i++)
		cr_expect_eq(CHECK(r->key, PD, 0, ranges[i].address, ranges[i].length),
			     ranges[i].why, "row %u", i);
	free(r);
}

Test(check, a_withdrawn_region_is_gone_at_once)
{
	struct region *r;
	const struct region *found;

	make_table(10, 5);
	r = make_region(1, 0, 64, RW);
	cr_assert_eq(key_withdraw(&table, r->key), r);
	cr_assert_eq(key_check(&table, r->key, USER, 0, 0, 1, &found), REASON_KEY_UNKNOWN);
	cr_assert_null(key_withdraw(&table, r->key));
	key_free(&table, r->key);
	free(r);
}

Test(check, what_a_window_refuses)
{
	struct key_user other_qp = { .pd = PD, .qpn = 78 }, owner = { .pd = PD, .qpn = 77 };
	struct region *r, *w, *zero;
	const struct region *found;

	make_table(8, 11);
	r = make_region(1, 0x10000, 8192, ACCESS_LOCAL_WRITE | ACCESS_MW_BIND | ACCESS_REMOTE_READ);
	w = make_window(r, 4096, 100, ACCESS_REMOTE_WRITE, 77);
	const struct {
		const char *what;
		struct key_user user;
		uint32_t access;
		uint64_t address, length;
		enum reason why;
	} cases[] = {
		{ "all of it", owner, ACCESS_REMOTE_WRITE, 0x11000, 100, REASON_NONE },
		{ "H-35: in the region, behind the window", owner, ACCESS_REMOTE_WRITE, 0x11000,
		  101, REASON_KEY_RANGE },
		{ "H-35: in the region, before the window", owner, ACCESS_REMOTE_WRITE, 0x10fff, 1,
		  REASON_KEY_RANGE },
		{ "what the region allows and the window does not", owner, ACCESS_REMOTE_READ,
		  0x11000, 1, REASON_KEY_ACCESS },
		{ "H-36: another queue pair", other_qp, ACCESS_REMOTE_WRITE, 0x11000, 1,
		  REASON_KEY_ACCESS },
		{ "H-34: another PD",
		  { .pd = PD + 1, .qpn = 77 },
		  ACCESS_REMOTE_WRITE,
		  0x11000,
		  1,
		  REASON_KEY_PD },
		{ "as a local key", owner, 0, 0x11000, 1, REASON_KEY_ACCESS },
		{ "as a local key, writing", owner, ACCESS_LOCAL_WRITE, 0x11000, 1,
		  REASON_KEY_ACCESS },
		{ "around the end", owner, ACCESS_REMOTE_WRITE, 0x11000, UINT64_MAX,
		  REASON_KEY_RANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(key_check(&table, w->key, cases[i].user, cases[i].access,
				       cases[i].address, cases[i].length, &found),
			     cases[i].why, "%s", cases[i].what);
	cr_expect_eq(key_check_invalidate(&table, w->key, owner), REASON_NONE);
	cr_expect_eq(key_check_invalidate(&table, w->key, other_qp), REASON_KEY_ACCESS);
	cr_expect_eq(key_check_invalidate(&table, r->key, owner), REASON_KEY_ACCESS, "a region");
	cr_expect_eq(key_check_invalidate(&table, w->key ^ 1, owner), REASON_KEY_UNKNOWN);
	cr_expect_eq(key_check_invalidate(&table, 0, owner), REASON_KEY_UNKNOWN);
	/* zero-based: addresses are offsets into the window */
	zero = make_window(r, 8000, 192, ACCESS_REMOTE_WRITE, 0);
	zero->iova = 0;
	cr_expect_eq(key_check(&table, zero->key, other_qp, ACCESS_REMOTE_WRITE, 0, 192, &found),
		     REASON_NONE);
	cr_expect_eq(key_check(&table, zero->key, owner, ACCESS_REMOTE_WRITE, 1, 192, &found),
		     REASON_KEY_RANGE);
	cr_expect_eq(key_check_invalidate(&table, zero->key, owner), REASON_KEY_ACCESS, "type 1");
	free(zero);
	free(w);
	free(r);
}
