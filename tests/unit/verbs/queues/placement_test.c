/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ATOMIC WRITE and FLUSH (IBTA annex A19) through the verbs. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "rig/endpoint.h"

/*
 * From newer versions of verbs.h: a flag, an opcode, access flags, capabilities, and a function
 * after struct ibv_qp_ex.
 */
#define QP_EX_WITH_FLUSH    (1u << 11)
#define ACCESS_FLUSH_GLOBAL (1u << 8)
#define WC_FLUSH	    8
#define ODP_FLUSH	    (1u << 6)
#define ODP_ATOMIC_WRITE    (1u << 7)
#define GLOBAL		    1
#define PERSISTENT	    2
#define RANGE		    0
#define WHOLE_REGION	    1

struct newer_qp_ex {
	struct ibv_qp_ex qp;
	void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr, size_t length,
			 uint8_t type, uint8_t level);
};

static struct endpoint e;
static struct ibv_qp *from, *to;
static struct ibv_mr *mr;

static struct ibv_qp *create(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e.pd,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | QP_EX_WITH_FLUSH,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(e.context, &init);

	cr_assert_not_null(qp, "ibv_create_qp_ex: %m");
	return qp;
}

static void permit_flushes(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_access_flags =
					    IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL };

	cr_assert_eq(ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static void open_all(void)
{
	endpoint_open(&e);
	from = create();
	to = create();
	cr_assert_eq(endpoint_connect(&e, from, to->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, to, from->qp_num), 0);
	permit_flushes(to);
	mr = ibv_reg_mr(e.pd, e.buffer, BUFFER,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL);
	cr_assert_not_null(mr, "ibv_reg_mr: %m");
}

static void close_all(void)
{
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	endpoint_close(&e);
}

TestSuite(placement, .init = open_all, .fini = close_all, .timeout = 60);

static struct ibv_wc completion(const char *what)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, what);
	return wc;
}

static int post_atomic_write(uint32_t length, uint64_t remote_addr)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_ATOMIC_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad = NULL;
	int error;

	wr.wr.rdma.remote_addr = remote_addr;
	wr.wr.rdma.rkey = mr->rkey;
	error = ibv_post_send(from, &wr, &bad);
	cr_expect_eq(bad, error != 0 ? &wr : NULL);
	return error;
}

Test(placement, atomic_write_of_memory)
{
	uint64_t value = 0x0123456789abcdef;
	struct ibv_wc wc;

	memcpy(e.buffer, &value, sizeof(value));
	cr_assert_eq(post_atomic_write(8, (uintptr_t)e.buffer + 4096), 0);
	wc = completion("the ATOMIC WRITE");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_eq(wc.opcode, IBV_WC_ATOMIC_WRITE);
	cr_expect_arr_eq(e.buffer + 4096, &value, sizeof(value));
}

Test(placement, atomic_write_of_other_lengths_is_refused)
{
	cr_expect_eq(post_atomic_write(0, (uintptr_t)e.buffer), EINVAL);
	cr_expect_eq(post_atomic_write(4, (uintptr_t)e.buffer), EINVAL);
	cr_expect_eq(post_atomic_write(16, (uintptr_t)e.buffer), EINVAL);
}

Test(placement, atomic_write_to_an_unaligned_address_is_the_peers_error)
{
	cr_assert_eq(post_atomic_write(8, (uintptr_t)e.buffer + 4097), 0);
	cr_expect_eq(completion("the ATOMIC WRITE").status, IBV_WC_REM_INV_REQ_ERR);
	cr_expect_eq(e.buffer[4097], 0, "nothing is written");
}

static int flush(uint64_t remote_addr, size_t length, uint8_t type, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(from);

	ibv_wr_start(qp);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	((struct newer_qp_ex *)qp)->wr_flush(qp, mr->rkey, remote_addr, length, type, level);
	return ibv_wr_complete(qp);
}

Test(placement, flush_of_a_range_and_of_a_region)
{
	struct ibv_wc wc;

	for (uint8_t level = RANGE; level <= WHOLE_REGION; level++) {
		cr_assert_eq(flush((uintptr_t)e.buffer + 64, 128, GLOBAL, level), 0);
		wc = completion("the FLUSH");
		cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		cr_expect_eq((int)wc.opcode, WC_FLUSH);
		cr_expect_eq(wc.wr_id, 7);
	}
}

Test(placement, flush_of_an_unknown_type_is_refused)
{
	cr_expect_eq(flush((uintptr_t)e.buffer, 8, 0, RANGE), EINVAL);
	cr_expect_eq(flush((uintptr_t)e.buffer, 8, 4, RANGE), EINVAL);
	cr_expect_eq(flush((uintptr_t)e.buffer, 8, GLOBAL, 2), EINVAL);
}

/* No memory here is persistent, so no request may ask for it. */
Test(placement, flush_to_persistence_is_the_peers_error)
{
	cr_assert_eq(flush((uintptr_t)e.buffer, 8, PERSISTENT, RANGE), 0);
	cr_expect_eq(completion("the FLUSH").status, IBV_WC_REM_INV_REQ_ERR);
}

Test(placement, flush_beyond_the_region_is_the_peers_error)
{
	cr_assert_eq(flush((uintptr_t)e.buffer + BUFFER - 8, 16, GLOBAL, RANGE), 0);
	cr_expect_eq(completion("the FLUSH").status, IBV_WC_REM_ACCESS_ERR);
}

Test(placement, regions_grant_no_persistence)
{
	errno = 0;
	cr_expect_null(ibv_reg_mr(e.pd, e.buffer, 64, 1u << 9));
	cr_expect_eq(errno, EOPNOTSUPP);
}

/* ---- on demand ---- */

#define LENGTH 8192

/* Registers memory without a page. `mr` is its region. */
static uint8_t *memory_on_demand(void)
{
	uint8_t *p = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	cr_assert_eq(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr(e.pd, p, LENGTH,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | ACCESS_FLUSH_GLOBAL |
				IBV_ACCESS_ON_DEMAND);
	cr_assert_not_null(mr, "ibv_reg_mr: %m");
	return p;
}

Test(placement, on_demand_is_announced)
{
	const uint32_t both = ODP_FLUSH | ODP_ATOMIC_WRITE;
	struct ibv_device_attr_ex a;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &a), 0);
	cr_expect_eq(a.odp_caps.per_transport_caps.rc_odp_caps & both, both);
	cr_expect_eq(a.odp_caps.per_transport_caps.uc_odp_caps & both, 0);
	cr_expect_eq(a.odp_caps.per_transport_caps.ud_odp_caps & both, 0);
	cr_expect_eq(a.xrc_odp_caps & both, 0);
}

Test(placement, atomic_write_on_demand)
{
	uint64_t value = 0x0123456789abcdef;
	uint8_t *p = memory_on_demand();
	struct ibv_wc wc;

	memcpy(e.buffer, &value, sizeof(value));
	cr_assert_eq(post_atomic_write(8, (uintptr_t)p + 4096), 0);
	wc = completion("the ATOMIC WRITE");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_expect_arr_eq(p + 4096, &value, sizeof(value));
}

Test(placement, flush_on_demand)
{
	uint8_t *p = memory_on_demand();
	struct ibv_wc wc;

	for (uint8_t level = RANGE; level <= WHOLE_REGION; level++) {
		cr_assert_eq(flush((uintptr_t)p, LENGTH, GLOBAL, level), 0);
		wc = completion("the FLUSH");
		cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
		cr_expect_eq((int)wc.opcode, WC_FLUSH);
	}
}
