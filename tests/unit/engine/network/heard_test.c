/* SPDX-License-Identifier: BSD-3-Clause */
/* Which multicast addresses the engine asks its port for: after each command that changes that, before it is answered. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/bits.h"
#include "rig/control_rig.h"
#include "rig/test_port.h"
#include "engine/inside.h"
#include "protocol/flow_key.h"

static struct {
	struct mac group[LIMIT_PORT_GROUPS + 1];
	uint32_t count, calls;
	const char *all, *everything;
} heard; /* by the control thread, before it answers */

/* ---- the port ---- */

static void hear(struct port *p, const struct port_hears *h)
{
	memcpy(heard.group, h->group, h->groups * sizeof(*h->group));
	heard.count = h->groups;
	heard.all = h->all_groups;
	heard.everything = h->everything;
	heard.calls++;
}

static void begin(void)
{
	test_port_begin(
		"heard", &(struct port_ops){ .hear = hear },
		(struct uroce_options){ .address = { { { 0xfd, 7, [13] = 0xa, 0xb, 0xc }, 64 } },
					.pool_size = 1024 });
}

TestSuite(heard, .init = begin, .fini = control_rig_close, .timeout = 60);

/* ---- what programs do ---- */

#define HOSTS_V4   ((struct mac){ { 0x01, 0, 0x5e, 0, 0, 1 } })
#define HOSTS_V6   ((struct mac){ { 0x33, 0x33, 0, 0, 0, 1 } })
#define SOLICITED  ((struct mac){ { 0x33, 0x33, 0xff, 0xa, 0xb, 0xc } }) /* of the address */
#define LINK_LOCAL ((struct mac){ { 0x33, 0x33, 0xff, 0, 0, 1 } }) /* of fe80::ff:fe00:1 */
#define ALWAYS	   4u

static bool has(struct mac group)
{
	for (uint32_t i = 0; i < heard.count; i++)
		if (memcmp(&heard.group[i], &group, sizeof(group)) == 0)
			return true;
	return false;
}

static uint32_t create(int fd, struct objects *o, uint32_t type)
{
	struct request_create_qp q = small_qp(o);
	struct reply_create_qp r;

	q.type = type;
	cr_assert_eq(create_qp(fd, &q, &r), 0, "%s", r.h.why);
	return r.handle;
}

static void member(int fd, enum command what, uint32_t qp, const struct gid *group)
{
	struct request_mcast q = { .qp = qp, .group = *group };
	struct reply_empty r;

	cr_assert_eq(ask(fd, what, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0, "%s", r.h.why);
}

static uint32_t flow(int fd, struct request_create_flow q)
{
	struct reply_handle r;

	cr_assert_eq(ask(fd, COMMAND_CREATE_FLOW, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0,
		     "%s", r.h.why);
	return r.handle;
}

Test(heard, a_host_hears_hosts_and_who_looks_for_it)
{
	cr_expect(has(HOSTS_V4));
	cr_expect(has(HOSTS_V6));
	cr_expect(has(SOLICITED));
	cr_expect(has(LINK_LOCAL));
	cr_expect_eq(heard.count, ALWAYS);
	cr_expect_null(heard.all);
}

Test(heard, a_group_from_its_first_member_to_its_last)
{
	const struct gid v4 = { { [10] = 0xff, 0xff, 239, 135, 8, 9 } },
			 v6 = { { 0xff, 0x15, [12] = 1, 2, 3, 4 } };
	const struct mac mac_v4 = { { 0x01, 0, 0x5e, 7, 8, 9 } },
			 mac_v6 = { { 0x33, 0x33, 1, 2, 3, 4 } };
	int fd = attach(), other = attach();
	struct objects o, others;
	uint32_t first, second;

	make_objects(fd, &o);
	make_objects(other, &others);
	first = create(fd, &o, QP_TYPE_UD);
	second = create(other, &others, QP_TYPE_UD);
	member(fd, COMMAND_ATTACH_MCAST, first, &v4);
	cr_expect(has(mac_v4));
	member(other, COMMAND_ATTACH_MCAST, second, &v4);
	member(other, COMMAND_ATTACH_MCAST, second, &v6);
	cr_expect(has(mac_v6));
	cr_expect_eq(heard.count, ALWAYS + 2);
	member(fd, COMMAND_DETACH_MCAST, first, &v4);
	cr_expect(has(mac_v4), "it has another member");
	close(other); /* the program is gone */
	expect_counts(1, 2, 1, 1);
	open_context(fd); /* an answer of the control thread */
	cr_expect_eq(heard.count, ALWAYS);
	close(fd);
}

/* 239.7.8.9 and 238.135.8.9 have one Ethernet address. */
Test(heard, an_address_of_two_groups_stays_until_both_have_gone)
{
	const struct gid one = { { [10] = 0xff, 0xff, 239, 7, 8, 9 } },
			 other = { { [10] = 0xff, 0xff, 238, 135, 8, 9 } };
	const struct mac mac = { { 0x01, 0, 0x5e, 7, 8, 9 } };
	struct objects o;
	int fd = attach();
	uint32_t qp;

	make_objects(fd, &o);
	qp = create(fd, &o, QP_TYPE_UD);
	member(fd, COMMAND_ATTACH_MCAST, qp, &one);
	member(fd, COMMAND_ATTACH_MCAST, qp, &other);
	cr_expect_eq(heard.count, ALWAYS + 1);
	member(fd, COMMAND_DETACH_MCAST, qp, &one);
	cr_expect(has(mac));
	member(fd, COMMAND_DETACH_MCAST, qp, &other);
	cr_expect_not(has(mac));
	close(fd);
}

Test(heard, steering_rules_want_one_group_or_any)
{
	const struct mac mac = { { 0x01, 0x80, 0xc2, 0, 0, 14 } };
	struct request_create_flow q = { .layers = 1 };
	struct objects o;
	int fd = attach();
	uint32_t rule;

	make_objects(fd, &o);
	q.qp = create(fd, &o, QP_TYPE_RAW_PACKET);
	memset(q.mask.dst_mac, 0xff, 6);
	memcpy(q.value.dst_mac, mac.octet, 6);
	rule = flow(fd, q);
	cr_expect(has(mac));
	cr_expect_null(heard.all);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, rule, NULL), 0);
	cr_expect_not(has(mac));
	q.value.dst_mac[0] = 2;
	rule = flow(fd, q);
	cr_expect_eq(heard.count, ALWAYS, "unicast");
	cr_expect_null(heard.all);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, rule, NULL), 0);
	q = (struct request_create_flow){ .qp = q.qp, .kind = FLOW_MC_DEFAULT };
	rule = flow(fd, q);
	cr_expect_not_null(heard.all, "every group");
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, rule, NULL), 0);
	cr_expect_null(heard.all);
	q.kind = FLOW_NORMAL;
	flow(fd, q);
	cr_expect_not_null(heard.all, "a rule without an address");
	close(fd);
}

/* The port's own filter keeps out what is for other unicast addresses. */
Test(heard, a_rule_for_another_host_hears_other_hosts)
{
	struct request_create_flow q = { .layers = FLOW_LAYER_ETH };
	struct objects o;
	int fd = attach();
	uint32_t rule, second;

	make_objects(fd, &o);
	q.qp = create(fd, &o, QP_TYPE_RAW_PACKET);
	memset(q.mask.dst_mac, 0xff, 6);
	memcpy(q.value.dst_mac, test_port.mac.octet, 6);
	flow(fd, q);
	cr_expect_null(heard.everything, "the own address");
	q.value.dst_mac[5]++;
	rule = flow(fd, q);
	cr_expect_not_null(heard.everything);
	cr_expect_null(heard.all);
	second = flow(fd, q);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, rule, NULL), 0);
	cr_expect_not_null(heard.everything, "the second rule is there");
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, second, NULL), 0);
	cr_expect_null(heard.everything);
	close(fd);
}

/*
 * A sniffer gets the frames that the port lets through: so that has to be all of them, while the
 * rule exists.
 */
Test(heard, a_sniffer_hears_other_hosts)
{
	struct request_create_flow q = { .kind = FLOW_SNIFFER };
	struct objects o;
	int fd = attach();
	uint32_t rule;

	make_objects(fd, &o);
	q.qp = create(fd, &o, QP_TYPE_RAW_PACKET);
	rule = flow(fd, q);
	cr_expect_not_null(heard.everything);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, rule, NULL), 0);
	cr_expect_null(heard.everything);
	q.kind = FLOW_ALL_DEFAULT;
	flow(fd, q);
	cr_expect_not_null(heard.everything);
	close(fd); /* the program is gone */
	expect_counts(0, 0, 0, 0);
	close(attach());
	cr_expect_null(heard.everything);
}

Test(heard, more_groups_than_a_port_is_told_are_said_to_be_more)
{
	struct gid group = { { [10] = 0xff, 0xff, 239, 1, 1, 0 } };
	struct objects o;
	int fd = attach();
	uint32_t qp;

	make_objects(fd, &o);
	qp = create(fd, &o, QP_TYPE_UD);
	for (uint32_t i = 0; i < LIMIT_PORT_GROUPS; i++) {
		group.octet[15] = (uint8_t)i;
		member(fd, COMMAND_ATTACH_MCAST, qp, &group);
	}
	cr_expect_eq(heard.count, LIMIT_PORT_GROUPS + 1);
	close(fd);
}

/* The port has no bell. So the lcore yields for longer before it sleeps. */
Test(heard, an_lcore_that_no_frame_wakes_knows_it)
{
	const struct lcore *l = &((struct engine *)engine)->lcore[0];
	nanotime until = clock_now() + ENOUGH_MS / 2 * TIME_MS; /* before the suite's end */

	while (!__atomic_load_n(&l->napped, __ATOMIC_RELAXED)) {
		cr_assert_lt(clock_now(), until, "it slept %lu times",
			     (unsigned long)l->stats.sleeps);
		usleep(1000);
	}
}
