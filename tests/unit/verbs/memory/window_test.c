/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows of both types: the access that they permit, the events that end them, and
 * refusals. Runs with an engine at $UROCE_SOCKET, of one lcore or of several.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "rig/engine_objects.h"
#include "window_rig.h"

TestSuite(window, .init = windows_open, .fini = windows_close, .timeout = 60);

/* The queue pair that binds is [1]; its peer, [0], writes through the window. */
#define BINDER e.qp[1]
#define PEER   e.qp[0]

/* ---- type 1 ---- */

Test(window, they_are_announced)
{
	struct ibv_device_attr a;

	cr_assert_eq(ibv_query_device(e.context, &a), 0);
	cr_expect(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW);
	cr_expect(a.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B);
	cr_expect(a.device_cap_flags & IBV_DEVICE_MEM_MGT_EXTENSIONS);
	cr_expect_eq(a.max_mw, a.max_mr);
}

/* protocol-map 156, 160; H-35 */
Test(window, type_1_opens_a_part_of_a_region)
{
	uint32_t old = type1->rkey;

	cr_expect_eq(write_at(PEER, AT, 8, type1->rkey), IBV_WC_REM_ACCESS_ERR, "not bound yet");
	reconnect();
	memset(e.buffer, 0x21, LENGTH);
	cr_assert_eq(bind1(BINDER, info_of(region, AT, LENGTH, IBV_ACCESS_REMOTE_WRITE)),
		     IBV_WC_SUCCESS);
	cr_expect_neq(type1->rkey, old);
	cr_expect_eq(type1->rkey >> 8, old >> 8);
	cr_expect_eq(write_at(PEER, AT, LENGTH, type1->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(e.buffer[AT], 0x21);
	cr_expect_eq(e.buffer[AT + LENGTH - 1], 0x21);
	cr_expect_eq(e.buffer[AT + LENGTH], 0);
	cr_expect_eq(write_at(third, AT, 8, type1->rkey), IBV_WC_SUCCESS,
		     "any queue pair of the domain may use it");
	cr_expect_eq(write_at(PEER, AT + 1, LENGTH, type1->rkey), IBV_WC_REM_ACCESS_ERR, "behind");
	reconnect();
	cr_expect_eq(write_at(PEER, AT - 1, 8, type1->rkey), IBV_WC_REM_ACCESS_ERR, "in front");
	reconnect();
	cr_expect_eq(rdma(PEER, IBV_WR_RDMA_READ, (uintptr_t)e.buffer + AT, 8, type1->rkey),
		     IBV_WC_REM_ACCESS_ERR, "only writing was asked for");
	reconnect();
	cr_expect_eq(write_at(PEER, AT, 8, region->rkey), IBV_WC_REM_ACCESS_ERR,
		     "the region itself is closed");
	reconnect();
	cr_expect_eq(e.buffer[AT + LENGTH], 0);
	cr_expect_eq(e.buffer[AT - 1], 0);
}

/* hostile H-104: a region that ends before its windows. */
Test(window, type_1_moves_and_ends_by_binding_again)
{
	uint32_t first;

	cr_assert_eq(bind1(BINDER, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS);
	first = type1->rkey;
	cr_assert_eq(bind1(third, info_of(region, 2 * AT, 16, REMOTE)), IBV_WC_SUCCESS,
		     "through another queue pair");
	cr_expect_eq(write_at(PEER, 2 * AT, 16, type1->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(write_at(PEER, AT, 8, type1->rkey), IBV_WC_REM_ACCESS_ERR, "the old place");
	reconnect();
	cr_expect_eq(write_at(PEER, AT, 8, first), IBV_WC_REM_ACCESS_ERR, "the old key");
	reconnect();
	cr_expect_eq(ibv_dereg_mr(region), EBUSY);
	cr_assert_eq(bind1(BINDER, info_of(region, AT, 0, 0)), IBV_WC_SUCCESS);
	cr_expect_eq(write_at(PEER, 2 * AT, 8, type1->rkey), IBV_WC_REM_ACCESS_ERR, "unbound");
	reconnect();
}

/* Requests that are refused at once, according to the manual pages. */
Test(window, wrong_requests_are_refused_at_once)
{
	struct ibv_mr *null = ibv_alloc_null_mr(e.pd);
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_mw *foreign = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw *foreign1 = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind_info good = info_of(region, AT, LENGTH, REMOTE);
	struct ibv_mw_bind flags = { .send_flags = IBV_SEND_INLINE, .bind_info = good };
	uint32_t key1 = type1->rkey, key2 = type2->rkey;

	errno = 0;
	cr_expect_null(ibv_alloc_mw(e.pd, (enum ibv_mw_type)3));
	cr_expect_eq(errno, EINVAL);
	cr_expect_null(ibv_alloc_mw(e.pd, (enum ibv_mw_type)0));
	cr_expect_eq(post_bind1(BINDER, type2, good), EINVAL, "type 2 by the verb of type 1");
	cr_expect_eq(post_bind2(BINDER, type1, ibv_inc_rkey(type1->rkey), good), EINVAL,
		     "type 1 by a request");
	cr_expect_eq(post_bind1(BINDER, type1, info_of(NULL, AT, LENGTH, REMOTE)), EINVAL,
		     "no region");
	cr_expect_eq(post_bind1(BINDER, foreign1, good), EPERM, "another PD's region");
	cr_expect_eq(post_bind1(BINDER, type1, info_of(null, AT, LENGTH, REMOTE)), EINVAL,
		     "the null region");
	cr_expect_eq(post_bind1(BINDER, type1,
				info_of(region, AT, LENGTH, REMOTE | IBV_ACCESS_ZERO_BASED)),
		     EINVAL, "o10-36.2.2: type 1 is never zero-based");
	cr_expect_eq(ibv_bind_mw(BINDER, type1, &flags), EINVAL, "a flag that binds do not have");
	cr_expect_eq(post_bind2(BINDER, type2, type2->rkey ^ 0x100, good), EINVAL,
		     "another window's index");
	cr_expect_eq(post_bind2(BINDER, foreign, ibv_inc_rkey(foreign->rkey), good), EPERM,
		     "another PD's region");
	cr_expect_eq(type1->rkey, key1, "what is refused changes no key");
	cr_expect_eq(type2->rkey, key2);
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_expect_eq(ibv_dealloc_mw(foreign), 0);
	cr_expect_eq(ibv_dealloc_mw(foreign1), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_dereg_mr(null), 0);
}

/*
 * protocol-map 158; H-102, H-103: the request fails when it is executed, and nothing is opened.
 * hostile H-99: ranges of memory that wrap.
 */
Test(window, binds_that_fail)
{
	struct ibv_mr *plain = ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mr *reading = ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_MW_BIND);
	struct ibv_mr *zero =
		ibv_reg_mr(e.pd, e.buffer, BUFFER,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED);
	const struct {
		const char *what;
		struct ibv_mr *mr;
		uint64_t addr, length;
		unsigned int access;
		enum ibv_wc_status status;
	} cases[] = {
		{ "C10-73: the region may not be bound to", plain, AT, LENGTH,
		  IBV_ACCESS_REMOTE_READ, IBV_WC_MW_BIND_ERR },
		{ "C10-74: writing a region that is only read", reading, AT, LENGTH,
		  IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR },
		{ "C10-74: atomics on it", reading, AT, LENGTH, IBV_ACCESS_REMOTE_ATOMIC,
		  IBV_WC_MW_BIND_ERR },
		{ "reading what is only read", reading, AT, LENGTH, IBV_ACCESS_REMOTE_READ,
		  IBV_WC_SUCCESS },
		{ "C10-75: behind the region", region, BUFFER - 8, 9, REMOTE, IBV_WC_MW_BIND_ERR },
		{ "C10-75: before the region", region, UINT64_MAX, 1, REMOTE, IBV_WC_MW_BIND_ERR },
		{ "a length that wraps", region, AT, UINT64_MAX, REMOTE, IBV_WC_MW_BIND_ERR },
		{ "an address that wraps", region, UINT64_MAX - 4096, 8192, REMOTE,
		  IBV_WC_MW_BIND_ERR },
		{ "all of the region", region, 0, BUFFER, REMOTE, IBV_WC_SUCCESS },
		{ "a zero-based region", zero, AT, LENGTH, REMOTE, IBV_WC_MW_BIND_ERR },
		{ "unknown access", region, AT, LENGTH, 1u << 15, IBV_WC_MW_BIND_ERR },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_mw_bind_info info = { cases[i].mr, (uintptr_t)e.buffer + cases[i].addr,
						 cases[i].length, cases[i].access };

		cr_expect_eq(bind2(BINDER, info), cases[i].status, "%s", cases[i].what);
		if (cases[i].status == IBV_WC_SUCCESS) {
			cr_expect_eq(invalidate(BINDER, type2->rkey), IBV_WC_SUCCESS);
		} else {
			reconnect();
			cr_expect_eq(write_at(PEER, AT, 8, type2->rkey), IBV_WC_REM_ACCESS_ERR,
				     "%s", cases[i].what);
			reconnect();
		}
		cr_expect_eq(bind1(BINDER, info), cases[i].status, "type 1: %s", cases[i].what);
		reconnect();
	}
	cr_expect_eq(bind1(BINDER, (struct ibv_mw_bind_info){ 0 }), IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dereg_mr(plain), 0);
	cr_expect_eq(ibv_dereg_mr(reading), 0);
	cr_expect_eq(ibv_dereg_mr(zero), 0);
}

/*
 * C10-72: window, region and queue pair are of one protection domain.
 * hostile H-102: forbidden binds; H-103: rights that a bind asks for.
 */
Test(window, everything_is_of_one_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_mr *there =
		ibv_reg_mr(pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *window = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = info_of(there, AT, LENGTH, REMOTE);
	uint32_t lkey = region->lkey;

	cr_assert(pd && there && window);
	cr_expect_eq(post_bind2(BINDER, window, ibv_inc_rkey(window->rkey), info), 0);
	cr_expect_eq(one_completion("a bind").status, IBV_WC_MW_BIND_ERR, "the queue pair's");
	reconnect();
	region->lkey = there->lkey; /* which the library does not check */
	info.mr = region;
	cr_expect_eq(bind2(BINDER, info), IBV_WC_MW_BIND_ERR, "the region's");
	region->lkey = lkey;
	reconnect();
	cr_expect_eq(ibv_dealloc_mw(window), 0);
	cr_expect_eq(ibv_dereg_mr(there), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

/* ---- type 2 ---- */

/* protocol-map 157, 159; H-36 */
Test(window, type_2_is_of_one_queue_pair)
{
	uint32_t free_key = type2->rkey;

	memset(e.buffer, 0x42, 64);
	cr_expect_eq(bind2(BINDER, info_of(region, AT, 0, REMOTE)), IBV_WC_MW_BIND_ERR,
		     "o10-37.2.40: length 0");
	reconnect();
	cr_expect_eq(post_bind2(BINDER, type2, free_key, info_of(region, AT, LENGTH, REMOTE)), 0);
	cr_assert_eq(one_completion("a bind").status, IBV_WC_SUCCESS, "the same key again");
	cr_expect_eq(type2->rkey, free_key);
	cr_expect_eq(write_at(PEER, AT, 64, type2->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(e.buffer[AT + 63], 0x42);
	cr_expect_eq(write_at(third, AT, 8, type2->rkey), IBV_WC_REM_ACCESS_ERR,
		     "not through another one");
	reconnect();
	cr_expect_eq(write_at(PEER, AT, 8, type2->rkey ^ 1), IBV_WC_REM_ACCESS_ERR,
		     "H-34: another variant");
	reconnect();
	cr_expect_eq(bind2(third, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_MW_BIND_ERR,
		     "o10-37.2.30: it is bound");
	reconnect();
	type2->rkey = free_key; /* as a program must after a failed bind */
	cr_expect_eq(write_at(PEER, AT, 64, free_key), IBV_WC_SUCCESS, "and stays what it was");
	cr_expect_eq(ibv_dereg_mr(region), EBUSY, "H-104");
	cr_expect_eq(ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0),
		     IBV_REREG_MR_ERR_CMD, "H-104");
	cr_expect_eq(errno, EBUSY);
	cr_expect_eq(write_at(PEER, AT, 64, free_key), IBV_WC_SUCCESS, "and the region, too");
	cr_expect_eq(invalidate(third, free_key), IBV_WC_MW_BIND_ERR, "another one's window");
	reconnect();
	cr_expect_eq(write_at(PEER, AT, 64, free_key), IBV_WC_SUCCESS);
	cr_expect_eq(invalidate(BINDER, free_key), IBV_WC_SUCCESS);
	cr_expect_eq(write_at(PEER, AT, 8, free_key), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	cr_expect_eq(invalidate(BINDER, free_key), IBV_WC_MW_BIND_ERR, "it is free");
	reconnect();
}

Test(window, type_2_may_be_zero_based)
{
	memset(e.buffer, 0x63, 16);
	cr_assert_eq(bind2(BINDER, info_of(region, AT, LENGTH,
					   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED)),
		     IBV_WC_SUCCESS);
	cr_expect_eq(rdma(PEER, IBV_WR_RDMA_WRITE, 16, 16, type2->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(e.buffer[AT + 16], 0x63);
	cr_expect_eq(rdma(PEER, IBV_WR_RDMA_WRITE, LENGTH - 8, 16, type2->rkey),
		     IBV_WC_REM_ACCESS_ERR);
	reconnect();
}

Test(window, any_low_bits_of_a_key_are_accepted)
{
	for (uint32_t variant = 0; variant < 256; variant += 51) {
		uint32_t key = (type2->rkey & ~0xffu) | variant;

		cr_assert_eq(post_bind2(BINDER, type2, key, info_of(region, AT, LENGTH, REMOTE)),
			     0);
		cr_assert_eq(one_completion("a bind").status, IBV_WC_SUCCESS, "%u", variant);
		cr_expect_eq(write_at(PEER, AT, 8, key), IBV_WC_SUCCESS, "%u", variant);
		cr_assert_eq(invalidate(BINDER, key), IBV_WC_SUCCESS, "%u", variant);
	}
}

static enum ibv_wc_status send_with(uint32_t key, struct ibv_wc *received)
{
	struct ibv_sge out = { (uintptr_t)e.buffer, 100, e.mr->lkey };
	struct ibv_sge in = { (uintptr_t)e.buffer + 4096, 4096, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &out,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .invalidate_rkey = key };
	struct ibv_recv_wr recv = { .wr_id = 77, .sg_list = &in, .num_sge = 1 }, *bad;
	struct ibv_wc wc[2];
	int sent;

	cr_assert_eq(ibv_post_recv(BINDER, &recv, &bad), 0);
	cr_assert_eq(post(PEER, &wr), 0);
	poll_completions(e.cq, wc, 2, "a SEND with invalidate and its receive");
	sent = wc[0].wr_id == 77;
	*received = wc[1 - sent];
	return wc[sent].status;
}

/* protocol-map 161, 162; H-37 */
Test(window, a_peer_invalidates)
{
	struct ibv_wc received;
	struct {
		const char *what;
		uint32_t key;
	} wrong[6];

	cr_assert_eq(bind2(BINDER, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS);
	memset(e.buffer, 0x84, 100);
	cr_expect_eq(send_with(type2->rkey, &received), IBV_WC_SUCCESS);
	cr_expect_eq(received.status, IBV_WC_SUCCESS);
	cr_expect(received.wc_flags & IBV_WC_WITH_INV);
	cr_expect_eq(received.invalidated_rkey, type2->rkey);
	cr_expect_eq(received.byte_len, 100);
	cr_expect_eq(e.buffer[4096 + 99], 0x84);
	cr_expect_eq(write_at(PEER, AT, 8, type2->rkey), IBV_WC_REM_ACCESS_ERR);
	reconnect();

	cr_assert_eq(bind1(BINDER, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS);
	cr_assert_eq(bind2(third, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS);
	wrong[0].what = "a free variant", wrong[0].key = type2->rkey ^ 2;
	wrong[1].what = "a region", wrong[1].key = e.mr->rkey;
	wrong[2].what = "type 1", wrong[2].key = type1->rkey;
	wrong[3].what = "another queue pair's", wrong[3].key = type2->rkey;
	wrong[4].what = "key 0", wrong[4].key = 0;
	wrong[5].what = "no key at all", wrong[5].key = 0xdeadbeef;
	for (int i = 0; i < 6; i++) {
		cr_expect_neq(send_with(wrong[i].key, &received), IBV_WC_SUCCESS, "%s",
			      wrong[i].what);
		cr_expect_neq(received.status, IBV_WC_SUCCESS, "%s", wrong[i].what);
		reconnect();
		cr_expect_eq(write_at(PEER, AT, 8, type1->rkey), IBV_WC_SUCCESS, "%s",
			     wrong[i].what);
		cr_expect_eq(write_at(fourth, AT, 8, type2->rkey), IBV_WC_SUCCESS,
			     "no effect on what it named: %s", wrong[i].what);
		cr_expect_eq(write_at(PEER, 0, 8, e.mr->rkey), IBV_WC_SUCCESS, "%s", wrong[i].what);
	}
}

/* A program that forges its window's key names another object or none (H-102). */
Test(window, forged_keys_of_other_objects)
{
	struct ibv_mw_bind_info info = info_of(region, AT, LENGTH, REMOTE);
	struct ibv_mw lie = *type2;

	lie.rkey = e.mr->rkey;
	cr_expect_eq(post_bind2(BINDER, &lie, ibv_inc_rkey(lie.rkey), info), 0);
	cr_expect_eq(one_completion("a bind").status, IBV_WC_MW_BIND_ERR, "a region's key");
	reconnect();
	lie.rkey = 0xabcdef00;
	cr_expect_eq(post_bind2(BINDER, &lie, lie.rkey + 1, info), 0);
	cr_expect_eq(one_completion("a bind").status, IBV_WC_MW_BIND_ERR, "nobody's key");
	reconnect();
	cr_expect_eq(write_at(PEER, 0, 8, e.mr->rkey), IBV_WC_SUCCESS);
	/* the engine checks what the library checks, too */
	lie = *type1;
	lie.type = IBV_MW_TYPE_2;
	info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
	cr_expect_eq(post_bind2(BINDER, &lie, ibv_inc_rkey(lie.rkey), info), 0);
	cr_expect_eq(one_completion("a bind").status, IBV_WC_MW_BIND_ERR, "zero-based type 1");
	reconnect();
	lie = *type2;
	lie.type = IBV_MW_TYPE_1;
	cr_expect_eq(post_bind1(BINDER, &lie, (struct ibv_mw_bind_info){ 0 }), 0);
	cr_expect_eq(one_completion("a bind").status, IBV_WC_MW_BIND_ERR, "type 2 of length 0");
	reconnect();
}

/* ---- unreliable connections ---- */

static struct ibv_qp *uc_queue_pair(void)
{
	struct ibv_qp_init_attr init = { .send_cq = e.cq,
					 .recv_cq = e.cq,
					 .cap = { DEPTH, DEPTH, 4, 4, 128 },
					 .qp_type = IBV_QPT_UC };
	struct ibv_qp *qp = ibv_create_qp(e.pd, &init);

	cr_assert_not_null(qp, "%m");
	return qp;
}

static void uc_connect(struct ibv_qp *qp, uint32_t remote)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	cr_assert_eq(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = remote,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 } }
	};
	cr_assert_eq(ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN),
		     0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* A SEND with invalidate tells that the WRITE before it has arrived. */
Test(window, unreliable_connections_have_windows_too)
{
	struct ibv_qp *a = uc_queue_pair(), *b = uc_queue_pair();
	struct ibv_recv_wr recv = { .wr_id = 5 }, *bad;
	struct ibv_send_wr inv = { .opcode = IBV_WR_SEND_WITH_INV };
	struct ibv_wc wc[2];

	uc_connect(a, b->qp_num);
	uc_connect(b, a->qp_num);
	memset(e.buffer, 0x17, 8);
	for (int type = 1; type <= 2; type++) {
		struct ibv_mw_bind_info info = info_of(region, AT, LENGTH, REMOTE);
		uint32_t key;

		cr_assert_eq(type == 1 ? bind1(b, info) : bind2(b, info), IBV_WC_SUCCESS);
		key = type == 1 ? type1->rkey : type2->rkey;
		cr_expect_eq(write_at(a, AT, 8, key), IBV_WC_SUCCESS);
	}
	inv.invalidate_rkey = type2->rkey;
	cr_assert_eq(ibv_post_recv(b, &recv, &bad), 0);
	cr_assert_eq(post(a, &inv), 0);
	poll_completions(e.cq, wc, 2, "a SEND with invalidate");
	cr_expect_eq(e.buffer[AT + 7], 0x17);
	for (int i = 0; i < 2; i++)
		if (wc[i].wr_id == 5)
			cr_expect_eq(wc[i].invalidated_rkey, type2->rkey);
	memset(e.buffer, 0x18, 8);
	cr_expect_eq(write_at(a, AT, 8, type2->rkey), IBV_WC_SUCCESS, "it leaves, and is dropped");
	cr_expect_eq(bind2(b, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS);
	cr_expect_eq(e.buffer[AT + 7], 0x17);
	cr_expect_eq(invalidate(b, type2->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

/* ---- ends ---- */

/* hostile H-36: a window of another queue pair. */
Test(window, a_window_is_unbound_when_it_or_its_queue_pair_ends)
{
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
	struct ibv_qp *own = endpoint_create_qp(&e);
	uint32_t key;

	/* of the window */
	cr_assert_eq(
		post_bind2(BINDER, mw, ibv_inc_rkey(mw->rkey), info_of(region, AT, LENGTH, REMOTE)),
		0);
	cr_assert_eq(one_completion("a bind").status, IBV_WC_SUCCESS);
	key = mw->rkey;
	cr_expect_eq(write_at(PEER, AT, 8, key), IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(write_at(PEER, AT, 8, key), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	/* of its queue pair */
	cr_assert_eq(endpoint_connect(&e, own, own->qp_num), 0);
	cr_assert_eq(bind2(own, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS);
	cr_expect_eq(write_at(own, AT, 8, type2->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(ibv_destroy_qp(own), 0);
	cr_expect_eq(bind2(BINDER, info_of(region, AT, LENGTH, REMOTE)), IBV_WC_SUCCESS,
		     "it is free again");
	cr_expect_eq(invalidate(BINDER, type2->rkey), IBV_WC_SUCCESS);
}

/*
 * Requests before the bind see the old key, those after it the new one.
 * hostile H-38: invalidation during accesses.
 */
Test(window, binds_take_effect_in_request_order)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr[4] = { 0 }, *bad;
	struct ibv_wc wc[4];
	struct ibv_qp *loop = endpoint_create_qp(&e);

	cr_assert_eq(endpoint_connect(&e, loop, loop->qp_num), 0);
	for (uint32_t round = 0; round < 50; round++) {
		uint32_t key = ibv_inc_rkey(type2->rkey);

		for (int i = 0; i < 4; i++)
			wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
						      .next = i < 3 ? &wr[i + 1] : NULL,
						      .send_flags = IBV_SEND_SIGNALED };
		wr[0].opcode = IBV_WR_BIND_MW;
		wr[0].bind_mw.mw = type2;
		wr[0].bind_mw.rkey = key;
		wr[0].bind_mw.bind_info = info_of(region, AT, LENGTH, REMOTE);
		wr[1].opcode = wr[2].opcode = IBV_WR_RDMA_WRITE;
		for (int i = 1; i < 3; i++) {
			wr[i].sg_list = &sge;
			wr[i].num_sge = 1;
			wr[i].wr.rdma.remote_addr = (uintptr_t)e.buffer + AT + 8u * (uint32_t)i;
			wr[i].wr.rdma.rkey = key;
		}
		wr[3].opcode = IBV_WR_LOCAL_INV;
		wr[3].invalidate_rkey = key;
		cr_assert_eq(ibv_post_send(loop, wr, &bad), 0);
		poll_completions(e.cq, wc, 4, "bind, two WRITEs, invalidate");
		for (int i = 0; i < 4; i++) {
			cr_assert_eq(wc[i].wr_id, (uint64_t)i);
			cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "round %u, request %d: %s",
				     round, i, ibv_wc_status_str(wc[i].status));
		}
		cr_assert_eq(wc[0].opcode, IBV_WC_BIND_MW);
		cr_assert_eq(wc[3].opcode, IBV_WC_LOCAL_INV);
	}
	cr_expect_eq(ibv_destroy_qp(loop), 0);
}

/* H-38: whichever comes first, memory is open or closed and never in between. */
#define RACERS 4
#define ROUNDS 200

struct racer {
	pthread_t thread;
	struct ibv_mw *mw;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
};

static void *race(void *argument)
{
	struct racer *r = argument;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
					    .bind_info = info_of(region, AT, LENGTH, REMOTE) };
		struct ibv_wc wc;

		if (i % 8 == 7) {
			ibv_dealloc_mw(r->mw);
			r->mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
		}
		cr_assert_eq(ibv_bind_mw(r->qp, r->mw, &bind), 0);
		poll_completions(r->cq, &wc, 1, "a bind");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	}
	return NULL;
}

/* hostile H-38: invalidation during accesses. */
Test(window, many_bind_at_once)
{
	struct racer r[RACERS];
	uint64_t before = engine_objects();

	for (int i = 0; i < RACERS; i++) {
		struct ibv_qp_init_attr init = { .cap = { 8, 8, 1, 1, 0 }, .qp_type = IBV_QPT_RC };

		r[i].cq = ibv_create_cq(e.context, 16, NULL, NULL, 0);
		init.send_cq = init.recv_cq = r[i].cq;
		r[i].qp = ibv_create_qp(e.pd, &init);
		r[i].mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
		cr_assert(r[i].cq && r[i].qp && r[i].mw);
		cr_assert_eq(endpoint_connect(&e, r[i].qp, r[i].qp->qp_num), 0);
	}
	for (int i = 0; i < RACERS; i++)
		cr_assert_eq(pthread_create(&r[i].thread, NULL, race, &r[i]), 0);
	for (int i = 0; i < RACERS; i++)
		pthread_join(r[i].thread, NULL);
	cr_expect_eq(ibv_dereg_mr(region), EBUSY);
	for (int i = 0; i < RACERS; i++) {
		cr_expect_eq(ibv_dealloc_mw(r[i].mw), 0);
		cr_expect_eq(ibv_destroy_qp(r[i].qp), 0);
		cr_expect_eq(ibv_destroy_cq(r[i].cq), 0);
	}
	cr_expect_eq(engine_objects(), before, "nothing is left");
}
