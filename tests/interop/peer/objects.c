/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, memory, queue pairs and their states. */
#include "peer.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static unsigned int new_number(unsigned int *n)
{
	if (*n == PEER_OBJECTS)
		errx(2, "more than %d objects", PEER_OBJECTS);
	return *n;
}

/* There is only one device. */
static void do_open(struct peer *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;
	uint16_t pkey;

	if (list == NULL || list[0] == NULL)
		errx(1, "no device");
	p->context = ibv_open_device(list[0]);
	p->pd = p->context == NULL ? NULL : ibv_alloc_pd(p->context);
	if (p->pd == NULL)
		err(1, "%s", ibv_get_device_name(list[0]));
	ibv_free_device_list(list);
	if (ibv_query_device(p->context, &p->device) != 0 ||
	    ibv_query_port(p->context, 1, &port) != 0 ||
	    ibv_query_gid(p->context, 1, (int)peer_number(p, "sgid"), &gid) != 0 ||
	    ibv_query_pkey(p->context, 1, 0, &pkey) != 0) {
		peer_result(p, "query", errno);
		return;
	}
	inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	peer_say(p, "ok gid=%s mtu=%d pkey=%#x rd=%d init_rd=%d", text, 128 << port.active_mtu,
		 ntohs(pkey), p->device.max_qp_rd_atom, p->device.max_qp_init_rd_atom);
}

static void do_mr(struct peer *p)
{
	unsigned int n = new_number(&p->n_mrs);
	struct peer_mr *m = &p->mrs[n];

	m->length = peer_number(p, "len");
	m->memory =
		mmap(NULL, m->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (m->memory == MAP_FAILED)
		err(1, "mmap");
	m->mr = ibv_reg_mr(p->pd, m->memory, m->length, (int)peer_number(p, "access"));
	if (m->mr == NULL) {
		peer_result(p, "ibv_reg_mr", errno);
		return;
	}
	p->n_mrs++;
	peer_say(p, "ok mr=%u addr=%#jx rkey=%#x", n, (uintmax_t)(uintptr_t)m->memory, m->mr->rkey);
}

static void do_mw(struct peer *p)
{
	unsigned int n = new_number(&p->n_mws);

	p->mws[n] =
		ibv_alloc_mw(p->pd, peer_number(p, "type") == 1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);
	if (p->mws[n] == NULL) {
		peer_result(p, "ibv_alloc_mw", errno);
		return;
	}
	p->n_mws++;
	peer_say(p, "ok mw=%u", n);
}

static enum ibv_qp_type service(struct peer *p)
{
	const char *type = peer_text(p, "type", "rc");

	return strcmp(type, "rc") == 0	 ? IBV_QPT_RC
	       : strcmp(type, "uc") == 0 ? IBV_QPT_UC
					 : IBV_QPT_UD;
}

static void do_qp(struct peer *p)
{
	unsigned int n = new_number(&p->n_qps);
	struct peer_qp *q = &p->qps[n];
	struct ibv_qp_init_attr a = { .qp_type = service(p), .sq_sig_all = 0 };

	a.cap.max_send_wr = (uint32_t)peer_number_or(p, "send", 64);
	a.cap.max_recv_wr = (uint32_t)peer_number_or(p, "recv", 64);
	a.cap.max_send_sge = a.cap.max_recv_sge = 1;
	q->send = ibv_create_cq(p->context, 256, NULL, NULL, 0);
	q->recv = ibv_create_cq(p->context, 256, NULL, NULL, 0);
	a.send_cq = q->send;
	a.recv_cq = q->recv;
	q->qp = q->send == NULL || q->recv == NULL ? NULL : ibv_create_qp(p->pd, &a);
	if (q->qp == NULL) {
		peer_result(p, "ibv_create_qp", errno);
		return;
	}
	p->n_qps++;
	peer_say(p, "ok qp=%u qpn=%#x", n, q->qp->qp_num);
}

static void do_init(struct peer *p)
{
	struct peer_qp *q = peer_qp(p);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qkey = (uint32_t)peer_number_or(p, "qkey", 0),
				 .qp_access_flags = (unsigned int)peer_number_or(p, "access", 0) };
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= q->qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	peer_result(p, "INIT", ibv_modify_qp(q->qp, &a, mask));
}

static struct ibv_ah_attr address(struct peer *p)
{
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };

	peer_gid(p, &ah.grh.dgid);
	ah.grh.hop_limit = 64;
	ah.grh.sgid_index = (uint8_t)peer_number(p, "sgid");
	return ah;
}

static enum ibv_mtu mtu_code(uint64_t octets)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 128u << mtu < octets)
		mtu++;
	return mtu;
}

static void do_rtr(struct peer *p)
{
	struct peer_qp *q = peer_qp(p);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR };
	int mask = IBV_QP_STATE;

	if (q->qp->qp_type != IBV_QPT_UD) {
		a.ah_attr = address(p);
		a.path_mtu = mtu_code(peer_number_or(p, "mtu", 1024));
		a.dest_qp_num = (uint32_t)peer_number(p, "dqpn");
		a.rq_psn = (uint32_t)peer_number_or(p, "psn", 0);
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	}
	if (q->qp->qp_type == IBV_QPT_RC) {
		a.max_dest_rd_atomic = (uint8_t)peer_number_or(p, "rd", 16);
		a.min_rnr_timer = (uint8_t)peer_number_or(p, "timer", 12);
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	}
	peer_result(p, "RTR", ibv_modify_qp(q->qp, &a, mask));
}

static void do_rts(struct peer *p)
{
	struct peer_qp *q = peer_qp(p);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTS,
				 .sq_psn = (uint32_t)peer_number_or(p, "psn", 0) };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (q->qp->qp_type == IBV_QPT_RC) {
		a.timeout = (uint8_t)peer_number_or(p, "timeout", 17);
		a.retry_cnt = (uint8_t)peer_number_or(p, "retry", 6);
		a.rnr_retry = (uint8_t)peer_number_or(p, "rnr", 7);
		a.max_rd_atomic = (uint8_t)peer_number_or(p, "rd", 16);
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	}
	peer_result(p, "RTS", ibv_modify_qp(q->qp, &a, mask));
}

static void do_error(struct peer *p)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };

	peer_result(p, "ERR", ibv_modify_qp(peer_qp(p)->qp, &a, IBV_QP_STATE));
}

static void do_state(struct peer *p)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int error = ibv_query_qp(peer_qp(p)->qp, &a, IBV_QP_STATE, &init);

	peer_result(p, "ibv_query_qp", error);
	if (error == 0)
		peer_say(p, " state=%d qpn=%#x", a.qp_state, peer_qp(p)->qp->qp_num);
}

static void do_ah(struct peer *p)
{
	unsigned int n = new_number(&p->n_ahs);
	struct ibv_ah_attr a = address(p);

	p->ahs[n] = ibv_create_ah(p->pd, &a);
	if (p->ahs[n] == NULL) {
		peer_result(p, "ibv_create_ah", errno);
		return;
	}
	p->n_ahs++;
	peer_say(p, "ok ah=%u", n);
}

const struct peer_command peer_object_commands[] = {
	{ "open", do_open }, { "mr", do_mr },	    { "mw", do_mw },   { "qp", do_qp },
	{ "init", do_init }, { "rtr", do_rtr },	    { "rts", do_rts }, { "error", do_error },
	{ "ah", do_ah },     { "state", do_state }, { NULL, NULL },
};
