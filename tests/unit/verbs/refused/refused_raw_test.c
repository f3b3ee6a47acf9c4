/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments of the verbs of raw packets: the errno of the manual page, and nothing left in
 * the engine. And which users may not use them. Runs, privileged, with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "raw/raw_rig.h"
#include "refused.h"

static struct raw_rig r;
static struct endpoint rc;

static void open_all(void)
{
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
}

TestSuite(refused_raw, .init = open_all, .fini = close_all, .timeout = 60);

Test(refused_raw, queue_pairs)
{
	const struct ibv_qp_init_attr_ex good = { .send_cq = r.cq,
						  .recv_cq = r.cq,
						  .cap = { 8, 8, 1, 1, 0 },
						  .qp_type = IBV_QPT_RAW_PACKET,
						  .comp_mask = IBV_QP_INIT_ATTR_PD,
						  .pd = r.pd };
	const struct {
		const char *what;
		uint32_t comp_mask, create_flags;
		uint16_t max_tso_header;
		uint64_t send_ops;
		int error;
	} cases[] = {
		{ "FCS", IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_SCATTER_FCS, 0, 0,
		  EOPNOTSUPP },
		{ "padding", IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_PCI_WRITE_END_PADDING, 0,
		  0, EOPNOTSUPP },
		{ "a source number", IBV_QP_INIT_ATTR_CREATE_FLAGS, IBV_QP_CREATE_SOURCE_QPN, 0, 0,
		  EOPNOTSUPP },
		{ "a header that is too long", IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, 257, 0, EINVAL },
		{ "all of a header", IBV_QP_INIT_ATTR_MAX_TSO_HEADER, 0, UINT16_MAX, 0, EINVAL },
		{ "RDMA", IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0, 0, IBV_QP_EX_WITH_RDMA_WRITE,
		  EOPNOTSUPP },
		{ "a hash without a table", IBV_QP_INIT_ATTR_RX_HASH, 0, 0, 0, EINVAL },
		{ "a table without a hash", IBV_QP_INIT_ATTR_IND_TABLE, 0, 0, 0, EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr_ex init = good;

		init.comp_mask |= cases[i].comp_mask;
		init.create_flags = cases[i].create_flags;
		init.max_tso_header = cases[i].max_tso_header;
		init.send_ops_flags = cases[i].send_ops;
		REFUSED(ibv_create_qp_ex(r.context, &init), cases[i].error, cases[i].what);
	}
}

Test(refused_raw, raw_attributes_of_other_queue_pairs)
{
	struct ibv_qp_init_attr_ex init = { .send_cq = r.cq,
					    .recv_cq = r.cq,
					    .cap = { 8, 8, 1, 1, 0 },
					    .qp_type = IBV_QPT_RC,
					    .comp_mask = IBV_QP_INIT_ATTR_PD |
							 IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
					    .pd = r.pd,
					    .max_tso_header = 64 };

	REFUSED(ibv_create_qp_ex(r.context, &init), EOPNOTSUPP, "a TSO header on RC");
	init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	init.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING;
	REFUSED(ibv_create_qp_ex(r.context, &init), EOPNOTSUPP, "tags on RC");
}

Test(refused_raw, requests)
{
	static uint8_t header[54] = { [12] = 0x08 };
	struct ibv_sge sge = { (uintptr_t)r.buffer, 1000, r.mr->lkey };
	const struct {
		const char *what;
		enum ibv_wr_opcode opcode;
		unsigned int flags;
		void *hdr;
		uint16_t hdr_sz, mss;
		uint32_t length;
	} cases[] = {
		{ "immediate data", IBV_WR_SEND_WITH_IMM, 0, NULL, 0, 0, 100 },
		{ "WRITE", IBV_WR_RDMA_WRITE, 0, NULL, 0, 0, 100 },
		{ "READ", IBV_WR_RDMA_READ, 0, NULL, 0, 0, 100 },
		{ "an atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, 0, NULL, 0, 0, 8 },
		{ "an opcode that is none", (enum ibv_wr_opcode)99, 0, NULL, 0, 0, 100 },
		{ "a flag that is none", IBV_WR_SEND, 1u << 20, NULL, 0, 0, 100 },
		{ "TSO without a header", IBV_WR_TSO, 0, NULL, 54, 1000, 1000 },
		{ "TSO with an empty header", IBV_WR_TSO, 0, header, 0, 1000, 1000 },
		{ "TSO with more header than the queue pair has", IBV_WR_TSO, 0, header, 129, 1000,
		  1000 },
		{ "TSO without a segment size", IBV_WR_TSO, 0, header, 54, 0, 1000 },
		{ "TSO inline", IBV_WR_TSO, IBV_SEND_INLINE, header, 54, 100, 200 },
		{ "TSO of too much", IBV_WR_TSO, 0, header, 54, 1000, 65025 },
		{ "TSO of too many segments", IBV_WR_TSO, 0, header, 54, 1, 1000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_send_wr wr = { .sg_list = &sge,
					  .num_sge = 1,
					  .opcode = cases[i].opcode,
					  .send_flags = cases[i].flags };
		struct ibv_send_wr *bad = NULL;

		sge.length = cases[i].length;
		wr.tso.hdr = cases[i].hdr;
		wr.tso.hdr_sz = cases[i].hdr_sz;
		wr.tso.mss = cases[i].mss;
		cr_expect_eq(ibv_post_send(r.tx, &wr, &bad), EINVAL, "%s", cases[i].what);
		cr_expect_eq(bad, &wr, "%s", cases[i].what);
	}
}

Test(refused_raw, wrong_segments_fail_when_executed)
{
	static const struct {
		const char *what;
		struct frame_recipe recipe;
		uint16_t hdr_sz; /* 0: the frame's */
	} cases[] = {
		{ "UDP", { .src = "10.0.0.1", .dst = "10.0.0.2", .protocol = 17 }, 0 },
		{ "UDP to the RoCE port",
		  { .src = "10.0.0.1", .dst = "10.0.0.2", .protocol = 17, .dst_port = 4791 },
		  0 },
		{ "no IP", { .payload = 40 }, 0 },
		{ "a fragment",
		  { .src = "10.0.0.1", .dst = "10.0.0.2", .protocol = 6, .fragment = 0x2000 },
		  0 },
		{ "a header that ends early",
		  { .src = "10.0.0.1", .dst = "10.0.0.2", .protocol = 6 },
		  40 },
		{ "a header that ends late",
		  { .src = "10.0.0.1", .dst = "10.0.0.2", .protocol = 6, .payload = 4 },
		  0 },
	};
	struct ibv_sge sge = { (uintptr_t)r.buffer, 1000, r.mr->lkey };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_TSO },
				   *bad;
		struct built_frame f;
		struct ibv_wc wc;

		build_frame(&f, &cases[i].recipe);
		wr.tso.hdr = f.octet;
		wr.tso.hdr_sz = cases[i].hdr_sz != 0 ? cases[i].hdr_sz : (uint16_t)f.length;
		wr.tso.mss = 500;
		cr_assert_eq(ibv_post_send(r.tx, &wr, &bad), 0, "%s", cases[i].what);
		poll_completions(r.cq, &wc, 1, cases[i].what);
		cr_expect_eq(wc.status, IBV_WC_LOC_QP_OP_ERR, "%s: %s", cases[i].what,
			     ibv_wc_status_str(wc.status));
		cr_assert_eq(raw_to(r.tx, IBV_QPS_RTS), 0);
	}
}

/* ---- rules ---- */

struct rule {
	struct ibv_flow_attr attr;
	uint8_t spec[240]; /* directly after it */
};

static_assert(offsetof(struct rule, spec) == sizeof(struct ibv_flow_attr), "no gap");

static void set_spec(void *spec, uint32_t type, uint16_t size)
{
	struct ibv_flow_spec_action_drop head = { type, size };

	memset(spec, 0, 120);
	memcpy(spec, &head, offsetof(struct ibv_flow_spec_action_drop, size) + sizeof(size));
}

#define GOOD_ATTR         \
	{                 \
		.port = 1 \
	}

Test(refused_raw, rules)
{
	const struct {
		const char *what;
		struct ibv_flow_attr attr;
		uint32_t type;
		uint16_t size;
		int error;
	} cases[] = {
		{ "an unknown member", { .port = 1, .comp_mask = 1 }, 0, 0, EINVAL },
		{ "port 0", { .port = 0 }, 0, 0, EINVAL },
		{ "port 2", { .port = 2 }, 0, 0, EINVAL },
		{ "a type that is none",
		  { .port = 1, .type = (enum ibv_flow_attr_type)4 },
		  0,
		  0,
		  EINVAL },
		{ "egress", { .port = 1, .flags = IBV_FLOW_ATTR_FLAGS_EGRESS }, 0, 0, EOPNOTSUPP },
		{ "the deprecated flag", { .port = 1, .flags = 1 }, 0, 0, EINVAL },
		{ "a sniffer that does not trap",
		  { .port = 1,
		    .type = IBV_FLOW_ATTR_SNIFFER,
		    .flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP },
		  0,
		  0,
		  EINVAL },
		{ "a sniffer with a spec",
		  { .port = 1, .type = IBV_FLOW_ATTR_SNIFFER },
		  IBV_FLOW_SPEC_ETH,
		  sizeof(struct ibv_flow_spec_eth),
		  EINVAL },
		{ "a default that drops",
		  { .port = 1, .type = IBV_FLOW_ATTR_ALL_DEFAULT },
		  IBV_FLOW_SPEC_ACTION_DROP,
		  sizeof(struct ibv_flow_spec_action_drop),
		  EINVAL },
		{ "a spec that is none", GOOD_ATTR, 0x77, 16, EOPNOTSUPP },
		{ "a tunnel", GOOD_ATTR, IBV_FLOW_SPEC_VXLAN_TUNNEL,
		  sizeof(struct ibv_flow_spec_tunnel), EOPNOTSUPP },
		{ "an inner header", GOOD_ATTR, IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER,
		  sizeof(struct ibv_flow_spec_eth), EOPNOTSUPP },
		{ "ESP", GOOD_ATTR, IBV_FLOW_SPEC_ESP, sizeof(struct ibv_flow_spec_esp),
		  EOPNOTSUPP },
		{ "another verb's action", GOOD_ATTR, IBV_FLOW_SPEC_ACTION_HANDLE,
		  sizeof(struct ibv_flow_spec_action_handle), EOPNOTSUPP },
		{ "a short ETH", GOOD_ATTR, IBV_FLOW_SPEC_ETH, sizeof(struct ibv_flow_spec_eth) - 4,
		  EINVAL },
		{ "an empty IPv6", GOOD_ATTR, IBV_FLOW_SPEC_IPV6, 0, EINVAL },
		{ "no counters", GOOD_ATTR, IBV_FLOW_SPEC_ACTION_COUNT,
		  sizeof(struct ibv_flow_spec_counter_action), EINVAL },
	};
	struct rule rule;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&rule, 0, sizeof(rule));
		rule.attr = cases[i].attr;
		rule.attr.num_of_specs = cases[i].type != 0;
		set_spec(rule.spec, cases[i].type, cases[i].size);
		REFUSED(ibv_create_flow(r.rx, &rule.attr), cases[i].error, cases[i].what);
	}
	REFUSED(ibv_create_flow(r.rx, NULL), EINVAL, "no attributes");
}

Test(refused_raw, layers_that_contradict_each_other)
{
	static const struct {
		const char *what;
		uint32_t type[2];
		uint16_t size[2];
	} cases[] = {
		{ "two of ETH",
		  { IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_ETH },
		  { sizeof(struct ibv_flow_spec_eth), sizeof(struct ibv_flow_spec_eth) } },
		{ "both versions of IP",
		  { IBV_FLOW_SPEC_IPV4, IBV_FLOW_SPEC_IPV6 },
		  { sizeof(struct ibv_flow_spec_ipv4), sizeof(struct ibv_flow_spec_ipv6) } },
		{ "TCP and UDP",
		  { IBV_FLOW_SPEC_TCP, IBV_FLOW_SPEC_UDP },
		  { sizeof(struct ibv_flow_spec_tcp_udp), sizeof(struct ibv_flow_spec_tcp_udp) } },
		{ "the type of IPv6 and IPv4",
		  { IBV_FLOW_SPEC_ETH, IBV_FLOW_SPEC_IPV4 },
		  { sizeof(struct ibv_flow_spec_eth), sizeof(struct ibv_flow_spec_ipv4) } },
	};
	struct rule rule;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		memset(&rule, 0, sizeof(rule));
		rule.attr = (struct ibv_flow_attr){ .port = 1, .num_of_specs = 2 };
		set_spec(rule.spec, cases[i].type[0], cases[i].size[0]);
		if (cases[i].type[0] == IBV_FLOW_SPEC_ETH) {
			struct ibv_flow_spec_eth eth = { IBV_FLOW_SPEC_ETH, sizeof(eth) };

			eth.val.ether_type = __builtin_bswap16(0x86dd);
			eth.mask.ether_type = 0xffff;
			memcpy(rule.spec, &eth, sizeof(eth));
		}
		set_spec(rule.spec + cases[i].size[0], cases[i].type[1], cases[i].size[1]);
		REFUSED(ibv_create_flow(r.rx, &rule.attr), EINVAL, cases[i].what);
	}
}

Test(refused_raw, rules_of_other_queue_pairs)
{
	struct ibv_qp_init_attr ud = {
		.send_cq = r.cq, .recv_cq = r.cq, .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_UD
	};
	struct ibv_flow_attr attr = GOOD_ATTR;
	struct ibv_qp *qp = ibv_create_qp(r.pd, &ud);

	cr_assert_not_null(qp, "%m");
	REFUSED(ibv_create_flow(qp, &attr), EOPNOTSUPP, "UD");
	cr_assert_eq(ibv_destroy_qp(qp), 0);
	endpoint_open(&rc);
	REFUSED(ibv_create_flow(rc.qp[0], &attr), EINVAL, "RC");
	endpoint_close(&rc);
}

Test(refused_raw, a_queue_pair_with_a_rule_is_busy)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .priority = 3 });

	cr_assert_not_null(flow);
	cr_expect_eq(ibv_destroy_qp(r.rx), EBUSY);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

/* ---- counters ---- */

Test(refused_raw, counters)
{
	struct ibv_counters_init_attr good = { 0 }, odd = { .comp_mask = 1 };
	struct ibv_counter_attach_attr point = { .counter_desc = IBV_COUNTER_BYTES, .index = 5 };
	struct ibv_counters *k = ibv_create_counters(r.context, &good);
	uint64_t value[8];

	cr_assert_not_null(k);
	REFUSED(ibv_create_counters(r.context, &odd), EOPNOTSUPP, "an unknown member");
	REFUSED(ibv_create_counters(r.context, NULL), EINVAL, "no attributes");
	cr_expect_eq(ibv_attach_counters_point_flow(k, NULL, NULL), EINVAL);
	cr_assert_eq(ibv_attach_counters_point_flow(k, &point, NULL), 0);
	point.counter_desc = (enum ibv_counter_description)2;
	cr_expect_eq(ibv_attach_counters_point_flow(k, &point, NULL), ENOTSUP);
	point.counter_desc = IBV_COUNTER_BYTES;
	point.comp_mask = 1;
	cr_expect_eq(ibv_attach_counters_point_flow(k, &point, NULL), EINVAL);
	cr_expect_eq(ibv_read_counters(k, value, 5, 0), EINVAL, "index 5 has no room");
	cr_expect_eq(ibv_read_counters(k, NULL, 8, 0), EINVAL);
	cr_expect_eq(ibv_read_counters(k, value, 8, 2), EINVAL);
	cr_expect_eq(ibv_read_counters(k, value, 6, 0), 0);
	cr_assert_eq(ibv_destroy_counters(k), 0);
}

Test(refused_raw, bound_counters)
{
	struct ibv_counters_init_attr good = { 0 };
	struct ibv_counter_attach_attr point = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_counters *k = ibv_create_counters(r.context, &good);
	struct ibv_counters *other = ibv_create_counters(r.context, &good);
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .counters = k });

	cr_assert_not_null(flow, "%m");
	cr_expect_eq(ibv_attach_counters_point_flow(k, &point, NULL), EBUSY);
	cr_expect_eq(ibv_attach_counters_point_flow(other, &point, flow), ENOTSUP);
	cr_expect_eq(ibv_destroy_counters(k), EBUSY);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_counters(k), 0);
	cr_assert_eq(ibv_destroy_counters(other), 0);
}

/* ---- work queues ---- */

Test(refused_raw, work_queues)
{
	const struct ibv_wq_init_attr good = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = r.pd, .cq = r.cq
	};
	struct ibv_context *other = open_only_device();
	struct ibv_pd *foreign = ibv_alloc_pd(other);
	const struct {
		const char *what;
		uint32_t max_wr, max_sge, comp_mask, flags;
		struct ibv_pd *pd;
		struct ibv_cq *cq;
		int type, error;
	} cases[] = {
		{ "no PD", 8, 1, 0, 0, NULL, r.cq, 0, EINVAL },
		{ "no CQ", 8, 1, 0, 0, r.pd, NULL, 0, EINVAL },
		{ "another context's PD", 8, 1, 0, 0, foreign, r.cq, 0, EINVAL },
		{ "no requests", 0, 1, 0, 0, r.pd, r.cq, 0, EINVAL },
		{ "too many requests", 1u << 20, 1, 0, 0, r.pd, r.cq, 0, EINVAL },
		{ "all requests", UINT32_MAX, 1, 0, 0, r.pd, r.cq, 0, EINVAL },
		{ "too many elements", 8, 1000, 0, 0, r.pd, r.cq, 0, EINVAL },
		{ "another type", 8, 1, 0, 0, r.pd, r.cq, 1, EINVAL },
		{ "an unknown member", 8, 1, 4, 0, r.pd, r.cq, 0, EOPNOTSUPP },
		{ "FCS", 8, 1, IBV_WQ_INIT_ATTR_FLAGS, IBV_WQ_FLAGS_SCATTER_FCS, r.pd, r.cq, 0,
		  EOPNOTSUPP },
		{ "waiting instead of dropping", 8, 1, IBV_WQ_INIT_ATTR_FLAGS,
		  IBV_WQ_FLAGS_DELAY_DROP, r.pd, r.cq, 0, EOPNOTSUPP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_wq_init_attr init = good;

		init.max_wr = cases[i].max_wr;
		init.max_sge = cases[i].max_sge;
		init.comp_mask = cases[i].comp_mask;
		init.create_flags = cases[i].flags;
		init.pd = cases[i].pd;
		init.cq = cases[i].cq;
		init.wq_type = (enum ibv_wq_type)cases[i].type;
		REFUSED(ibv_create_wq(r.context, &init), cases[i].error, cases[i].what);
	}
	cr_assert_eq(ibv_dealloc_pd(foreign), 0);
	cr_assert_eq(ibv_close_device(other), 0);
}

Test(refused_raw, tables_and_queue_pairs_on_them)
{
	struct ibv_wq_init_attr init = {
		.wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1, .pd = r.pd, .cq = r.cq
	};
	struct ibv_wq *wq = ibv_create_wq(r.context, &init), *list[2] = { wq, NULL };
	struct ibv_rwq_ind_table_init_attr good = { .log_ind_tbl_size = 0, .ind_tbl = list };
	struct ibv_rwq_ind_table_init_attr hole = { .log_ind_tbl_size = 1, .ind_tbl = list };
	struct ibv_rwq_ind_table_init_attr large = { .log_ind_tbl_size = 9, .ind_tbl = list };
	struct ibv_rwq_ind_table_init_attr huge = { .log_ind_tbl_size = 32, .ind_tbl = list };
	struct ibv_rwq_ind_table_init_attr none = { .log_ind_tbl_size = 0 };
	struct ibv_rwq_ind_table_init_attr odd = { .ind_tbl = list, .comp_mask = 1 };
	struct ibv_rwq_ind_table *table = ibv_create_rwq_ind_table(r.context, &good);
	uint8_t key[40] = { 1 };
	const struct ibv_qp_init_attr_ex fine = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = r.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = { IBV_RX_HASH_FUNC_TOEPLITZ, sizeof(key), key,
				  IBV_RX_HASH_SRC_IPV4 },
	};
	const struct {
		const char *what;
		uint8_t function, length;
		uint8_t *key;
		uint64_t fields;
		uint32_t comp_mask;
		enum ibv_qp_type type;
		int error;
	} cases[] = {
		{ "no function", 0, 40, key, 1, 0, IBV_QPT_RAW_PACKET, EOPNOTSUPP },
		{ "another function", 2, 40, key, 1, 0, IBV_QPT_RAW_PACKET, EOPNOTSUPP },
		{ "a short key", 1, 39, key, 1, 0, IBV_QPT_RAW_PACKET, EINVAL },
		{ "no key", 1, 40, NULL, 1, 0, IBV_QPT_RAW_PACKET, EINVAL },
		{ "both versions of IP", 1, 40, key, 1 | 4, 0, IBV_QPT_RAW_PACKET, EINVAL },
		{ "TCP and UDP", 1, 40, key, 0x10 | 0x40, 0, IBV_QPT_RAW_PACKET, EINVAL },
		{ "IPsec", 1, 40, key, IBV_RX_HASH_IPSEC_SPI, 0, IBV_QPT_RAW_PACKET, EOPNOTSUPP },
		{ "inner headers", 1, 40, key, IBV_RX_HASH_INNER, 0, IBV_QPT_RAW_PACKET,
		  EOPNOTSUPP },
		{ "an unknown member", 1, 40, key, 1, IBV_QP_INIT_ATTR_XRCD, IBV_QPT_RAW_PACKET,
		  EOPNOTSUPP },
		{ "RC", 1, 40, key, 1, 0, IBV_QPT_RC, EINVAL },
	};

	cr_assert(wq != NULL && table != NULL, "%m");
	REFUSED(ibv_create_rwq_ind_table(r.context, &hole), EINVAL, "an entry that is none");
	REFUSED(ibv_create_rwq_ind_table(r.context, &large), EINVAL, "512 entries");
	REFUSED(ibv_create_rwq_ind_table(r.context, &huge), EINVAL, "2^32 entries");
	REFUSED(ibv_create_rwq_ind_table(r.context, &none), EINVAL, "no entries");
	REFUSED(ibv_create_rwq_ind_table(r.context, &odd), EOPNOTSUPP, "an unknown member");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr_ex qp = fine;

		qp.rx_hash_conf.rx_hash_function = cases[i].function;
		qp.rx_hash_conf.rx_hash_key_len = cases[i].length;
		qp.rx_hash_conf.rx_hash_key = cases[i].key;
		qp.rx_hash_conf.rx_hash_fields_mask = cases[i].fields;
		qp.comp_mask |= cases[i].comp_mask;
		qp.qp_type = cases[i].type;
		REFUSED(ibv_create_qp_ex(r.context, &qp), cases[i].error, cases[i].what);
	}
	cr_assert_eq(ibv_destroy_rwq_ind_table(table), 0);
	cr_assert_eq(ibv_destroy_wq(wq), 0);
}

/* ---- users without the privilege ---- */

#define NOBODY 65534

/* Refusals for an ordinary user; with CAP_NET_RAW everything is permitted. */
struct expectation {
	int error; /* 0: raw queue pairs are made */
};

/* The step with a wrong result; 0: none. */
static int try_raw(const struct expectation *x)
{
	struct ibv_qp_init_attr qp = { .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RAW_PACKET };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 8, .max_sge = 1 };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context =
		list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	if (context == NULL)
		return 1;
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	if (pd == NULL || cq == NULL)
		return 2;
	qp.send_cq = qp.recv_cq = wq.cq = cq;
	wq.pd = pd;
	errno = 0;
	if ((ibv_create_qp(pd, &qp) == NULL) != (x->error != 0) || errno != x->error)
		return 3;
	errno = 0;
	if ((ibv_create_wq(context, &wq) == NULL) != (x->error != 0) || errno != x->error)
		return 4;
	qp.qp_type = IBV_QPT_RC;
	if (ibv_create_qp(pd, &qp) == NULL)
		return 5;
	return ibv_close_device(context) != 0 ? 6 : 0;
}

/*
 * Changing the user drops all capabilities but CAP_NET_RAW, and that one, too, unless it is kept.
 */
static bool become_ordinary(bool keep)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { .effective = 1u << CAP_NET_RAW,
						    .permitted = 1u << CAP_NET_RAW } };

	if (keep && prctl(PR_SET_KEEPCAPS, 1) != 0)
		return false;
	if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
		return false;
	if (keep && syscall(SYS_capset, &head, data) != 0)
		return false;
	/* so that the library may open this process's memory again */
	return prctl(PR_SET_DUMPABLE, 1) == 0;
}

static void expect_in_child(bool keep, struct expectation x)
{
	uint64_t before = engine_objects();
	pid_t child = fork();
	int status;

	if (child == 0)
		_exit(become_ordinary(keep) ? try_raw(&x) : 7);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "step %d", WEXITSTATUS(status));
	for (int i = 0; i < WAIT_SECONDS * 100 && engine_objects() != before; i++)
		usleep(10000);
	cr_expect_eq(engine_objects(), before);
}

Test(refused_raw, an_ordinary_user)
{
	expect_in_child(false, (struct expectation){ EPERM });
}

Test(refused_raw, a_user_with_the_capability)
{
	expect_in_child(true, (struct expectation){ 0 });
}
