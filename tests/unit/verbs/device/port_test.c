/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The events that a program gets when the link or addresses of the port change. Runs in the network
 * namespace of with_netdev.sh, with an engine on wire0.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "rig/engine_objects.h"
#include "rig/ud.h"

/* The next event is this one, of port 1. */
static void expect_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct pollfd p = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	do {
		cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "no event, not %s",
			     ibv_event_type_str(type));
		cr_assert_eq(ibv_get_async_event(context, &event), 0);
		cr_assert_eq(event.element.port_num, 1);
		ibv_ack_async_event(&event);
		/* the kernel may add and remove IPv6 addresses with the link */
	} while (event.event_type == IBV_EVENT_GID_CHANGE && type != IBV_EVENT_GID_CHANGE);
	cr_assert_eq(event.event_type, type, "%s instead of %s",
		     ibv_event_type_str(event.event_type), ibv_event_type_str(type));
}

static enum ibv_port_state state_of(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	cr_assert_eq(ibv_query_port(context, 1, &attr), 0);
	return attr.state;
}

static void command(const char *line)
{
	cr_assert_eq(system(line), 0, "%s", line);
}

/* hostile H-129: an interface that changes. */
Test(port, the_link_goes_down_and_up, .timeout = 120)
{
	struct ibv_context *context[2] = { open_only_device(), open_only_device() };

	struct reply_statistics before, now;

	cr_assert_eq(state_of(context[0]), IBV_PORT_ACTIVE);
	engine_statistics(&before);
	for (uint32_t round = 0; round < 2; round++) {
		command("ip link set wire1 down");
		for (int i = 0; i < 2; i++) {
			expect_event(context[i], IBV_EVENT_PORT_ERR);
			cr_expect_eq(state_of(context[i]), IBV_PORT_DOWN);
		}
		engine_statistics(&now);
		cr_expect_eq(now.links_lost - before.links_lost, round + 1);
		command("ip link set wire1 up");
		for (int i = 0; i < 2; i++) {
			expect_event(context[i], IBV_EVENT_PORT_ACTIVE);
			cr_expect_eq(state_of(context[i]), IBV_PORT_ACTIVE);
		}
	}
	for (int i = 0; i < 2; i++)
		cr_expect_eq(ibv_close_device(context[i]), 0);
}

static int active_mtu_of(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	cr_assert_eq(ibv_query_port(context, 1, &attr), 0);
	return attr.active_mtu;
}

/* A veth pair announces 10 Gbit/s: one lane of FDR10. */
Test(port, the_speed_is_the_interfaces, .timeout = 60)
{
	struct ibv_context *context = open_only_device();
	struct ibv_port_attr attr;

	cr_assert_eq(ibv_query_port(context, 1, &attr), 0);
	cr_expect_eq(attr.active_speed, 8, "%u", attr.active_speed);
	cr_expect_eq(attr.active_width, 1, "%u", attr.active_width);
	cr_expect_eq(ibv_close_device(context), 0);
}

/*
 * There is no event for the MTU; PORT_ACTIVE tells programs to query the port.
 * hostile H-129: an interface that changes.
 */
Test(port, the_mtu_changes_and_changes_back, .timeout = 120)
{
	struct ibv_context *context = open_only_device();

	cr_assert_eq(active_mtu_of(context), IBV_MTU_1024);
	command("ip link set wire0 mtu 700");
	expect_event(context, IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(active_mtu_of(context), IBV_MTU_512);
	command("ip link set wire0 mtu 1500");
	expect_event(context, IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(active_mtu_of(context), IBV_MTU_1024);
	cr_expect_eq(ibv_close_device(context), 0);
}

/* The program opened the device when the MTU was smaller. */
Test(port, a_new_datagram_queue_pair_has_the_mtu_that_the_port_has_now, .timeout = 120)
{
	struct ibv_context *first = open_only_device();
	struct ibv_wc wc;
	struct endpoint e;
	struct ibv_ah *ah;
	struct ibv_qp *qp;

	command("ip link set wire0 mtu 700");
	expect_event(first, IBV_EVENT_PORT_ACTIVE);
	cr_expect_eq(ibv_close_device(first), 0);
	first = open_only_device();
	cr_assert_eq(active_mtu_of(first), IBV_MTU_512);
	command("ip link set wire0 mtu 1500");
	expect_event(first, IBV_EVENT_PORT_ACTIVE);
	cr_assert_eq(active_mtu_of(first), IBV_MTU_1024);
	endpoint_open(&e);
	qp = ud_open(&e, UD_QKEY);
	ah = ud_self(&e, GID_INDEX);
	ud_receive(&e, qp, 0, 2048);
	cr_assert_eq(ud_send(&e, qp, ah, qp->qp_num, UD_QKEY, 4096, 1024), 0);
	for (int i = 0; i < 2; i++) {
		poll_completions(e.cq, &wc, 1, "a datagram");
		cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	}
	cr_expect_eq(ud_send(&e, qp, ah, qp->qp_num, UD_QKEY, 4096, 1025), EINVAL);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	endpoint_close(&e);
	cr_expect_eq(ibv_close_device(first), 0);
}

/* The interface's MTU reaches the engine some time after the command. */
static void expect_active_mtu(struct ibv_context *context, enum ibv_mtu mtu)
{
	for (int i = 0; active_mtu_of(context) != (int)mtu; i++) {
		cr_assert_lt(i, WAIT_SECONDS * 100, "the port's MTU is %d, not %d",
			     active_mtu_of(context), mtu);
		usleep(10000);
	}
}

static void again(struct ibv_qp *ud)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	cr_assert_eq(ibv_modify_qp(ud, &reset, IBV_QP_STATE), 0);
	cr_assert_eq(ud_ready(ud, UD_QKEY), 0);
}

/* From RESET to RTR, with this path MTU. 0 or the errno. */
static int try_mtu(struct ibv_qp *qp, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	cr_assert_eq(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	cr_assert_eq(endpoint_to_init(qp), 0);
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh = { .sgid_index = GID_INDEX } },
	};
	cr_assert_eq(ibv_query_gid(qp->context, 1, GID_INDEX, &a.ah_attr.grh.dgid), 0);
	return ibv_modify_qp(qp, &a,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

/* What counts is the MTU of the time at which it is connected, not of that at which it was created. */
Test(port, a_queue_pair_that_is_connected_has_the_mtu_of_now, .timeout = 120)
{
	struct ibv_qp *rc, *ud;
	struct endpoint e;
	struct ibv_ah *ah;

	endpoint_open(&e); /* connects at an MTU of 1024 */
	command("ip link set wire0 mtu 700");
	expect_active_mtu(e.context, IBV_MTU_512);
	rc = endpoint_create_qp(&e);
	ud = ud_open(&e, UD_QKEY);
	ah = ud_self(&e, GID_INDEX);
	cr_expect_eq(try_mtu(rc, IBV_MTU_1024), EINVAL);
	cr_expect_eq(ud_send(&e, ud, ah, ud->qp_num, UD_QKEY, 0, 513), EINVAL);
	command("ip link set wire0 mtu 1500");
	expect_active_mtu(e.context, IBV_MTU_1024);
	cr_expect_eq(try_mtu(rc, IBV_MTU_1024), 0, "the port carries it now");
	again(ud);
	cr_expect_eq(ud_send(&e, ud, ah, ud->qp_num, UD_QKEY, 0, 1024), 0);
	command("ip link set wire0 mtu 700");
	expect_active_mtu(e.context, IBV_MTU_512);
	cr_expect_eq(try_mtu(rc, IBV_MTU_1024), EINVAL, "the port carries it no more");
	again(ud);
	cr_expect_eq(ud_send(&e, ud, ah, ud->qp_num, UD_QKEY, 0, 513), EINVAL);
	command("ip link set wire0 mtu 1500");
	expect_active_mtu(e.context, IBV_MTU_1024);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(ud), 0);
	cr_expect_eq(ibv_destroy_qp(rc), 0);
	endpoint_close(&e);
}

/* The index of an IPv4 address of 10.77.0.0/24 in the GID table, or -1. */
static int find_gid(struct ibv_context *context, uint8_t host)
{
	const uint8_t wanted[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = 77, [15] = host };
	struct ibv_port_attr attr;
	union ibv_gid gid;

	cr_assert_eq(ibv_query_port(context, 1, &attr), 0);
	for (int i = 0; i < attr.gid_tbl_len; i++) {
		cr_assert_eq(ibv_query_gid(context, 1, i, &gid), 0);
		if (memcmp(gid.raw, wanted, sizeof(wanted)) == 0)
			return i;
	}
	return -1;
}

/* hostile H-129: an interface that changes. */
Test(port, addresses_come_and_go, .timeout = 120)
{
	struct ibv_context *context = open_only_device();
	int first = find_gid(context, 1);

	cr_assert_geq(first, 0);
	cr_assert_eq(find_gid(context, 2), -1);
	command("ip address add 10.77.0.2/24 dev wire0");
	do
		expect_event(context, IBV_EVENT_GID_CHANGE);
	while (find_gid(context, 2) == -1);
	cr_expect_eq(find_gid(context, 1), first, "the others keep their index");
	command("ip address del 10.77.0.2/24 dev wire0");
	do
		expect_event(context, IBV_EVENT_GID_CHANGE);
	while (find_gid(context, 2) != -1);
	cr_expect_eq(find_gid(context, 1), first);
	cr_expect_eq(ibv_close_device(context), 0);
}

#define MANY 400 /* events; more than a socket holds */

static struct ibv_qp *raise_event(struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_attr to_err = { .qp_state = IBV_QPS_ERR };
	struct ibv_qp *qp = ibv_create_qp(pd, init);

	cr_assert_not_null(qp, "%m");
	cr_assert_eq(endpoint_to_init(qp), 0);
	cr_assert_eq(ibv_modify_qp(qp, &to_err, IBV_QP_STATE), 0);
	return qp;
}

static void await_state(struct ibv_context *context, enum ibv_port_state state)
{
	struct timespec pause = { .tv_nsec = 10000000 };

	for (int i = 0; state_of(context) != state; i++) {
		cr_assert_lt(i, WAIT_SECONDS * 100, "the port is not %s",
			     ibv_port_state_str(state));
		nanosleep(&pause, NULL);
	}
}

/* A program that reads no events for a while learns the port's final state. */
Test(port, events_wait_until_the_program_reads, .timeout = 120)
{
	struct ibv_context *context = open_only_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .srq = ibv_create_srq(pd, &srq_init),
					 .cap = { .max_send_wr = 1, .max_send_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	static struct ibv_qp *qp[MANY];
	struct pollfd p = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int of_qps = 0, of_port = -1;

	for (int i = 0; i < MANY; i++)
		qp[i] = raise_event(pd, &init);
	command("ip link set wire1 down");
	await_state(context, IBV_PORT_DOWN);
	command("ip link set wire1 up");
	await_state(context, IBV_PORT_ACTIVE);
	while (of_qps < MANY || of_port != IBV_EVENT_PORT_ACTIVE) {
		cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "%d of %d, and of the port %d",
			     of_qps, MANY, of_port);
		cr_assert_eq(ibv_get_async_event(context, &event), 0);
		if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED)
			of_qps++;
		else if (event.event_type != IBV_EVENT_GID_CHANGE)
			of_port = event.event_type;
		ibv_ack_async_event(&event);
	}
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	cr_expect_eq(ibv_destroy_srq(init.srq), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(ibv_close_device(context), 0);
}

/* A stack frame that the address sanitizer has poisoned stays so if the thread ends in it. */
#define ENDS_HERE __attribute__((no_sanitize_address))

struct creation {
	struct ibv_pd *pd;
	int error; /* of ibv_create_ah; -1: it did not return */
};

static ENDS_HERE void *create_cancelled(void *argument)
{
	struct creation *c = argument;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = ipv4_gid(10, 77, 0, 99), .sgid_index = GID_INDEX, .hop_limit = 64 }
	};

	pthread_cancel(pthread_self());
	errno = 0;
	ibv_create_ah(c->pd, &attr);
	c->error = errno;
	return NULL;
}

/* Otherwise the engine would keep the handle in the domain. */
Test(port, a_thread_that_waits_for_a_neighbour_is_not_cancelled, .timeout = 60)
{
	struct ibv_context *context = open_only_device();
	struct creation c = { .pd = ibv_alloc_pd(context), .error = -1 };
	pthread_t thread;

	cr_assert_not_null(c.pd);
	cr_assert_eq(pthread_create(&thread, NULL, create_cancelled, &c), 0);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(c.error, EHOSTUNREACH, "%d (-1: the thread ended in ibv_create_ah)", c.error);
	cr_expect_eq(ibv_dealloc_pd(c.pd), 0, "a handle is left in it");
	cr_expect_eq(ibv_close_device(context), 0);
}
