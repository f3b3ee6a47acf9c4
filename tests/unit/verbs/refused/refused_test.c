/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments of the verbs of CQs, channels, domains, device and port: the errno of the manual
 * page, and no change in the engine. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "refused.h"

static struct endpoint e;
static struct ibv_context *other; /* the same device, opened once more ... */
static struct ibv_pd *other_pd;
static struct ibv_cq *other_cq;
static struct ibv_comp_channel *other_channel;
static struct ibv_td *other_td;
static struct ibv_pd *other_domain; /* ... and its objects */
static struct ibv_device_attr device;

static struct ibv_pd *parent_of(struct ibv_context *context, struct ibv_pd *pd)
{
	struct ibv_parent_domain_init_attr attr = { .pd = pd };

	return ibv_alloc_parent_domain(context, &attr);
}

static void open_all(void)
{
	struct ibv_td_init_attr td = { 0 };

	endpoint_open(&e);
	other = open_only_device();
	other_pd = ibv_alloc_pd(other);
	other_channel = ibv_create_comp_channel(other);
	other_cq = ibv_create_cq(other, 8, NULL, NULL, 0);
	other_td = ibv_alloc_td(other, &td);
	other_domain = parent_of(other, other_pd);
	cr_assert(other_pd && other_channel && other_cq && other_td && other_domain, "%m");
	cr_assert_eq(ibv_query_device(e.context, &device), 0);
}

static void close_all(void)
{
	cr_expect_eq(ibv_dealloc_pd(other_domain), 0);
	cr_expect_eq(ibv_dealloc_td(other_td), 0);
	cr_expect_eq(ibv_destroy_cq(other_cq), 0);
	cr_expect_eq(ibv_destroy_comp_channel(other_channel), 0);
	cr_expect_eq(ibv_dealloc_pd(other_pd), 0);
	cr_expect_eq(ibv_close_device(other), 0);
	endpoint_close(&e);
}

TestSuite(refused, .init = open_all, .fini = close_all, .timeout = 60);

/* hostile H-108: a completion queue that is never polled. */
Test(refused, completion_queues)
{
	const struct {
		const char *what;
		int cqe;
		struct ibv_comp_channel *channel;
		int vector;
	} cases[] = {
		{ "no entries", 0, NULL, 0 },
		{ "a negative number of entries", -1, NULL, 0 },
		{ "too many entries", device.max_cqe + 1, NULL, 0 },
		{ "the largest int", INT32_MAX, NULL, 0 },
		{ "the smallest int", INT32_MIN, NULL, 0 },
		{ "no such vector", 8, NULL, e.context->num_comp_vectors },
		{ "a negative vector", 8, NULL, -1 },
		{ "a channel of another context", 8, other_channel, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		REFUSED(ibv_create_cq(e.context, cases[i].cqe, NULL, cases[i].channel,
				      cases[i].vector),
			EINVAL, cases[i].what);
}

Test(refused, extended_completion_queues)
{
	const struct {
		const char *what;
		struct ibv_cq_init_attr_ex init;
		int error;
	} cases[] = {
		{ "no entries", { .cqe = 0 }, EINVAL },
		{ "too many entries", { .cqe = (uint32_t)device.max_cqe + 1 }, EINVAL },
		{ "2^32 - 1 entries", { .cqe = UINT32_MAX }, EINVAL },
		{ "no such vector",
		  { .cqe = 8, .comp_vector = (uint32_t)e.context->num_comp_vectors },
		  EINVAL },
		{ "a channel of another context", { .cqe = 8, .channel = other_channel }, EINVAL },
		{ "an unknown member", { .cqe = 8, .comp_mask = 1u << 2 }, EOPNOTSUPP },
		{ "an unknown flag",
		  { .cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS, .flags = 1u << 2 },
		  EOPNOTSUPP },
		{ "an unknown part of completions",
		  { .cqe = 8, .wc_flags = 1u << 12 },
		  EOPNOTSUPP },
		{ "one far beyond", { .cqe = 8, .wc_flags = UINT64_C(1) << 40 }, EOPNOTSUPP },
		{ "no parent domain", { .cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD }, EINVAL },
		{ "a PD that is no parent domain",
		  { .cqe = 8, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = e.pd },
		  EINVAL },
		{ "a parent domain of another context",
		  { .cqe = 8,
		    .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		    .parent_domain = other_domain },
		  EINVAL },
	};

	REFUSED(ibv_create_cq_ex(e.context, NULL), EINVAL, "nothing");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_cq_init_attr_ex init = cases[i].init;

		REFUSED(ibv_create_cq_ex(e.context, &init), cases[i].error, cases[i].what);
	}
}

Test(refused, changes_of_completion_queues)
{
	const struct {
		const char *what;
		uint32_t mask;
		int error;
	} cases[] = {
		{ "nothing", 0, EINVAL },
		{ "an unknown attribute", IBV_CQ_ATTR_RESERVED, EOPNOTSUPP },
		{ "moderation and more", IBV_CQ_ATTR_MODERATE | 1u << 31, EOPNOTSUPP },
	};
	const int sizes[] = { 0, -1, device.max_cqe + 1, INT32_MIN, INT32_MAX };
	int cqe = e.cq->cqe;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_modify_cq_attr attr = { .attr_mask = cases[i].mask };

		cr_expect_eq(ibv_modify_cq(e.cq, &attr), cases[i].error, "%s", cases[i].what);
	}
	cr_expect_eq(ibv_modify_cq(e.cq, NULL), EINVAL);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		cr_expect_eq(ibv_resize_cq(e.cq, sizes[i]), EINVAL, "%d entries", sizes[i]);
		cr_expect_eq(e.cq->cqe, cqe);
	}
}

Test(refused, polling)
{
	struct ibv_poll_cq_attr attr = { .comp_mask = 1 };
	struct ibv_cq_init_attr_ex init = { .cqe = 8, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(e.context, &init);
	struct ibv_wc wc;

	cr_assert_not_null(cq, "%m");
	cr_expect_eq(ibv_start_poll(cq, &attr), EINVAL);
	attr.comp_mask = 0;
	cr_expect_eq(ibv_start_poll(cq, &attr), ENOENT);
	cr_expect_eq(ibv_start_poll(cq, &attr), ENOENT, "a failed start needs no end");
	cr_expect_eq(ibv_poll_cq((struct ibv_cq *)cq, 0, &wc), 0);
	cr_expect_eq(ibv_destroy_cq((struct ibv_cq *)cq), 0);
}

Test(refused, channels)
{
	int flags = fcntl(e.channel->fd, F_GETFL);
	struct ibv_cq *cq;
	void *context;

	cr_expect_eq(ibv_destroy_comp_channel(e.channel), EBUSY);
	cr_assert_eq(fcntl(e.channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	errno = 0;
	cr_expect_eq(ibv_get_cq_event(e.channel, &cq, &context), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_assert_eq(fcntl(e.channel->fd, F_SETFL, flags), 0);
}

Test(refused, async_events)
{
	int flags = fcntl(e.context->async_fd, F_GETFL);
	struct ibv_async_event event;

	cr_assert_eq(fcntl(e.context->async_fd, F_SETFL, flags | O_NONBLOCK), 0);
	errno = 0;
	cr_expect_eq(ibv_get_async_event(e.context, &event), -1);
	cr_expect_eq(errno, EAGAIN);
}

/* hostile H-122: as many as allowed, and more. */
Test(refused, too_many_channels)
{
	static struct ibv_comp_channel *channel[4096];
	uint64_t objects = engine_objects();
	size_t n = 0;

	/* the number of descriptors or the engine's limit ends it */
	while (n < ARRAY_SIZE(channel) && (channel[n] = ibv_create_comp_channel(e.context)) != NULL)
		n++;
	cr_expect_gt(n, 100);
	cr_assert_lt(n, ARRAY_SIZE(channel));
	cr_expect(errno == ENOMEM || errno == EMFILE || errno == ENFILE, "%m");
	while (n > 0)
		cr_expect_eq(ibv_destroy_comp_channel(channel[--n]), 0);
	cr_expect_eq(engine_objects(), objects);
}

static void *give_nothing(struct ibv_pd *pd, void *context, size_t size, size_t alignment,
			  uint64_t resource)
{
	return NULL;
}

Test(refused, domains)
{
	struct ibv_td_init_attr strange_td = { .comp_mask = 1 };
	const struct {
		const char *what;
		struct ibv_parent_domain_init_attr attr;
	} cases[] = {
		{ "no PD", { .pd = NULL } },
		{ "a PD of another context", { .pd = other_pd } },
		{ "a parent domain of another context", { .pd = other_domain } },
		{ "a thread domain of another context", { .pd = e.pd, .td = other_td } },
		{ "an unknown member", { .pd = e.pd, .comp_mask = 1u << 2 } },
		{ "allocators that are none",
		  { .pd = e.pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS } },
		{ "an allocator without its other half",
		  { .pd = e.pd,
		    .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
		    .alloc = give_nothing } },
	};

	REFUSED(ibv_alloc_td(e.context, NULL), EINVAL, "nothing");
	REFUSED(ibv_alloc_td(e.context, &strange_td), EINVAL, "an unknown member");
	REFUSED(ibv_alloc_parent_domain(e.context, NULL), EINVAL, "nothing");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_parent_domain_init_attr attr = cases[i].attr;

		REFUSED(ibv_alloc_parent_domain(e.context, &attr), EINVAL, cases[i].what);
	}
	cr_expect_eq(ibv_dealloc_pd(e.pd), EBUSY, "queue pairs and a region are in it");
	cr_expect_eq(ibv_dealloc_pd(other_pd), EBUSY, "a parent domain has it");
}

Test(refused, queue_pairs_across_contexts)
{
	const struct {
		const char *what;
		struct ibv_pd *pd;
		struct ibv_cq *send_cq, *recv_cq;
	} cases[] = {
		{ "a PD of another context", other_pd, e.cq, e.cq },
		{ "a parent domain of another context", other_domain, e.cq, e.cq },
		{ "a send CQ of another context", e.pd, other_cq, e.cq },
		{ "a receive CQ of another context", e.pd, e.cq, other_cq },
		{ "no send CQ", e.pd, NULL, e.cq },
		{ "no receive CQ", e.pd, e.cq, NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr init = { .send_cq = cases[i].send_cq,
						 .recv_cq = cases[i].recv_cq,
						 .cap = { 8, 8, 1, 1, 0 },
						 .qp_type = IBV_QPT_RC };

		REFUSED(ibv_create_qp(cases[i].pd, &init), EINVAL, cases[i].what);
	}
	cr_expect_eq(ibv_destroy_cq(e.cq), EBUSY);
}

Test(refused, questions)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RESERVED };
	struct ibv_query_device_ex_input input = { .comp_mask = 1 };
	struct ibv_device_attr_ex ex;
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	union ibv_gid gid;
	__be16 pkey;

	cr_expect_eq(ibv_query_device(e.context, NULL), EINVAL);
	cr_expect_eq(ibv_query_device_ex(e.context, &input, &ex), EINVAL);
	cr_expect_eq(ibv_query_rt_values_ex(e.context, NULL), EINVAL);
	cr_expect_eq(ibv_query_rt_values_ex(e.context, &values), EINVAL);
	for (unsigned int n = 0; n < 256; n++) {
		uint8_t number = (uint8_t)n;

		if (number == 1)
			continue;
		cr_expect_eq(ibv_query_port(e.context, number, &port), EINVAL, "port %u", n);
		errno = 0;
		cr_expect_eq(ibv_query_gid(e.context, number, 0, &gid), -1, "port %u", n);
		cr_expect_eq(errno, EINVAL);
		cr_expect_eq(ibv_query_gid_ex(e.context, number, 0, &entry, 0), EINVAL);
		errno = 0;
		cr_expect_eq(ibv_query_pkey(e.context, number, 0, &pkey), -1);
		cr_expect_eq(errno, EINVAL);
		errno = 0;
		cr_expect_eq(ibv_get_pkey_index(e.context, number, 0xffff), -1);
		cr_expect_eq(errno, EINVAL);
	}
	errno = 0;
	cr_expect_eq(ibv_query_gid(e.context, 1, 0, NULL), -1);
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_query_gid_ex(e.context, 1, 0, NULL, 0), EINVAL);
	cr_expect_eq(ibv_query_gid_ex(e.context, 1, UINT32_MAX, &entry, 0), EINVAL);
	cr_expect_eq(ibv_query_gid_table(e.context, NULL, 8, 0), -EINVAL);
	errno = 0;
	cr_expect_eq(ibv_query_pkey(e.context, 1, 0, NULL), -1);
	cr_expect_eq(errno, EINVAL);
}
