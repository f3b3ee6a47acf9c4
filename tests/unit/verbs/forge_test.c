/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostile H-54: another user of the same engine knows the number of a queue pair, the PSN that it
 * expects and a key, connects a queue pair of its own to it, and sends. The victim is a pair of
 * root in the test's own process; the attacker is a process of the user nobody.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "engine_objects.h"

#define NOBODY	   65534
#define FIRST_PSN  0xfffffeu /* of the victims, as endpoint_connect has it */
#define ROUNDS	   200u /* of the victims' own traffic */
#define GUESSES	   150u /* of PSNs */
#define STALL	   0.1 /* s, that nine rounds of ten stay below */
#define HALF	   (BUFFER / 2)
#define UNTOUCHED  0x5au
#define FORGED	   0xf0u
#define DO_NOT_AIM UINT32_MAX

/* Orders to the attacker, and its answers. */
struct order {
	uint32_t qpn;
	uint32_t psn; /* of its first packet; DO_NOT_AIM: it guesses */
	uint32_t type; /* enum ibv_qp_type */
	uint32_t opcode; /* enum ibv_wr_opcode */
	uint64_t address;
	uint32_t rkey;
	union ibv_gid gid; /* all zero: the engine's own */
};

struct report {
	uint32_t status; /* enum ibv_wc_status of the last request */
	uint32_t sent;
	int refused; /* errno of ibv_modify_qp */
};

static struct endpoint victim;
static pid_t attacker;
static int orders[2], reports[2];

/* ---- the attacker ---- */

static struct ibv_qp *make_qp(struct endpoint *e, const struct order *o)
{
	struct ibv_qp_init_attr init = { .send_cq = e->cq,
					 .recv_cq = e->cq,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .qp_type = (enum ibv_qp_type)o->type };

	return ibv_create_qp(e->pd, &init);
}

static int aim(struct endpoint *e, struct ibv_qp *qp, const struct order *o, uint32_t psn,
	       struct report *r)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	bool rc = o->type == IBV_QPT_RC;
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return 1;
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = o->qpn;
	a.max_dest_rd_atomic = 1;
	a.ah_attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = e->gid, .sgid_index = GID_INDEX, .hop_limit = 64 }
	};
	if (rc)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	if (o->gid.global.interface_id != 0)
		a.ah_attr.grh.dgid = o->gid;
	r->refused = ibv_modify_qp(qp, &a, mask);
	if (r->refused != 0)
		return 2;
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = psn;
	a.timeout = 10; /* 4 ms */
	a.retry_cnt = 1;
	a.rnr_retry = 1;
	a.max_rd_atomic = 1;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (rc)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	return ibv_modify_qp(qp, &a, mask) ? 3 : 0;
}

static bool shoot(struct endpoint *e, struct ibv_qp *qp, const struct order *o, struct report *r)
{
	uint32_t octets = o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 64;
	struct ibv_sge sge = { (uintptr_t)e->buffer, octets, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = (enum ibv_wr_opcode)o->opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	if (o->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = o->address;
		wr.wr.atomic.rkey = o->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = o->address;
		wr.wr.rdma.rkey = o->rkey;
	}
	if (ibv_post_send(qp, &wr, &bad))
		return false;
	poll_completions(e->cq, &wc, 1, "a forged request");
	r->status = wc.status;
	r->sent++;
	return true;
}

static void attack(struct endpoint *e, const struct order *o, struct report *r)
{
	uint32_t shots = o->psn == DO_NOT_AIM ? GUESSES : 1;
	struct ibv_qp *qp = make_qp(e, o);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	*r = (struct report){ 0 };
	for (uint32_t i = 0; qp != NULL && i < shots; i++) {
		uint32_t psn = o->psn == DO_NOT_AIM ? arc4random() & 0xffffff : o->psn;

		if (aim(e, qp, o, psn, r) != 0 || !shoot(e, qp, o, r) ||
		    ibv_modify_qp(qp, &reset, IBV_QP_STATE))
			break;
	}
	if (qp != NULL)
		ibv_destroy_qp(qp);
}

static _Noreturn void be_attacker(void)
{
	struct endpoint e;
	struct report r;
	struct order o;

	close(orders[1]);
	close(reports[0]);
	if (setresgid(NOBODY, NOBODY, NOBODY) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1); /* changing the user resets it */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	endpoint_open(&e);
	memset(e.buffer, FORGED, BUFFER);
	while (read(orders[0], &o, sizeof(o)) == sizeof(o)) {
		attack(&e, &o, &r);
		if (write(reports[1], &r, sizeof(r)) != sizeof(r))
			_exit(3);
	}
	endpoint_close(&e);
	_exit(0);
}

/* ---- the victims ---- */

static void begin(void)
{
	if (geteuid() != 0)
		cr_skip_test("it takes root to be another user");
	cr_assert_eq(pipe(orders), 0, "%m");
	cr_assert_eq(pipe(reports), 0, "%m");
	attacker = fork(); /* before there are verbs objects that a child could share */
	cr_assert_geq(attacker, 0, "%m");
	if (attacker == 0)
		be_attacker();
	close(orders[0]);
	close(reports[1]);
	endpoint_open(&victim);
	memset(victim.buffer, UNTOUCHED, BUFFER);
}

static void end(void)
{
	int status;

	close(orders[1]);
	cr_assert_eq(waitpid(attacker, &status, 0), attacker);
	cr_assert_eq(status, 0, "the attacker ended with 0x%x", status);
	endpoint_close(&victim);
}

TestSuite(forge, .timeout = 120);

static struct report order(const struct order *o)
{
	struct report r;

	cr_assert_eq(write(orders[1], o, sizeof(*o)), (ssize_t)sizeof(*o));
	cr_assert_eq(read(reports[0], &r, sizeof(r)), (ssize_t)sizeof(r), "the attacker ended");
	return r;
}

static void post_receive(struct ibv_qp *qp)
{
	struct ibv_sge sge = { (uintptr_t)victim.buffer + HALF, 64, victim.mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1, .wr_id = 7 }, *bad;

	cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0);
}

static void expect_untouched(const char *what)
{
	struct ibv_wc wc;

	cr_assert_eq(ibv_poll_cq(victim.cq, 1, &wc), 0, "%s: the victim completes something", what);
	for (uint32_t i = 0; i < BUFFER; i++)
		cr_assert_eq(victim.buffer[i], UNTOUCHED, "%s: octet %u of the victim's is 0x%02x",
			     what, i, victim.buffer[i]);
}

static uint64_t refused(void)
{
	struct reply_statistics s;

	engine_statistics(&s);
	return s.by_reason[REASON_SENDER_FOREIGN];
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* One SEND of the pair itself: the posted receive gets it, octet by octet. */
static void send_one(uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)victim.buffer, 64, victim.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc[2];

	memset(victim.buffer, value, 64);
	cr_assert_eq(ibv_post_send(victim.qp[0], &wr, &bad), 0);
	poll_completions(victim.cq, wc, 2, "the victims' own SEND");
	for (int i = 0; i < 2; i++)
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
	cr_assert_eq(memcmp(victim.buffer, victim.buffer + HALF, 64), 0);
}

/* The pair goes on undisturbed. On a busy machine some rounds may take longer. */
static void expect_traffic(void)
{
	uint32_t slow = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		double start = seconds();

		send_one((uint8_t)i);
		slow += seconds() - start > STALL;
		post_receive(victim.qp[1]);
	}
	cr_assert_lt(slow, ROUNDS / 10, "%u of %u rounds took longer than %.1f s", slow, ROUNDS,
		     STALL);
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
	begin();
	post_receive(victim.qp[1]);
	for (uint32_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		const struct order o = { .qpn = victim.qp[1]->qp_num,
					 .psn = FIRST_PSN,
					 .type = forged[i].type,
					 .opcode = forged[i].opcode,
					 .address = (uintptr_t)victim.buffer,
					 .rkey = victim.mr->rkey };
		uint64_t before = refused();
		struct report r = order(&o);

		cr_assert_eq(r.sent, 1, "%s: it was not sent", forged[i].name);
		expect_untouched(forged[i].name);
		if (o.type != IBV_QPT_RC)
			continue;
		cr_assert_eq(r.status, IBV_WC_RETRY_EXC_ERR, "%s: %s", forged[i].name,
			     ibv_wc_status_str(r.status));
		cr_assert_gt(refused(), before, "%s: it is not counted", forged[i].name);
	}
	expect_traffic();
	end();
}

/* hostile H-54: the same with any PSN. */
Test(forge, a_strangers_packets_with_guessed_psns)
{
	struct order o = { .psn = DO_NOT_AIM, .type = IBV_QPT_RC, .opcode = IBV_WR_SEND };
	uint64_t before;

	begin();
	o.qpn = victim.qp[1]->qp_num;
	before = refused();
	post_receive(victim.qp[1]);
	cr_assert_eq(order(&o).sent, GUESSES);
	expect_untouched("guesses");
	cr_assert_geq(refused() - before, GUESSES);
	expect_traffic();
	end();
}

/* hostile H-54: the attacker goes on while the pair works. */
Test(forge, traffic_during_an_attack)
{
	struct order o = { .psn = DO_NOT_AIM, .type = IBV_QPT_RC, .opcode = IBV_WR_RDMA_WRITE };
	struct report r;

	begin();
	o.qpn = victim.qp[1]->qp_num;
	o.address = (uintptr_t)victim.buffer + HALF;
	o.rkey = victim.mr->rkey;
	post_receive(victim.qp[1]);
	cr_assert_eq(write(orders[1], &o, sizeof(o)), (ssize_t)sizeof(o));
	expect_traffic();
	cr_assert_eq(read(reports[0], &r, sizeof(r)), (ssize_t)sizeof(r));
	cr_assert_eq(r.sent, GUESSES);
	end();
}

/* ---- queue pairs elsewhere ---- */

static int aim_victim(struct ibv_qp *qp, const struct order *o)
{
	struct report r = { 0 };

	aim(&victim, qp, o, 0, &r);
	return r.refused;
}

static uint64_t taken(void)
{
	struct reply_statistics s;

	engine_statistics(&s);
	return s.by_reason[REASON_PEER_TAKEN];
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

	begin();
	o.gid = victim.gid;
	o.gid.raw[15] = 99; /* of nobody */
	for (int i = 0; i < 2; i++) {
		own[i] = make_qp(&victim, &o);
		cr_assert_eq(aim_victim(own[i], &o), 0, "a user's queue pairs may share a peer");
	}
	before = taken();
	cr_assert_eq(order(&o).refused, EADDRINUSE);
	cr_assert_eq(taken(), before + 1);
	o.qpn++;
	cr_assert_eq(order(&o).refused, 0, "another queue pair of that address");
	o.qpn--;
	cr_assert_eq(ibv_modify_qp(own[0], &reset, IBV_QP_STATE), 0);
	cr_assert_eq(order(&o).refused, EADDRINUSE, "one of two is left");
	cr_assert_eq(ibv_modify_qp(own[1], &error, IBV_QP_STATE), 0);
	cr_assert_eq(order(&o).refused, 0, "the one that is left is over");
	cr_assert_eq(aim_victim(own[0], &o), 0, "nobody's is reset");
	cr_assert_eq(ibv_destroy_qp(own[0]), 0);
	cr_assert_eq(ibv_destroy_qp(own[1]), 0);
	cr_assert_eq(order(&o).refused, 0, "destroyed");
	end();
}
