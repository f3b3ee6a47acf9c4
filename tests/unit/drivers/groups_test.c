/* SPDX-License-Identifier: BSD-3-Clause */
/* Membership of multicast groups as reported to the link, compared with frames made by scapy. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "groups_frames.h"
#include "neighbour_rig.h"

static const struct gid group4 = { { [10] = 0xff, 0xff, 239, 1, 2, 3 } };
static const struct gid group6 = { { 0xff, 0x15, [12] = 0xab, 0xcd, 0, 1 } };

TestSuite(groups, .init = neighbour_rig_open, .fini = neighbour_rig_close);

#define INPUT(frame, now) input(frame, sizeof(frame), now)

/* Exactly this frame was sent since the last check. */
static void sent(const uint8_t *frame, size_t length, const char *what)
{
	cr_assert_eq(out.count, 1, "%s: %u frames", what, out.count);
	cr_assert_eq(out.frame[0].length, length, "%s: %u octets", what, out.frame[0].length);
	cr_expect_arr_eq(out.octets + out.frame[0].offset, frame, length, "%s", what);
	neighbour_frames_clear(&out);
}

#define SENT(frame) sent(frame, sizeof(frame), #frame)

/* Joins a group, which is reported twice, a second apart. Returns the time. */
static nanotime join(const struct gid *group, const uint8_t *report, size_t length)
{
	nanotime now = TIME_S;

	cr_assert_eq(neighbour_join(t, group, now), 0);
	cr_assert_eq(neighbour_join(t, group, now), 0, "joining again must succeed");
	cr_expect_eq(neighbour_tick(t, now, &out), now + TIME_S);
	sent(report, length, "unasked");
	neighbour_tick(t, now + TIME_S - 1, &out);
	cr_expect_eq(out.count, 0);
	now += TIME_S;
	cr_expect_eq(neighbour_tick(t, now, &out), TIME_NEVER);
	sent(report, length, "the second unsolicited report");
	return now;
}

/* A query is answered once, at some time within its maximum response time. */
static nanotime answer_within(nanotime now, nanotime patience, const uint8_t *report, size_t length)
{
	nanotime at = neighbour_tick(t, now, &out);

	if (out.count == 0) {
		cr_assert_leq(at, now + patience);
		neighbour_tick(t, at - 1, &out);
		cr_expect_eq(out.count, 0, "too early");
		neighbour_tick(t, at, &out);
	}
	sent(report, length, "answer");
	neighbour_tick(t, now + patience + TIME_S, &out);
	cr_expect_eq(out.count, 0, "answered twice");
	return now + patience + TIME_S;
}

Test(groups, igmp)
{
	nanotime now = join(&group4, igmp_join, sizeof(igmp_join));

	cr_expect(INPUT(igmp_query, now));
	now = answer_within(now, 10 * TIME_S, igmp_answer, sizeof(igmp_answer));
	cr_expect(INPUT(igmp_query_group, now));
	now = answer_within(now, TIME_S, igmp_answer, sizeof(igmp_answer));
	cr_expect(INPUT(igmp_query_other, now));
	cr_expect_eq(neighbour_tick(t, now, &out), TIME_NEVER, "a query for another group");
	neighbour_leave(t, &group4, now, &out);
	SENT(igmp_leave);
	cr_expect(INPUT(igmp_query, now));
	cr_expect_eq(neighbour_tick(t, now, &out), TIME_NEVER, "not a member any more");
}

Test(groups, igmp_beside_an_older_querier)
{
	nanotime now = join(&group4, igmp_join, sizeof(igmp_join));

	cr_expect(INPUT(igmp_query_v2, now));
	now = answer_within(now, 10 * TIME_S, igmp_report_v2, sizeof(igmp_report_v2));
	neighbour_leave(t, &group4, now, &out);
	SENT(igmp_leave_v2);
	now += 300 * TIME_S;
	cr_assert_eq(neighbour_join(t, &group4, now), 0);
	neighbour_tick(t, now, &out);
	SENT(igmp_join); /* the older querier is gone */
}

Test(groups, mld)
{
	nanotime now = join(&group6, mld_join, sizeof(mld_join));

	cr_expect(INPUT(mld_query, now));
	now = answer_within(now, 10 * TIME_S, mld_answer, sizeof(mld_answer));
	cr_expect(INPUT(mld_query_routed, now));
	cr_expect_eq(neighbour_tick(t, now, &out), TIME_NEVER, "the query is not link-local");
	neighbour_leave(t, &group6, now, &out);
	SENT(mld_leave);
}

Test(groups, mld_beside_an_older_querier)
{
	nanotime now = join(&group6, mld_join, sizeof(mld_join));

	cr_expect(INPUT(mld_query_v1, now));
	now = answer_within(now, 10 * TIME_S, mld_report_v1, sizeof(mld_report_v1));
	neighbour_leave(t, &group6, now, &out);
	SENT(mld_done_v1);
}

Test(groups, some_groups_are_not_reported)
{
	static const struct gid untold[] = {
		{ { [10] = 0xff, 0xff, 224, 0, 0, 1 } }, /* all hosts */
		{ { 0xff, 0x02, [15] = 1 } }, /* all nodes */
		{ { 0xff, 0x01, [15] = 9 } }, /* interface-local */
	};

	for (size_t i = 0; i < sizeof(untold) / sizeof(untold[0]); i++) {
		cr_assert_eq(neighbour_join(t, &untold[i], TIME_S), 0);
		cr_expect_eq(neighbour_tick(t, TIME_S, &out), TIME_NEVER);
		INPUT(igmp_query, TIME_S);
		INPUT(mld_query, TIME_S);
		cr_expect_eq(neighbour_tick(t, 30 * TIME_S, &out), TIME_NEVER);
		neighbour_leave(t, &untold[i], TIME_S, &out);
		cr_expect_eq(out.count, 0, "group %zu", i);
	}
}

Test(groups, as_many_groups_as_the_limit)
{
	struct gid group = group4, middle = group4;

	middle.octet[14] = 5; /* group 0x503 */
	for (uint32_t i = 0; i < LIMIT_TOLD_GROUPS; i++) {
		group.octet[14] = (uint8_t)(i >> 8);
		group.octet[15] = (uint8_t)i;
		cr_assert_eq(neighbour_join(t, &group, TIME_S), 0, "group %u", i);
	}
	group.octet[13] = 9;
	cr_expect_eq(neighbour_join(t, &group, TIME_S), ENOSPC);
	/* the place of one that left is the next one's */
	neighbour_leave(t, &middle, TIME_S, &out);
	cr_expect_eq(neighbour_join(t, &group, TIME_S), 0);
	group.octet[13] = 10;
	cr_expect_eq(neighbour_join(t, &group, TIME_S), ENOSPC);
	/* when the list of frames is full the next tick sends the others; none is lost */
	for (uint32_t left = LIMIT_TOLD_GROUPS; left > 0; left -= out.count) {
		neighbour_frames_clear(&out);
		neighbour_tick(t, TIME_S, &out);
		cr_assert_gt(out.count, 0, "%u reports are missing", left);
	}
}

Test(groups, cut_and_corrupted_frames)
{
	static const struct {
		const uint8_t *frame;
		size_t length;
	} row[] = { { igmp_query, 14 + 36 }, { mld_query, sizeof(mld_query) } };

	join(&group4, igmp_join, sizeof(igmp_join));
	join(&group6, mld_join, sizeof(mld_join));
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		uint8_t frame[128];

		for (size_t n = 0; n < row[i].length; n++)
			input(row[i].frame, n, TIME_S * 10);
		/*
		 * wherever a checksum covers it, which excludes IPv6's first octets and its option
		 */
		for (size_t n = i == 0 ? 14 : 14 + 8; n < row[i].length; n++) {
			if (i == 1 && n >= 14 + 42 && n < 14 + 48)
				continue;
			memcpy(frame, row[i].frame, row[i].length);
			frame[n] ^= 0x55;
			input(frame, row[i].length, TIME_S * 10);
		}
	}
	neighbour_tick(t, TIME_S * 100, &out);
	cr_expect_eq(out.count, 0, "a broken query was answered");
}
