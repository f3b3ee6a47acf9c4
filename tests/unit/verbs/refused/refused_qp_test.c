/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments of ibv_create_qp, ibv_create_qp_ex, ibv_modify_qp, ibv_query_qp and
 * ibv_destroy_qp: the errno of the manual page; a failed create leaves no object, and a failed
 * change no trace. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "refused.h"

static struct endpoint e;
static struct ibv_device_attr device;

static void open_all(void)
{
	endpoint_open(&e);
	cr_assert_eq(ibv_query_device(e.context, &device), 0);
}

static void close_all(void)
{
	endpoint_close(&e);
}

TestSuite(refused_qp, .init = open_all, .fini = close_all, .timeout = 60);

/* hostile H-107: wrong sizes; H-143: sizes of rings. */
Test(refused_qp, capacities)
{
	const uint32_t wr = (uint32_t)device.max_qp_wr, sge = (uint32_t)device.max_sge;
	const struct {
		const char *what;
		struct ibv_qp_cap cap;
	} cases[] = {
		{ "too many sends", { wr + 1, 8, 1, 1, 0 } },
		{ "too many receives", { 8, wr + 1, 1, 1, 0 } },
		{ "too many elements to send", { 8, 8, sge + 1, 1, 0 } },
		{ "too many elements to receive", { 8, 8, 1, sge + 1, 0 } },
		{ "all numbers of sends", { UINT32_MAX, 8, 1, 1, 0 } },
		{ "all numbers of receives", { 8, UINT32_MAX, 1, 1, 0 } },
		{ "all numbers of elements", { 8, 8, UINT32_MAX, UINT32_MAX, 0 } },
		{ "a number that looks negative", { 1u << 31, 8, 1, 1, 0 } },
		{ "too much inline data", { 8, 8, 1, 1, 1u << 16 } },
		{ "all numbers of inline data", { 8, 8, 1, 1, UINT32_MAX } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr init = {
			.send_cq = e.cq, .recv_cq = e.cq, .cap = cases[i].cap, .qp_type = IBV_QPT_RC
		};

		REFUSED(ibv_create_qp(e.pd, &init), EINVAL, cases[i].what);
	}
}

Test(refused_qp, unknown_types_are_refused)
{
	static const int types[] = { 0, 1, 5, 6, 7, 11, 77, -1, IBV_QPT_DRIVER };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct ibv_qp_init_attr init = { .send_cq = e.cq,
						 .recv_cq = e.cq,
						 .cap = { 8, 8, 1, 1, 0 },
						 .qp_type = (enum ibv_qp_type)types[i] };

		REFUSED(ibv_create_qp(e.pd, &init), EOPNOTSUPP, "a type that is none");
	}
}

Test(refused_qp, extended_creation)
{
	const struct ibv_qp_init_attr_ex good = { .send_cq = e.cq,
						  .recv_cq = e.cq,
						  .cap = { 8, 8, 1, 1, 0 },
						  .qp_type = IBV_QPT_RC,
						  .comp_mask = IBV_QP_INIT_ATTR_PD,
						  .pd = e.pd };
	const struct {
		const char *what;
		uint32_t comp_mask, create_flags;
		uint64_t send_ops;
		struct ibv_pd *pd;
		int error;
	} cases[] = {
		{ "an unknown member", 1u << 30, 0, 0, e.pd, EOPNOTSUPP },
		{ "no PD", 0, 0, 0, NULL, EINVAL },
		{ "a PD that is none", IBV_QP_INIT_ATTR_PD, 0, 0, NULL, EINVAL },
		{ "an unknown flag", IBV_QP_INIT_ATTR_CREATE_FLAGS, 1u << 31, 0, e.pd, EOPNOTSUPP },
		{ "all flags", IBV_QP_INIT_ATTR_CREATE_FLAGS, UINT32_MAX, 0, e.pd, EOPNOTSUPP },
		{ "an unknown operation", IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, UINT64_C(1) << 63,
		  e.pd, EOPNOTSUPP },
		{ "an operation of other types", IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		  IBV_QP_EX_WITH_TSO, e.pd, EOPNOTSUPP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr_ex init = good;

		init.comp_mask = cases[i].comp_mask;
		if (cases[i].pd != NULL)
			init.comp_mask |= IBV_QP_INIT_ATTR_PD;
		init.pd = cases[i].pd;
		init.create_flags = cases[i].create_flags;
		init.send_ops_flags = cases[i].send_ops;
		REFUSED(ibv_create_qp_ex(e.context, &init), cases[i].error, cases[i].what);
	}
}

/* ---- changes ---- */

static enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_assert_eq(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static const struct ibv_qp_attr to_init = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define RTR_MASK                                                                        \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_MASK                                                                               \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

/* A change of one queue pair that must fail and leave it in its state. */
static void expect_refused(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask, int error,
			   const char *what)
{
	enum ibv_qp_state before = state_of(qp);
	int got = ibv_modify_qp(qp, &attr, mask);

	cr_expect_eq(got, error, "%s: %d, not %d", what, got, error);
	cr_expect_eq(state_of(qp), before, "%s: changed the state", what);
	cr_expect_eq(qp->state, before, "%s: changed what the program sees", what);
}

/* hostile H-106: any mask, state and value. */
Test(refused_qp, changes_from_reset_to_init)
{
	struct ibv_qp *qp = endpoint_create_qp(&e);
	struct ibv_qp_attr a = to_init;

	for (int bit = 0; bit < 31; bit++) {
		if (INIT_MASK & 1 << bit)
			expect_refused(qp, to_init, INIT_MASK & ~(1 << bit), EINVAL,
				       "a required attribute is missing");
		else if (1 << bit != IBV_QP_CUR_STATE)
			expect_refused(qp, to_init, INIT_MASK | 1 << bit,
				       (1 << bit) & (IBV_QP_CAP | IBV_QP_ALT_PATH) ? EOPNOTSUPP
										   : EINVAL,
				       "an attribute that does not belong here");
	}
	a.port_num = 0;
	expect_refused(qp, a, INIT_MASK, EINVAL, "port 0");
	a.port_num = 2;
	expect_refused(qp, a, INIT_MASK, EINVAL, "port 2");
	a = to_init;
	a.pkey_index = 1;
	expect_refused(qp, a, INIT_MASK, EINVAL, "a P_Key that is not there");
	a = to_init;
	a.cur_qp_state = IBV_QPS_RTS;
	expect_refused(qp, a, INIT_MASK | IBV_QP_CUR_STATE, EINVAL, "not its state");
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* hostile H-106: any mask, state and value. */
Test(refused_qp, wrong_transitions_are_refused)
{
	/* From RESET, INIT, RTR, RTS, SQD, SQE and ERR, with no attribute but the state. */
	static const bool legal[7][7] = {
		[IBV_QPS_RESET] = { [IBV_QPS_RESET] = true },
		[IBV_QPS_INIT] = { [IBV_QPS_RESET] = true,
				   [IBV_QPS_INIT] = true,
				   [IBV_QPS_ERR] = true },
		[IBV_QPS_RTS] = { [IBV_QPS_RESET] = true,
				  [IBV_QPS_RTS] = true,
				  [IBV_QPS_SQD] = true,
				  [IBV_QPS_ERR] = true },
		[IBV_QPS_ERR] = { [IBV_QPS_RESET] = true, [IBV_QPS_ERR] = true },
	};
	static const enum ibv_qp_state from[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTS,
						  IBV_QPS_ERR };

	for (size_t i = 0; i < ARRAY_SIZE(from); i++)
		for (int to = -1; to < 12; to++) {
			struct ibv_qp *qp = endpoint_create_qp(&e);
			struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
			bool may = to >= 0 && to < 7 && legal[from[i]][to];
			int error;

			if (from[i] == IBV_QPS_INIT)
				cr_assert_eq(endpoint_to_init(qp), 0);
			else if (from[i] != IBV_QPS_RESET)
				cr_assert_eq(endpoint_connect(&e, qp, qp->qp_num), 0);
			if (from[i] == IBV_QPS_ERR)
				cr_assert_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
			a.qp_state = (enum ibv_qp_state)to;
			error = ibv_modify_qp(qp, &a, IBV_QP_STATE);
			cr_expect_eq(error, may ? 0 : EINVAL, "from %d to %d: %d", (int)from[i], to,
				     error);
			cr_expect_eq(state_of(qp), may ? (enum ibv_qp_state)to : from[i]);
			cr_expect_eq(ibv_destroy_qp(qp), 0);
		}
}

/* hostile H-106: any mask, state and value. */
Test(refused_qp, changes_from_init_to_rtr)
{
	const struct ibv_qp_attr good = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 17,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};
	struct ibv_qp *qp = endpoint_create_qp(&e);
	struct ibv_qp_attr a;

	cr_assert_eq(endpoint_to_init(qp), 0);
	for (int bit = 1; bit < 31; bit++)
		if (RTR_MASK & 1 << bit)
			expect_refused(qp, good, RTR_MASK & ~(1 << bit), EINVAL,
				       "a required attribute is missing");
#define WITH(member, value, what)                              \
	do {                                                   \
		a = good;                                      \
		a.member = value;                              \
		expect_refused(qp, a, RTR_MASK, EINVAL, what); \
	} while (0)
	WITH(path_mtu, (enum ibv_mtu)0, "no MTU");
	WITH(path_mtu, (enum ibv_mtu)6, "an MTU that is none");
	WITH(dest_qp_num, 1u << 24, "25 bits of a number");
	WITH(max_dest_rd_atomic, 129, "more READs than there can be");
	WITH(max_dest_rd_atomic, 255, "all numbers of READs");
	WITH(min_rnr_timer, 32, "a timer that is none");
	WITH(ah_attr.is_global, 0, "no GRH");
	WITH(ah_attr.port_num, 0, "no port");
	WITH(ah_attr.port_num, 9, "a port that is not there");
	WITH(ah_attr.grh.sgid_index, 15, "an empty GID");
	WITH(ah_attr.grh.sgid_index, 255, "a GID index out of range");
	WITH(ah_attr.grh.sgid_index, 0, "an IPv6 GID towards an IPv4 one");
	WITH(ah_attr.grh.dgid, (union ibv_gid){ .raw = { 0 } }, "towards nobody");
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* hostile H-106: any mask, state and value. */
Test(refused_qp, changes_from_rtr_to_rts)
{
	const struct ibv_qp_attr good = { .qp_state = IBV_QPS_RTS,
					  .timeout = 14,
					  .retry_cnt = 7,
					  .rnr_retry = 7,
					  .max_rd_atomic = 1 };
	const struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = 17,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};
	struct ibv_qp *qp = endpoint_create_qp(&e);
	struct ibv_qp_attr a = rtr;

	cr_assert_eq(endpoint_to_init(qp), 0);
	cr_assert_eq(ibv_modify_qp(qp, &a, RTR_MASK), 0);
	for (int bit = 1; bit < 31; bit++)
		if (RTS_MASK & 1 << bit)
			expect_refused(qp, good, RTS_MASK & ~(1 << bit), EINVAL,
				       "a required attribute is missing");
#undef WITH
#define WITH(member, value, what)                              \
	do {                                                   \
		a = good;                                      \
		a.member = value;                              \
		expect_refused(qp, a, RTS_MASK, EINVAL, what); \
	} while (0)
	WITH(timeout, 32, "a timeout that is none");
	WITH(retry_cnt, 8, "more retries than there can be");
	WITH(rnr_retry, 8, "more retries than there can be");
	WITH(max_rd_atomic, 129, "more READs than there can be");
	a = good;
	cr_expect_eq(ibv_modify_qp(qp, &a, RTS_MASK), 0, "none of it was of consequence");
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* Alternate paths and other queue sizes are neither supported nor announced. */
Test(refused_qp, unsupported_attributes_are_refused)
{
	const struct ibv_qp_attr rearm = { .path_mig_state = IBV_MIG_REARM },
				 armed = { .path_mig_state = IBV_MIG_ARMED },
				 none = { .path_mig_state = (enum ibv_mig_state)3 },
				 migrated = { .path_mig_state = IBV_MIG_MIGRATED };
	struct ibv_qp_attr same = migrated;

	expect_refused(e.qp[0], rearm, IBV_QP_PATH_MIG_STATE, EOPNOTSUPP, "migration, rearmed");
	expect_refused(e.qp[0], armed, IBV_QP_PATH_MIG_STATE, EOPNOTSUPP, "migration, armed");
	expect_refused(e.qp[0], none, IBV_QP_PATH_MIG_STATE, EINVAL, "a state that is none");
	expect_refused(e.qp[0], migrated, IBV_QP_ALT_PATH, EOPNOTSUPP, "an alternate path");
	expect_refused(e.qp[0], migrated, IBV_QP_CAP, EOPNOTSUPP, "longer queues");
	cr_expect_eq(ibv_modify_qp(e.qp[0], &same, IBV_QP_PATH_MIG_STATE), 0, "what it is in");
	cr_expect_eq(device.device_cap_flags &
			     (IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_RESIZE_MAX_WR |
			      IBV_DEVICE_UD_AV_PORT_ENFORCE | IBV_DEVICE_MEM_WINDOW_TYPE_2A),
		     0);
}

Test(refused_qp, nothing_where_something_must_be)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	cr_expect_eq(ibv_modify_qp(e.qp[0], NULL, IBV_QP_STATE), EINVAL);
	cr_expect_eq(ibv_query_qp(e.qp[0], NULL, IBV_QP_STATE, &init), EINVAL);
	cr_expect_eq(ibv_query_qp(e.qp[0], &attr, IBV_QP_STATE, NULL), EINVAL);
	REFUSED(ibv_create_qp(e.pd, NULL), EINVAL, "nothing");
	init = (struct ibv_qp_init_attr){ .send_cq = e.cq, .recv_cq = e.cq, .qp_type = IBV_QPT_RC };
	REFUSED(ibv_create_qp(NULL, &init), EINVAL, "no PD");
}

Test(refused_qp, queue_pairs_of_a_closed_context)
{
	struct endpoint closed;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	uint64_t before = engine_objects(), then;

	endpoint_open(&closed);
	cr_expect_eq(ibv_close_device(closed.context), 0);
	then = engine_objects();
	cr_expect_eq(then, before, "closing takes all with it");
	cr_expect_eq(ibv_modify_qp(closed.qp[0], &attr, IBV_QP_STATE), EINVAL);
	cr_expect_eq(ibv_query_qp(closed.qp[0], &attr, IBV_QP_STATE, &init), EINVAL);
	init = (struct ibv_qp_init_attr){ .send_cq = closed.cq,
					  .recv_cq = closed.cq,
					  .qp_type = IBV_QPT_RC };
	REFUSED(ibv_create_qp(closed.pd, &init), EINVAL, "in a closed context");
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(closed.qp[i]), 0, "its memory is freed");
	cr_expect_eq(ibv_dereg_mr(closed.mr), 0);
	cr_expect_eq(ibv_destroy_cq(closed.cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(closed.channel), 0);
	cr_expect_eq(ibv_dealloc_pd(closed.pd), 0);
	cr_expect_eq(engine_objects(), then);
	free(closed.buffer);
}

/* By then other objects have the handles of the closed context. */
Test(refused_qp, objects_of_a_closed_context_do_not_affect_new_ones)
{
	enum {
		MANY = 150
	};
	struct endpoint closed;
	struct ibv_qp *qp[MANY];
	struct ibv_cq *cq[MANY];
	struct ibv_pd *pd[MANY];
	struct ibv_mr *mr[MANY];
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = -1,
					   .oflags = O_CREAT };
	struct ibv_xrcd *closed_xrcd, *xrcd[MANY];
	uint64_t objects;

	endpoint_open(&closed);
	closed_xrcd = ibv_open_xrcd(closed.context, &init);
	cr_assert_not_null(closed_xrcd, "%m");
	cr_expect_eq(ibv_close_device(closed.context), 0);
	for (int i = 0; i < MANY; i++) {
		qp[i] = endpoint_create_qp(&e);
		cq[i] = ibv_create_cq(e.context, 1, NULL, NULL, 0);
		pd[i] = ibv_alloc_pd(e.context);
		mr[i] = ibv_reg_mr(e.pd, e.buffer, 64, IBV_ACCESS_LOCAL_WRITE);
		xrcd[i] = ibv_open_xrcd(e.context, &init);
		cr_assert(qp[i] && cq[i] && pd[i] && mr[i] && xrcd[i], "%d: %m", i);
		if (i % 2 != 0)
			continue;
		/* so that freed handles are used again */
		cr_assert_eq(ibv_destroy_qp(qp[i]), 0);
		cr_assert_eq(ibv_destroy_cq(cq[i]), 0);
		cr_assert_eq(ibv_dealloc_pd(pd[i]), 0);
		cr_assert_eq(ibv_dereg_mr(mr[i]), 0);
		cr_assert_eq(ibv_close_xrcd(xrcd[i]), 0);
	}
	objects = engine_objects();
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_destroy_qp(closed.qp[i]), 0);
	cr_expect_eq(ibv_dereg_mr(closed.mr), 0);
	cr_expect_eq(ibv_destroy_cq(closed.cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(closed.channel), 0);
	cr_expect_eq(ibv_dealloc_pd(closed.pd), 0);
	cr_expect_eq(ibv_close_xrcd(closed_xrcd), 0);
	cr_expect_eq(engine_objects(), objects);
	free(closed.buffer);
	for (int i = 1; i < MANY; i += 2) {
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
		cr_expect_eq(ibv_destroy_cq(cq[i]), 0);
		cr_expect_eq(ibv_dealloc_pd(pd[i]), 0);
		cr_expect_eq(ibv_dereg_mr(mr[i]), 0);
		cr_expect_eq(ibv_close_xrcd(xrcd[i]), 0);
	}
}
