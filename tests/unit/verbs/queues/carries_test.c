/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of ibv_post_send(3): operations that a transport carries succeed; all others fail at
 * once with EINVAL and bad_wr, whether posted or made by the extended calls. Each queue pair is its
 * own peer. Runs with an engine at $UROCE_SOCKET; as root also with raw packets.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/inner_packet.h"
#include "rig/ud.h"

#define RC  (1u << IBV_QPT_RC)
#define UC  (1u << IBV_QPT_UC)
#define UD  (1u << IBV_QPT_UD)
#define XRC (1u << IBV_QPT_XRC_SEND)
#define RAW (1u << IBV_QPT_RAW_PACKET)

#define RECEIVES 8
#define TSO_MSS	 64u
#define BEHIND	 16384u /* offset of messages and WRITEs in the buffer */

/*
 * The rows of the table, and two that no transport has, in an order that lets each use a valid key.
 */
static const struct row {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t transports;
	enum ibv_wc_opcode done;
	bool receives; /* the peer's receive request completes */
	uint64_t send_op;
} rows[] = {
	{ "SEND", IBV_WR_SEND, UD | UC | RC | XRC | RAW, IBV_WC_SEND, true, IBV_QP_EX_WITH_SEND },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM, UD | UC | RC | XRC, IBV_WC_SEND, true,
	  IBV_QP_EX_WITH_SEND_WITH_IMM },
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE, UC | RC | XRC, IBV_WC_RDMA_WRITE, false,
	  IBV_QP_EX_WITH_RDMA_WRITE },
	{ "RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, UC | RC | XRC, IBV_WC_RDMA_WRITE, true,
	  IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM },
	{ "RDMA_READ", IBV_WR_RDMA_READ, RC | XRC, IBV_WC_RDMA_READ, false,
	  IBV_QP_EX_WITH_RDMA_READ },
	{ "ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP, RC | XRC, IBV_WC_COMP_SWAP, false,
	  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP },
	{ "ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, RC | XRC, IBV_WC_FETCH_ADD, false,
	  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD },
	{ "BIND_MW", IBV_WR_BIND_MW, UC | RC | XRC, IBV_WC_BIND_MW, false, IBV_QP_EX_WITH_BIND_MW },
	{ "LOCAL_INV", IBV_WR_LOCAL_INV, UC | RC | XRC, IBV_WC_LOCAL_INV, false,
	  IBV_QP_EX_WITH_LOCAL_INV },
	{ "BIND_MW again", IBV_WR_BIND_MW, UC | RC | XRC, IBV_WC_BIND_MW, false,
	  IBV_QP_EX_WITH_BIND_MW },
	{ "SEND_WITH_INV", IBV_WR_SEND_WITH_INV, UC | RC | XRC, IBV_WC_SEND, true,
	  IBV_QP_EX_WITH_SEND_WITH_INV },
	{ "TSO", IBV_WR_TSO, UD | RAW, IBV_WC_TSO, false, IBV_QP_EX_WITH_TSO },
	{ "ATOMIC_WRITE", IBV_WR_ATOMIC_WRITE, RC, IBV_WC_ATOMIC_WRITE, false,
	  IBV_QP_EX_WITH_ATOMIC_WRITE },
	{ "DRIVER1", IBV_WR_DRIVER1, 0, 0, false, 0 },
	{ "an opcode behind the last", (enum ibv_wr_opcode)16, 0, 0, false, 0 },
	{ "no opcode", (enum ibv_wr_opcode) - 1, 0, 0, false, 0 },
};

static const struct {
	const char *name;
	enum ibv_qp_type type;
} transports[] = {
	{ "UD", IBV_QPT_UD },
	{ "UC", IBV_QPT_UC },
	{ "RC", IBV_QPT_RC },
	{ "XRC", IBV_QPT_XRC_SEND },
	{ "RAW_PACKET", IBV_QPT_RAW_PACKET },
};

/* A queue pair, its peer (itself or an XRC target), and the objects that its requests name. */
static struct lane {
	const char *name;
	enum ibv_qp_type type;
	struct ibv_qp *qp, *target;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	uint32_t srqn;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
} lane;

static struct endpoint e;
static struct ibv_mr *region; /* of the same memory: windows may be bound to it */
static struct octets tcp; /* a TCP header, in a frame for a raw queue pair */

static void open_endpoint(void)
{
	endpoint_open(&e);
	region = ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	cr_assert_not_null(region, "%m");
}

static void close_endpoint(void)
{
	cr_expect_eq(ibv_dereg_mr(region), 0);
	endpoint_close(&e);
}

TestSuite(carries, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

static uint64_t operations_of(enum ibv_qp_type type)
{
	uint64_t all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].transports >> type & 1)
			all |= rows[i].send_op;
	return all;
}

static struct ibv_qp *create(enum ibv_qp_type type, uint64_t operations)
{
	bool tso = type == IBV_QPT_UD || type == IBV_QPT_RAW_PACKET, xrc = type == IBV_QPT_XRC_SEND;
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e.cq,
		.recv_cq = xrc ? NULL : e.cq,
		.cap = { DEPTH, xrc ? 0 : RECEIVES, 2, xrc ? 0 : 1, 64 },
		.qp_type = type,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			     (tso ? IBV_QP_INIT_ATTR_MAX_TSO_HEADER : 0u),
		.pd = e.pd,
		.send_ops_flags = operations,
		.max_tso_header = 128,
	};

	errno = 0;
	return ibv_create_qp_ex(e.context, &init);
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0, "%s to state %d", lane.name,
		     (int)attr.qp_state);
}

static void connect_uc(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	modify(qp, attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = qp->qp_num,
				     .ah_attr = ud_to_self(&e) };
	modify(qp, attr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
	attr.qp_state = IBV_QPS_RTS;
	modify(qp, attr, IBV_QP_SQ_PSN);
}

static void connect_raw(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	modify(qp, attr, IBV_QP_PORT);
	attr.qp_state = IBV_QPS_RTR;
	modify(qp, attr, 0);
	attr.qp_state = IBV_QPS_RTS;
	modify(qp, attr, 0);
}

static void open_xrc(void)
{
	struct ibv_xrcd_init_attr xrcd = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IBV_QP_INIT_ATTR_XRCD };
	struct ibv_srq_init_attr_ex srq = { .attr = { .max_wr = RECEIVES, .max_sge = 1 },
					    .comp_mask =
						    IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
						    IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
					    .srq_type = IBV_SRQT_XRC,
					    .pd = e.pd,
					    .cq = e.cq };

	lane.xrcd = target.xrcd = srq.xrcd = ibv_open_xrcd(e.context, &xrcd);
	cr_assert_not_null(lane.xrcd, "%m");
	lane.srq = ibv_create_srq_ex(e.context, &srq);
	lane.target = ibv_create_qp_ex(e.context, &target);
	cr_assert(lane.srq && lane.target, "%m");
	cr_assert_eq(ibv_get_srq_num(lane.srq, &lane.srqn), 0);
	cr_assert_eq(endpoint_connect(&e, lane.qp, lane.target->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, lane.target, lane.qp->qp_num), 0);
}

/* False: raw packets, and we are not privileged. */
static bool lane_open(const char *name, enum ibv_qp_type type)
{
	lane = (struct lane){ .name = name, .type = type, .qp = create(type, operations_of(type)) };
	if (lane.qp == NULL && type == IBV_QPT_RAW_PACKET && errno == EPERM && geteuid() != 0)
		return false;
	cr_assert_not_null(lane.qp, "%s: %m", name);
	lane.mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
	lane.ah = ud_self(&e, GID_INDEX);
	cr_assert_not_null(lane.mw, "%m");
	if (type == IBV_QPT_RC)
		cr_assert_eq(endpoint_connect(&e, lane.qp, lane.qp->qp_num), 0);
	else if (type == IBV_QPT_UC)
		connect_uc(lane.qp);
	else if (type == IBV_QPT_UD)
		cr_assert_eq(ud_ready(lane.qp, UD_QKEY), 0);
	else if (type == IBV_QPT_RAW_PACKET)
		connect_raw(lane.qp);
	else
		open_xrc();
	return true;
}

static void lane_close(void)
{
	cr_expect_eq(ibv_destroy_qp(lane.qp), 0);
	if (lane.type == IBV_QPT_XRC_SEND) {
		cr_expect_eq(ibv_destroy_qp(lane.target), 0);
		cr_expect_eq(ibv_destroy_srq(lane.srq), 0);
		cr_expect_eq(ibv_close_xrcd(lane.xrcd), 0);
	}
	cr_expect_eq(ibv_dealloc_mw(lane.mw), 0);
	cr_expect_eq(ibv_destroy_ah(lane.ah), 0);
}

/* ---- a request, made in both ways ---- */

static struct ibv_mw_bind_info bind_info(void)
{
	return (struct ibv_mw_bind_info){ region, (uintptr_t)e.buffer, 64,
					  IBV_ACCESS_REMOTE_WRITE };
}

static struct ibv_sge element(const struct row *row)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };

	if (row->opcode == IBV_WR_SEND && lane.type == IBV_QPT_RAW_PACKET)
		sge.length = 64; /* a frame */
	if (row->opcode == IBV_WR_TSO)
		sge.length = 3 * TSO_MSS + 1;
	return sge;
}

static int post(const struct row *row)
{
	struct ibv_sge sge = element(row);
	struct ibv_send_wr wr = { .wr_id = 7,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = row->opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad = NULL;
	uint32_t key = ibv_inc_rkey(lane.mw->rkey);
	int error;

	if (row->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    row->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)e.buffer + BEHIND;
		wr.wr.atomic.rkey = e.mr->rkey;
	} else if (lane.type == IBV_QPT_UD) {
		wr.wr.ud.ah = lane.ah;
		wr.wr.ud.remote_qpn = lane.qp->qp_num;
		wr.wr.ud.remote_qkey = UD_QKEY;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + BEHIND;
		wr.wr.rdma.rkey = e.mr->rkey;
	}
	if (lane.type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = lane.srqn;
	if (row->opcode == IBV_WR_BIND_MW) {
		wr.bind_mw.mw = lane.mw;
		wr.bind_mw.rkey = key;
		wr.bind_mw.bind_info = bind_info();
	} else if (row->opcode == IBV_WR_LOCAL_INV || row->opcode == IBV_WR_SEND_WITH_INV) {
		wr.invalidate_rkey = lane.mw->rkey;
	} else if (row->opcode == IBV_WR_TSO) {
		wr.tso.hdr = tcp.at;
		wr.tso.hdr_sz = (uint16_t)tcp.n;
		wr.tso.mss = TSO_MSS;
	}
	error = ibv_post_send(lane.qp, &wr, &bad);
	cr_expect_eq(bad, error != 0 ? &wr : NULL, "%s on %s: bad_wr", row->name, lane.name);
	return error;
}

static void begin_extended(struct ibv_qp_ex *qp, const struct row *row)
{
	uint64_t to = (uintptr_t)e.buffer + BEHIND, word = 1;
	struct ibv_mw_bind_info info = bind_info();

	switch (row->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, 5);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, e.mr->rkey, to);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, e.mr->rkey, to, 5);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, e.mr->rkey, to);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, e.mr->rkey, to, 0, 1);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, e.mr->rkey, to, 1);
		break;
	case IBV_WR_BIND_MW:
		ibv_wr_bind_mw(qp, lane.mw, ibv_inc_rkey(lane.mw->rkey), &info);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(qp, lane.mw->rkey);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(qp, lane.mw->rkey);
		break;
	case IBV_WR_TSO:
		ibv_wr_send_tso(qp, tcp.at, (uint16_t)tcp.n, TSO_MSS);
		break;
	default:
		ibv_wr_atomic_write(qp, e.mr->rkey, to, &word);
	}
}

static int post_extended(const struct row *row)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(lane.qp);
	struct ibv_sge sge = element(row);

	ibv_wr_start(qp);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	begin_extended(qp, row);
	if (lane.type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, lane.ah, lane.qp->qp_num, UD_QKEY);
	if (lane.type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qp, lane.srqn);
	if (row->opcode != IBV_WR_BIND_MW && row->opcode != IBV_WR_LOCAL_INV &&
	    row->opcode != IBV_WR_ATOMIC_WRITE)
		ibv_wr_set_sge(qp, sge.lkey, sge.addr, sge.length);
	return ibv_wr_complete(qp);
}

/* ---- and its result ---- */

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + 2 * BEHIND, 2048, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 8, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(lane.srq != NULL ? ibv_post_srq_recv(lane.srq, &wr, &bad)
				      : ibv_post_recv(lane.qp, &wr, &bad),
		     0);
}

static void expect_done(const struct row *row, bool receives)
{
	/* A target has no windows that a peer could invalidate (protocol-map 170). */
	bool refused = lane.type == IBV_QPT_XRC_SEND && row->opcode == IBV_WR_SEND_WITH_INV;
	enum ibv_wc_status wanted = refused ? IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
	struct ibv_wc wc[2];
	int n = receives ? 2 : 1;

	poll_completions(e.cq, wc, n, row->name);
	for (int i = 0; i < n; i++) {
		cr_assert_eq(wc[i].status, wanted, "%s on %s: %s", row->name, lane.name,
			     ibv_wc_status_str(wc[i].status));
		if (refused)
			continue;
		if (wc[i].wr_id == 7)
			cr_expect_eq(wc[i].opcode, row->done, "%s on %s", row->name, lane.name);
		else
			cr_expect(wc[i].opcode & IBV_WC_RECV, "%s on %s", row->name, lane.name);
	}
}

static void make_headers(void)
{
	static const uint8_t ethernet[14] = { 1, 0, 0x5e, 0, 1, 5, 2, 0, 0, 0, 0, 1, 8, 0 };
	struct octets inner;

	tcp.n = 0;
	if (lane.type == IBV_QPT_RAW_PACKET)
		packet_put(&tcp, ethernet, sizeof(ethernet));
	stream_header(&inner, (struct kind){ .protocol = 6 });
	packet_put(&tcp, inner.at, inner.n);
	memcpy(e.buffer, ethernet, 12); /* before the payload of a raw SEND, */
	memcpy(e.buffer + 12, "\x88\xb5", 2); /* of no known protocol */
}

static void walk(const char *name, enum ibv_qp_type type, int (*say)(const struct row *row))
{
	if (!lane_open(name, type))
		return;
	make_headers();
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *row = &rows[i];
		bool carried = row->transports >> type & 1;
		bool receives = carried && row->receives && type != IBV_QPT_RAW_PACKET;
		int error;

		if (say == post_extended && row->send_op == 0)
			continue; /* there is no extended call for it */
		if (receives)
			post_receive();
		error = say(row);
		cr_assert_eq(error, carried ? 0 : EINVAL, "%s on %s: %s", row->name, name,
			     strerror(error));
		if (carried)
			expect_done(row, receives);
	}
	ud_silent(e.cq, "what was refused");
	lane_close();
}

Test(carries, posted_requests)
{
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++)
		walk(transports[i].name, transports[i].type, post);
}

Test(carries, the_extended_calls)
{
	for (size_t i = 0; i < ARRAY_SIZE(transports); i++)
		walk(transports[i].name, transports[i].type, post_extended);
}

/* A longer one would name another SRQ when it is cut. */
Test(carries, the_number_of_an_srq_has_24_bits)
{
	cr_assert(lane_open("XRC", IBV_QPT_XRC_SEND));
	lane.srqn |= 1u << 24;
	cr_expect_eq(post(&rows[0]), EINVAL);
	cr_expect_eq(post_extended(&rows[0]), EINVAL);
	ud_silent(e.cq, "what was refused");
	lane_close();
}

/* ibv_create_qp_ex refuses operations that the queue pair does not carry. */
Test(carries, operations_that_a_queue_pair_is_created_with)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows) * ARRAY_SIZE(transports); i++) {
		const struct row *row = &rows[i % ARRAY_SIZE(rows)];
		enum ibv_qp_type type = transports[i / ARRAY_SIZE(rows)].type;
		struct ibv_qp *qp = create(type, row->send_op);

		if (row->send_op == 0 || row->transports >> type & 1) {
			if (qp == NULL && type == IBV_QPT_RAW_PACKET && errno == EPERM)
				continue;
			cr_assert_not_null(qp, "%s on type %d: %m", row->name, (int)type);
			cr_expect_eq(ibv_destroy_qp(qp), 0);
			continue;
		}
		cr_expect_null(qp, "%s on type %d", row->name, (int)type);
		cr_expect_eq(errno, EOPNOTSUPP, "%s on type %d: %m", row->name, (int)type);
	}
}
