/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NULL where an object is needed, and objects of another context, in the verbs that the other
 * refused_* tests leave out: EINVAL (EOPNOTSUPP for what is not supported), no crash, and no change
 * in the engine. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/bits.h"
#include "refused.h"
#include "rig/ud.h"

static struct endpoint e;
static struct ibv_context *other; /* the same device, opened again, with some objects */
static struct ibv_pd *other_pd;
static struct ibv_cq *other_cq;
static struct ibv_srq *other_srq, *srq;
static struct ibv_xrcd *other_xrcd, *xrcd;

static struct ibv_srq *basic_srq(struct ibv_pd *pd)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return ibv_create_srq(pd, &init);
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *context)
{
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };

	return ibv_open_xrcd(context, &init);
}

static void open_all(void)
{
	endpoint_open(&e);
	other = open_only_device();
	other_pd = ibv_alloc_pd(other);
	other_cq = ibv_create_cq(other, 8, NULL, NULL, 0);
	other_srq = basic_srq(other_pd);
	other_xrcd = open_xrcd(other);
	srq = basic_srq(e.pd);
	xrcd = open_xrcd(e.context);
	cr_assert(other_pd && other_cq && other_srq && other_xrcd && srq && xrcd, "%m");
}

static void close_all(void)
{
	cr_expect_eq(ibv_close_xrcd(xrcd), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_close_xrcd(other_xrcd), 0);
	cr_expect_eq(ibv_destroy_srq(other_srq), 0);
	cr_expect_eq(ibv_destroy_cq(other_cq), 0);
	cr_expect_eq(ibv_dealloc_pd(other_pd), 0);
	cr_expect_eq(ibv_close_device(other), 0);
	endpoint_close(&e);
}

TestSuite(refused_nothing, .init = open_all, .fini = close_all, .timeout = 60);

Test(refused_nothing, domains_and_memory)
{
	struct ibv_sge sge = { 0 };

	REFUSED(ibv_alloc_pd(NULL), EINVAL, "a PD of no context");
	REFUSED(ibv_create_comp_channel(NULL), EINVAL, "a channel of no context");
	REFUSED((ibv_reg_mr)(NULL, e.buffer, 64, 0), EINVAL, "no PD");
	REFUSED((ibv_reg_mr_iova)(NULL, e.buffer, 64, 0, 0), EINVAL, "no PD");
	REFUSED(ibv_reg_mr_iova2(NULL, e.buffer, 64, 0, 0), EINVAL, "no PD");
	REFUSED((ibv_reg_mr)(e.pd, NULL, 64, 0), EFAULT, "no address");
	REFUSED(ibv_reg_dmabuf_mr(NULL, 0, 64, 0, 0, 0), EINVAL, "no PD");
	REFUSED(ibv_import_device(-1), EBADF, "no descriptor");
	REFUSED(ibv_import_pd(NULL, e.pd->handle), EINVAL, "no context");
	REFUSED(ibv_import_mr(NULL, e.mr->handle), EINVAL, "no PD");
	REFUSED(ibv_import_dm(NULL, 0), EINVAL, "no context");
	cr_expect_eq(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 1), EINVAL);
	cr_expect_eq(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0), EINVAL);
}

/* H-99 */
Test(refused_nothing, ranges_of_memory_that_wrap_are_refused)
{
	static const struct {
		const char *what;
		uint64_t iova;
		size_t length;
		int error;
	} cases[] = {
		{ "one octet too many", UINT64_MAX - 62, 64, EINVAL },
		{ "all of it", UINT64_MAX, 64, EINVAL },
		{ "around", 0xfffffffffffffc00, 0x400, EINVAL },
		{ "up to the end", UINT64_MAX - 64, 64, 0 },
		{ "an odd one", 3, 64, 0 },
		{ "none", 0, 64, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t objects = engine_objects();
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr_iova2(e.pd, e.buffer, cases[i].length, cases[i].iova, 0);
		cr_expect_eq(mr != NULL ? 0 : errno, cases[i].error, "%s: %m", cases[i].what);
		if (mr != NULL)
			cr_expect_eq(ibv_dereg_mr(mr), 0);
		cr_expect_eq(engine_objects(), objects, "%s", cases[i].what);
	}
}

Test(refused_nothing, completion_queues_and_questions)
{
	struct ibv_device_attr_ex ex, *volatile no_device = NULL;
	struct ibv_port_attr *volatile no_port = NULL;

	REFUSED(ibv_create_cq(NULL, 8, NULL, NULL, 0), EINVAL, "no context");
	cr_expect_eq(ibv_query_device_ex(e.context, NULL, no_device), EINVAL);
	cr_expect_eq(ibv_query_device_ex(e.context, NULL, &ex), 0);
	cr_expect_eq(ibv_query_port(e.context, 1, no_port), EINVAL);
}

Test(refused_nothing, shared_receive_queues)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_attr attr;

	REFUSED(ibv_create_srq(NULL, &init), EINVAL, "no PD");
	REFUSED(ibv_create_srq(e.pd, NULL), EINVAL, "no attributes");
	cr_expect_eq(ibv_query_srq(srq, NULL), EINVAL);
	cr_expect_eq(ibv_modify_srq(srq, NULL, IBV_SRQ_LIMIT), EINVAL);
	cr_expect_eq(ibv_modify_srq(srq, NULL, IBV_SRQ_MAX_WR), EINVAL);
	cr_expect_eq(ibv_query_srq(srq, &attr), 0);
	cr_expect_eq(attr.max_wr, 4, "nothing was changed");
}

Test(refused_nothing, shared_receive_queues_across_contexts)
{
	const struct ibv_srq_init_attr_ex good = { .attr = { .max_wr = 4, .max_sge = 1 },
						   .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
								IBV_SRQ_INIT_ATTR_PD |
								IBV_SRQ_INIT_ATTR_XRCD |
								IBV_SRQ_INIT_ATTR_CQ,
						   .srq_type = IBV_SRQT_XRC,
						   .pd = e.pd,
						   .xrcd = xrcd,
						   .cq = e.cq };
	struct ibv_qp_init_attr qp = { .send_cq = e.cq,
				       .recv_cq = e.cq,
				       .srq = other_srq,
				       .cap = { 4, 0, 1, 0, 0 },
				       .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr_ex init = good;

	init.pd = other_pd;
	REFUSED(ibv_create_srq_ex(e.context, &init), EINVAL, "another context's PD");
	init = good;
	init.cq = other_cq;
	REFUSED(ibv_create_srq_ex(e.context, &init), EINVAL, "another context's CQ");
	init = good;
	init.xrcd = other_xrcd;
	REFUSED(ibv_create_srq_ex(e.context, &init), EINVAL, "another context's XRC domain");
	init.comp_mask |= 1u << 9;
	REFUSED(ibv_create_srq_ex(e.context, &init), EOPNOTSUPP, "an unknown member");
	REFUSED(ibv_create_qp(e.pd, &qp), EINVAL, "another context's SRQ");
}

Test(refused_nothing, xrc)
{
	struct ibv_qp_init_attr_ex target = { .qp_type = IBV_QPT_XRC_RECV,
					      .comp_mask = IBV_QP_INIT_ATTR_XRCD,
					      .xrcd = other_xrcd };
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
						      IBV_QP_OPEN_ATTR_TYPE,
					 .qp_num = 17,
					 .xrcd = other_xrcd,
					 .qp_type = IBV_QPT_XRC_RECV };
	uint32_t number;

	REFUSED(ibv_open_xrcd(e.context, NULL), EINVAL, "no attributes");
	REFUSED(ibv_create_qp_ex(e.context, &target), EINVAL, "another context's domain");
	REFUSED(ibv_open_qp(e.context, NULL), EINVAL, "no attributes");
	REFUSED(ibv_open_qp(e.context, &open), EINVAL, "another context's domain");
	open.comp_mask |= IBV_QP_OPEN_ATTR_RESERVED;
	REFUSED(ibv_open_qp(e.context, &open), EOPNOTSUPP, "an unknown member");
	cr_expect_eq(ibv_get_srq_num(srq, NULL), EINVAL);
	cr_expect_eq(ibv_get_srq_num(srq, &number), EOPNOTSUPP, "it is not of XRC");
}

Test(refused_nothing, address_handles)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr good = ud_to_self(&e), attr;
	struct ibv_grh grh = { 0 };
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vlan;

	REFUSED(ibv_create_ah(NULL, &good), EINVAL, "no PD");
	REFUSED(ibv_create_ah_from_wc(NULL, &wc, &grh, 1), EINVAL, "no PD");
	REFUSED(ibv_create_ah_from_wc(e.pd, NULL, &grh, 1), EINVAL, "no completion");
	REFUSED(ibv_create_ah_from_wc(e.pd, &wc, NULL, 1), EINVAL, "no GRH");
	REFUSED(ibv_create_ah_from_wc(e.pd, &wc, &grh, 0), EINVAL, "port 0");
	errno = 0;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, NULL, &grh, &attr), -1);
	cr_expect_eq(errno, EINVAL);
	errno = 0;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, &grh, NULL), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, NULL, mac, &vlan), EINVAL);
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &good, NULL, &vlan), EINVAL);
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &good, mac, NULL), 0,
		     "who has no use for the VLAN says so");
	attr = good;
	attr.is_global = 0;
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vlan), EINVAL);
	attr = good;
	attr.port_num = 2;
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vlan), EINVAL);
	attr = good;
	attr.grh.sgid_index = 200;
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vlan), EINVAL);
}

Test(refused_nothing, windows)
{
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = { .bind_info = { .addr = 1 } };

	cr_assert_not_null(mw, "%m");
	cr_expect_eq(ibv_bind_mw(e.qp[0], mw, &bind), EINVAL, "no region");
	cr_expect_eq(ibv_bind_mw(NULL, mw, &(struct ibv_mw_bind){ 0 }), EINVAL, "no queue pair");
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
}

/* Functions that are not set: verbs.h returns the error. */
Test(refused_nothing, what_there_is_not)
{
	struct ibv_flow_action_esp_attr esp = { 0 };

	REFUSED(ibv_create_flow_action_esp(e.context, &esp), EOPNOTSUPP, "ESP");
}
