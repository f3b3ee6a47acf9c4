/* SPDX-License-Identifier: BSD-3-Clause */
#include "forger.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig/engine_objects.h"

#define UNTOUCHED 0x5au /* octets of a victim */
#define NOBODY	  65534
#define FORGED	  0xf0u

static pid_t attacker;
static int orders[2], reports[2];

struct ibv_qp *forger_qp(struct endpoint *e, const struct order *o)
{
	struct ibv_qp_init_attr init = { .send_cq = e->cq,
					 .recv_cq = o->type == IBV_QPT_XRC_SEND ? NULL : e->cq,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 },
					 .qp_type = (enum ibv_qp_type)o->type };

	return ibv_create_qp(e->pd, &init);
}

int forger_aim(struct endpoint *e, struct ibv_qp *qp, const struct order *o, uint32_t psn,
	       struct report *r)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	bool rc = o->type != IBV_QPT_UC;
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
	if (o->sgid_index != 0)
		a.ah_attr.grh.sgid_index = o->sgid_index;
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

	wr.qp_type.xrc.remote_srqn = o->srqn;
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
	struct ibv_qp *qp = forger_qp(e, o);
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	*r = (struct report){ 0 };
	for (uint32_t i = 0; qp != NULL && i < shots; i++) {
		uint32_t psn = o->psn == DO_NOT_AIM ? arc4random() & 0xffffff : o->psn;

		if (forger_aim(e, qp, o, psn, r) != 0 || !shoot(e, qp, o, r) ||
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

void forger_begin(void)
{
	if (geteuid() != 0)
		cr_skip_test("it takes root to be another user");
	cr_assert_eq(pipe(orders), 0, "%m");
	cr_assert_eq(pipe(reports), 0, "%m");
	attacker = fork();
	cr_assert_geq(attacker, 0, "%m");
	if (attacker == 0)
		be_attacker();
	close(orders[0]);
	close(reports[1]);
}

void forger_end(void)
{
	int status;

	close(orders[1]);
	cr_assert_eq(waitpid(attacker, &status, 0), attacker);
	cr_assert_eq(status, 0, "the attacker ended with 0x%x", status);
}

void forger_begins_to(const struct order *o)
{
	cr_assert_eq(write(orders[1], o, sizeof(*o)), (ssize_t)sizeof(*o));
}

bool forger_has_reported(void)
{
	struct pollfd p = { .fd = reports[0], .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

struct report forger_reports(void)
{
	struct report r;

	cr_assert_eq(read(reports[0], &r, sizeof(r)), (ssize_t)sizeof(r), "the attacker ended");
	return r;
}

struct report forger_obeys(const struct order *o)
{
	forger_begins_to(o);
	return forger_reports();
}

uint64_t forger_counted(void)
{
	struct reply_statistics s;

	engine_statistics(&s);
	return s.by_reason[REASON_SENDER_FOREIGN];
}

bool forger_counts(uint64_t before)
{
	time_t end = time(NULL) + WAIT_SECONDS;

	while (forger_counted() <= before)
		if (time(NULL) > end)
			return false;
	return true;
}

uint64_t forger_refused(void)
{
	struct reply_statistics s;

	engine_statistics(&s);
	return s.by_reason[REASON_PEER_TAKEN];
}

void victim_begin(struct endpoint *victim)
{
	forger_begin(); /* before there are verbs objects that a child could share */
	endpoint_open(victim);
	memset(victim->buffer, UNTOUCHED, BUFFER);
}

void victim_end(struct endpoint *victim)
{
	forger_end();
	endpoint_close(victim);
}

void victim_untouched(struct endpoint *victim, const char *what)
{
	struct ibv_wc wc;

	cr_assert_eq(ibv_poll_cq(victim->cq, 1, &wc), 0, "%s: the victim completes something",
		     what);
	for (uint32_t i = 0; i < BUFFER; i++)
		cr_assert_eq(victim->buffer[i], UNTOUCHED, "%s: octet %u of the victim's is 0x%02x",
			     what, i, victim->buffer[i]);
}
