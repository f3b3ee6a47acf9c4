/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups that the kernel joins for an engine on its interface, as /proc/net shows them for one end
 * of a veth pair in a network namespace of the test's own.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "drivers/neighbour/table.h"
#include "net_namespace.h"

#define MANY 50u /* more than one socket may join: net.ipv4.igmp_max_memberships is 20 */

static struct neighbour_kernel *k;

static void begin(void)
{
	net_namespace_enter();
	ip("link add near type veth peer name far");
	ip("link set near up");
	k = neighbour_kernel_new(index_of("near"));
	cr_assert_not_null(k);
}

static void end(void)
{
	neighbour_kernel_free(k);
}

TestSuite(neighbour_kernel, .init = begin, .fini = end, .timeout = 60);

static struct gid four(uint8_t last)
{
	return (struct gid){
		{ [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = last }
	};
}

static struct gid six(uint8_t last)
{
	return (struct gid){ { 0xff, 0x05, [15] = last } };
}

/* /proc/net/igmp has an IPv4 group's octets backwards. */
static bool kernel_has(const struct gid *group)
{
	bool is_four = gid_is_ipv4(group), found = false;
	char name[33] = "", line[200];
	FILE *f =
		fopen(is_four ? "/proc/thread-self/net/igmp" : "/proc/thread-self/net/igmp6", "r");

	cr_assert_not_null(f);
	for (uint32_t i = 0; i < (is_four ? 4 : 16); i++)
		sprintf(name + 2 * i, is_four ? "%02X" : "%02x",
			group->octet[is_four ? 15 - i : i]);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, name) != NULL;
	fclose(f);
	return found;
}

Test(neighbour_kernel, a_group_that_is_left_goes_and_others_stay)
{
	struct gid left[] = { four(3), six(3) }, stays[] = { four(4), six(4) };

	for (uint32_t i = 0; i < 2; i++) {
		cr_assert_eq(neighbour_kernel_join(k, &left[i]), 0);
		cr_assert_eq(neighbour_kernel_join(k, &left[i]), 0, "joining again must succeed");
		cr_assert_eq(neighbour_kernel_join(k, &stays[i]), 0);
		cr_expect(kernel_has(&left[i]));
		cr_expect(kernel_has(&stays[i]));
	}
	for (uint32_t i = 0; i < 2; i++) {
		neighbour_kernel_leave(k, &left[i]);
		cr_expect_not(kernel_has(&left[i]));
		cr_expect(kernel_has(&stays[i]));
		neighbour_kernel_leave(k, &left[i]); /* changes nothing */
		cr_expect(kernel_has(&stays[i]));
		cr_assert_eq(neighbour_kernel_join(k, &left[i]), 0);
		cr_expect(kernel_has(&left[i]));
	}
}

Test(neighbour_kernel, more_groups_than_a_socket_may_join)
{
	struct gid g;

	for (uint8_t i = 1; i <= MANY; i++) {
		g = four(i);
		cr_assert_eq(neighbour_kernel_join(k, &g), 0, "group %u", i);
	}
	for (uint8_t i = 1; i <= MANY; i++) {
		g = four(i);
		cr_expect(kernel_has(&g), "group %u", i);
		neighbour_kernel_leave(k, &g);
		cr_expect_not(kernel_has(&g), "group %u", i);
	}
}

Test(neighbour_kernel, what_is_not_a_group_cannot_be_joined)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };

	cr_expect_eq(neighbour_kernel_join(k, &g), EINVAL);
	cr_expect_not(kernel_has(&g));
}

static struct gid behind_router(uint8_t last)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 8, [15] = last } };
}

static int address_towards(struct gid gid)
{
	struct mac mac = { { 0 } };

	cr_assert_eq(neighbour_kernel_resolve(k, NULL, &gid, TIME_S, &mac), 0);
	return mac.octet[5];
}

/* A program resolves another destination before the engine reads that their router has changed. */
Test(neighbour_kernel, a_question_hides_no_change)
{
	ip("link set far up");
	ip("address add 10.7.0.1/24 dev near");
	ip("route add 10.8.0.0/16 via 10.7.0.2");
	ip("neighbour replace 10.7.0.2 lladdr 02:00:00:00:00:20 nud permanent dev near");
	cr_expect_eq(address_towards(behind_router(1)), 0x20);
	neighbour_kernel_changed(k, TIME_S);
	ip("neighbour replace 10.7.0.2 lladdr 02:00:00:00:00:21 nud permanent dev near");
	cr_expect_eq(address_towards(behind_router(2)), 0x21);
	cr_expect(neighbour_kernel_changed(k, TIME_S), "the first one is not looked at again");
}

/* What the kernel announced until now is read. Returns when another change may be reported. */
static nanotime calm(nanotime now)
{
	for (uint32_t i = 0; i < 100; i++) {
		now += LIMIT_WATCH_ROUTES;
		if (!neighbour_kernel_changed(k, now))
			return now;
	}
	cr_assert_fail("the kernel announces changes without an end");
	return now;
}

/* A rule chooses the table whose routes are used, so it may change every next hop. */
Test(neighbour_kernel, a_changed_rule_is_a_change)
{
	static const char *const change[] = { "rule add to 10.8.0.0/16 lookup 100",
					      "rule del to 10.8.0.0/16 lookup 100",
					      "-6 rule add to fd08::/16 lookup 100",
					      "-6 rule del to fd08::/16 lookup 100" };
	nanotime now = TIME_S;

	for (uint32_t i = 0; i < 4; i++) {
		now = calm(now);
		ip("%s", change[i]);
		cr_expect(neighbour_kernel_changed(k, now), "%s", change[i]);
	}
}

static struct gid gid_at(const char *text)
{
	struct gid g = { { [10] = 0xff, [11] = 0xff } };

	cr_assert(inet_pton(AF_INET, text, g.octet + 12) == 1 ||
			  inet_pton(AF_INET6, text, g.octet) == 1,
		  "%s", text);
	return g;
}

/* The last octet of the next hop's MAC address, or -1. */
static int hop_from(const char *from, const char *to)
{
	struct gid source = gid_at(from), gid = gid_at(to);
	struct mac mac = { { 0 } };

	return neighbour_kernel_resolve(k, &source, &gid, TIME_S, &mac) == 0 ? mac.octet[5] : -1;
}

/* The usual set-up of a second interface of a cloud host: a table for what comes from its address. */
Test(neighbour_kernel, a_rule_may_be_for_a_source)
{
	ip("link set far up");
	ip("address add 10.7.0.1/24 dev near");
	ip("address add 10.7.0.3/24 dev near");
	ip("address add fd07::1/64 dev near nodad");
	ip("address add fd07::3/64 dev near nodad");
	for (int i = 2; i <= 4; i += 2) {
		ip("neighbour replace 10.7.0.%d lladdr 02:00:00:00:00:%d nud permanent dev near", i,
		   10 * i);
		ip("neighbour replace fd07::%d lladdr 02:00:00:00:00:%d nud permanent dev near", i,
		   10 * i);
	}
	ip("route add 10.8.0.0/16 via 10.7.0.2");
	ip("route add fd08::/16 via fd07::2");
	ip("route add default via 10.7.0.4 table 100");
	ip("route add default via fd07::4 dev near table 100");
	ip("rule add from 10.7.0.3 lookup 100");
	ip("-6 rule add from fd07::3 lookup 100");
	cr_expect_eq(hop_from("10.7.0.1", "10.8.0.9"), 0x20);
	cr_expect_eq(hop_from("10.7.0.3", "10.8.0.9"), 0x40);
	cr_expect_eq(hop_from("fd07::1", "fd08::9"), 0x20);
	cr_expect_eq(hop_from("fd07::3", "fd08::9"), 0x40);
	cr_expect_eq(hop_from("10.7.0.3", "10.66.0.9"), 0x40, "no route but the source's");
	cr_expect_eq(hop_from("fd07::3", "10.8.0.9"), 0x20, "an address of the other family");
}
