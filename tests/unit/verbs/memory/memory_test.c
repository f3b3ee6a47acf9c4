/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions that do not come from ibv_reg_mr(3): re-registered, null and on demand. Runs with an engine
 * at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "rig/endpoint.h"

#define ALL                                                                          \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
#define TRANSLATION IBV_REREG_MR_CHANGE_TRANSLATION
#define CHANGE_PD   IBV_REREG_MR_CHANGE_PD
#define ACCESS	    IBV_REREG_MR_CHANGE_ACCESS
#define PERSISTENT  0x200 /* IBV_ACCESS_FLUSH_PERSISTENT of newer headers */
#define LARGE	    (256u << 10) /* large enough to be promoted */

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(memory, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

/* ---- one request and its result ---- */

static enum ibv_wc_status request(enum ibv_wr_opcode opcode, struct ibv_sge local, uint64_t remote,
				  uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.sg_list = &local, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
	poll_completions(e.cq, &wc, 1, "the request");
	return wc.status;
}

static struct ibv_sge own(uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)e.buffer + offset, length, e.mr->lkey };
}

static enum ibv_wc_status write_to(const void *to, uint32_t length, uint32_t rkey)
{
	return request(IBV_WR_RDMA_WRITE, own(0, length), (uintptr_t)to, rkey);
}

/* After an error: makes both queue pairs as new. */
static void reconnect(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	for (int i = 0; i < 2; i++)
		cr_assert_eq(ibv_modify_qp(e.qp[i], &attr, IBV_QP_STATE), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(endpoint_connect(&e, e.qp[i], e.qp[1 - i]->qp_num), 0);
}

static uint8_t *pages(size_t length)
{
	uint8_t *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

/* Where the kernel maps nothing by itself, so these pages stay gone after munmap(). */
static uint8_t *pages_apart(size_t length)
{
	uint8_t *p = mmap((void *)(uintptr_t)0x20000000, length, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

/* ---- re-registration ---- */

Test(memory, wrong_changes_leave_the_region_unchanged)
{
	struct ibv_context *other = open_only_device();
	struct ibv_pd *foreign = ibv_alloc_pd(other);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, pages(4096), 4096, ALL);
	uint8_t *closed = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *gone = pages_apart(4096);
	struct {
		const char *what;
		int flags;
		struct ibv_pd *pd;
		void *addr;
		size_t length;
		int access;
		int error;
	} cases[] = {
		{ "nothing", 0, NULL, NULL, 0, 0, EINVAL },
		{ "an unknown flag", 8, NULL, NULL, 0, 0, EINVAL },
		{ "no PD", CHANGE_PD, NULL, NULL, 0, 0, EINVAL },
		{ "another context's PD", CHANGE_PD, foreign, NULL, 0, 0, EINVAL },
		{ "no address", TRANSLATION, NULL, NULL, 4096, 0, EINVAL },
		{ "no length", TRANSLATION, NULL, e.buffer, 0, 0, EINVAL },
		{ "a wrapping range", TRANSLATION, NULL, e.buffer, SIZE_MAX, 0, EINVAL },
		{ "pages that are gone", TRANSLATION, NULL, gone, 4096, 0, EFAULT },
		{ "pages that may not be written", TRANSLATION, NULL, closed, 4096, 0, EFAULT },
		{ "access that is not to change", CHANGE_PD, e.pd, NULL, 0, ALL, EINVAL },
		{ "an unknown access", ACCESS, NULL, NULL, 0, 1 << 12, EINVAL },
		{ "flushes to persistence", ACCESS, NULL, NULL, 0, PERSISTENT, EOPNOTSUPP },
		{ "remote writing alone", ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL },
		{ "all three, one wrong", TRANSLATION | CHANGE_PD | ACCESS, e.pd, e.buffer, 64,
		  IBV_ACCESS_REMOTE_ATOMIC, EINVAL },
	};

	munmap(gone, 4096);
	cr_assert_not_null(mr);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		errno = 0;
		cr_expect_eq(ibv_rereg_mr(mr, cases[i].flags, cases[i].pd, cases[i].addr,
					  cases[i].length, cases[i].access),
			     IBV_REREG_MR_ERR_INPUT, "%s", cases[i].what);
		cr_expect_eq(errno, cases[i].error, "%s: %m", cases[i].what);
		memset(e.buffer, (int)i + 1, 8);
		cr_expect_eq(write_to(mr->addr, 8, mr->rkey), IBV_WC_SUCCESS, "%s", cases[i].what);
		cr_expect_eq(memcmp(mr->addr, e.buffer, 8), 0, "%s", cases[i].what);
	}
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(foreign), 0);
	cr_expect_eq(ibv_close_device(other), 0);
}

/*
 * Also of regions whose pages were promoted.
 * hostile H-114: re-registration during use.
 */
Test(memory, a_region_changes_its_range)
{
	static const size_t lengths[] = { 4096, LARGE };

	for (size_t i = 0; i < 2; i++) {
		size_t n = lengths[i];
		uint8_t *a = pages(n), *b = pages(2 * n);
		struct ibv_mr *mr = ibv_reg_mr(e.pd, a, n, ALL);

		cr_assert_not_null(mr);
		memset(a, 0xaa, n);
		memset(b, 0xbb, 2 * n);
		memset(e.buffer, 0x11, 64);
		cr_assert_eq(ibv_rereg_mr(mr, TRANSLATION, NULL, b, 2 * n, 0), 0, "%m");
		cr_expect_eq(mr->addr, b);
		cr_expect_eq(mr->length, 2 * n);
		cr_expect_eq(write_to(b + 2 * n - 64, 64, mr->rkey), IBV_WC_SUCCESS);
		cr_expect_eq(memcmp(b + 2 * n - 64, e.buffer, 64), 0, "it is in the new place");
		cr_expect_eq(b[0], 0xbb);
		cr_expect_eq(a[0], 0xaa, "the old place is the program's alone");
		/* back, and larger than before, overlapping itself */
		cr_assert_eq(ibv_rereg_mr(mr, TRANSLATION, NULL, b, n, 0), 0, "%m");
		cr_expect_eq(write_to(b, 64, mr->rkey), IBV_WC_SUCCESS);
		cr_expect_eq(memcmp(b, e.buffer, 64), 0);
		cr_expect_eq(write_to(b + n, 64, mr->rkey), IBV_WC_REM_ACCESS_ERR);
		cr_expect_eq(b[n], 0xbb);
		cr_expect_eq(ibv_dereg_mr(mr), 0);
		reconnect();
		munmap(a, n);
		munmap(b, 2 * n);
	}
}

Test(memory, a_region_changes_its_protection_domain)
{
	struct ibv_pd *pd = ibv_alloc_pd(e.context), *empty = ibv_alloc_pd(e.context);
	struct ibv_mr *mr = ibv_reg_mr(empty, pages(4096), 4096, ALL);

	cr_assert_not_null(mr);
	cr_expect_eq(ibv_dealloc_pd(empty), EBUSY);
	cr_assert_eq(ibv_rereg_mr(mr, CHANGE_PD, e.pd, NULL, 0, 0), 0, "%m");
	cr_expect_eq(mr->pd, e.pd);
	cr_expect_eq(ibv_dealloc_pd(empty), 0, "nobody is in it any more");
	cr_expect_eq(write_to(mr->addr, 8, mr->rkey), IBV_WC_SUCCESS);
	cr_assert_eq(ibv_rereg_mr(mr, CHANGE_PD, pd, NULL, 0, 0), 0, "%m");
	cr_expect_eq(write_to(mr->addr, 8, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	cr_expect_eq(request(IBV_WR_RDMA_WRITE,
			     (struct ibv_sge){ (uintptr_t)mr->addr, 8, mr->lkey },
			     (uintptr_t)e.buffer, e.mr->rkey),
		     IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

Test(memory, a_region_changes_its_access)
{
	uint8_t *p = pages(4096);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, p, 4096, IBV_ACCESS_REMOTE_READ);

	cr_assert_not_null(mr);
	cr_assert_eq(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL), 0, "%m");
	memset(e.buffer, 0x77, 8);
	cr_expect_eq(write_to(p, 8, mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(p[7], 0x77);
	cr_assert_eq(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ), 0, "%m");
	memset(e.buffer, 0x88, 8);
	cr_expect_eq(write_to(p, 8, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(p[7], 0x77);
	reconnect();
	cr_expect_eq(request(IBV_WR_RDMA_READ, own(0, 8), (uintptr_t)p, mr->rkey), IBV_WC_SUCCESS);
	mprotect(p, 4096, PROT_READ);
	cr_expect_eq(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL), IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(errno, EFAULT);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

/* protocol-map 164 */
Test(memory, a_region_becomes_zero_based_and_back)
{
	uint8_t *p = pages(4096);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, p, 4096, ALL);

	cr_assert_not_null(mr);
	memset(e.buffer, 0x55, 8);
	cr_assert_eq(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL | IBV_ACCESS_ZERO_BASED), 0);
	cr_expect_eq(write_to((void *)(uintptr_t)16, 8, mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(p[16], 0x55);
	cr_assert_eq(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL), 0);
	cr_expect_eq(write_to(p + 32, 8, mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(p[32], 0x55);
	cr_expect_eq(write_to((void *)(uintptr_t)16, 8, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

/* ---- the null region ---- */

Test(memory, a_null_region_reads_as_zeros_and_discards_writes)
{
	struct ibv_mr *null = ibv_alloc_null_mr(e.pd);
	struct ibv_sge gather[3] = { own(0, 100), { 12345, 200, 0 }, own(100, 100) };
	struct ibv_sge scatter[3] = { own(4096, 50), { 0, 100, 0 }, own(8192, 250) };
	struct ibv_recv_wr recv = { .sg_list = scatter, .num_sge = 3 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = gather,
				    .num_sge = 3,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc[2];

	cr_assert_not_null(null, "%m");
	cr_expect_eq(null->rkey, 0);
	gather[1].lkey = scatter[1].lkey = null->lkey;
	memset(e.buffer, 0xee, BUFFER);
	cr_assert_eq(ibv_post_recv(e.qp[1], &recv, &bad_recv), 0);
	cr_assert_eq(ibv_post_send(e.qp[0], &send, &bad), 0);
	poll_completions(e.cq, wc, 2, "a SEND and its receive");
	cr_assert_eq(wc[0].status, IBV_WC_SUCCESS);
	cr_assert_eq(wc[1].status, IBV_WC_SUCCESS);
	/* octets 0..49 are ee, 50..149 discarded, 150..299 zeros, 300..399 ee */
	cr_expect_eq(e.buffer[4096 + 49], 0xee);
	cr_expect_eq(e.buffer[8192], 0);
	cr_expect_eq(e.buffer[8192 + 149], 0);
	cr_expect_eq(e.buffer[8192 + 150], 0xee);
	/* READ into it: data are discarded; WRITE from it: zeros arrive */
	cr_expect_eq(request(IBV_WR_RDMA_READ, (struct ibv_sge){ 7, 60000, null->lkey },
			     (uintptr_t)e.buffer, e.mr->rkey),
		     IBV_WC_SUCCESS);
	cr_expect_eq(request(IBV_WR_RDMA_WRITE, (struct ibv_sge){ 7, 60000, null->lkey },
			     (uintptr_t)e.buffer, e.mr->rkey),
		     IBV_WC_SUCCESS);
	cr_expect_eq(e.buffer[0], 0);
	cr_expect_eq(e.buffer[59999], 0);
	cr_expect_eq(e.buffer[60000], 0xee);
	cr_expect_eq(ibv_rereg_mr(null, ACCESS, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT);
	/* peers cannot use its key */
	cr_expect_eq(write_to(NULL, 8, null->lkey), IBV_WC_REM_ACCESS_ERR);
	cr_expect_eq(ibv_dereg_mr(null), 0);
}

/* ---- on demand ---- */

Test(memory, on_demand_is_announced)
{
	struct ibv_device_attr_ex a;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &a), 0);
	cr_expect_eq(a.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	cr_expect(a.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC);
}

Test(memory, pages_come_on_demand)
{
	uint8_t *p = pages(LARGE);
	struct ibv_mr *mr;

	munmap(p, LARGE);
	mr = ibv_reg_mr(e.pd, p, LARGE, ALL | IBV_ACCESS_ON_DEMAND);
	cr_assert_not_null(mr, "no page needs to be there: %m");
	cr_assert_eq(mmap(p, LARGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
		     p);
	memset(e.buffer, 0x3c, 8192);
	cr_expect_eq(write_to(p + 4000, 8192, mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(p[4000], 0x3c);
	cr_expect_eq(p[12191], 0x3c);
	/* unmapped again: an error at the peer and nothing else */
	munmap(p, LARGE);
	cr_expect_eq(write_to(p, 8, mr->rkey), IBV_WC_REM_ACCESS_ERR);
	reconnect();
	cr_expect_eq(request(IBV_WR_RDMA_WRITE, (struct ibv_sge){ (uintptr_t)p, 8, mr->lkey },
			     (uintptr_t)e.buffer, e.mr->rkey),
		     IBV_WC_LOC_PROT_ERR);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

/*
 * A region of peer memory is written while another one of the same pages is registered and
 * deregistered. The pages are not promoted, because copies to them would fail meanwhile.
 */
Test(memory, pages_of_a_region_in_use_are_not_promoted)
{
	enum {
		WRITES_AT_ONCE = 12
	};
	uint8_t *p = pages(LARGE);
	struct ibv_mr *peer, *other;
	struct ibv_wc wc[WRITES_AT_ONCE];

	setenv("UROCE_PROMOTE", "on", 1);
	memset(p, 1, LARGE);
	peer = ibv_reg_mr(e.pd, p, LARGE, ALL | IBV_ACCESS_ON_DEMAND);
	cr_assert_not_null(peer);
	for (uint32_t round = 0; round < 200; round++) {
		for (uint32_t i = 0; i < WRITES_AT_ONCE; i++) {
			struct ibv_sge sge = own(0, BUFFER);
			struct ibv_send_wr wr = { .sg_list = &sge,
						  .num_sge = 1,
						  .opcode = IBV_WR_RDMA_WRITE,
						  .send_flags = IBV_SEND_SIGNALED };
			struct ibv_send_wr *bad;

			wr.wr.rdma.remote_addr = (uintptr_t)p + i % (LARGE / BUFFER) * BUFFER;
			wr.wr.rdma.rkey = peer->rkey;
			cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
		}
		other = ibv_reg_mr(e.pd, p, LARGE, ALL);
		cr_assert_not_null(other);
		cr_assert_eq(ibv_dereg_mr(other), 0);
		poll_completions(e.cq, wc, WRITES_AT_ONCE, "WRITEs to memory in use");
		for (uint32_t i = 0; i < WRITES_AT_ONCE; i++)
			cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "round %u: %s", round,
				     ibv_wc_status_str(wc[i].status));
	}
	cr_assert_eq(ibv_dereg_mr(peer), 0);
	munmap(p, LARGE);
}

/*
 * hostile H-18: a range that wraps in an implicit on-demand region; H-155: regions of many
 * gigabytes.
 */
Test(memory, all_memory_at_once)
{
	struct ibv_mr *mr = ibv_reg_mr(e.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	uint8_t *p = pages(8192);
	uint64_t on_stack = 0;

	cr_assert_not_null(mr, "%m");
	memset(e.buffer, 0x99, 16);
	cr_expect_eq(write_to(p + 4090, 16, mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(p[4090], 0x99);
	cr_expect_eq(p[4105], 0x99);
	cr_expect_eq(write_to(&on_stack, 8, mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(on_stack, UINT64_C(0x9999999999999999));
	cr_expect_eq(ibv_rereg_mr(mr, TRANSLATION, NULL, p, 4096, 0), IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(ibv_rereg_mr(mr, ACCESS, NULL, NULL, 0, ALL), IBV_REREG_MR_ERR_INPUT);
	cr_expect_eq(write_to(NULL, 8, mr->rkey), IBV_WC_REM_ACCESS_ERR, "address 0");
	reconnect();
	cr_expect_eq(write_to((void *)(UINTPTR_MAX - 7), 16, mr->rkey), IBV_WC_REM_ACCESS_ERR,
		     "round the end of all memory");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	errno = 0;
	cr_expect_null(
		ibv_reg_mr(e.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB));
	cr_expect_eq(errno, EINVAL, "huge pages are of an explicit range");
}

static bool is_present(const uint8_t *p)
{
	unsigned char v = 0;

	cr_assert_eq(mincore((void *)(uintptr_t)p, 4096, &v), 0);
	return v & 1;
}

Test(memory, advice)
{
	uint8_t *p = pages(16 * 4096), *hole = p + 8 * 4096;
	struct ibv_pd *other = ibv_alloc_pd(e.context);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, p, 16 * 4096, ALL | IBV_ACCESS_ON_DEMAND);
	struct ibv_mr *reads = ibv_reg_mr(e.pd, p, 4096, IBV_ACCESS_ON_DEMAND);
	enum ibv_advise_mr_advice fetch = IBV_ADVISE_MR_ADVICE_PREFETCH;
	enum ibv_advise_mr_advice fetch_write = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	enum ibv_advise_mr_advice no_fault = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
	uint32_t flush = IBV_ADVISE_MR_FLAG_FLUSH;
	struct ibv_sge good = { (uintptr_t)p + 4096, 4096, mr->lkey };
	struct {
		const char *what;
		struct ibv_pd *pd;
		enum ibv_advise_mr_advice advice;
		uint32_t flags;
		uint64_t addr;
		uint32_t length, lkey;
		int error;
	} cases[] = {
		{ "an unknown advice", e.pd, (enum ibv_advise_mr_advice)3, 0, good.addr, 1,
		  mr->lkey, ENOTSUP },
		{ "an unknown flag", e.pd, fetch, 2, good.addr, 1, mr->lkey, EINVAL },
		{ "no such key", e.pd, fetch, 0, good.addr, 1, mr->lkey ^ 1, EFAULT },
		{ "another PD", other, fetch, 0, good.addr, 1, mr->lkey, EPERM },
		{ "a region that is not on demand", e.pd, fetch, 0, (uintptr_t)e.buffer, 1,
		  e.mr->lkey, ENOENT },
		{ "writing where only reading is allowed", e.pd, fetch_write, 0, (uintptr_t)p, 1,
		  reads->lkey, EPERM },
		{ "past the end", e.pd, fetch, 0, (uintptr_t)p + 16 * 4096 - 1, 2, mr->lkey,
		  EFAULT },
		{ "in front", e.pd, fetch, 0, (uintptr_t)p - 1, 2, mr->lkey, EFAULT },
		{ "a page that is not there", e.pd, fetch, flush, (uintptr_t)hole, 1, mr->lkey,
		  EFAULT },
		{ "... nor for writing", e.pd, fetch_write, flush, (uintptr_t)hole - 1, 2, mr->lkey,
		  EFAULT },
	};

	munmap(hole, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ibv_sge sge = { cases[i].addr, cases[i].length, cases[i].lkey };

		cr_expect_eq(ibv_advise_mr(cases[i].pd, cases[i].advice, cases[i].flags, &sge, 1),
			     cases[i].error, "%s", cases[i].what);
	}
	cr_expect_eq(ibv_advise_mr(e.pd, fetch, 0, &good, 0), EINVAL, "no elements");
	cr_expect_eq(ibv_advise_mr(e.pd, no_fault, flush, &good, 1), 0);
	cr_expect(!is_present(p + 4096), "it must not fault");
	cr_expect_eq(ibv_advise_mr(e.pd, fetch_write, 0, &good, 1), 0);
	cr_expect(is_present(p + 4096));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dereg_mr(reads), 0);
	cr_expect_eq(ibv_dealloc_pd(other), 0);
}

Test(memory, advice_for_many_elements_and_other_names)
{
	uint8_t *p = pages(100 * 4096);
	struct ibv_mr *mr =
		ibv_reg_mr_iova(e.pd, p, 100 * 4096, 0x10000, ALL | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge[100];

	cr_assert_not_null(mr, "%m");
	for (uint32_t i = 0; i < 100; i++)
		sge[i] = (struct ibv_sge){ 0x10000 + i * 4096, 1, mr->lkey };
	cr_assert_eq(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				   IBV_ADVISE_MR_FLAG_FLUSH, sge, 100),
		     0);
	for (uint32_t i = 0; i < 100; i++)
		cr_expect(is_present(p + i * 4096), "page %u", i);
	sge[99].addr += 4096;
	cr_expect_eq(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 100), EFAULT);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

/* Linux before 5.14: madvise() takes no MADV_POPULATE_READ (22), and nothing that came later. */
static void make_kernel_old(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 22, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0, "%m");
}

Test(memory, advice_on_an_old_kernel)
{
	uint8_t *p = pages(4 * 4096);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, p, 4 * 4096, ALL | IBV_ACCESS_ON_DEMAND);
	struct ibv_sge sge = { (uintptr_t)p + 4095, 4096 + 2, mr->lkey };

	make_kernel_old();
	cr_assert_eq(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 0, &sge, 1), 0);
	for (uint32_t i = 0; i < 4; i++)
		cr_expect_eq(is_present(p + i * 4096), i < 3, "page %u", i);
	sge = (struct ibv_sge){ (uintptr_t)p + 3 * 4096, 1, mr->lkey };
	cr_assert_eq(ibv_advise_mr(e.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
	cr_expect(is_present(p + 3 * 4096));
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

/* ---- dma-buf ---- */

Test(memory, a_file_that_is_not_a_dma_buf_is_refused)
{
	int memfd = memfd_create("no dma-buf", 0);

	errno = 0;
	cr_expect_null(ibv_reg_dmabuf_mr(e.pd, 0, 4096, 0, -1, IBV_ACCESS_LOCAL_WRITE));
	cr_expect_eq(errno, EBADF);
	cr_expect_null(ibv_reg_dmabuf_mr(e.pd, 0, 4096, 0, memfd, IBV_ACCESS_LOCAL_WRITE));
	cr_expect_eq(errno, EINVAL);
	errno = 0;
	cr_expect_null(ibv_reg_dmabuf_mr(e.pd, 0, 4096, 0, memfd, IBV_ACCESS_MW_BIND));
	cr_expect_eq(errno, EINVAL, "access");
	errno = 0;
	cr_expect_null(ibv_reg_dmabuf_mr(e.pd, 0, 0, 0, memfd, 0));
	cr_expect_eq(errno, EINVAL, "length");
}
