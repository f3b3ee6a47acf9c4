/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups: which queue pairs get a copy and may join, and how many. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rig/engine_objects.h"
#include "rig/ud.h"

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(multicast, .init = setup, .fini = teardown, .timeout = 60);

static struct ibv_ah *to_group(union ibv_gid group)
{
	struct ibv_ah_attr attr = ud_to_self(&e);
	struct ibv_ah *ah;

	attr.grh.dgid = group;
	ah = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(ah, "%m");
	return ah;
}

#define MEMBERS 6

/* Counts how often each queue pair received among n completions of receives and one of a send. */
static void count_copies(struct ibv_qp **qp, int n, int *copies)
{
	struct ibv_wc wc[MEMBERS + 1];

	memset(copies, 0, MEMBERS * sizeof(*copies));
	poll_completions(e.cq, wc, n + 1, "copies for all members");
	for (int i = 0; i <= n; i++) {
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
		for (int k = 0; wc[i].opcode == IBV_WC_RECV && k < MEMBERS; k++)
			if (wc[i].qp_num == qp[k]->qp_num) {
				copies[k]++;
				cr_expect_arr_eq(e.buffer + wc[i].wr_id + GRH, e.buffer + 8192, 64);
			}
	}
	ud_silent(e.cq, "more copies than members");
}

/* hostile H-64: one datagram for many. */
Test(multicast, every_member_of_a_group_gets_a_copy)
{
	union ibv_gid group = ipv4_gid(239, 7, 7, 7);
	struct ibv_qp *qp[MEMBERS];
	struct ibv_ah *ah = to_group(group);
	int copies[MEMBERS];

	/* [0..2] are members, [3] has another Q_Key, [4] no receive, [5] is none */
	for (int i = 0; i < MEMBERS; i++) {
		qp[i] = ud_open(&e, i == 3 ? UD_QKEY + 1 : UD_QKEY);
		if (i != 5)
			cr_assert_eq(ibv_attach_mcast(qp[i], &group, 0), 0);
		for (int k = 0; i != 4 && k < 4; k++)
			ud_receive(&e, qp[i], (uint32_t)(i * 256), 128);
	}
	cr_expect_eq(ibv_attach_mcast(qp[0], &group, 0), 0, "once more");
	memset(e.buffer + 8192, 0x77, 64);
	cr_assert_eq(ud_send(&e, qp[0], ah, 0xffffff, UD_QKEY, 8192, 64), 0);
	count_copies(qp, 3, copies);
	cr_expect(copies[0] == 1 && copies[1] == 1 && copies[2] == 1);
	cr_expect_eq(engine_listed_qp(qp[1]->qp_num).received, 1, "its copy counts");
	/* addressed to one queue pair at the group's address: only if it is a member */
	cr_assert_eq(ud_send(&e, qp[0], ah, qp[1]->qp_num, UD_QKEY, 8192, 64), 0);
	count_copies(qp, 1, copies);
	cr_expect_eq(copies[1], 1);
	cr_assert_eq(ud_send(&e, qp[0], ah, qp[5]->qp_num, UD_QKEY, 8192, 64), 0);
	ud_sent_alone(e.cq, "not a member");
	cr_expect_eq(ibv_destroy_qp(qp[1]), EBUSY);
	cr_expect_eq(ibv_detach_mcast(qp[1], &group, 0), 0);
	cr_expect_eq(ibv_detach_mcast(qp[1], &group, 0), EINVAL, "it has left");
	cr_assert_eq(ud_send(&e, qp[5], ah, 0xffffff, UD_QKEY, 8192, 64), 0);
	count_copies(qp, 2, copies);
	cr_expect(copies[0] == 1 && copies[2] == 1);
	for (int i = 0; i < MEMBERS; i++) {
		if (i != 1 && i != 5)
			cr_expect_eq(ibv_detach_mcast(qp[i], &group, 0), 0);
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	}
	cr_expect_eq(ibv_destroy_ah(ah), 0);
}

/* hostile H-63: endless groups. */
Test(multicast, wrong_groups_are_refused)
{
	union ibv_gid group = ipv4_gid(239, 7, 7, 8), unicast = ipv4_gid(10, 0, 0, 1), zero = { 0 };
	struct ibv_qp *qp = ud_open(&e, UD_QKEY), *uc = ud_create(&e, IBV_QPT_UC);

	cr_assert_not_null(uc);
	cr_expect_eq(ibv_attach_mcast(e.qp[0], &group, 0), EINVAL, "RC");
	cr_expect_eq(ibv_attach_mcast(uc, &group, 0), EINVAL, "UC");
	cr_expect_eq(ibv_attach_mcast(qp, &unicast, 0), EINVAL, "no group");
	cr_expect_eq(ibv_attach_mcast(qp, &e.gid, 0), EINVAL, "our own address");
	cr_expect_eq(ibv_attach_mcast(qp, &zero, 0), EINVAL, "nothing");
	cr_expect_eq(ibv_attach_mcast(qp, NULL, 0), EINVAL, "no GID");
	cr_expect_eq(ibv_detach_mcast(qp, &group, 0), EINVAL, "not attached");
	cr_expect_eq(ibv_destroy_qp(uc), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* hostile H-63: endless groups. */
Test(multicast, as_many_groups_and_members_as_announced)
{
	struct ibv_device_attr attr;
	union ibv_gid group;
	struct ibv_qp **qp;
	int n;

	cr_assert_eq(ibv_query_device(e.context, &attr), 0);
	n = attr.max_mcast_qp_attach;
	qp = calloc((size_t)n + 1, sizeof(*qp));
	for (int i = 0; i <= n; i++)
		qp[i] = ud_open(&e, UD_QKEY);
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		group = ipv4_gid(239, 9, (uint8_t)(i >> 8), (uint8_t)i);
		cr_assert_eq(ibv_attach_mcast(qp[0], &group, 0), 0, "group %d", i);
	}
	for (int i = 1; i < n; i++)
		cr_assert_eq(ibv_attach_mcast(qp[i], &group, 0), 0, "member %d", i);
	cr_expect_eq(ibv_attach_mcast(qp[n], &group, 0), ENOMEM, "one member too many");
	group = ipv4_gid(239, 10, 0, 0);
	cr_expect_eq(ibv_attach_mcast(qp[n], &group, 0), ENOMEM, "one group too many");
	cr_expect_eq(ibv_destroy_qp(qp[n]), 0, "a failed attach leaves nothing behind");
	for (int i = 0; i < attr.max_mcast_grp; i++) {
		group = ipv4_gid(239, 9, (uint8_t)(i >> 8), (uint8_t)i);
		cr_expect_eq(ibv_detach_mcast(qp[0], &group, 0), 0);
	}
	for (int i = 1; i < n; i++)
		cr_expect_eq(ibv_detach_mcast(qp[i], &group, 0), 0);
	for (int i = 0; i < n; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	free(qp);
}

/*
 * Members come and go while others send to the group.
 * hostile H-63: endless groups.
 */
Test(multicast, a_group_changes_during_delivery)
{
	union ibv_gid group = ipv4_gid(239, 7, 7, 9);
	struct ibv_qp *a = ud_open(&e, UD_QKEY), *steady = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = to_group(group);
	struct ibv_wc wc;

	cr_assert_eq(ibv_attach_mcast(steady, &group, 0), 0);
	for (int i = 0; i < 200; i++) {
		struct ibv_qp *other = ud_open(&e, UD_QKEY);
		int received = 0, sent = 0;

		cr_assert_eq(ibv_attach_mcast(other, &group, 0), 0);
		ud_receive(&e, steady, 0, 128);
		cr_assert_eq(ud_send(&e, a, ah, 0xffffff, UD_QKEY, 8192, 64), 0);
		cr_assert_eq(ibv_detach_mcast(other, &group, 0), 0);
		cr_assert_eq(ibv_destroy_qp(other), 0);
		while (received + sent < 2) {
			poll_completions(e.cq, &wc, 1, "the steady member's copy");
			cr_assert_eq(wc.status, IBV_WC_SUCCESS);
			received += wc.opcode == IBV_WC_RECV;
			sent += wc.opcode == IBV_WC_SEND;
		}
	}
	cr_expect_eq(ibv_detach_mcast(steady, &group, 0), 0);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(steady), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
}
