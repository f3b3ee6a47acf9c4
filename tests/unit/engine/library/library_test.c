/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that holds liburoce wrongly: each wrong call gives an error, and the next right one works. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_service.h>

#include "../verbs/rig/endpoint.h"
#include "library_rig.h"

TestSuite(library, .init = library_begin, .fini = library_end, .timeout = 60);

static void expect_refused(const struct uroce_options *o, const char *part)
{
	char why[256] = "";

	errno = 0;
	cr_expect_null(uroce_create(o, why, sizeof(why)), "%s", part);
	cr_expect_eq(errno, EINVAL, "%s: errno %d", part, errno);
	cr_expect_not_null(strstr(why, part), "'%s' does not say '%s'", why, part);
}

Test(library_alone, nothing_works_before_eal, .timeout = 20)
{
	struct uroce_handed_options h = { .size = sizeof(h), .mac = { 2 }, .mtu = 1500 };
	struct uroce_port_options p = { .size = sizeof(p), .name = "net_null0" };
	struct uroce_options o = library_options();
	char why[256];

	expect_refused(&o, "rte_eal_init");
	cr_expect_null(uroce_port_open(&p, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "rte_eal_init"), "%s", why);
	cr_expect_null(uroce_port_handed(&h, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "rte_eal_init"), "%s", why);
}

Test(library, options_have_a_size)
{
	struct {
		struct uroce_options known;
		uint64_t newer;
	} o = { .known = library_options() };
	struct uroce_engine *e;
	char why[256];

	o.known.size = 0;
	expect_refused(&o.known, "size");
	expect_refused(NULL, "size");
	o.known.size = sizeof(o);
	o.newer = 1;
	expect_refused(&o.known, "does not know");
	/* newer, but it asks for nothing new */
	o.newer = 0;
	e = uroce_create(&o.known, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	cr_expect_eq(uroce_destroy(e), 0);
	/* older: what comes behind its size is not read */
	o.known.size = offsetof(struct uroce_options, exit_when_idle);
	o.known.exit_when_idle = 1;
	e = uroce_create(&o.known, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	cr_expect_eq(uroce_destroy(e), 0);
}

Test(library, options_out_of_range)
{
	struct uroce_options o = library_options();

	o.lcores = 17;
	expect_refused(&o, "lcores");
	o = library_options();
	o.addresses = 17;
	expect_refused(&o, "16 addresses");
	o = library_options();
	o.name = "";
	expect_refused(&o, "1 .. 31 characters");
	o.name = "thirty-two characters, one more ";
	expect_refused(&o, "1 .. 31 characters");
	o = library_options();
	o.vlan = 4095;
	expect_refused(&o, "VLAN");
}

Test(library, addresses_that_no_engine_can_have)
{
	const struct uroce_address nobody = { .prefix = 8 };
	const struct uroce_address group = { { [10] = 0xff, [11] = 0xff, 224, 0, 0, 1 }, 24 };
	const struct uroce_address all = { { [10] = 0xff, [11] = 0xff, 255, 255, 255, 255 }, 24 };
	struct uroce_options o = library_options();

	o.addresses = 2;
	o.address[0] = o.address[1] = library_address(1);
	expect_refused(&o, "address[1] is address[0] once more");
	o.address[1] = nobody;
	expect_refused(&o, "address[1] is the address of nobody");
	o.address[1] = group;
	expect_refused(&o, "address[1] is the address of a group");
	o.address[1] = all;
	expect_refused(&o, "address[1] is the address of everybody");
	o.address[1] = library_address(2);
	o.address[1].prefix = 33;
	expect_refused(&o, "address[1].prefix is 33, but must be 0 .. 32");
	o.address[1].octet[0] = 0xfd;
	o.address[1].prefix = 129;
	expect_refused(&o, "address[1].prefix is 129, but must be 0 .. 128");
}

/* Besides the link-local address. */
Test(library, it_has_as_many_addresses_as_it_may)
{
	struct uroce_options o = library_options();
	char why[256], all[1024] = "", last[16];
	struct ibv_port_attr port;
	struct uroce_engine *e;
	struct ibv_context *c;
	union ibv_gid gid;

	o.addresses = UROCE_ADDRESSES;
	for (uint8_t i = 0; i < UROCE_ADDRESSES; i++)
		o.address[i] = library_address((uint8_t)(i + 1));
	e = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	uroce_describe(e, all, sizeof(all));
	snprintf(last, sizeof(last), ",10.9.0.%d,", UROCE_ADDRESSES);
	cr_expect_not_null(strstr(all, last), "%s", all);
	cr_assert_eq(uroce_register(e), 0);
	c = library_open("uroce0");
	cr_assert_eq(ibv_query_port(c, 1, &port), 0);
	cr_assert_eq(ibv_query_gid(c, 1, port.gid_tbl_len - 1, &gid), 0);
	cr_expect_eq(gid.raw[15], UROCE_ADDRESSES);
	cr_expect_eq(ibv_close_device(c), 0);
	cr_expect_eq(uroce_destroy(e), 0);
}

Test(library, next_hops_that_cannot_be)
{
	const struct uroce_address group = { { [10] = 0xff, [11] = 0xff, 224, 0, 0, 1 }, 24 };
	struct uroce_options o = library_options();

	o.addresses = 1;
	o.address[0] = library_address(1);
	o.gateways = 1;
	o.gateway[0] = group;
	expect_refused(&o, "gateway[0] is the address of a group");
	o.gateway[0] = library_address(1);
	expect_refused(&o, "gateway[0] is an address of the engine");
	o.gateways = 2;
	o.gateway[0] = library_address(2);
	o.gateway[1] = library_address(3);
	expect_refused(&o, "gateway[0] and gateway[1] are of one address family");
}

Test(library, an_engine_that_is_gone)
{
	struct uroce_engine *e = library_engine();
	struct uroce_counter counter;
	uint32_t id;
	char text[64] = "x";

	cr_assert_eq(uroce_destroy(e), 0);
	cr_expect_eq(uroce_destroy(e), EINVAL);
	cr_expect_eq(uroce_poll(e, 0), -EINVAL);
	cr_expect_eq(uroce_start(e), EINVAL);
	cr_expect_eq(uroce_stop(e), EINVAL);
	cr_expect_eq(uroce_register(e), EINVAL);
	cr_expect_eq(uroce_service(e, 0, &id), EINVAL);
	cr_expect_eq(uroce_counters(e, &counter, 1), 0);
	cr_expect_not(uroce_idle_expired(e));
	cr_expect_not(uroce_wants(e, NULL));
	uroce_describe(e, text, sizeof(text));
	cr_expect_str_eq(text, "");
}

Test(library, no_engine_at_all)
{
	cr_expect_eq(uroce_destroy(NULL), 0);
	cr_expect_eq(uroce_poll(NULL, 0), -EINVAL);
	cr_expect_eq(uroce_start(NULL), EINVAL);
	cr_expect_eq(uroce_stop(NULL), EINVAL);
	cr_expect_eq(uroce_port_close(NULL), EINVAL);
	cr_expect_eq(uroce_hand_in(NULL, 0, NULL, 0), 0);
	cr_expect_eq(uroce_take_out(NULL, 0, NULL, 0), 0);
	cr_expect_eq(uroce_set_link(NULL, true), EINVAL);
}

Test(library, one_thread_polls_at_a_time)
{
	struct uroce_engine *e = library_engine();
	uint32_t id;

	cr_expect_eq(uroce_poll(e, 1), -EINVAL, "it has one lcore");
	cr_expect_eq(uroce_stop(e), 0, "nothing to stop");
	cr_expect_geq(uroce_poll(e, 0), 0);
	cr_assert_eq(uroce_start(e), 0);
	cr_expect_eq(uroce_start(e), EALREADY);
	cr_expect_eq(uroce_poll(e, 0), -EBUSY);
	cr_expect_eq(uroce_service(e, 0, &id), EBUSY);
	cr_assert_eq(uroce_stop(e), 0);
	cr_expect_geq(uroce_poll(e, 0), 0);
	cr_assert_eq(uroce_start(e), 0, "again");
	cr_expect_eq(uroce_destroy(e), 0);
}

static int return_at_once(void *none)
{
	return 0;
}

Test(library, lcores_that_cannot_be_launched)
{
	struct uroce_options o = library_options();
	struct uroce_engine *e;
	char why[256];

	o.lcores = 2;
	o.lcore_ids[1] = 77; /* EAL has no such lcore */
	e = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	cr_expect_eq(uroce_start(e), EINVAL);
	cr_expect_eq(uroce_destroy(e), 0);
	o.lcore_ids[1] = 0; /* twice the same */
	e = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	cr_expect_eq(uroce_start(e), EINVAL);
	cr_expect_geq(uroce_poll(e, 1), 0);
	cr_expect_eq(uroce_destroy(e), 0);
	/* a worker that has a task; the threads that were launched before it end again */
	o.lcore_ids[1] = 1;
	e = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	cr_assert_eq(uroce_start(e), 0);
	cr_expect_eq(rte_eal_remote_launch(return_at_once, NULL, 1), -EBUSY);
	cr_expect_eq(uroce_destroy(e), 0);
}

static int task(void *over)
{
	while (__atomic_load_n((uint32_t *)over, __ATOMIC_ACQUIRE) == 0)
		usleep(100);
	return 0;
}

static void *poll_until_refused(void *engine)
{
	int work;

	do {
		work = uroce_poll(engine, 0);
	} while (work >= 0);
	return (void *)(intptr_t)work;
}

Test(library, it_is_destroyed_while_two_threads_poll)
{
	struct uroce_engine *e = library_engine();
	pthread_t thread[2];
	void *last;

	for (int i = 0; i < 2; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, poll_until_refused, e), 0);
	for (int i = 0; i < 1000; i++)
		cr_assert_geq(uroce_poll(e, 0), 0);
	cr_expect_eq(uroce_destroy(e), 0);
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], &last);
		cr_expect_eq((intptr_t)last, -EINVAL);
	}
}

static int post_write(struct endpoint *e)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)e->buffer + 4096;
	wr.wr.rdma.rkey = e->mr->rkey;
	return ibv_post_send(e->qp[0], &wr, &bad);
}

Test(library, it_is_destroyed_under_open_contexts)
{
	struct uroce_engine *e = library_engine();
	struct endpoint p;
	struct ibv_wc wc;

	cr_assert_eq(uroce_register(e), 0);
	cr_expect_eq(uroce_register(e), EEXIST);
	cr_assert_eq(uroce_start(e), 0);
	endpoint_open(&p);
	cr_assert_eq(post_write(&p), 0);
	poll_completions(p.cq, &wc, 1, "a WRITE");
	cr_assert_eq(uroce_destroy(e), 0);

	post_write(&p);
	ibv_poll_cq(p.cq, 1, &wc);
	errno = 0;
	cr_expect_null(ibv_alloc_pd(p.context));
	cr_expect_eq(errno, ENODEV, "errno %d", errno);
	cr_expect_null(ibv_create_cq(p.context, 16, NULL, NULL, 0));
	cr_expect_eq(endpoint_to_init(p.qp[0]), ENODEV);
	cr_expect_null(ibv_get_device_list(NULL)[0]);
	endpoint_close(&p);
}

/* Its lcore has another task. Attached programs are not told that it stopped, as it never ran. */
Test(library, a_start_that_fails_ends_no_program)
{
	struct uroce_options o = library_options();
	struct uroce_engine *e;
	struct endpoint p;
	struct ibv_wc wc;
	uint32_t over = 0;
	char place[64], lock[80], why[256];

	snprintf(place, sizeof(place), "/tmp/uroce-library-%d.sock", getpid());
	o.socket_path = place;
	o.lcore_ids[0] = 1;
	e = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(e, "%s", why);
	setenv("UROCE_SOCKET", place, 1);
	endpoint_open(&p);
	cr_assert_eq(rte_eal_remote_launch(task, &over, 1), 0);
	cr_expect_eq(uroce_start(e), EBUSY);
	for (int i = 0; i < 10000; i++) /* some of them look at what the engine says */
		cr_assert_eq(ibv_poll_cq(p.cq, 1, &wc), 0);
	__atomic_store_n(&over, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(1);
	cr_assert_eq(uroce_start(e), 0);
	cr_expect_eq(post_write(&p), 0);
	poll_completions(p.cq, &wc, 1, "a WRITE");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	endpoint_close(&p);
	cr_expect_eq(uroce_destroy(e), 0);
	snprintf(lock, sizeof(lock), "%s.lock", place);
	unlink(lock);
}

Test(library, verbs_work_by_a_loop_of_the_program)
{
	struct uroce_engine *e = library_engine();
	struct endpoint p;
	struct ibv_wc wc;
	int n = 0;

	cr_assert_eq(uroce_register(e), 0);
	endpoint_open(&p);
	memset(p.buffer, 'l', 64);
	cr_assert_eq(post_write(&p), 0);
	for (int i = 0; i < 100000 && n == 0; i++) {
		cr_assert_geq(uroce_poll(e, 0), 0);
		n = ibv_poll_cq(p.cq, 1, &wc);
	}
	cr_expect_eq(n, 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_eq(p.buffer[4096 + 63], 'l');
	endpoint_close(&p);
	cr_expect_eq(uroce_destroy(e), 0);
}

/* On a service core, which the main thread does nothing for. */
Test(library, verbs_work_by_a_service)
{
	struct uroce_engine *e = library_engine();
	struct endpoint p;
	struct ibv_wc wc;
	uint32_t id, again;

	cr_assert_eq(uroce_register(e), 0);
	cr_expect_eq(uroce_service(e, 1, &id), EINVAL);
	cr_expect_eq(uroce_service(e, 0, NULL), EINVAL);
	cr_assert_eq(uroce_service(e, 0, &id), 0);
	cr_expect_eq(uroce_service(e, 0, &again), EEXIST);
	cr_expect_eq(uroce_poll(e, 0), -EBUSY);
	cr_expect_eq(uroce_start(e), EBUSY);
	cr_assert_eq(rte_service_lcore_add(1), 0);
	cr_assert_eq(rte_service_map_lcore_set(id, 1, 1), 0);
	cr_assert_eq(rte_service_runstate_set(id, 1), 0);
	cr_assert_eq(rte_service_lcore_start(1), 0);
	endpoint_open(&p);
	cr_assert_eq(post_write(&p), 0);
	poll_completions(p.cq, &wc, 1, "a WRITE");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	endpoint_close(&p);
	/* its core runs on */
	cr_expect_eq(uroce_destroy(e), 0);
	rte_service_lcore_stop(1);
	rte_service_lcore_del(1);
	rte_eal_wait_lcore(1);
}

Test(library, counters_have_names_and_count)
{
	struct uroce_engine *e = library_engine();
	uint32_t n = uroce_counters(e, NULL, 0), polls = n;
	struct uroce_counter c[512];

	cr_assert(n > 16 && n <= 512, "%u", n);
	cr_assert_geq(uroce_poll(e, 0), 0);
	cr_expect_eq(uroce_counters(e, c, n), n);
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t j = 0; j < i; j++)
			cr_expect_str_neq(c[i].name, c[j].name);
		if (strcmp(c[i].name, "polls") == 0)
			polls = i;
	}
	cr_assert_lt(polls, n);
	cr_expect_geq(c[polls].value, 1);
	cr_expect_eq(uroce_destroy(e), 0);
}

Test(library, it_has_a_version)
{
	cr_expect_str_eq(uroce_version(), UROCE_VERSION);
}

Test(library, sixteen_engines_and_no_more)
{
	struct uroce_handed_options h = { .size = sizeof(h), .mac = { 2 }, .mtu = 1500 };
	struct uroce_options o = library_options();
	struct uroce_engine *e[16];
	struct rte_mbuf *frame[8];
	char why[256], name[16];

	o.name = name;
	o.pool_size = 600;
	for (int i = 0; i < 16; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		e[i] = uroce_create(&o, why, sizeof(why));
		cr_assert_not_null(e[i], "%s", why);
	}
	cr_expect_null(uroce_create(&o, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "16 engines"), "%s", why);
	/* nor does it leave frames in a port, whose buffers would be gone with it */
	o.port = uroce_port_handed(&h, why, sizeof(why));
	cr_assert_not_null(o.port, "%s", why);
	o.addresses = 1;
	o.address[0] = library_address(1);
	cr_expect_null(uroce_create(&o, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "16 engines"), "%s", why);
	cr_expect_eq(uroce_take_out(o.port, 0, frame, 8), 0, "it announced its address");
	cr_expect_eq(uroce_port_close(o.port), 0);
	for (int i = 0; i < 16; i++)
		cr_expect_eq(uroce_destroy(e[i]), 0);
}
