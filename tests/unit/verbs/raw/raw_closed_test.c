/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steering rules, counters, tables and queue pairs on them, when their context is closed.
 * Runs, privileged, with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "raw/raw_rig.h"

static struct raw_rig r;

static void open_all(void)
{
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
}

TestSuite(raw_closed, .init = open_all, .fini = close_all, .timeout = 60);

struct spread {
	struct ibv_wq *wq;
	struct ibv_rwq_ind_table *table;
	struct ibv_qp *qp;
	struct ibv_counters *counters;
	struct ibv_flow *flow;
};

static struct spread make_spread(struct raw_rig *of)
{
	struct ibv_wq_init_attr wq = {
		.wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = of->pd, .cq = of->cq
	};
	struct spread s = { .wq = ibv_create_wq(of->context, &wq) };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &s.wq };
	struct ibv_counters_init_attr counters = { 0 };
	uint8_t key[40] = { 1 };
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = of->pd,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key,
				  IBV_RX_HASH_SRC_IPV4 },
	};

	cr_assert_not_null(s.wq, "%m");
	s.table = ibv_create_rwq_ind_table(of->context, &table);
	cr_assert_not_null(s.table, "%m");
	qp.rwq_ind_tbl = s.table;
	s.qp = ibv_create_qp_ex(of->context, &qp);
	cr_assert_not_null(s.qp, "%m");
	s.counters = ibv_create_counters(of->context, &counters);
	cr_assert_not_null(s.counters, "%m");
	s.flow = raw_rule(of->rx, &(struct raw_rule){ .priority = 3 });
	cr_assert_not_null(s.flow, "%m");
	return s;
}

static void destroy_spread(const struct spread *s, int i)
{
	cr_expect_eq(ibv_destroy_flow(s->flow), 0, "rule %d", i);
	cr_expect_eq(ibv_destroy_counters(s->counters), 0, "counters %d", i);
	cr_expect_eq(ibv_destroy_qp(s->qp), 0, "queue pair %d", i);
	cr_expect_eq(ibv_destroy_rwq_ind_table(s->table), 0, "table %d", i);
	cr_expect_eq(ibv_destroy_wq(s->wq), 0, "work queue %d", i);
}

/* By then other objects have its handles. */
Test(raw_closed, its_objects_do_not_affect_new_ones)
{
	enum {
		MANY = 150
	};
	struct raw_rig closed;
	struct spread gone, s[MANY];

	raw_rig_open(&closed);
	gone = make_spread(&closed);
	cr_assert_eq(ibv_close_device(closed.context), 0);
	for (int i = 0; i < MANY; i++) {
		s[i] = make_spread(&r);
		if (i % 2 == 0)
			destroy_spread(&s[i], i); /* so that freed handles are used again */
	}
	destroy_spread(&gone, -1);
	cr_expect_eq(ibv_destroy_qp(closed.tx), 0);
	cr_expect_eq(ibv_destroy_qp(closed.rx), 0);
	cr_expect_eq(ibv_dereg_mr(closed.mr), 0);
	cr_expect_eq(ibv_destroy_cq(closed.cq), 0);
	cr_expect_eq(ibv_dealloc_pd(closed.pd), 0);
	free(closed.buffer);
	for (int i = 1; i < MANY; i += 2)
		destroy_spread(&s[i], i);
}
