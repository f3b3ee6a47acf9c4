/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile H-54 across a port: root's connection goes from the engine at $UROCE_SOCKET to another
 * one, on memif. A process of nobody, at either engine, knows the numbers, the PSN and a key, and
 * has the same source address as the victim.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "far_peer.h"
#include "forger.h"
#include "rig/starved.h"

#define FIRST_PSN 0xfffffeu /* of the victims, as endpoint_connect_far has it */
#define STALL	  0.1 /* s of the engines' own */
#define ROUNDS	  20 /* beside an attack */

static struct endpoint near;
static struct ibv_qp *victim; /* the near half of the connection */
static struct far_peer far;
static struct starved starved;

TestSuite(forge_far, .timeout = 120);

static void connect_pair(void)
{
	endpoint_open(&near);
	victim = endpoint_create_qp(&near);
	cr_assert_not_null(victim, "%m");
	cr_assert_eq(endpoint_connect_far(victim, &far.gid, far.qpn), 0);
	far_peer_connect(&near.gid, victim->qp_num);
}

/* The attacker is at the engine of this socket. */
static void begin_at(const char *attacked)
{
	char *own = strdup(getenv("UROCE_SOCKET"));

	setenv("UROCE_SOCKET", attacked, 1);
	forger_begin(); /* before there are verbs objects that a child could share */
	setenv("UROCE_SOCKET", own, 1);
	free(own);
	far_peer_begin(&far);
	connect_pair();
	starved_open(&starved);
}

static void end(void)
{
	starved_close(&starved);
	far_peer_end(); /* before the next: it has the pipe to the attacker, too */
	forger_end();
	cr_assert_eq(ibv_destroy_qp(victim), 0);
	endpoint_close(&near);
}

/* One message of the connection itself. Returns how long it took to be acknowledged. */
static double send_one(uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)near.buffer, FAR_MESSAGE, near.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	double took;

	memset(near.buffer, value, FAR_MESSAGE);
	took = starved_request(&starved, victim, near.cq, &wr, &wc);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "the victims' own SEND: %s",
		     ibv_wc_status_str(wc.status));
	far_peer_receives(value);
	return took;
}

/* Neither half of the connection has seen anything. */
static struct far_news expect_untouched(const char *what)
{
	struct far_news n = far_peer_look();
	struct ibv_wc wc;

	cr_assert_eq(ibv_poll_cq(near.cq, 1, &wc), 0, "%s: the near half completes something",
		     what);
	cr_assert_eq(n.completions, 0, "%s: the far half completes something", what);
	cr_assert_eq(n.changed, 0, "%s: %u octets of the far half are not its own", what,
		     n.changed);
	cr_assert_eq(n.state, IBV_QPS_RTS, "%s: the connection is broken", what);
	return n;
}

static uint8_t index_of(const union ibv_gid *wanted)
{
	union ibv_gid gid;

	for (uint8_t i = 0; i < 16; i++)
		if (ibv_query_gid(near.context, 1, i, &gid) == 0 &&
		    memcmp(&gid, wanted, sizeof(gid)) == 0)
			return i;
	cr_assert_fail("the near engine does not have the address");
	return 0;
}

static union ibv_gid ipv4(uint8_t last)
{
	return (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 10, 7, 0, last } };
}

static union ibv_gid ipv6(uint8_t last)
{
	return (union ibv_gid){ .raw = { [0] = 0xfd, [1] = 7, [15] = last } };
}

static const struct {
	const char *name;
	uint32_t type, opcode;
} forged[] = {
	{ "SEND", IBV_QPT_RC, IBV_WR_SEND },
	{ "SEND with immediate", IBV_QPT_RC, IBV_WR_SEND_WITH_IMM },
	{ "WRITE", IBV_QPT_RC, IBV_WR_RDMA_WRITE },
	{ "WRITE with immediate", IBV_QPT_RC, IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "READ", IBV_QPT_RC, IBV_WR_RDMA_READ },
	{ "atomic", IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "SEND of UC", IBV_QPT_UC, IBV_WR_SEND },
	{ "WRITE of UC", IBV_QPT_UC, IBV_WR_RDMA_WRITE },
	{ "SEND of XRC", IBV_QPT_XRC_SEND, IBV_WR_SEND },
};

static struct order towards_far(uint32_t row, uint32_t psn)
{
	return (struct order){ .qpn = far.qpn,
			       .psn = psn,
			       .type = forged[row].type,
			       .opcode = forged[row].opcode,
			       .address = far.address,
			       .rkey = far.rkey,
			       .gid = far.gid };
}

/* hostile H-54: its packets would look like the victim's own, so it does not get to send any. */
Test(forge_far, a_stranger_beside_the_sender)
{
	const union ibv_gid other = ipv4(3);

	begin_at(getenv("UROCE_SOCKET"));
	send_one(1);
	for (uint32_t i = 0; i < ARRAY_SIZE(forged); i++) {
		struct order o = towards_far(i, FIRST_PSN + 1);
		uint64_t before = forger_refused();

		cr_assert_eq(forger_obeys(&o).refused, EADDRINUSE, "%s", forged[i].name);
		o.sgid_index = index_of(&other);
		cr_assert_eq(forger_obeys(&o).refused, EADDRINUSE,
			     "%s from another of its addresses", forged[i].name);
		cr_expect_eq(forger_refused(), before + 2, "%s: it is not counted", forged[i].name);
		expect_untouched(forged[i].name);
	}
	send_one(2);
	end();
}

/*
 * hostile H-54: the far engine's other addresses are other peers, which anybody may connect to. But
 * the victim there expects packets to the address that it was connected with.
 */
Test(forge_far, a_stranger_beside_the_sender_takes_another_address)
{
	const union ibv_gid to[] = { ipv4(4), ipv6(2) }, own = ipv6(1);

	begin_at(getenv("UROCE_SOCKET"));
	for (uint32_t a = 0; a < ARRAY_SIZE(to); a++)
		for (uint32_t i = 0; forged[i].type == IBV_QPT_RC; i++) {
			struct order o = towards_far(i, FIRST_PSN);
			uint64_t before = expect_untouched("nothing yet").address_mismatch;
			struct report r;

			o.gid = to[a];
			o.sgid_index = a == 0 ? GID_INDEX : index_of(&own);
			r = forger_obeys(&o);
			cr_assert_eq(r.sent, 1, "%s: it was not sent: %d", forged[i].name,
				     r.refused);
			cr_assert_eq(r.status, IBV_WC_RETRY_EXC_ERR, "%s: %s", forged[i].name,
				     ibv_wc_status_str(r.status));
			cr_expect_gt(expect_untouched(forged[i].name).address_mismatch, before,
				     "%s: it is not counted", forged[i].name);
		}
	send_one(3);
	end();
}

/* hostile H-54: at the engine of the far half, to that half and to the near one. */
Test(forge_far, a_stranger_beside_the_receiver)
{
	begin_at(getenv("UROCE_PEER_SOCKET"));
	send_one(4);
	for (uint32_t i = 0; forged[i].type == IBV_QPT_RC; i++) {
		struct order o = towards_far(i, FIRST_PSN + 1);
		struct far_news before = expect_untouched("nothing yet"), after;
		struct report r = forger_obeys(&o);

		cr_assert_eq(r.sent, 1, "%s: it was not sent: %d", forged[i].name, r.refused);
		cr_assert_eq(r.status, IBV_WC_RETRY_EXC_ERR, "%s: %s", forged[i].name,
			     ibv_wc_status_str(r.status));
		after = expect_untouched(forged[i].name);
		cr_expect_gt(after.address_mismatch + after.sender_foreign,
			     before.address_mismatch + before.sender_foreign,
			     "%s: it is not counted", forged[i].name);
		o.gid = near.gid;
		o.qpn = victim->qp_num;
		o.address = (uintptr_t)near.buffer;
		o.rkey = near.mr->rkey;
		cr_assert_eq(forger_obeys(&o).refused, EADDRINUSE, "%s", forged[i].name);
		cr_expect_eq(expect_untouched(forged[i].name).peer_taken, before.peer_taken + 1,
			     "%s: it is not counted", forged[i].name);
	}
	send_one(5);
	end();
}

/*
 * The longest that one of as many messages takes as there are kinds of attack, one beside each; and a
 * command.
 */
static double attacked_round(double *command)
{
	static uint32_t sent;
	double slowest = 0;

	for (uint32_t i = 0; i < 2 * ARRAY_SIZE(forged); i++) {
		struct order o = towards_far(i / 2, (FIRST_PSN + ++sent) & 0xffffff);
		double took;

		if (i % 2 == 0)
			o.gid = ipv4(4);
		forger_begins_to(&o);
		took = send_one((uint8_t)sent);
		slowest = took > slowest ? took : slowest;
		took = starved_commands(&starved, near.context);
		*command = took > *command ? took : *command;
		cr_assert_eq(forger_reports().refused, i % 2 == 0 ? 0 : EADDRINUSE);
	}
	return slowest;
}

/* hostile H-54: it tries again and again while the connection works. */
Test(forge_far, traffic_during_an_attack)
{
	double data = 0, command = 0;

	begin_at(getenv("UROCE_SOCKET"));
	send_one(0);
	for (int i = 0; i < ROUNDS; i++) {
		double took = attacked_round(&command);

		data = took > data ? took : data;
	}
	expect_untouched("the last one");
	cr_log_info("the longest message took %.3f s, the longest command %.3f s", data, command);
	cr_expect_leq(data, STALL, "a message took %.3f s", data);
	cr_expect_leq(command, ENDPOINT_COMMAND_S, "a command took %.3f s", command);
	end();
}
