/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread domains and parent domains: objects in one work and use its memory. Runs with an
 * engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rig/endpoint.h"
#include "rig/ud.h"

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(domain, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

struct allocator {
	struct ibv_pd *pd; /* the domain that the allocator must be called with */
	uint32_t held; /* pieces that were not freed */
	uint32_t calls;
	void *answer; /* its result; NULL: it allocates memory itself */
	bool fails;
};

static void *allocate(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
		      uint64_t resource)
{
	struct allocator *a = context;
	void *p = NULL;

	a->calls++;
	cr_assert_eq(pd, a->pd);
	cr_assert_neq(resource, 0);
	if (a->fails)
		return NULL;
	if (a->answer != NULL)
		return a->answer;
	cr_assert_eq(posix_memalign(&p, alignment, size), 0);
	memset(p, 0, size);
	a->held++;
	return p;
}

static void release(struct ibv_pd *pd, void *context, void *p, uint64_t resource)
{
	struct allocator *a = context;

	cr_assert_eq(pd, a->pd);
	cr_assert_gt(a->held, 0);
	a->held--;
	free(p);
}

static struct ibv_pd *parent_of(struct ibv_pd *pd, struct ibv_td *td, struct allocator *a)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd, .td = td };

	if (a != NULL) {
		attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
				 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		attr.alloc = allocate;
		attr.free = release;
		attr.pd_context = a;
	}
	attr.pd = pd;
	return ibv_alloc_parent_domain(e.context, &attr);
}

/* Makes every object that takes a PD in this one, and uses it with objects in the other. */
static void use(struct ibv_pd *domain)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 32,
					    .wc_flags = IBV_WC_STANDARD_FLAGS,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
					    .parent_domain = domain };
	struct endpoint own = e;
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8 };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;
	struct ibv_mr *mr;

	own.pd = domain;
	own.cq = (struct ibv_cq *)ibv_create_cq_ex(e.context, &init);
	cr_assert_not_null(own.cq, "%m");
	mr = ibv_reg_mr(domain, e.buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
	cr_assert_not_null(mr, "%m");
	for (int i = 0; i < 2; i++) {
		own.qp[i] = endpoint_create_qp(&own);
		cr_assert_not_null(own.qp[i], "%m");
		cr_assert_eq(own.qp[i]->pd, domain);
	}
	cr_assert_eq(endpoint_connect(&own, own.qp[0], own.qp[1]->qp_num), 0);
	cr_assert_eq(endpoint_connect(&own, own.qp[1], own.qp[0]->qp_num), 0);
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + 8192;
	wr.wr.rdma.rkey = e.mr->rkey; /* of the inner PD */
	for (int i = 0; i < 3 * DEPTH; i++) {
		cr_assert_eq(ibv_post_send(own.qp[0], &wr, &bad), 0);
		poll_completions(own.cq, &wc, 1, "a write in a domain");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	}
	cr_expect_eq(ibv_dealloc_pd(domain), EBUSY);
	cr_expect_eq(ibv_destroy_qp(own.qp[0]), 0);
	cr_expect_eq(ibv_destroy_qp(own.qp[1]), 0);
	cr_expect_eq(ibv_dealloc_pd(domain), EBUSY, "a CQ and a region are left");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(domain), EBUSY, "a CQ is left");
	cr_expect_eq(ibv_destroy_cq(own.cq), 0);
}

Test(domain, a_parent_domain_is_a_protection_domain)
{
	struct ibv_pd *domain = parent_of(e.pd, NULL, NULL);

	cr_assert_not_null(domain, "%m");
	use(domain);
	cr_assert_eq(ibv_dealloc_pd(domain), 0);
}

Test(domain, queues_take_their_memory_from_the_domain)
{
	struct allocator a = { 0 };

	a.pd = parent_of(e.pd, NULL, &a);
	cr_assert_not_null(a.pd, "%m");
	use(a.pd);
	cr_expect_gt(a.calls, 0);
	cr_expect_eq(a.held, 0);
	cr_assert_eq(ibv_dealloc_pd(a.pd), 0);
}

Test(domain, an_allocator_may_leave_it_to_the_library)
{
	struct allocator a = { .answer = IBV_ALLOCATOR_USE_DEFAULT };

	a.pd = parent_of(e.pd, NULL, &a);
	use(a.pd);
	cr_expect_gt(a.calls, 0);
	cr_assert_eq(ibv_dealloc_pd(a.pd), 0);
}

Test(domain, an_allocator_that_has_nothing_fails_the_creation)
{
	struct allocator a = { .fails = true };
	struct endpoint own = e;

	a.pd = parent_of(e.pd, NULL, &a);
	own.pd = a.pd;
	errno = 0;
	cr_expect_null(endpoint_create_qp(&own));
	cr_expect_eq(errno, ENOMEM);
	cr_expect_eq(a.held, 0);
	cr_assert_eq(ibv_dealloc_pd(a.pd), 0, "the failed queue pair left nothing");
}

/* Only ibv_bind_mw() refuses it, in the header of libibverbs. */
Test(domain, a_window_and_its_region_may_have_it_in_two_ways)
{
	struct ibv_pd *domain = parent_of(e.pd, NULL, NULL);
	struct ibv_mr *mr =
		ibv_reg_mr(domain, e.buffer, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_wc wc;

	cr_assert(domain != NULL && mr != NULL && mw != NULL, "%m");
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){ mr, (uintptr_t)e.buffer, 64, IBV_ACCESS_REMOTE_READ };
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
	poll_completions(e.cq, &wc, 1, "a bind");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dealloc_pd(domain), 0);
}

Test(domain, a_thread_domain_in_a_parent_domain)
{
	struct ibv_td_init_attr init = { 0 };
	struct ibv_td *td = ibv_alloc_td(e.context, &init);
	struct ibv_pd *domain;

	cr_assert_not_null(td, "%m");
	domain = parent_of(e.pd, td, NULL);
	cr_assert_not_null(domain, "%m");
	cr_expect_eq(ibv_dealloc_td(td), EBUSY);
	use(domain);
	cr_assert_eq(ibv_dealloc_pd(domain), 0);
	cr_assert_eq(ibv_dealloc_td(td), 0);
}

Test(domain, a_protection_domain_stays_while_a_parent_domain_has_it)
{
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_pd *domain = parent_of(pd, NULL, NULL);
	struct ibv_pd *outer = parent_of(domain, NULL, NULL);

	cr_assert_not_null(outer, "a parent domain is good wherever a PD is: %m");
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(domain), EBUSY);
	cr_expect_eq(ibv_dealloc_pd(outer), 0);
	cr_expect_eq(ibv_dealloc_pd(domain), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

/* ibv_alloc_parent_domain(3): "completely interchangeable with the struct ibv_pd used to create it". */
static void send_between(struct endpoint *of_queues, struct endpoint *of_handle)
{
	struct ibv_qp *from = ud_open(of_queues, UD_QKEY), *to = ud_open(of_queues, UD_QKEY);
	struct ibv_ah *ah = ud_self(of_handle, GID_INDEX);
	struct ibv_wc received;

	ud_one_datagram(of_queues, ah, from, to, &received);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
}

Test(domain, a_datagram_needs_an_address_handle_of_the_domain_or_of_the_one_inside)
{
	struct endpoint outer = e;

	outer.pd = parent_of(e.pd, NULL, NULL);
	cr_assert_not_null(outer.pd, "%m");
	send_between(&outer, &e);
	send_between(&e, &outer);
	cr_expect_eq(ibv_dealloc_pd(outer.pd), 0);
}
