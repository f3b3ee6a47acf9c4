/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile H-54: another user of the same engine knows the number of a queue pair, the PSN that it
 * expects and a key, connects a queue pair of its own to it, and sends. The victim is a pair of
 * root's in the test's own process; the attacker is a process of nobody.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "forger.h"
#include "rig/starved.h"

#define FIRST_PSN 0xfffffeu /* of the victims, as endpoint_connect has it */
#define ROUNDS	  200u /* of the victims' own traffic */
#define STALL	  0.1 /* s of the engine's own */
#define HALF	  (BUFFER / 2)

static struct endpoint victim;

/* ---- the victims ---- */

TestSuite(forge, .timeout = 120);

static void post_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)victim.buffer + HALF, 64, victim.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1, .wr_id = 7 }, *bad;

	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

/* One SEND of the pair itself: the posted receive gets it, octet by octet. How many seconds it took. */
static double send_one(struct starved *s, uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)victim.buffer, 64, victim.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc[2];
	double took;

	memset(victim.buffer, value, 64);
	starved_begin(s);
	cr_assert_eq(ibv_post_send(victim.qp[0], &wr, &bad), 0);
	cr_assert(starved_poll(s, victim.cq, wc, 2, &took), "the victims' own SEND does not end");
	for (int i = 0; i < 2; i++)
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
	cr_assert_eq(memcmp(victim.buffer, victim.buffer + HALF, 64), 0);
	return took;
}

static bool is_over(void)
{
	return true;
}

/* The pair goes on undisturbed, for some rounds and until the attack is over. */
static void expect_traffic(bool (*attack_is_over)(void))
{
	double end = starved_now() + WAIT_SECONDS;
	double data = 0, command = 0;
	struct starved s;

	starved_open(&s);
	for (uint32_t i = 0; i < ROUNDS || !attack_is_over(); i++) {
		double took = send_one(&s, (uint8_t)i);

		data = took > data ? took : data;
		took = starved_commands(&s, victim.context);
		command = took > command ? took : command;
		post_receive(victim.qp[1]);
		cr_assert_lt(starved_now(), end, "the attack does not end");
	}
	starved_close(&s);
	cr_log_info("the longest round took %.3f s, the longest command %.3f s", data, command);
	cr_assert_leq(command, ENDPOINT_COMMAND_S, "a command took %.3f s", command);
	cr_assert_leq(data, STALL, "a round took %.3f s", data);
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
	/* of a service other than the victim's */
	{ "SEND of UC", IBV_QPT_UC, IBV_WR_SEND },
};

/*
 * hostile H-54, H-53: whatever it sends with the right number, PSN and key changes nothing.
 * hostile H-44: forged NAKs.
 */
Test(forge, a_strangers_packets_with_the_right_psn)
{
	victim_begin(&victim);
	post_receive(victim.qp[1]);
	for (uint32_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		const struct order o = { .qpn = victim.qp[1]->qp_num,
					 .psn = FIRST_PSN,
					 .type = forged[i].type,
					 .opcode = forged[i].opcode,
					 .address = (uintptr_t)victim.buffer,
					 .rkey = victim.mr->rkey };
		uint64_t before = forger_counted();
		struct report r = forger_obeys(&o);

		cr_assert_eq(r.sent, 1, "%s: it was not sent", forged[i].name);
		/* The attacker may give up before the victim's lcore looks at its packets. */
		if (o.type == IBV_QPT_RC)
			cr_assert(forger_counts(before), "%s: it is not counted", forged[i].name);
		victim_untouched(&victim, forged[i].name);
		if (o.type == IBV_QPT_RC)
			cr_assert_eq(r.status, IBV_WC_RETRY_EXC_ERR, "%s: %s", forged[i].name,
				     ibv_wc_status_str(r.status));
	}
	expect_traffic(is_over);
	victim_end(&victim);
}

/* hostile H-54: the same with any PSN. */
Test(forge, a_strangers_packets_with_guessed_psns)
{
	struct order o = { .psn = DO_NOT_AIM, .type = IBV_QPT_RC, .opcode = IBV_WR_SEND };
	uint64_t before;

	victim_begin(&victim);
	o.qpn = victim.qp[1]->qp_num;
	before = forger_counted();
	post_receive(victim.qp[1]);
	cr_assert_eq(forger_obeys(&o).sent, GUESSES);
	cr_assert(forger_counts(before + GUESSES - 1));
	victim_untouched(&victim, "guesses");
	expect_traffic(is_over);
	victim_end(&victim);
}

/* hostile H-54: the attacker goes on while the pair works. */
Test(forge, traffic_during_an_attack)
{
	struct order o = { .psn = DO_NOT_AIM, .type = IBV_QPT_RC, .opcode = IBV_WR_RDMA_WRITE };
	struct report r;

	victim_begin(&victim);
	o.qpn = victim.qp[1]->qp_num;
	o.address = (uintptr_t)victim.buffer + HALF;
	o.rkey = victim.mr->rkey;
	post_receive(victim.qp[1]);
	forger_begins_to(&o);
	expect_traffic(forger_has_reported);
	r = forger_reports();
	cr_assert_eq(r.sent, GUESSES);
	victim_end(&victim);
}

/* ---- queue pairs elsewhere ---- */

static int aim_victim(struct ibv_qp *qp, const struct order *o)
{
	struct report r = { 0 };

	forger_aim(&victim, qp, o, 0, &r);
	return r.refused;
}

/*
 * hostile H-54: a peer behind the port cannot tell two queue pairs of our address apart. The queue
 * pair there belongs to the user whose queue pair was connected to it first, as long as it is.
 */
Test(forge, a_remote_queue_pair_belongs_to_one_user)
{
	struct order o = { .qpn = 0x123456, .type = IBV_QPT_RC, .opcode = IBV_WR_SEND };
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *own[2];
	uint64_t before;

	victim_begin(&victim);
	o.gid = victim.gid;
	o.gid.raw[15] = 99; /* of nobody */
	for (int i = 0; i < 2; i++) {
		own[i] = forger_qp(&victim, &o);
		cr_assert_eq(aim_victim(own[i], &o), 0, "a user's queue pairs may share a peer");
	}
	before = forger_refused();
	cr_assert_eq(forger_obeys(&o).refused, EADDRINUSE);
	cr_assert_eq(forger_refused(), before + 1);
	o.qpn++;
	cr_assert_eq(forger_obeys(&o).refused, 0, "another queue pair of that address");
	o.qpn--;
	cr_assert_eq(ibv_modify_qp(own[0], &reset, IBV_QP_STATE), 0);
	cr_assert_eq(forger_obeys(&o).refused, EADDRINUSE, "one of two is left");
	cr_assert_eq(ibv_modify_qp(own[1], &error, IBV_QP_STATE), 0);
	cr_assert_eq(forger_obeys(&o).refused, 0, "the one that is left is over");
	cr_assert_eq(aim_victim(own[0], &o), 0, "nobody's is reset");
	cr_assert_eq(ibv_destroy_qp(own[0]), 0);
	cr_assert_eq(ibv_destroy_qp(own[1]), 0);
	cr_assert_eq(forger_obeys(&o).refused, 0, "destroyed");
	victim_end(&victim);
}
