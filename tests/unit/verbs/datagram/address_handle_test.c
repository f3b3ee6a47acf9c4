/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: their attributes, their number, and requests whose handle is gone or forged. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rig/ud.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

static struct endpoint e;

static void setup(void)
{
	endpoint_open(&e);
}

static void teardown(void)
{
	endpoint_close(&e);
}

TestSuite(address_handle, .init = setup, .fini = teardown, .timeout = 60);

Test(address_handle, wrong_address_handles_are_refused)
{
	struct ibv_ah_attr good = ud_to_self(&e), row[6];

	for (size_t i = 0; i < ROWS(row); i++)
		row[i] = good;
	row[0].is_global = 0;
	row[1].port_num = 0;
	row[2].port_num = 2;
	row[3].grh.sgid_index = 15; /* an empty entry */
	row[4].grh.sgid_index = 0; /* IPv6, towards IPv4 */
	memset(&row[5].grh.dgid, 0, sizeof(row[5].grh.dgid));
	errno = 0;
	cr_expect_null(ibv_create_ah(e.pd, NULL));
	cr_expect_eq(errno, EINVAL);
	for (size_t i = 0; i < ROWS(row); i++) {
		errno = 0;
		cr_expect_null(ibv_create_ah(e.pd, &row[i]), "row %zu", i);
		cr_expect_eq(errno, EINVAL, "row %zu: %s", i, strerror(errno));
	}
}

Test(address_handle, no_remote_address_resolves_on_a_local_device)
{
	struct ibv_ah_attr attr = ud_to_self(&e);
	uint16_t vid = 0;
	uint8_t mac[6];

	attr.grh.dgid = ipv4_gid(192, 0, 2, 1);
	errno = 0;
	cr_expect_null(ibv_create_ah(e.pd, &attr));
	cr_expect_eq(errno, EHOSTUNREACH, "%s", strerror(errno));
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vid), EHOSTUNREACH);
}

Test(address_handle, own_addresses_and_groups_resolve_at_once)
{
	struct ibv_ah_attr attr = ud_to_self(&e);
	uint8_t mac[6] = { 0 };
	struct ibv_ah *ah;
	uint16_t vid = 0;

	ah = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(ah, "%m");
	cr_expect_eq(ibv_dealloc_pd(e.pd), EBUSY, "the handle is in it");
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_resolve_eth_l2_from_gid(e.context, &attr, mac, &vid), 0);
	cr_expect_eq(vid, 0xffff, "untagged");
	cr_expect_eq(mac[0] & 1, 0);
	cr_expect_neq(mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5], 0);
	attr.grh.dgid = ipv4_gid(239, 1, 2, 3);
	ah = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(ah, "%m");
	cr_expect_eq(ibv_destroy_ah(ah), 0);
}

Test(address_handle, an_address_handle_from_a_received_datagram)
{
	/* after 20 unused octets: IPv4, TOS 8, TTL 7, 127.0.0.1 -> 127.0.0.1 */
	static const uint8_t ip4[20] = { 0x45, 8, 0,   64, 0, 0, 0x40, 0, 7, 17,
					 0,    0, 127, 0,  0, 1, 127,  0, 0, 1 };
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH, .sl = 8 | 2 };
	uint8_t octets[40] = { 0 };
	struct ibv_grh *grh = (struct ibv_grh *)octets;
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	memcpy(octets + 20, ip4, 20);
	cr_assert_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), 0, "%m");
	cr_expect_eq(attr.sl, 0, "the kind of the frame is no service level");
	cr_expect_eq(attr.is_global, 1);
	cr_expect_eq(attr.port_num, 1);
	cr_expect_eq(attr.grh.sgid_index, GID_INDEX);
	cr_expect_eq(attr.grh.hop_limit, 7);
	cr_expect_eq(attr.grh.traffic_class, 8);
	cr_expect_arr_eq(attr.grh.dgid.raw, e.gid.raw, 16);
	ah = ibv_create_ah_from_wc(e.pd, &wc, grh, 1);
	cr_assert_not_null(ah, "%m");
	cr_expect_eq(ibv_destroy_ah(ah), 0);

	/*
	 * IPv6: traffic class 0x12, flow label 0x34567, hop limit 9, from and to our link-local
	 * address
	 */
	memcpy(octets, "\x61\x23\x45\x67\x00\x10\x11\x09", 8);
	cr_assert_eq(ibv_query_gid(e.context, 1, 0, &grh->sgid), 0);
	grh->dgid = grh->sgid;
	cr_assert_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), 0, "%m");
	cr_expect_eq(attr.grh.sgid_index, 0);
	cr_expect_eq(attr.grh.hop_limit, 9);
	cr_expect_eq(attr.grh.traffic_class, 0x12);
	cr_expect_eq(attr.grh.flow_label, 0x34567);

	errno = 0;
	grh->dgid.raw[15] ^= 1;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), -1, "not our address");
	cr_expect_eq(errno, ENOENT);
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 2, &wc, grh, &attr), -1, "no such port");
	cr_expect_eq(errno, EINVAL);
	octets[0] = 0;
	octets[20] = 0;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), -1, "no IP header");
	cr_expect_eq(errno, EPROTONOSUPPORT);
	wc.wc_flags = 0;
	cr_expect_eq(ibv_init_ah_from_wc(e.context, 1, &wc, grh, &attr), -1, "no GRH");
	cr_expect_eq(errno, EINVAL);
}

/* In their own context, whose end destroys them all. */
Test(address_handle, as_many_address_handles_as_announced)
{
	struct ibv_context *context = open_only_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_ah_attr attr = ud_to_self(&e);
	struct ibv_device_attr device;
	struct ibv_ah **ah, *one;

	cr_assert_eq(ibv_query_device(context, &device), 0);
	ah = calloc((size_t)device.max_ah, sizeof(*ah));
	for (int i = 0; i < device.max_ah; i++) {
		ah[i] = ibv_create_ah(pd, &attr);
		cr_assert_not_null(ah[i], "handle %d: %m", i);
	}
	errno = 0;
	cr_expect_null(ibv_create_ah(e.pd, &attr), "one too many");
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(ibv_close_device(context), 0);
	one = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(one, "there is room again");
	cr_expect_eq(ibv_destroy_ah(one), 0);
	for (int i = 0; i < device.max_ah; i++)
		cr_assert_eq(ibv_destroy_ah(ah[i]), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	free(ah);
}

/* A handle is destroyed before its use: the request fails, and only the send queue stops. */
Test(address_handle, a_destroyed_handle_fails_its_request)
{
	struct ibv_qp *qp = ud_open(&e, UD_QKEY);
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	struct ibv_ah stale = *ah;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };
	struct ibv_wc wc;

	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ud_send(&e, qp, &stale, qp->qp_num, UD_QKEY, 0, 8), 0);
	poll_completions(e.cq, &wc, 1, "the failure");
	cr_expect_neq(wc.status, IBV_WC_SUCCESS);
	cr_expect_neq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_assert_eq(ud_send(&e, qp, &stale, qp->qp_num, UD_QKEY, 0, 8), 0);
	poll_completions(e.cq, &wc, 1, "a flushed request");
	cr_expect_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	cr_expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0, "from SQE to RTS");
	ah = ud_self(&e, GID_INDEX);
	ud_one_datagram(&e, ah, qp, qp, &wc);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

#define POSTERS 4
#define POSTED	4096 /* by each: more than an engine sends until it learns of the handle's end */

static void post_datagrams(struct ibv_qp *qp, struct ibv_ah *ah)
{
	static struct ibv_send_wr wr[POSTED];
	struct ibv_sge sge = { (uintptr_t)e.buffer, 4096, e.mr->lkey };
	struct ibv_send_wr *bad;

	for (int i = 0; i < POSTED; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < POSTED ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.wr.ud = { .ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = UD_QKEY },
		};
	cr_assert_eq(ibv_post_send(qp, wr, &bad), 0);
}

/*
 * The handle is destroyed right after posting. Other devices have copied it by then, and programs
 * without completions rely on that.
 */
Test(address_handle, a_handle_is_destroyed_after_its_requests)
{
	static struct ibv_wc wc[POSTERS * POSTED];
	struct ibv_cq *cq = ibv_create_cq(e.context, POSTERS * POSTED, NULL, NULL, 0);
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { POSTED, POSTED, 1, 1, 0 },
					 .qp_type = IBV_QPT_UD };
	struct ibv_ah *ah = ud_self(&e, GID_INDEX);
	struct ibv_qp *qp[POSTERS];

	cr_assert_not_null(cq, "%m");
	for (int i = 0; i < POSTERS; i++) {
		qp[i] = ibv_create_qp(e.pd, &init);
		cr_assert_not_null(qp[i], "%m");
		cr_assert_eq(ud_ready(qp[i], UD_QKEY), 0);
		for (int k = 0; k < POSTED; k++)
			ud_receive(&e, qp[i], 32768, 4096 + GRH);
	}
	for (int i = 0; i < POSTERS; i++)
		post_datagrams(qp[i], ah);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	poll_completions(cq, wc, POSTERS * POSTED, "what was posted before the handle went");
	for (int i = 0; i < POSTERS * POSTED; i++)
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "%d: %s", i,
			     ibv_wc_status_str(wc[i].status));
	for (int i = 0; i < POSTERS; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
}

/*
 * Only a hostile program does this: it uses handles that it never had, in requests that look right.
 * hostile H-117: handles of other programs.
 */
Test(address_handle, forged_handles_are_refused)
{
	static const uint32_t handle[] = {
		1, 2, 3, 65536, 65537, 0x7fffffff, 0x80000000, UINT32_MAX
	};
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_ah_attr attr = ud_to_self(&e);
	struct ibv_ah *foreign = ibv_create_ah(pd, &attr), *ah;
	struct ibv_qp *qp = ud_open(&e, UD_QKEY);
	struct ibv_wc wc;

	cr_assert_not_null(foreign);
	for (size_t i = 0; i <= ROWS(handle); i++) {
		struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
		struct ibv_ah forged = *foreign;

		forged.pd = e.pd;
		if (i < ROWS(handle))
			forged.handle = handle[i];
		cr_assert_eq(ud_send(&e, qp, &forged, qp->qp_num, UD_QKEY, 0, 8), 0);
		poll_completions(e.cq, &wc, 1, "the failure");
		cr_expect_neq(wc.status, IBV_WC_SUCCESS, "handle %u", forged.handle);
		cr_assert_eq(ibv_modify_qp(qp, &rts, IBV_QP_STATE), 0);
	}
	ah = ud_self(&e, GID_INDEX);
	ud_one_datagram(&e, ah, qp, qp, &wc);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_ah(foreign), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}
