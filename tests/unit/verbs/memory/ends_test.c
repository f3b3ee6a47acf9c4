/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a window or region while a peer's WRITEs are under way (H-38, H-114): after it no
 * WRITE changes memory. Runs with an engine at $UROCE_SOCKET, of one lcore or of several.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "window_rig.h"

TestSuite(ends, .init = windows_open, .fini = windows_close, .timeout = 60);

/* As in window_test.c. */
#define BINDER e.qp[1]
#define PEER   e.qp[0]

#define UNDER_WAY 12
#define TARGET	  16384u /* octets of each */
#define FROM	  (BUFFER / 2) /* offset of the data in the buffer */
#define WRITE_ID  1000
#define ROUNDS	  25

/* As many WRITEs as the peer can have under way. */
static void post_writes(uint8_t *to, uint32_t key)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FROM, TARGET, e.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = WRITE_ID, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE
	};

	memset(e.buffer + FROM, 0x77, TARGET);
	for (uint32_t i = 0; i < UNDER_WAY; i++) {
		wr.wr.rdma.remote_addr = (uintptr_t)to;
		wr.wr.rdma.rkey = key;
		cr_assert_eq(post(PEER, &wr), 0);
	}
}

static uint32_t refused; /* WRITEs that came after the end; over all ends there must be some */

/*
 * Where this program waits for a processor, all WRITEs may be done before the end, round after round. So rounds go on until
 * one was refused, for 20 s at most.
 */
static bool is_over(void)
{
	static time_t begin;

	if (begin == 0)
		begin = time(NULL);
	return refused > 0 || time(NULL) - begin >= 20;
}

/* From now on the memory belongs to the program. */
static void expect_untouched(uint8_t *p, uint32_t writes, const char *end)
{
	memset(p, 0xee, TARGET);
	for (; writes < UNDER_WAY; writes++)
		refused += one_completion("a WRITE").status == IBV_WC_REM_ACCESS_ERR;
	for (uint32_t i = 0; i < TARGET; i++)
		cr_assert_eq(p[i], 0xee, "%s: octet %u was written behind it", end, i);
	reconnect();
}

/* ---- windows ---- */

/*
 * Waits until the binder's only request is done. Returns how many WRITEs completed meanwhile. A
 * WRITE to the closed window may take the binder to ERR before its own request completes: then no
 * memory changes either.
 */
static uint32_t await_binder(void)
{
	for (uint32_t writes = 0;; writes++) {
		struct ibv_wc wc = one_completion("the end of the window");

		if (wc.wr_id == WRITE_ID)
			continue;
		cr_assert(wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_WR_FLUSH_ERR, "%s",
			  ibv_wc_status_str(wc.status));
		return writes;
	}
}

static uint32_t invalidate_locally(struct ibv_mw *mw)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey };

	cr_assert_eq(post(BINDER, &wr), 0);
	return await_binder();
}

static uint32_t bind_elsewhere(struct ibv_mw *mw)
{
	cr_assert_eq(post_bind1(BINDER, mw, info_of(region, FROM, 8, IBV_ACCESS_REMOTE_READ)), 0);
	return await_binder();
}

static uint32_t keep(struct ibv_mw *mw)
{
	return 0;
}

static void expect_window_ends(const char *how, enum ibv_mw_type type,
			       uint32_t (*end)(struct ibv_mw *mw))
{
	struct ibv_mw_bind_info all = info_of(region, 0, TARGET, REMOTE);

	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct ibv_mw *mw = ibv_alloc_mw(e.pd, type);
		uint32_t writes;

		cr_assert_not_null(mw, "%m");
		cr_assert_eq(type == IBV_MW_TYPE_1
				     ? post_bind1(BINDER, mw, all)
				     : post_bind2(BINDER, mw, ibv_inc_rkey(mw->rkey), all),
			     0);
		cr_assert_eq(one_completion("a bind").status, IBV_WC_SUCCESS);
		post_writes(e.buffer, mw->rkey);
		writes = end(mw);
		if (end == keep)
			cr_assert_eq(ibv_dealloc_mw(mw), 0);
		expect_untouched(e.buffer, writes, how);
		if (end != keep)
			cr_assert_eq(ibv_dealloc_mw(mw), 0);
	}
}

/* hostile H-38: invalidation during accesses. */
Test(ends, of_windows)
{
	do {
		expect_window_ends("a local invalidation", IBV_MW_TYPE_2, invalidate_locally);
		expect_window_ends("another binding", IBV_MW_TYPE_1, bind_elsewhere);
		expect_window_ends("deallocation of type 1", IBV_MW_TYPE_1, keep);
		expect_window_ends("deallocation of type 2", IBV_MW_TYPE_2, keep);
	} while (!is_over());
	cr_expect_gt(refused, 0, "every WRITE was done before");
}

/* ---- regions ---- */

static struct ibv_pd *other_pd;
static uint8_t *elsewhere;

static uint8_t *pages(size_t length)
{
	uint8_t *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static int deregister(struct ibv_mr *mr)
{
	return ibv_dereg_mr(mr);
}

static int close_it(struct ibv_mr *mr)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ);
}

static int move(struct ibv_mr *mr)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, elsewhere, 4096, 0);
}

static int give_away(struct ibv_mr *mr)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other_pd, NULL, 0, 0);
}

/* Regions of peer memory and of promoted memory. */
static void expect_region_ends(const char *how, int (*end)(struct ibv_mr *mr))
{
	static const size_t lengths[] = { TARGET, 256u << 10 };

	for (uint32_t round = 0; round < ROUNDS; round++) {
		size_t length = lengths[round % 2];
		uint8_t *p = pages(length);
		struct ibv_mr *mr = ibv_reg_mr(e.pd, p, length,
					       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

		cr_assert_not_null(mr, "%m");
		post_writes(p, mr->rkey);
		cr_assert_eq(end(mr), 0, "%s: %m", how);
		expect_untouched(p, 0, how);
		if (end != deregister)
			cr_assert_eq(ibv_dereg_mr(mr), 0);
		munmap(p, length);
	}
}

/*
 * hostile H-38: invalidation during accesses; H-101: memory that goes away; H-114: re-
 * registration during use.
 */
Test(ends, of_regions)
{
	other_pd = ibv_alloc_pd(e.context);
	elsewhere = pages(4096);
	cr_assert_not_null(other_pd, "%m");
	do {
		expect_region_ends("deregistration", deregister);
		expect_region_ends("a change of access", close_it);
		expect_region_ends("a change of place", move);
		expect_region_ends("a change of domain", give_away);
	} while (!is_over());
	cr_expect_gt(refused, 0, "every WRITE was done before");
	munmap(elsewhere, 4096);
	cr_expect_eq(ibv_dealloc_pd(other_pd), 0);
}
