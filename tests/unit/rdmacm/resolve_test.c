/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's routes say where a destination is and which address an id gets. Resolving addresses
 * that no host has must not delay other commands while the engine asks the kernel. Runs with the engine of tests/unit/verbs/with_netdev.sh.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../verbs/rig/starved.h"
#include "rig.h"

#define WIRE_ADDRESS "10.77.0.1" /* the engine's */
#define COMMANDS     201
/*
 * Processor seconds of the engine for a command. Each command asked for all addresses that were
 * waited for: that took 0.8 ms beside 300 ids, and 5 ms beside 1,000 queue pairs.
 */
#define MOST	     1e-3

static struct rdma_event_channel *channel;

static void run(const char *command)
{
	cr_assert_eq(system(command), 0, "%s", command);
}

/* Of itself the kernel gives up after three seconds. On a busy machine a measurement takes longer. */
static void open_all(void)
{
	run("echo 60 >/proc/sys/net/ipv4/neigh/wire0/mcast_solicit");
	channel = open_channel();
}

TestSuite(resolve, .init = open_all, .timeout = 120);

/* How many processor seconds the engine takes for a command. */
static double command_time(void)
{
	struct starved s;
	double took;

	starved_open(&s);
	starved_begin(&s);
	for (int i = 0; i < COMMANDS; i++)
		rdma_destroy_id(open_id(channel, RDMA_PS_TCP));
	took = starved_command(&s) / (2 * COMMANDS);
	starved_close(&s);
	return took;
}

static void expect_no_delay(void)
{
	double took = command_time();

	cr_log_info("%.0f us", took * 1e6);
	cr_expect_not(event_waits(channel), "the kernel gave up before it was measured");
	cr_expect_lt(took, MOST, "%.0f us", took * 1e6);
}

static void begin_resolving(struct rdma_cm_id *id, const char *nobody)
{
	struct sockaddr_in a;

	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&a, nobody, 7), 60000), 0, "%s",
		     strerror(errno));
}

Test(resolve, many_ids_resolve_an_address)
{
	enum {
		MANY = 600
	};
	static struct rdma_cm_id *id[MANY];

	for (int i = 0; i < MANY; i++) {
		id[i] = open_id(channel, RDMA_PS_TCP);
		begin_resolving(id[i], "10.77.0.98");
	}
	expect_no_delay();
	/* all resolutions end with the kernel's */
	run("ip neighbour change 10.77.0.98 dev wire0 nud failed");
	for (int i = 0; i < MANY; i++)
		pass_event(channel, RDMA_CM_EVENT_ADDR_ERROR);
	for (int i = 0; i < MANY; i++)
		rdma_destroy_id(id[i]);
}

/* A queue pair whose path leads to a known neighbour. */
static void make_receiver(struct rdma_cm_id *id, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 }
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(id->pd, &init);
	struct sockaddr_in there;

	cr_assert_not_null(qp, "%s", strerror(errno));
	cr_assert_eq(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 1000,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = 1, .hop_limit = 64 } },
	};
	address(&there, "10.77.0.2", 0);
	attr.ah_attr.grh.dgid.raw[10] = attr.ah_attr.grh.dgid.raw[11] = 0xff;
	memcpy(attr.ah_attr.grh.dgid.raw + 12, &there.sin_addr, 4);
	cr_assert_eq(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER),
		     0);
}

Test(resolve, queue_pairs_with_a_resolved_address)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in a;
	struct ibv_cq *cq;

	cr_assert_eq(system("ip neighbour replace 10.77.0.2 lladdr 02:00:00:00:00:02 dev wire0 "
			    "nud permanent"),
		     0);
	cr_assert_eq(rdma_bind_addr(id, address(&a, WIRE_ADDRESS, 0)), 0, "%s", strerror(errno));
	cq = ibv_create_cq(id->verbs, 10, NULL, NULL, 0);
	for (int i = 0; i < 2000; i++)
		make_receiver(id, cq);
	begin_resolving(open_id(channel, RDMA_PS_TCP), "10.77.0.99");
	expect_no_delay();
}

/* ---- routes ---- */

union any_address {
	struct sockaddr any;
	struct sockaddr_in four;
	struct sockaddr_in6 six;
};

static struct sockaddr *at(union any_address *a, const char *text)
{
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, text, &a->four.sin_addr) == 1) {
		a->any.sa_family = AF_INET;
		return &a->any;
	}
	a->any.sa_family = AF_INET6;
	cr_assert_eq(inet_pton(AF_INET6, text, &a->six.sin6_addr), 1, "%s", text);
	if (IN6_IS_ADDR_LINKLOCAL(&a->six.sin6_addr))
		a->six.sin6_scope_id = if_nametoindex("wire0");
	return &a->any;
}

/* Until the engine has seen the interface's new address. */
static void await_address(const char *text)
{
	union any_address a;

	for (int ms = 0; ms < 10000; ms += 10) {
		struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
		int ret = rdma_bind_addr(id, at(&a, text));

		rdma_destroy_id(id);
		if (ret == 0)
			return;
		poll(NULL, 0, 10);
	}
	cr_assert_fail("the engine has not seen %s within 10 s", text);
}

/* The address that an unbound id gets for the destination, or why it has none. */
static const char *source_towards(const char *destination)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	static char text[INET6_ADDRSTRLEN];
	const struct sockaddr *own = rdma_get_local_addr(id);
	union any_address a;

	if (rdma_resolve_addr(id, NULL, at(&a, destination), 100) != 0)
		snprintf(text, sizeof(text), "%s", strerrorname_np(errno));
	else if (own->sa_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)own)->sin_addr, text,
			  sizeof(text));
	else
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)own)->sin6_addr,
			  text, sizeof(text));
	rdma_destroy_id(id);
	return text;
}

#define EXPECT_SOURCE(destination, expected)                                                     \
	do {                                                                                     \
		const char *got_ = source_towards(destination);                                  \
		cr_expect_str_eq(got_, expected, "%s: %s, not %s", destination, got_, expected); \
	} while (0)

Test(resolve, the_source_is_the_one_of_the_route)
{
	run("ip address replace 10.77.0.7/24 dev wire0");
	run("ip route add 10.66.0.0/24 via 10.77.0.254 src 10.77.0.7");
	run("ip route add 10.65.0.0/24 via 10.77.0.254");
	await_address("10.77.0.7");
	EXPECT_SOURCE("10.66.0.9", "10.77.0.7");
	EXPECT_SOURCE("10.65.0.9", "10.77.0.1");
	EXPECT_SOURCE("10.77.0.7", "10.77.0.7");
	EXPECT_SOURCE("127.0.0.1", "10.77.0.1");
}

static void need_ipv6(void)
{
	if (system("test \"$(cat /proc/sys/net/ipv6/conf/all/disable_ipv6)\" = 0") != 0)
		cr_skip_test("no IPv6 here");
}

/* Nor is an address the source that is going to vanish. */
Test(resolve, the_source_is_no_deprecated_address)
{
	need_ipv6();
	run("ip address replace fd77::1/64 dev wire0 nodad");
	run("ip address add fd77::9/64 dev wire0 nodad preferred_lft 0");
	await_address("fd77::1");
	await_address("fd77::9");
	EXPECT_SOURCE("fd77::8", "fd77::1");
}

/* The kernel does not answer for the one of the MAC address if it has another one. */
Test(resolve, the_source_on_the_link_is_the_kernels)
{
	need_ipv6();
	run("ip -6 address flush dev wire0 scope link");
	run("ip address add fe80::77:1/64 dev wire0 nodad");
	await_address("fe80::77:1");
	EXPECT_SOURCE("fe80::2", "fe80::77:1");
	EXPECT_SOURCE("fe80::ffff:ffff:ffff:ffff", "fe80::77:1");
}

Test(resolve, a_destination_without_a_route_fails_at_once)
{
	EXPECT_SOURCE("10.64.0.9", "ENETUNREACH");
	run("ip route add unreachable 10.64.0.0/26");
	run("ip route add blackhole 10.64.0.64/26");
	run("ip route add prohibit 10.64.0.128/26");
	EXPECT_SOURCE("10.64.0.9", "EHOSTUNREACH");
	EXPECT_SOURCE("10.64.0.65", "EINVAL");
	EXPECT_SOURCE("10.64.0.129", "EACCES");
}

Test(resolve, an_ipv6_destination_without_a_route_fails_at_once)
{
	need_ipv6();
	run("ip address replace fd77::1/64 dev wire0 nodad");
	await_address("fd77::1");
	EXPECT_SOURCE("fd64::9", "ENETUNREACH");
	run("ip route add unreachable fd64:1::/64");
	run("ip route add blackhole fd64:2::/64");
	run("ip route add prohibit fd64:3::/64");
	EXPECT_SOURCE("fd64:1::9", "EHOSTUNREACH");
	EXPECT_SOURCE("fd64:2::9", "EINVAL");
	EXPECT_SOURCE("fd64:3::9", "EACCES");
}

/* Linux: no device of this program is there. But a route out of the engine's interface serves. */
Test(resolve, a_route_out_of_another_interface)
{
	run("ip link add other type veth peer name another");
	run("ip link set another up");
	run("ip link set other up");
	run("ip address add 10.63.0.1/24 dev other");
	EXPECT_SOURCE("10.63.0.9", "ENODEV");
	EXPECT_SOURCE("10.63.0.1", "ENODEV");
	run("ip route add 10.63.0.0/24 dev wire0 metric 100");
	EXPECT_SOURCE("10.63.0.9", "10.77.0.1");
	run("ip link delete other");
}

static uint8_t index_of(struct rdma_cm_id *id, const char *own)
{
	union ibv_gid gid;
	struct in_addr a;

	cr_assert_eq(inet_pton(AF_INET, own, &a), 1);
	for (uint8_t i = 1; ibv_query_gid(id->verbs, 1, i, &gid) == 0; i++)
		if (gid.raw[10] == 0xff && memcmp(gid.raw + 12, &a, sizeof(a)) == 0)
			return i;
	cr_assert_fail("the device has no GID of %s", own);
	return 0;
}

/* A handle for the path from an own address. */
static struct ibv_ah *make_handle(const char *own, const char *destination)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh = { .hop_limit = 64 } };
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	union any_address a;
	struct ibv_ah *ah;

	cr_assert_eq(rdma_bind_addr(id, at(&a, own)), 0, "%s", strerror(errno));
	cr_expect_eq(rdma_resolve_addr(id, NULL, at(&a, destination), 2000), 0, "from %s: %s", own,
		     strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	attr.grh.sgid_index = index_of(id, own);
	attr.grh.dgid.raw[10] = attr.grh.dgid.raw[11] = 0xff;
	memcpy(attr.grh.dgid.raw + 12, &a.four.sin_addr, 4);
	ah = ibv_create_ah(id->pd, &attr);
	cr_assert_not_null(ah, "from %s: %s", own, strerror(errno));
	return ah;
}

/* A rule for an own address, without another route, and one that leads elsewhere. */
Test(resolve, rules_for_the_source)
{
	run("ip address replace 10.77.0.7/24 dev wire0");
	run("ip neighbour replace 10.77.0.253 lladdr 02:00:00:00:00:fd dev wire0 nud permanent");
	run("ip neighbour replace 10.77.0.254 lladdr 02:00:00:00:00:fe dev wire0 nud permanent");
	run("ip route replace 10.62.0.0/24 via 10.77.0.253");
	run("ip route replace default via 10.77.0.254 table 100");
	run("ip rule add from 10.77.0.7 lookup 100");
	await_address("10.77.0.7");
	make_handle("10.77.0.7", "10.61.0.9");
	make_handle("10.77.0.1", "10.62.0.9");
	make_handle("10.77.0.7", "10.62.0.9");
	run("$UROCE stat --neighbours | grep -E '^10.61.0.9 +10.77.0.7 +02:00:00:00:00:fe'");
	run("$UROCE stat --neighbours | grep -E '^10.62.0.9 +10.77.0.1 +02:00:00:00:00:fd'");
	run("$UROCE stat --neighbours | grep -E '^10.62.0.9 +10.77.0.7 +02:00:00:00:00:fe'");
	run("ip rule del from 10.77.0.7 lookup 100");
}

/* An id that is not bound has the rules of the address that it would have. */
Test(resolve, a_rule_for_the_nearest_source)
{
	run("ip route replace default via 10.77.0.254 table 101");
	run("ip rule add from 10.77.0.1 lookup 101");
	EXPECT_SOURCE("10.60.0.9", "10.77.0.1");
	run("ip rule del from 10.77.0.1 lookup 101");
}
