/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of shared receive queues and XRC from a client that does not use the library: wrong
 * and foreign handles, values out of range; and the objects left afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/control_rig.h"
#include "lcore/inside.h"
#include "lcore/xrc.h"

TestSuite(control_srq, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static int create_srq(int fd, struct request_create_srq q, struct reply_create_srq *r)
{
	return ask(fd, COMMAND_CREATE_SRQ, &q.h, sizeof(q), &r->h, sizeof(*r), NULL, NULL);
}

static int modify_srq(int fd, struct request_modify_srq q)
{
	struct reply_modify_srq r;

	return ask(fd, COMMAND_MODIFY_SRQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int open_xrcd(int fd, uint32_t context, uint32_t flags, int file, uint32_t *handle)
{
	struct request_open_xrcd q = { .context = context, .flags = flags };
	struct carrier_descriptors in = { .fd = { file }, .count = 1 };
	struct reply_handle r;
	int error = ask(fd, COMMAND_OPEN_XRCD, &q.h, sizeof(q), &r.h, sizeof(r),
			file >= 0 ? &in : NULL, NULL);

	if (handle != NULL)
		*handle = r.handle;
	return error;
}

static int open_qp(int fd, uint32_t xrcd, uint32_t qpn, uint32_t type)
{
	struct request_open_qp q = { .xrcd = xrcd, .qpn = qpn, .type = type };
	struct reply_create_qp r;

	return ask(fd, COMMAND_OPEN_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int create_target(int fd, uint32_t xrcd, struct reply_create_qp *r)
{
	struct request_create_qp q = { .type = QP_TYPE_XRC_RECV, .xrcd = xrcd };

	return create_qp(fd, &q, r);
}

/* hostile H-107: sizes that may not be; H-143: sizes of rings. */
Test(control_srq, values_that_no_srq_has)
{
	int fd = attach(), other = attach();
	struct objects o, foreign;
	struct reply_create_srq r;
	uint32_t xrcd, their_xrcd;

	make_objects(fd, &o);
	make_objects(other, &foreign);
	cr_assert_eq(open_xrcd(fd, o.context, XRCD_CREATE, -1, &xrcd), 0);
	cr_assert_eq(open_xrcd(other, foreign.context, XRCD_CREATE, -1, &their_xrcd), 0);
	cr_assert_eq(open_xrcd(other, foreign.context, XRCD_CREATE, -1, &their_xrcd), 0);
	const struct {
		const char *what;
		struct request_create_srq q;
		int error;
	} cases[] = {
		{ "no PD", { .max_wr = 1 }, EINVAL },
		{ "a wild PD", { .pd = UINT32_MAX, .max_wr = 1 }, EINVAL },
		{ "no requests", { .pd = o.pd }, EINVAL },
		{ "too many", { .pd = o.pd, .max_wr = LIMIT_QP_WR + 1 }, EINVAL },
		{ "all numbers", { .pd = o.pd, .max_wr = UINT32_MAX }, EINVAL },
		{ "elements", { .pd = o.pd, .max_wr = 1, .max_sge = LIMIT_SGE + 1 }, EINVAL },
		{ "all elements", { .pd = o.pd, .max_wr = 1, .max_sge = UINT32_MAX }, EINVAL },
		{ "a limit above", { .pd = o.pd, .max_wr = 1, .limit = 2 }, EINVAL },
		{ "tag matching without a CQ",
		  { .pd = o.pd, .max_wr = 1, .type = 2, .max_tags = 1, .max_ops = 1 },
		  EINVAL },
		{ "tag matching with a CQ of another program",
		  { .pd = o.pd,
		    .max_wr = 1,
		    .type = 2,
		    .cq = UINT32_MAX,
		    .max_tags = 1,
		    .max_ops = 1 },
		  EINVAL },
		{ "no tags",
		  { .pd = o.pd, .max_wr = 1, .type = 2, .cq = o.cq, .max_ops = 1 },
		  EINVAL },
		{ "more tags than a list has",
		  { .pd = o.pd,
		    .max_wr = 1,
		    .type = 2,
		    .cq = o.cq,
		    .max_tags = LIMIT_TAGS + 1,
		    .max_ops = 1 },
		  EINVAL },
		{ "all tags",
		  { .pd = o.pd,
		    .max_wr = 1,
		    .type = 2,
		    .cq = o.cq,
		    .max_tags = UINT32_MAX,
		    .max_ops = 1 },
		  EINVAL },
		{ "no operations",
		  { .pd = o.pd, .max_wr = 1, .type = 2, .cq = o.cq, .max_tags = 1 },
		  EINVAL },
		{ "all operations",
		  { .pd = o.pd,
		    .max_wr = 1,
		    .type = 2,
		    .cq = o.cq,
		    .max_tags = 1,
		    .max_ops = UINT32_MAX },
		  EINVAL },
		{ "no such type", { .pd = o.pd, .max_wr = 1, .type = 99 }, EOPNOTSUPP },
		{ "XRC of no domain", { .pd = o.pd, .max_wr = 1, .type = 1, .cq = o.cq }, EINVAL },
		{ "another program's domain",
		  { .pd = o.pd, .max_wr = 1, .type = 1, .cq = o.cq, .xrcd = their_xrcd },
		  EINVAL },
		{ "XRC without a CQ",
		  { .pd = o.pd, .max_wr = 1, .type = 1, .xrcd = xrcd },
		  EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		cr_expect_eq(create_srq(fd, cases[i].q, &r), cases[i].error, "%s", cases[i].what);
	close(fd);
	close(other);
	expect_counts(0, 0, 0, 0);
}

/* hostile H-117: handles of others. */
Test(control_srq, handles_of_nobody_and_of_others)
{
	int fd = attach(), other = attach();
	struct request_create_srq q = { .max_wr = 4, .max_sge = 1 };
	struct reply_create_srq r;
	struct objects o, foreign;

	make_objects(fd, &o);
	make_objects(other, &foreign);
	q.pd = o.pd;
	cr_assert_eq(create_srq(fd, q, &r), 0);
	const uint32_t wrong[] = { 0, r.handle + 1, LIMIT_SRQS, LIMIT_SRQS + 1, UINT32_MAX };
	const enum command commands[] = { COMMAND_QUERY_SRQ, COMMAND_DESTROY_SRQ,
					  COMMAND_CLOSE_XRCD };

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct request_modify_srq m = { .srq = wrong[i], .mask = SRQ_ATTR_LIMIT };

		for (size_t c = 0; c < ARRAY_SIZE(commands); c++)
			cr_expect_eq(ask_handle(fd, commands[c], wrong[i], NULL), EINVAL);
		cr_expect_eq(modify_srq(fd, m), EINVAL);
	}
	cr_expect_eq(ask_handle(other, COMMAND_DESTROY_SRQ, r.handle, NULL), EINVAL,
		     "another program's");
	cr_expect_eq(modify_srq(fd, (struct request_modify_srq){ .srq = r.handle,
								 .mask = UINT32_MAX,
								 .max_wr = 2 }),
		     EINVAL);
	close(fd);
	close(other);
	expect_counts(0, 0, 0, 0);
}

/* hostile H-41 */
Test(control_srq, targets_of_nobody_and_of_others)
{
	int fd = attach(), other = attach();
	struct request_modify_qp m = { .mask = QP_ATTR_STATE };
	struct reply_modify_qp modified;
	struct reply_create_qp target, none;
	struct objects o, foreign;
	uint32_t xrcd, theirs;

	make_objects(fd, &o);
	make_objects(other, &foreign);
	cr_assert_eq(open_xrcd(fd, o.context, XRCD_CREATE, -1, &xrcd), 0);
	cr_assert_eq(open_xrcd(other, foreign.context, XRCD_CREATE, -1, &theirs), 0);
	cr_assert_eq(create_target(fd, xrcd, &target), 0);
	cr_expect_eq(create_target(fd, 0, &none), EINVAL);
	cr_expect_eq(create_target(fd, UINT32_MAX, &none), EINVAL);
	cr_expect_eq(open_qp(fd, xrcd, 0, QP_TYPE_XRC_RECV), EINVAL);
	cr_expect_eq(open_qp(fd, xrcd, UINT32_MAX, QP_TYPE_XRC_RECV), EINVAL);
	cr_expect_eq(open_qp(fd, xrcd, target.qpn, QP_TYPE_RC), EINVAL);
	cr_expect_eq(open_qp(fd, 77, target.qpn, QP_TYPE_XRC_RECV), EINVAL);
	cr_expect_eq(open_qp(other, theirs, target.qpn, QP_TYPE_XRC_RECV), EINVAL,
		     "of a domain that the other program did not open");
	cr_expect_eq(ask_handle(other, COMMAND_QUERY_QP, target.handle, NULL), EINVAL);
	cr_expect_eq(ask_handle(other, COMMAND_DESTROY_QP, target.handle, NULL), EINVAL);
	const uint32_t wild[] = { TARGET_HANDLE, target.handle + 1, TARGET_HANDLE | LIMIT_QPS,
				  UINT32_MAX };

	for (size_t i = 0; i < ARRAY_SIZE(wild); i++) {
		m.qp = wild[i];
		cr_expect_eq(ask(fd, COMMAND_MODIFY_QP, &m.h, sizeof(m), &modified.h,
				 sizeof(modified), NULL, NULL),
			     EINVAL);
		cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_QP, wild[i], NULL), EINVAL);
	}
	cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_XRCD, xrcd, NULL), EBUSY);
	/* Closed with everything in it. */
	cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, o.context, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_QUERY_QP, target.handle, NULL), EINVAL);
	close(fd);
	close(other);
	expect_counts(0, 0, 0, 0);
}

/*
 * A domain holds its file's inode and nothing else; a client that has all it may gets an
 * answer.
 * hostile H-122: as many as can be had, and more.
 */
Test(control_srq, domains_cost_a_descriptor_each_and_have_a_limit)
{
	int fd = attach(), before = count_descriptors(), error = 0;
	uint32_t context = open_context(fd), n;

	for (n = 0; n <= LIMIT_CLIENT_XRCDS && error == 0; n++)
		error = open_xrcd(fd, context, XRCD_CREATE, n == 0 ? fd : -1, NULL);
	cr_expect_eq(error, ENOMEM);
	cr_expect_eq(n, LIMIT_CLIENT_XRCDS + 1);
	cr_expect_eq(open_xrcd(fd, context, 1u << 7, -1, NULL), EINVAL);
	cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
	expect_descriptors(before);
	close(fd);
	expect_counts(0, 0, 0, 0);
}
