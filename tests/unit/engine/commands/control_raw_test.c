/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of raw packets from a client that sends what it pleases: unknown handles, handles of
 * another kind or another client, numbers out of range. Runs privileged: the client is root.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/control_rig.h"

TestSuite(control_raw, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

struct raw_objects {
	struct objects o;
	uint32_t raw, wq, table, rss, flow, counters;
};

static int create_raw(int fd, const struct objects *o, uint16_t flags, uint32_t sends,
		      uint32_t *handle)
{
	struct request_create_qp q = { .pd = o->pd,
				       .type = QP_TYPE_RAW_PACKET,
				       .send_cq = o->cq,
				       .recv_cq = o->cq,
				       .max_send_wr = sends,
				       .max_recv_wr = 4,
				       .max_send_sge = 1,
				       .max_recv_sge = 1,
				       .raw_flags = flags };
	struct reply_create_qp r;
	int error = create_qp(fd, &q, &r);

	*handle = error == 0 ? r.handle : 0;
	return error;
}

static int create_table(int fd, uint32_t context, uint32_t log_size, uint32_t wq, uint32_t *handle)
{
	struct request_create_rwq_table q = { .context = context, .log_size = log_size };
	struct reply_handle r;
	int error;

	for (uint32_t i = 0; i < LIMIT_RWQ_TABLE; i++)
		q.wq[i] = wq;
	error = ask(fd, COMMAND_CREATE_RWQ_TABLE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
	*handle = error == 0 ? r.handle : 0;
	return error;
}

static int create_rss(int fd, uint32_t pd, uint32_t table, uint32_t fields, uint32_t *handle)
{
	struct request_create_rss q = { .pd = pd, .table = table, .fields = fields };
	struct reply_handle r;
	int error = ask(fd, COMMAND_CREATE_RSS, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*handle = error == 0 ? r.handle : 0;
	return error;
}

static int create_flow(int fd, struct request_create_flow q, uint32_t *handle)
{
	struct reply_handle r;
	int error = ask(fd, COMMAND_CREATE_FLOW, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*handle = error == 0 ? r.handle : 0;
	return error;
}

static void make_all(int fd, struct raw_objects *x)
{
	make_objects(fd, &x->o);
	cr_assert_eq(create_raw(fd, &x->o, 0, 4, &x->raw), 0);
	cr_assert_eq(create_raw(fd, &x->o, RAW_WQ, 0, &x->wq), 0);
	cr_assert_eq(create_table(fd, x->o.context, 3, x->wq, &x->table), 0);
	cr_assert_eq(create_rss(fd, x->o.pd, x->table, 3, &x->rss), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_CREATE_COUNTERS, x->o.context, &x->counters), 0);
	cr_assert_eq(
		create_flow(fd,
			    (struct request_create_flow){ .rss = x->rss, .counters = x->counters },
			    &x->flow),
		0);
}

static uint32_t raw_objects_left(void)
{
	struct reply_statistics s;
	uint32_t n = 0;

	statistics(&s);
	for (uint32_t kind = 0; kind < STATISTICS_KINDS; kind++)
		n += s.objects[kind];
	return n;
}

Test(control_raw, a_client_that_goes_takes_all_of_it_along)
{
	struct raw_objects x;
	int fd = attach();

	make_all(fd, &x);
	close(fd);
	expect_counts(0, 0, 0, 0);
	cr_assert_eq(raw_objects_left(), 0);
	expect_serving();
}

Test(control_raw, in_use_until_what_leads_to_it_is_gone)
{
	struct raw_objects x;
	int fd = attach();

	make_all(fd, &x);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, x.wq, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_RWQ_TABLE, x.table, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_RSS, x.rss, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_COUNTERS, x.counters, NULL), EBUSY);
	cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, x.o.pd, NULL), EBUSY);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, x.flow, NULL), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_RSS, x.rss, NULL), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_RWQ_TABLE, x.table, NULL), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_QP, x.wq, NULL), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_COUNTERS, x.counters, NULL), 0);
	close(fd);
}

Test(control_raw, queue_pairs_that_contradict_themselves)
{
	static const struct {
		const char *what;
		uint32_t type, flags, tso, sends, receives, srq;
	} cases[] = {
		{ "an unknown flag", QP_TYPE_RAW_PACKET, 0x8000, 0, 4, 4, 0 },
		{ "all flags", QP_TYPE_RAW_PACKET, 0xffff, 0, 4, 4, 0 },
		{ "a work queue that sends", QP_TYPE_RAW_PACKET, RAW_WQ, 0, 4, 4, 0 },
		{ "a work queue of nothing", QP_TYPE_RAW_PACKET, RAW_WQ, 0, 0, 0, 0 },
		{ "an SRQ", QP_TYPE_RAW_PACKET, 0, 0, 4, 4, 77 },
		{ "a long TSO header", QP_TYPE_RAW_PACKET, 0, LIMIT_TSO_HEADER + 1, 4, 4, 0 },
		{ "a work queue of RC", QP_TYPE_RC, RAW_WQ, 0, 0, 4, 0 },
		{ "tags on UD", QP_TYPE_UD, RAW_STRIP_VLAN, 0, 4, 4, 0 },
		{ "a long TSO header on UD", QP_TYPE_UD, 0, LIMIT_TSO_HEADER + 1, 4, 4, 0 },
		{ "TSO on UC", QP_TYPE_UC, 0, 64, 4, 4, 0 },
	};
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request_create_qp q = { .pd = o.pd,
					       .type = cases[i].type,
					       .send_cq = o.cq,
					       .recv_cq = o.cq,
					       .srq = cases[i].srq,
					       .max_send_wr = cases[i].sends,
					       .max_recv_wr = cases[i].receives,
					       .max_send_sge = 1,
					       .max_recv_sge = 1,
					       .raw_flags = (uint16_t)cases[i].flags,
					       .max_tso_header = (uint16_t)cases[i].tso };
		struct reply_create_qp r;

		cr_expect_eq(create_qp(fd, &q, &r), EINVAL, "%s", cases[i].what);
	}
	close(fd);
}

/* hostile H-117: handles of others. */
Test(control_raw, handles_of_others)
{
	struct raw_objects x, other;
	int fd = attach(), there = attach();
	uint32_t made;

	/* The other client has more objects of each kind: its last handles are unknown here. */
	make_all(fd, &x);
	make_all(there, &other);
	make_all(there, &other);
	cr_expect_eq(create_table(fd, x.o.context, 0, other.wq, &made), EINVAL);
	cr_expect_eq(create_table(fd, other.o.context, 0, x.wq, &made), EINVAL);
	cr_expect_eq(create_rss(fd, other.o.pd, x.table, 0, &made), EINVAL);
	cr_expect_eq(create_rss(fd, x.o.pd, other.table, 0, &made), EINVAL);
	cr_expect_eq(create_flow(fd, (struct request_create_flow){ .rss = other.rss }, &made),
		     EINVAL);
	cr_expect_eq(create_flow(fd, (struct request_create_flow){ .qp = other.raw }, &made),
		     EINVAL);
	cr_expect_eq(
		create_flow(fd,
			    (struct request_create_flow){ .qp = x.raw, .counters = other.counters },
			    &made),
		EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, other.flow, NULL), EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_COUNTERS, other.counters, NULL), EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_RSS, other.rss, NULL), EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_RWQ_TABLE, other.table, NULL), EINVAL);
	close(fd);
	close(there);
}

Test(control_raw, handles_of_another_kind_and_of_another_context)
{
	struct raw_objects x;
	struct objects second;
	int fd = attach();
	uint32_t made;

	make_all(fd, &x);
	make_objects(fd, &second);
	cr_expect_eq(create_table(fd, x.o.context, 0, x.raw, &made), EINVAL, "not a work queue");
	cr_expect_eq(create_table(fd, x.o.context, 0, x.o.qp, &made), EINVAL, "an RC queue pair");
	cr_expect_eq(create_table(fd, second.context, 0, x.wq, &made), EINVAL, "another context's");
	cr_expect_eq(create_rss(fd, second.pd, x.table, 0, &made), EINVAL, "another context's PD");
	cr_expect_eq(create_flow(fd, (struct request_create_flow){ .qp = x.o.qp }, &made), EINVAL,
		     "RC");
	cr_expect_eq(create_flow(fd, (struct request_create_flow){ .qp = x.wq }, &made), EINVAL,
		     "a work queue alone");
	close(fd);
}

/* A context that is closed takes its counters along, and lcores would go on counting there. */
Test(control_raw, rules_do_not_count_for_another_context)
{
	struct request_attach_counters q = { 0 };
	struct reply_empty reply;
	struct raw_objects x;
	struct objects second;
	int fd = attach();

	make_all(fd, &x);
	make_objects(fd, &second);
	cr_assert_eq(create_flow(fd, (struct request_create_flow){ .qp = x.raw }, &q.flow), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_CREATE_COUNTERS, second.context, &q.counters), 0);
	cr_expect_eq(ask(fd, COMMAND_ATTACH_COUNTERS, &q.h, sizeof(q), &reply.h, sizeof(reply),
			 NULL, NULL),
		     EINVAL);
	q.counters = x.counters;
	cr_expect_eq(ask(fd, COMMAND_ATTACH_COUNTERS, &q.h, sizeof(q), &reply.h, sizeof(reply),
			 NULL, NULL),
		     0);
	cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, second.context, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, q.flow, NULL), 0);
	close(fd);
}

Test(control_raw, rules_out_of_range)
{
	struct raw_objects x;
	int fd = attach();
	uint32_t made;

	make_all(fd, &x);
	const struct {
		const char *what;
		struct request_create_flow q;
	} cases[] = {
		{ "nobody", { .kind = 0 } },
		{ "two targets", { .qp = x.raw, .rss = x.rss } },
		{ "a kind", { .qp = x.raw, .kind = FLOW_KINDS } },
		{ "all kinds", { .qp = x.raw, .kind = UINT32_MAX } },
		{ "a layer", { .qp = x.raw, .layers = FLOW_LAYERS + 1 } },
		{ "an action", { .qp = x.raw, .actions = FLOW_ACTIONS + 1 } },
		{ "a priority", { .qp = x.raw, .priority = 65536 } },
		{ "a sniffer that looks", { .qp = x.raw, .kind = FLOW_SNIFFER, .layers = 1 } },
		{ "a default that drops",
		  { .qp = x.raw, .kind = FLOW_ALL_DEFAULT, .actions = FLOW_DROP } },
		{ "counters", { .qp = x.raw, .counters = 9999 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(create_flow(fd, cases[i].q, &made), EINVAL, "%s", cases[i].what);
	close(fd);
}

Test(control_raw, tables_and_hashes_out_of_range)
{
	struct raw_objects x;
	int fd = attach();
	uint32_t made;

	make_all(fd, &x);
	cr_expect_eq(create_table(fd, x.o.context, 8, x.wq, &made), 0, "256 are allowed");
	cr_expect_eq(create_table(fd, x.o.context, 9, x.wq, &made), EINVAL);
	cr_expect_eq(create_table(fd, x.o.context, 32, x.wq, &made), EINVAL);
	cr_expect_eq(create_table(fd, x.o.context, UINT32_MAX, x.wq, &made), EINVAL);
	cr_expect_eq(create_rss(fd, x.o.pd, x.table, 5, &made), EINVAL, "IPv4 and IPv6");
	cr_expect_eq(create_rss(fd, x.o.pd, x.table, 0x100, &made), EOPNOTSUPP);
	cr_expect_eq(create_rss(fd, x.o.pd, x.table, UINT32_MAX, &made), EOPNOTSUPP);
	close(fd);
}

static int modify_wq(int fd, struct request_modify_wq q)
{
	struct reply_modify_qp r;

	return ask(fd, COMMAND_MODIFY_WQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

Test(control_raw, work_queues_are_changed_as_such)
{
	struct raw_objects x;
	int fd = attach();

	make_all(fd, &x);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = x.raw, .mask = 1 }), EINVAL);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = x.o.qp, .mask = 1 }), EINVAL);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = 0, .mask = 1 }), EINVAL);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = x.wq, .mask = 8 }), EINVAL);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = x.wq, .mask = 1, .state = 3 }),
		     EINVAL);
	cr_expect_eq(
		modify_wq(fd,
			  (struct request_modify_wq){ .wq = x.wq, .mask = 1, .state = UINT32_MAX }),
		EINVAL);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = x.wq,
							       .mask = 4,
							       .flags_mask = UINT32_MAX }),
		     EOPNOTSUPP);
	cr_expect_eq(modify_wq(fd, (struct request_modify_wq){ .wq = x.wq, .mask = 1, .state = 1 }),
		     0);
	close(fd);
}

/* hostile H-122: as many as can be had, and more. */
Test(control_raw, every_rule_there_may_be_and_no_more)
{
	struct raw_objects x;
	int fd = attach();
	uint32_t made, n = 1;

	make_all(fd, &x);
	while (create_flow(fd, (struct request_create_flow){ .qp = x.raw }, &made) == 0)
		n++;
	cr_expect_eq(n, LIMIT_FLOWS);
	cr_expect_eq(create_flow(fd, (struct request_create_flow){ .qp = x.raw }, &made), ENOMEM);
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_FLOW, x.flow, NULL), 0);
	cr_expect_eq(create_flow(fd, (struct request_create_flow){ .qp = x.raw }, &made), 0);
	close(fd);
	expect_counts(0, 0, 0, 0);
}
