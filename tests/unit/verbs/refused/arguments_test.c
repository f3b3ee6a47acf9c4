/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong arguments get the errno of their man page. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "rig/endpoint.h"

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(arguments, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

Test(arguments, device_attributes_are_those_of_a_roce_device)
{
	struct ibv_device_attr a;

	cr_assert_eq(ibv_query_device(e.context, &a), 0);
	cr_expect_neq(a.node_guid, 0);
	cr_expect_neq(a.sys_image_guid, 0);
	cr_expect_neq(a.vendor_id, 0);
	cr_expect_eq(a.phys_port_cnt, 1);
	cr_expect_eq(a.atomic_cap, IBV_ATOMIC_HCA);
	cr_expect_gt(a.max_qp, 0);
	cr_expect_gt(a.max_sge, 0);
	cr_expect_lt(a.max_sge, 65535);
	cr_expect_gt(a.max_cqe, 0);
	cr_expect_eq(a.max_pkeys, 1);
	cr_expect_gt(e.context->num_comp_vectors, 0);
}

Test(arguments, the_port)
{
	struct ibv_port_attr a;

	cr_assert_eq(ibv_query_port(e.context, 1, &a), 0);
	cr_expect_eq(a.state, IBV_PORT_ACTIVE);
	cr_expect_eq(a.link_layer, IBV_LINK_LAYER_ETHERNET);
	cr_expect_eq(a.max_msg_sz, 1u << 31);
	cr_expect_geq(a.active_mtu, IBV_MTU_256);
	cr_expect_leq(a.active_mtu, IBV_MTU_4096);
	cr_expect_eq(ibv_query_port(e.context, 0, &a), EINVAL);
	cr_expect_eq(ibv_query_port(e.context, 2, &a), EINVAL);
}

Test(arguments, extended_answers_fit_the_callers_struct)
{
	struct ibv_device_attr_ex ex;
	struct ibv_query_device_ex_input wrong = { .comp_mask = 1 };

	cr_expect_eq(ibv_query_device_ex(e.context, NULL, &ex), 0);
	cr_expect_eq(ex.phys_port_cnt_ex, 1);
	cr_expect_eq(ibv_query_device_ex(e.context, &wrong, &ex), EINVAL);
}

Test(arguments, gids)
{
	struct ibv_gid_entry entry, table[64];
	struct ibv_port_attr port;
	union ibv_gid gid;
	ssize_t n;

	cr_assert_eq(ibv_query_port(e.context, 1, &port), 0);
	for (int i = 0; i < port.gid_tbl_len; i++)
		cr_expect_eq(ibv_query_gid(e.context, 1, i, &gid), 0, "index %d", i);
	errno = 0;
	cr_expect_eq(ibv_query_gid(e.context, 1, port.gid_tbl_len, &gid), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_query_gid(e.context, 1, -1, &gid), -1);
	cr_expect_eq(ibv_query_gid(e.context, 2, 0, &gid), -1);
	cr_assert_eq(ibv_query_gid_ex(e.context, 1, GID_INDEX, &entry, 0), 0);
	cr_expect_eq(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	cr_expect_eq(entry.gid_index, GID_INDEX);
	cr_expect_eq(ibv_query_gid_ex(e.context, 1, (uint32_t)port.gid_tbl_len - 1, &entry, 0),
		     ENODATA, "a free entry");
	cr_expect_eq(ibv_query_gid_ex(e.context, 1, 0, &entry, 1), EOPNOTSUPP);
	n = ibv_query_gid_table(e.context, table, 64, 0);
	cr_expect_geq(n, 2);
	cr_expect_eq(ibv_query_gid_table(e.context, table, 0, 0), -EINVAL);
	cr_expect_eq(ibv_query_gid_table(e.context, table, (size_t)n - 1, 0), -EINVAL);
	cr_expect_eq(ibv_query_gid_table(e.context, table, 64, 1), -EOPNOTSUPP);
}

Test(arguments, pkeys)
{
	__be16 pkey;

	cr_expect_eq(ibv_query_pkey(e.context, 1, 0, &pkey), 0);
	cr_expect_eq(pkey, 0xffff);
	cr_expect_eq(ibv_query_pkey(e.context, 1, 1, &pkey), -1);
	cr_expect_eq(ibv_get_pkey_index(e.context, 1, 0xffff), 0);
	cr_expect_eq(ibv_get_pkey_index(e.context, 1, 0x1234), -1);
}

/* hostile H-98: a region of no octets. */
Test(arguments, registrations)
{
	static const struct {
		const char *what;
		size_t length;
		int access;
		int error;
	} cases[] = {
		{ "nothing", 0, IBV_ACCESS_LOCAL_WRITE, EINVAL },
		{ "remote write without local write", 64, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ "remote atomic without local write", 64, IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
		{ "an unknown flag", 64, 1 << 10, EINVAL },
		{ "on demand", 64, IBV_ACCESS_ON_DEMAND, 0 },
		{ "around the end of memory", SIZE_MAX, IBV_ACCESS_LOCAL_WRITE, EINVAL },
		{ "reading only", 64, 0, 0 },
		{ "remote reading only", 64, IBV_ACCESS_REMOTE_READ, 0 },
		{ "an odd length", 77, IBV_ACCESS_LOCAL_WRITE, 0 },
		{ "a hint", 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(e.pd, e.buffer, cases[i].length, cases[i].access);
		cr_expect_eq(mr != NULL, cases[i].error == 0, "%s: %m", cases[i].what);
		cr_expect_eq(mr != NULL ? 0 : errno, cases[i].error, "%s: %m", cases[i].what);
		if (mr != NULL)
			cr_expect_eq(ibv_dereg_mr(mr), 0);
	}
}

/* hostile H-97: memory of another program. */
Test(arguments, registration_checks_page_protection)
{
	void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr;

	errno = 0;
	cr_expect_null(ibv_reg_mr(e.pd, p, 4096, IBV_ACCESS_LOCAL_WRITE));
	cr_expect_eq(errno, EFAULT);
	mr = ibv_reg_mr(e.pd, p, 4096, IBV_ACCESS_REMOTE_READ);
	cr_expect_not_null(mr, "a read-only page may be read: %m");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	munmap(p, 4096);
	errno = 0;
	cr_expect_null(ibv_reg_mr(e.pd, p, 4096, IBV_ACCESS_REMOTE_READ));
	cr_expect_eq(errno, EFAULT);
}

Test(arguments, completion_queues)
{
	struct ibv_device_attr a;
	struct ibv_cq *cq;

	ibv_query_device(e.context, &a);
	errno = 0;
	cr_expect_null(ibv_create_cq(e.context, 0, NULL, NULL, 0));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(ibv_create_cq(e.context, -1, NULL, NULL, 0));
	cr_expect_null(ibv_create_cq(e.context, a.max_cqe + 1, NULL, NULL, 0));
	cr_expect_null(ibv_create_cq(e.context, 8, NULL, NULL, e.context->num_comp_vectors));
	cr_expect_null(ibv_create_cq(e.context, 8, NULL, NULL, -1));
	cq = ibv_create_cq(e.context, 1, NULL, NULL, 0);
	cr_assert_not_null(cq, "one is enough: %m");
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cq = ibv_create_cq(e.context, a.max_cqe, NULL, NULL, e.context->num_comp_vectors - 1);
	cr_assert_not_null(cq, "what is announced can be had: %m");
	cr_expect_geq(cq->cqe, a.max_cqe);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
}

Test(arguments, extended_completion_queues_refuse_unknown_flags)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 8, .wc_flags = 1u << 20 };

	errno = 0;
	cr_expect_null(ibv_create_cq_ex(e.context, &init));
	cr_expect_eq(errno, EOPNOTSUPP);
	init.wc_flags = 0;
	init.comp_mask = 1u << 30;
	errno = 0;
	cr_expect_null(ibv_create_cq_ex(e.context, &init));
	cr_expect_eq(errno, EOPNOTSUPP);
}

static int create_error(struct ibv_qp_init_attr init)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp(e.pd, &init);
	if (qp == NULL)
		return errno;
	ibv_destroy_qp(qp);
	return 0;
}

Test(arguments, queue_pairs)
{
	struct ibv_qp_init_attr good = {
		.send_cq = e.cq, .recv_cq = e.cq, .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
	struct ibv_qp_init_attr bad = good;
	struct ibv_device_attr a;

	ibv_query_device(e.context, &a);
	cr_expect_eq(create_error(good), 0);
	bad.send_cq = NULL;
	cr_expect_eq(create_error(bad), EINVAL, "no CQ");
	bad = good;
	bad.cap.max_send_wr = (uint32_t)a.max_qp_wr + 1;
	cr_expect_eq(create_error(bad), EINVAL, "too many requests");
	bad = good;
	bad.cap.max_recv_sge = (uint32_t)a.max_sge + 1;
	cr_expect_eq(create_error(bad), EINVAL, "too many elements");
	bad = good;
	bad.cap.max_inline_data = 1 << 20;
	cr_expect_eq(create_error(bad), EINVAL, "too much inline data");
	bad = good;
	bad.qp_type = IBV_QPT_DRIVER;
	cr_expect_eq(create_error(bad), EOPNOTSUPP);
	good.cap.max_send_wr = (uint32_t)a.max_qp_wr;
	good.cap.max_recv_wr = (uint32_t)a.max_qp_wr;
	good.cap.max_send_sge = (uint32_t)a.max_sge;
	good.cap.max_recv_sge = (uint32_t)a.max_sge;
	cr_expect_eq(create_error(good), 0, "what is announced can be had: %m");
}

Test(arguments, busy_objects_are_not_destroyed)
{
	cr_expect_eq(ibv_dealloc_pd(e.pd), EBUSY);
	cr_expect_eq(ibv_destroy_cq(e.cq), EBUSY);
	cr_expect_eq(ibv_destroy_comp_channel(e.channel), EBUSY);
}

Test(arguments, transitions)
{
	struct ibv_qp *qp = endpoint_create_qp(&e);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_qp_init_attr init;

	cr_expect_eq(qp->state, IBV_QPS_RESET);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL, "RESET to RTS");
	attr.qp_state = IBV_QPS_INIT;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL, "INIT without a port");
	cr_expect_eq(qp->state, IBV_QPS_RESET);
	cr_expect_eq(endpoint_to_init(qp), 0);
	cr_expect_eq(qp->state, IBV_QPS_INIT);
	cr_expect_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &init), 0);
	cr_expect_eq(attr.qp_state, IBV_QPS_INIT);
	cr_expect_eq(attr.port_num, 1);
	cr_expect_eq(attr.qp_access_flags, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_ATOMIC);
	cr_expect_geq(init.cap.max_send_wr, DEPTH);
	attr.qp_state = IBV_QPS_RESET;
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

static int post_error(struct ibv_qp *qp, struct ibv_send_wr wr)
{
	struct ibv_send_wr *bad = NULL;
	int error = ibv_post_send(qp, &wr, &bad);

	if (error != 0)
		cr_expect_eq(bad, &wr);
	return error;
}

/* hostile H-94: lengths whose sum overflows. */
Test(arguments, wrong_sends_are_refused)
{
	struct ibv_sge many[64] = { { (uintptr_t)e.buffer, 1, e.mr->lkey } };
	struct ibv_sge half = { (uintptr_t)e.buffer, 1u << 31, e.mr->lkey };
	struct ibv_sge sge[2] = { half, { half.addr, 1, half.lkey } };
	struct ibv_qp *reset = endpoint_create_qp(&e);
	struct ibv_send_wr wr = { .sg_list = many, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	ibv_query_qp(e.qp[0], &attr, 0, &init);
	cr_expect_eq(post_error(reset, wr), EINVAL, "in RESET");
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	cr_expect_eq(post_error(e.qp[0], wr), EINVAL, "too many elements");
	wr.num_sge = -1;
	cr_expect_eq(post_error(e.qp[0], wr), EINVAL, "a negative number of elements");
	wr.num_sge = 1;
	wr.opcode = (enum ibv_wr_opcode)77;
	cr_expect_eq(post_error(e.qp[0], wr), EINVAL, "no such opcode");
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = IBV_SEND_INLINE;
	many[0].length = init.cap.max_inline_data + 1;
	cr_expect_eq(post_error(e.qp[0], wr), EINVAL, "too much inline data");
	many[0].length = 8;
	wr.opcode = IBV_WR_RDMA_READ;
	cr_expect_eq(post_error(e.qp[0], wr), EINVAL, "an inline READ");
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.send_flags = 0;
	wr.sg_list = sge;
	wr.num_sge = 2;
	cr_expect_eq(post_error(e.qp[0], wr), EINVAL, "more than 2^31 octets");
	ibv_destroy_qp(reset);
}

Test(arguments, a_list_is_posted_up_to_the_bad_one)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr[3] = { 0 }, *bad = NULL;
	struct ibv_wc wc;

	for (int i = 0; i < 3; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
					      .next = i < 2 ? &wr[i + 1] : NULL,
					      .sg_list = &sge,
					      .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = IBV_SEND_SIGNALED };
		wr[i].wr.rdma.remote_addr = (uintptr_t)e.buffer + 4096;
		wr[i].wr.rdma.rkey = e.mr->rkey;
	}
	wr[1].num_sge = 1000;
	cr_assert_eq(ibv_post_send(e.qp[0], wr, &bad), EINVAL);
	cr_assert_eq(bad, &wr[1]);
	poll_completions(e.cq, &wc, 1, "the first of the list");
	cr_assert_eq(wc.wr_id, 0);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

Test(arguments, receives)
{
	struct ibv_sge sge[64] = { { (uintptr_t)e.buffer, 8, e.mr->lkey } };
	struct ibv_recv_wr wr = { .sg_list = sge, .num_sge = 1 }, *bad = NULL;
	struct ibv_qp *qp = endpoint_create_qp(&e);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_expect_eq(ibv_post_recv(qp, &wr, &bad), EINVAL, "in RESET");
	cr_expect_eq(bad, &wr);
	cr_assert_eq(endpoint_to_init(qp), 0);
	ibv_query_qp(qp, &attr, 0, &init);
	wr.num_sge = (int)init.cap.max_recv_sge + 1;
	cr_expect_eq(ibv_post_recv(qp, &wr, &bad), EINVAL, "too many elements");
	wr.num_sge = 1;
	for (uint32_t i = 0; i < init.cap.max_recv_wr; i++)
		cr_assert_eq(ibv_post_recv(qp, &wr, &bad), 0, "receive %u", i);
	cr_expect_eq(ibv_post_recv(qp, &wr, &bad), ENOMEM, "one too many");
	ibv_destroy_qp(qp);
}

Test(arguments, what_there_is_not)
{
	cr_expect_null(ibv_qp_to_qp_ex(e.qp[0]));
}
