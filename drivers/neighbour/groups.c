/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports our multicast groups to the link's routers and switches. A group is reported unasked when
 * the first member joins, and once more after a second, because reports are not acknowledged. It is
 * reported again when a querier asks, and when the last member leaves. IPv4 uses IGMPv3 (RFC 3376),
 * or IGMPv2 (RFC 2236) if the querier knows no newer version. IPv6 uses MLDv2 (RFC 3810), or MLDv1
 * (RFC 2710).
 */
#include <errno.h>

#include "base/bits.h"
#include "drivers/neighbour/table.h"

#define ROBUSTNESS	   2u /* reports of one change, RFC 3376 8.1 */
#define UNSOLICITED_EVERY  TIME_S /* RFC 3376 8.11 */
#define OLDER_QUERIER_LAST (260 * TIME_S) /* RFC 3376 8.12, RFC 3810 9.12 */

static struct membership *find(struct neighbour_table *t, const struct gid *group)
{
	for (uint32_t i = 0; i < t->members_reached; i++)
		if (t->membership[i].used && gid_equal(&t->membership[i].group, group))
			return &t->membership[i];
	return NULL;
}

/*
 * Whether the group is never reported, because all hosts are always members of it, or because it
 * stays within the host.
 */
static bool is_untold(const struct gid *group)
{
	if (gid_is_ipv4(group))
		return load_be32(group->octet + 12) == 0xe0000001;
	return (group->octet[1] & 15) < 2 ||
	       (load_be32(group->octet) == 0xff020000 && load_be32(group->octet + 4) == 0 &&
		load_be32(group->octet + 8) == 0 && load_be32(group->octet + 12) == 1);
}

static bool report(struct neighbour_table *t, const struct gid *group, enum membership_report what,
		   nanotime now, struct neighbour_frames *out)
{
	if (gid_is_ipv4(group))
		return igmp_report(t, group, what, now < t->igmp_v2_until, out);
	return mld_report(t, group, what, now < t->mld_v1_until, out);
}

/* A free slot. NULL: all are used. */
static struct membership *unused(struct neighbour_table *t)
{
	for (uint32_t i = 0; i < t->members_reached; i++)
		if (!t->membership[i].used)
			return &t->membership[i];
	return t->members_reached < LIMIT_TOLD_GROUPS ? &t->membership[t->members_reached++] : NULL;
}

int neighbour_join(struct neighbour_table *t, const struct gid *group, nanotime now)
{
	struct membership *m;

	if (t->kernel != NULL)
		return neighbour_kernel_join(t->kernel, group);
	if (find(t, group) != NULL)
		return 0;
	m = unused(t);
	if (m == NULL)
		return ENOSPC;
	*m = (struct membership){ .used = true, .group = *group, .answer_at = TIME_NEVER };
	m->unasked = is_untold(group) ? 0 : ROBUSTNESS;
	m->unasked_at = now;
	return 0;
}

void neighbour_leave(struct neighbour_table *t, const struct gid *group, nanotime now,
		     struct neighbour_frames *out)
{
	struct membership *m;

	if (t->kernel != NULL) {
		neighbour_kernel_leave(t->kernel, group);
		return;
	}
	m = find(t, group);
	if (m == NULL)
		return;
	m->used = false;
	/* A leave is reported once. A router that misses it will query, and get no answer. */
	if (!is_untold(group))
		report(t, group, REPORT_LEAVE, now, out);
}

/*
 * xorshift. Answers of many hosts to a query should be spread out, but the numbers need not be
 * secret.
 */
static uint64_t random_below(struct neighbour_table *t, nanotime now, uint64_t bound)
{
	uint64_t x = t->random != 0 ? t->random : (now ^ load_be32(t->mac.octet + 2)) | 1;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	t->random = x;
	return bound == 0 ? 0 : x % bound;
}

void groups_queried(struct neighbour_table *t, const struct query *q, nanotime now)
{
	if (q->older && q->ipv4)
		t->igmp_v2_until = now + OLDER_QUERIER_LAST;
	if (q->older && !q->ipv4)
		t->mld_v1_until = now + OLDER_QUERIER_LAST;
	for (uint32_t i = 0; i < t->members_reached; i++) {
		struct membership *m = &t->membership[i];

		if (!m->used || gid_is_ipv4(&m->group) != q->ipv4 || is_untold(&m->group) ||
		    (!q->general && !gid_equal(&m->group, &q->group)))
			continue;
		m->answer_at =
			time_earlier(m->answer_at, now + random_below(t, now, q->patience + 1));
	}
}

static nanotime membership_tick(struct neighbour_table *t, struct membership *m, nanotime now,
				struct neighbour_frames *out)
{
	/* If the list of frames is full, the next tick tries again. */
	if (m->unasked > 0 && m->unasked_at <= now && report(t, &m->group, REPORT_JOIN, now, out)) {
		m->unasked--;
		m->unasked_at = now + UNSOLICITED_EVERY;
	}
	if (m->answer_at <= now && report(t, &m->group, REPORT_ANSWER, now, out))
		m->answer_at = TIME_NEVER;
	return time_earlier(m->answer_at, m->unasked > 0 ? m->unasked_at : TIME_NEVER);
}

nanotime groups_tick(struct neighbour_table *t, nanotime now, struct neighbour_frames *out)
{
	nanotime next = TIME_NEVER;

	for (uint32_t i = 0; i < t->members_reached; i++)
		if (t->membership[i].used)
			next = time_earlier(next, membership_tick(t, &t->membership[i], now, out));
	return next;
}
