/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of rdma_cma.h and rdma_verbs.h that fail after they have made something, or refuse their
 * arguments: -1 (or NULL) and errno, and nothing is left in the engine or in the id. Calls refused
 * by an id's state are in refused_states_test.c. Runs with an engine at $UROCE_SOCKET.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../verbs/rig/engine_objects.h"
#include "base/bits.h"
#include "rig.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *bound, *datagrams;
static struct sockaddr_in own, elsewhere;

static void begin(void)
{
	channel = open_channel();
	bound = open_id(channel, RDMA_PS_TCP);
	datagrams = open_id(channel, RDMA_PS_UDP);
	address(&own, OWN_ADDRESS, 0);
	address(&elsewhere, "192.0.2.77", 0);
	cr_assert_eq(rdma_bind_addr(bound, (struct sockaddr *)&own), 0);
	cr_assert_eq(rdma_bind_addr(datagrams, (struct sockaddr *)&own), 0);
}

static void end(void)
{
	cr_expect(!event_waits(channel), "a failed call caused an event");
	rdma_destroy_ep(bound);
	rdma_destroy_ep(datagrams);
	rdma_destroy_event_channel(channel);
}

TestSuite(refused, .init = begin, .fini = end, .timeout = 60);

#define REFUSED(call, error)                                                                  \
	do {                                                                                  \
		uint64_t objects_ = engine_objects();                                         \
                                                                                              \
		errno = 0;                                                                    \
		cr_expect_eq((intptr_t)(call), -1, "%s", #call);                              \
		cr_expect_eq(errno, error, "%s: %s, not %s", #call, strerror(errno), #error); \
		cr_expect_eq(engine_objects(), objects_, "%s: left an object in the engine",  \
			     #call);                                                          \
	} while (0)

/* The same for a call that returns a pointer. */
#define REFUSED_NULL(call, error) REFUSED((call) == NULL ? -1 : 0, error)

/* From here on no descriptor can be opened. */
static struct rlimit no_descriptors(void)
{
	struct rlimit before, now;
	int next = dup(0);

	cr_assert_geq(next, 0);
	close(next);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = before;
	now.rlim_cur = (rlim_t)next;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

Test(refused, without_descriptors)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct rdma_event_channel *made[2];
	struct rdma_cm_id *id = NULL;
	uint64_t before = engine_objects();
	struct rlimit limit = no_descriptors();
	int error[4];

	/* count objects later: counting needs a descriptor, too */
	errno = 0;
	made[0] = rdma_create_event_channel();
	error[0] = errno;
	errno = 0;
	error[1] = rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) == -1 ? errno : 0;
	errno = 0;
	error[2] = rdma_create_qp(bound, NULL, &init) == -1 ? errno : 0;
	errno = 0;
	error[3] = rdma_migrate_id(bound, NULL) == -1 ? errno : 0;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_null(made[0]);
	cr_expect_null(id);
	for (int i = 0; i < 4; i++)
		cr_expect_eq(error[i], EMFILE, "call %d: %s", i, strerror(error[i]));
	cr_expect_null(bound->send_cq_channel);
	cr_expect_null(bound->recv_cq);
	cr_expect_eq(bound->channel, channel);
	cr_expect_eq(engine_objects(), before, "%lu objects too many",
		     (unsigned long)(engine_objects() - before));
	made[1] = open_channel();
	rdma_destroy_event_channel(made[1]);
}

Test(refused, ids)
{
	struct rdma_cm_id *id = NULL;
	static const int spaces[] = { 0, 1, 0x105, 0x107, 0x112, 0x140, -1, 0x01060000 };

	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		REFUSED(rdma_create_id(channel, &id, NULL, (enum rdma_port_space)spaces[i]),
			EINVAL);
		REFUSED(rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)spaces[i]), EINVAL);
	}
	REFUSED(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	REFUSED(rdma_migrate_id(NULL, channel), EINVAL);
	cr_expect_null(id);
}

Test(refused, addresses)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr unknown = { .sa_family = AF_UNSPEC };

	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&elsewhere), ENODEV);
	REFUSED(rdma_bind_addr(id, &unknown), EINVAL);
	REFUSED(rdma_resolve_addr(id, (struct sockaddr *)&elsewhere, (struct sockaddr *)&own, 100),
		ENODEV);
	REFUSED(rdma_resolve_addr(id, &unknown, (struct sockaddr *)&own, 100), EINVAL);
	REFUSED(rdma_resolve_addr(id, NULL, &unknown, 100), EINVAL);
	REFUSED(rdma_resolve_addr(id, (struct sockaddr *)&v6, (struct sockaddr *)&own, 100),
		EINVAL);
	own.sin_port = rdma_get_src_port(bound);
	REFUSED(rdma_bind_addr(id, (struct sockaddr *)&own), EADDRINUSE);
	own.sin_port = 0;
	cr_expect_null(id->verbs);
	cr_expect_eq(rdma_get_src_port(id), 0);
	cr_expect_eq(rdma_get_local_addr(id)->sa_family, 0);
	/* the id is as new */
	cr_expect_eq(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	rdma_destroy_id(id);
}

static void expect_no_queues(const struct rdma_cm_id *id, const char *what)
{
	cr_expect_null(id->qp, "%s", what);
	cr_expect_null(id->send_cq, "%s", what);
	cr_expect_null(id->recv_cq, "%s", what);
	cr_expect_null(id->send_cq_channel, "%s", what);
	cr_expect_null(id->recv_cq_channel, "%s", what);
}

Test(refused, queue_pairs)
{
	static const struct {
		const char *what;
		struct ibv_qp_cap cap;
	} cases[] = {
		{ "too many sends", { 1u << 20, 4, 1, 1, 0 } },
		{ "too many receives", { 4, 1u << 20, 1, 1, 0 } },
		{ "all numbers", { UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX } },
		{ "too many elements", { 4, 4, 1000, 1, 0 } },
		{ "too many elements to receive", { 4, 4, 1, 1000, 0 } },
		{ "too much inline data", { 4, 4, 1, 1, 1u << 20 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = cases[i].cap };
		struct ibv_qp_init_attr_ex extended = { .qp_type = IBV_QPT_RC,
							.cap = cases[i].cap };

		REFUSED(rdma_create_qp(bound, NULL, &init), EINVAL);
		REFUSED(rdma_create_qp_ex(bound, &extended), EINVAL);
		expect_no_queues(bound, cases[i].what);
		/* the attributes do not name CQs that were destroyed */
		cr_expect(init.send_cq == NULL && init.recv_cq == NULL, "%s", cases[i].what);
		cr_expect(extended.send_cq == NULL && extended.recv_cq == NULL, "%s",
			  cases[i].what);
	}
}

/* Also when the id has an SRQ already: the next attempt must not find CQs of the last one. */
Test(refused, queue_pairs_of_an_srq)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1000, 1, 0 } };

	cr_assert_eq(rdma_create_srq(bound, NULL, &srq), 0, "%s", strerror(errno));
	REFUSED(rdma_create_qp(bound, NULL, &init), EINVAL);
	expect_no_queues(bound, "too many elements");
	init = (struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC, .cap = { 100, 0, 1, 0, 0 } };
	cr_assert_eq(rdma_create_qp(bound, NULL, &init), 0, "%s", strerror(errno));
	cr_expect_geq(bound->send_cq->cqe, 100);
	REFUSED(rdma_create_srq(bound, NULL, &srq), EINVAL);
}

Test(refused, queue_pairs_of_another_id)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_context *other = ibv_open_device(bound->verbs->device);
	struct ibv_pd *pd = ibv_alloc_pd(other);
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr wrong = init;

	cr_assert_not_null(pd);
	REFUSED(rdma_create_qp(bound, pd, &init), EINVAL);
	REFUSED(rdma_create_srq(bound, pd, &srq), EINVAL);
	for (int type = 0; type < 12; type++) {
		wrong.qp_type = (enum ibv_qp_type)type;
		if (type != IBV_QPT_RC)
			REFUSED(rdma_create_qp(bound, NULL, &wrong), EINVAL);
		if (type != IBV_QPT_UD)
			REFUSED(rdma_create_qp(datagrams, NULL, &wrong), EINVAL);
	}
	srq.attr.max_wr = UINT32_MAX;
	REFUSED(rdma_create_srq(bound, NULL, &srq), EINVAL);
	srq.attr = (struct ibv_srq_attr){ .max_wr = 4, .max_sge = 1000 };
	REFUSED(rdma_create_srq(bound, NULL, &srq), EINVAL);
	cr_expect_null(bound->srq);
	expect_no_queues(bound, "of another id");
	expect_no_queues(datagrams, "of another id");
	ibv_dealloc_pd(pd);
	ibv_close_device(other);
}

Test(refused, endpoints)
{
	struct ibv_qp_init_attr good = { .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_init_attr big = { .cap = { UINT32_MAX, 4, 1, 1, 0 } };
	struct rdma_addrinfo res = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC },
			     wrong;
	struct rdma_cm_id *id = NULL;
	char words[300] = "";

	res.ai_dst_addr = (struct sockaddr *)&own;
	res.ai_dst_len = sizeof(own);
	REFUSED(rdma_create_ep(&id, NULL, NULL, &good), EINVAL);
	REFUSED(rdma_create_ep(NULL, &res, NULL, &good), EINVAL);
	REFUSED(rdma_create_ep(&id, &res, NULL, &big), EINVAL);
	wrong = res;
	wrong.ai_port_space = 77;
	REFUSED(rdma_create_ep(&id, &wrong, NULL, &good), EINVAL);
	wrong = res;
	wrong.ai_dst_addr = NULL;
	REFUSED(rdma_create_ep(&id, &wrong, NULL, &good), EINVAL);
	wrong = res;
	wrong.ai_src_addr = (struct sockaddr *)&elsewhere;
	wrong.ai_src_len = sizeof(elsewhere);
	REFUSED(rdma_create_ep(&id, &wrong, NULL, &good), ENODEV);
	wrong.ai_flags = RAI_PASSIVE;
	REFUSED(rdma_create_ep(&id, &wrong, NULL, &good), ENODEV);
	wrong.ai_src_addr = NULL;
	REFUSED(rdma_create_ep(&id, &wrong, NULL, &good), EINVAL);
	wrong = res;
	wrong.ai_connect = words;
	wrong.ai_connect_len = sizeof(words);
	REFUSED(rdma_create_ep(&id, &wrong, NULL, &good), EINVAL);
	cr_expect_null(id);
}

/* A listening endpoint's queue pair for a new connection cannot be made: the caller is rejected. */
Test(refused, requests)
{
	struct ibv_qp_init_attr big = { .cap = { UINT32_MAX, 4, 1, 1, 0 } };
	struct rdma_addrinfo res = { .ai_flags = RAI_PASSIVE,
				     .ai_port_space = RDMA_PS_TCP,
				     .ai_qp_type = IBV_QPT_RC,
				     .ai_src_addr = (struct sockaddr *)&own,
				     .ai_src_len = sizeof(own) };
	struct rdma_conn_param param = { .qp_num = 0x123456 };
	struct rdma_cm_id *listener, *caller, *id = NULL;
	uint64_t before;

	cr_assert_eq(rdma_create_ep(&listener, &res, NULL, &big), 0, "%s", strerror(errno));
	cr_assert_eq(rdma_listen(listener, 1), 0);
	caller = open_caller(channel, RDMA_PS_TCP, ntohs(rdma_get_src_port(listener)));
	before = engine_objects();
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	errno = 0;
	cr_expect_eq(rdma_get_request(listener, &id), -1);
	cr_expect_eq(errno, EINVAL, "%s", strerror(errno));
	cr_expect_eq(engine_objects(), before, "the request's id is left");
	cr_expect_null(id);
	pass_event(channel, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(caller);
	rdma_destroy_id(listener);
}

/* A synchronous call that fails keeps the event of the failure. */
Test(refused, synchronous_calls)
{
	struct rdma_cm_id *id = open_id(NULL, RDMA_PS_TCP);
	struct rdma_conn_param param = { .qp_num = 0x123457 };
	struct sockaddr_in nobody;

	REFUSED(rdma_resolve_addr(id, NULL, address(&nobody, "192.0.2.77", 7), 100), EHOSTUNREACH);
	cr_assert_not_null(id->event);
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_ADDR_ERROR);
	cr_expect_eq(id->event->status, -EHOSTUNREACH);
	/* the call may be repeated */
	cr_assert_eq(rdma_resolve_addr(id, NULL, address(&nobody, OWN_ADDRESS, 9), 100), 0, "%s",
		     strerror(errno));
	cr_assert_eq(rdma_resolve_route(id, 100), 0);
	REFUSED(rdma_connect(id, &param), ECONNREFUSED);
	cr_expect_eq(id->event->event, RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(id->event->status, 8);
	REFUSED(rdma_migrate_id(id, NULL), EINVAL);
	rdma_destroy_id(id);
}

Test(refused, memory)
{
	char data[64];
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);

	REFUSED_NULL(rdma_reg_msgs(bound, data, 0), EINVAL);
	REFUSED_NULL(rdma_reg_read(bound, data, 0), EINVAL);
	REFUSED_NULL(rdma_reg_write(bound, data, SIZE_MAX), EINVAL);
	REFUSED_NULL(rdma_reg_write(bound, NULL, 64), EFAULT);
	rdma_destroy_id(id);
}

Test(refused, work)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 2, 2, 1, 1, 0 } };
	struct ibv_qp_init_attr ud = { .qp_type = IBV_QPT_UD, .cap = { 2, 2, 1, 1, 0 } };
	struct ibv_sge list[4] = { { 0 } };
	char data[64] = "";
	struct ibv_mr *mr = rdma_reg_msgs(bound, data, sizeof(data));

	cr_assert_eq(rdma_create_qp(bound, NULL, &init), 0);
	cr_assert_eq(rdma_create_qp(datagrams, NULL, &ud), 0);
	/* not connected */
	REFUSED(rdma_post_send(bound, NULL, data, 64, mr, 0), EINVAL);
	REFUSED(rdma_post_sendv(bound, NULL, list, 1, 0), EINVAL);
	REFUSED(rdma_post_read(bound, NULL, data, 64, mr, 0, 0, 0), EINVAL);
	REFUSED(rdma_post_readv(bound, NULL, list, 1, 0, 0, 0), EINVAL);
	REFUSED(rdma_post_write(bound, NULL, data, 64, mr, 0, 0, 0), EINVAL);
	REFUSED(rdma_post_writev(bound, NULL, list, 1, 0, 0, 0), EINVAL);
	/* more elements, and more requests, than the queue pair was made for */
	REFUSED(rdma_post_recvv(bound, NULL, list, 4), EINVAL);
	REFUSED(rdma_post_sendv(datagrams, NULL, list, 4, 0), EINVAL);
	for (uint32_t i = 0; i < init.cap.max_recv_wr; i++)
		cr_assert_eq(rdma_post_recv(bound, NULL, data, 64, mr), 0);
	REFUSED(rdma_post_recv(bound, NULL, data, 64, mr), ENOMEM);
	/* not a datagram queue pair */
	REFUSED(rdma_post_ud_send(datagrams, NULL, data, 64, mr, 0, NULL, 1), EINVAL);
	REFUSED(rdma_post_read(datagrams, NULL, data, 64, mr, 0, 0, 0), EINVAL);
	REFUSED(rdma_post_write(datagrams, NULL, data, 64, mr, 0, 0, 0), EINVAL);
	cr_expect_eq(rdma_dereg_mr(mr), 0);
}

Test(refused, groups)
{
	struct sockaddr_in group, other;
	struct sockaddr *a = address(&group, "230.9.9.9", 0);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
	};
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6,
				   .sin6_addr = { { { 0xff, 0x02, [15] = 7 } } } };

	REFUSED(rdma_join_multicast(datagrams, NULL, NULL), EINVAL);
	REFUSED(rdma_join_multicast(datagrams, (struct sockaddr *)&elsewhere, NULL), EINVAL);
	REFUSED(rdma_join_multicast(datagrams, (struct sockaddr *)&v6, NULL), EINVAL);
	REFUSED(rdma_join_multicast_ex(datagrams, &attr, NULL), EINVAL);
	REFUSED(rdma_leave_multicast(datagrams, a), EADDRNOTAVAIL);
	cr_assert_eq(rdma_join_multicast(datagrams, a, NULL), 0);
	REFUSED(rdma_leave_multicast(datagrams, address(&other, "230.9.9.10", 0)), EADDRNOTAVAIL);
	pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(rdma_leave_multicast(datagrams, a), 0);
	REFUSED(rdma_leave_multicast(datagrams, a), EADDRNOTAVAIL);
}
