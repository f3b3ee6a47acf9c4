/* SPDX-License-Identifier: BSD-3-Clause */
/* Announcements of the kernel's neighbours and routes, octet by octet in rtnetlink's format. */
#include <criterion/criterion.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/neighbour/kernel_watch.h"

#define IFINDEX 7u

static struct kernel_watch watch;
static uint32_t lost_count;
static struct gid lost_hop;

static void lost(void *arg, const struct gid *hop)
{
	lost_count++;
	lost_hop = *hop;
}

static void begin(void)
{
	kernel_watch_open(&watch, IFINDEX);
	kernel_watch_close(&watch); /* the test plays the kernel */
	lost_count = 0;
}

TestSuite(kernel_watch, .init = begin);

static struct gid ipv4(uint8_t last)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 7, [15] = last } };
}

static struct gid ipv6(uint8_t last)
{
	return (struct gid){ { 0xfd, 0x07, [15] = last } };
}

static struct mac mac(uint8_t last)
{
	return (struct mac){ { 2, 0, 0, 0, 0, last } };
}

struct message {
	_Alignas(8) uint8_t octet[256];
	size_t length;
};

static void add(struct nlmsghdr *h, uint16_t type, const void *value, uint16_t length)
{
	struct rtattr *a = (void *)((uint8_t *)h + NLMSG_ALIGN(h->nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(length);
	memcpy(RTA_DATA(a), value, length);
	h->nlmsg_len = NLMSG_ALIGN(h->nlmsg_len) + (uint32_t)RTA_SPACE(length);
}

static struct message neighbour(uint16_t type, uint32_t ifindex, const struct gid *gid,
				const struct mac *m)
{
	struct message out = { .length = 0 };
	struct nlmsghdr *h = (void *)out.octet;
	struct ndmsg *n = NLMSG_DATA(h);

	h->nlmsg_type = type;
	h->nlmsg_len = NLMSG_LENGTH(sizeof(*n));
	h->nlmsg_seq = 1700000000; /* of the program that changed it: ip(8) numbers its requests */
	n->ndm_family = gid_is_ipv4(gid) ? AF_INET : AF_INET6;
	n->ndm_ifindex = (int)ifindex;
	n->ndm_state = m != NULL ? NUD_REACHABLE : NUD_FAILED;
	add(h, NDA_DST, gid->octet + (gid_is_ipv4(gid) ? 12 : 0), gid_is_ipv4(gid) ? 4 : 16);
	if (m != NULL)
		add(h, NDA_LLADDR, m->octet, 6);
	out.length = h->nlmsg_len;
	return out;
}

static bool announce(uint16_t type, uint32_t ifindex, struct gid gid, int last)
{
	struct mac m = mac((uint8_t)last);
	struct message out = neighbour(type, ifindex, &gid, last >= 0 ? &m : NULL);

	return kernel_watch_read(&watch, out.octet, out.length, lost, NULL);
}

static void put(struct gid gid, uint8_t last)
{
	struct mac m = mac(last);

	kernel_watch_put(&watch, &gid, &m);
}

static int get(struct gid gid)
{
	struct mac m;

	return kernel_watch_get(&watch, &gid, &m) ? m.octet[5] : -1;
}

Test(kernel_watch, another_mac_address_is_a_change)
{
	put(ipv4(2), 20);
	put(ipv6(2), 26);
	cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX, ipv4(2), 20), "the same");
	cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX, ipv4(3), 30), "of an unknown neighbour");
	cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX + 1, ipv4(2), 21), "of another interface");
	cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX, ipv4(2), -1), "a failure has no address");
	cr_expect_eq(get(ipv4(2)), 20);
	cr_expect(announce(RTM_NEWNEIGH, IFINDEX, ipv4(2), 21));
	cr_expect_eq(get(ipv4(2)), 21);
	cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX, ipv4(2), 21), "reported once");
	cr_expect_eq(get(ipv6(2)), 26);
	cr_expect(announce(RTM_NEWNEIGH, IFINDEX, ipv6(2), 27));
	cr_expect_eq(get(ipv6(2)), 27);
	cr_expect_eq(lost_count, 0);
}

/*
 * Somebody asks between a change and its announcement, and gets the new address. Others still have
 * the old one, as all destinations behind one router have its address.
 */
Test(kernel_watch, an_answer_may_come_before_its_announcement)
{
	put(ipv4(2), 20);
	cr_expect_not(kernel_watch_changed(&watch, TIME_S, lost, NULL), "the first answer");
	put(ipv4(2), 20);
	cr_expect_not(kernel_watch_changed(&watch, TIME_S, lost, NULL), "the same");
	put(ipv4(2), 21);
	cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX, ipv4(2), 21), "no news any more");
	cr_expect(kernel_watch_changed(&watch, TIME_S, lost, NULL));
	cr_expect_not(kernel_watch_changed(&watch, TIME_S, lost, NULL), "reported once");
}

Test(kernel_watch, dropped_neighbours_are_resolved_again)
{
	struct gid two = ipv4(2);

	put(two, 20);
	cr_expect_not(announce(RTM_DELNEIGH, IFINDEX, ipv4(3), 30));
	cr_expect_eq(lost_count, 0, "an unknown neighbour");
	cr_expect_not(announce(RTM_DELNEIGH, IFINDEX, two, 20), "the old answer is kept");
	cr_expect_eq(lost_count, 1);
	cr_expect(gid_equal(&lost_hop, &two));
	cr_expect_eq(get(two), 20);
	cr_expect(announce(RTM_NEWNEIGH, IFINDEX, two, 22), "until there is another");
	kernel_watch_forget(&watch, &two);
	cr_expect_eq(get(two), -1);
}

/* A router fails for so long that somebody asks meanwhile. Others still have its old address. */
Test(kernel_watch, a_neighbour_may_come_back_with_another_address)
{
	for (int asked = 0; asked < 2; asked++) {
		struct gid hop = ipv4((uint8_t)(2 + asked));

		put(hop, 20);
		kernel_watch_forget(&watch, &hop);
		cr_expect_not(announce(RTM_DELNEIGH, IFINDEX, hop, -1));
		cr_expect_eq(lost_count, 0, "nobody has to look for it");
		cr_expect_not(announce(RTM_NEWNEIGH, IFINDEX, hop, 20), "the same");
		if (asked)
			put(hop, 21);
		cr_expect_eq(announce(RTM_NEWNEIGH, IFINDEX, hop, 21), !asked);
		cr_expect_eq(kernel_watch_changed(&watch, TIME_S, lost, NULL), asked == 1);
		cr_expect_eq(get(hop), asked ? 21 : -1);
	}
}

Test(kernel_watch, changed_routes_are_reported_at_intervals)
{
	struct nlmsghdr route = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
				  .nlmsg_type = RTM_NEWROUTE };
	struct {
		struct nlmsghdr h;
		struct rtmsg r;
	} message = { .h = route };

	cr_expect_not(kernel_watch_changed(&watch, TIME_S, lost, NULL));
	kernel_watch_read(&watch, &message, sizeof(message), lost, NULL);
	cr_expect(kernel_watch_changed(&watch, TIME_S, lost, NULL));
	kernel_watch_read(&watch, &message, sizeof(message), lost, NULL);
	cr_expect_not(kernel_watch_changed(&watch, TIME_S + LIMIT_WATCH_ROUTES - 1, lost, NULL));
	cr_expect(kernel_watch_changed(&watch, TIME_S + LIMIT_WATCH_ROUTES, lost, NULL),
		  "not forgotten");
	cr_expect_not(kernel_watch_changed(&watch, 3 * TIME_S, lost, NULL), "reported once");
}

/* More hops than slots: from then on any announcement may concern a hop that was dropped. */
Test(kernel_watch, more_hops_than_slots)
{
	for (uint32_t i = 0; i < 4 * LIMIT_WATCH_SLOTS; i++) {
		struct gid gid = { { 0xfd, [13] = (uint8_t)(i >> 16), [14] = (uint8_t)(i >> 8),
				     [15] = (uint8_t)i } };
		struct mac m = mac(1);

		kernel_watch_put(&watch, &gid, &m);
	}
	cr_assert(watch.overflowed);
	cr_expect(announce(RTM_NEWNEIGH, IFINDEX, ipv4(99), 1));
}

/* Cut or malformed messages: nothing is read past the end. */
Test(kernel_watch, cut_messages)
{
	struct gid gid = ipv6(2);
	struct mac m = mac(99);
	struct message out = neighbour(RTM_NEWNEIGH, IFINDEX, &gid, &m);

	put(gid, 20);
	/* the message ends with two octets of padding */
	for (size_t length = 0; length < out.length - 2; length++) {
		uint8_t *exact = malloc(length + 1);

		memcpy(exact, out.octet, length);
		kernel_watch_read(&watch, exact, length, lost, NULL);
		if (length >= sizeof(struct nlmsghdr)) {
			((struct nlmsghdr *)(void *)exact)->nlmsg_len = (uint32_t)length;
			kernel_watch_read(&watch, exact, length, lost, NULL);
		}
		free(exact);
	}
	cr_expect_eq(get(gid), 20);
}
