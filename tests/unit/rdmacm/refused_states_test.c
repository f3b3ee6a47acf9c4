/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of rdma_cma.h in states that do not allow them: -1 and the errno that Linux gives, no
 * event, no object created or lost, and the id still works. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "../verbs/rig/engine_objects.h"
#include "base/bits.h"
#include "rig.h"

static struct rdma_event_channel *channel;
static struct sockaddr_in own, group;

static void begin(void)
{
	struct rdma_cm_id *id;

	channel = open_channel();
	address(&own, OWN_ADDRESS, 7);
	address(&group, "230.9.9.9", 0);
	/* the first bound id creates the device's default domain, which stays */
	id = open_id(channel, RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(id, (struct sockaddr *)&own), 0);
	rdma_destroy_id(id);
}

static void end(void)
{
	rdma_destroy_event_channel(channel);
}

TestSuite(refused_states, .init = begin, .fini = end, .timeout = 60);

/* ---- calls with arguments that another state would accept ---- */

static int bind_addr(struct rdma_cm_id *id)
{
	return rdma_bind_addr(id, (struct sockaddr *)&own);
}

static int resolve_addr(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&own, 2000);
}

static int resolve_route(struct rdma_cm_id *id)
{
	return rdma_resolve_route(id, 2000);
}

static int listen_(struct rdma_cm_id *id)
{
	return rdma_listen(id, 1);
}

static int connect_(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .qp_num = 0x123 };

	return rdma_connect(id, &param);
}

static int accept_(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .qp_num = 0x123 };

	return rdma_accept(id, &param);
}

static int reject(struct rdma_cm_id *id)
{
	return rdma_reject(id, "no", 3);
}

static int reject_ece(struct rdma_cm_id *id)
{
	return rdma_reject_ece(id, "no", 3);
}

static int notify(struct rdma_cm_id *id)
{
	return rdma_notify(id, IBV_EVENT_COMM_EST);
}

static int join(struct rdma_cm_id *id)
{
	return rdma_join_multicast(id, (struct sockaddr *)&group, NULL);
}

static int join_ex(struct rdma_cm_id *id)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER,
		.addr = (struct sockaddr *)&group,
	};

	return rdma_join_multicast_ex(id, &attr, NULL);
}

static int leave(struct rdma_cm_id *id)
{
	return rdma_leave_multicast(id, (struct sockaddr *)&group);
}

static int create_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .qp_type = id->qp_type, .cap = { 4, 4, 1, 1, 0 } };

	return rdma_create_qp(id, NULL, &init);
}

static int create_qp_ex(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr_ex init = { .qp_type = id->qp_type, .cap = { 4, 4, 1, 1, 0 } };

	return rdma_create_qp_ex(id, &init);
}

static int create_srq(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return rdma_create_srq(id, NULL, &init);
}

static int create_srq_ex(struct rdma_cm_id *id)
{
	struct ibv_srq_init_attr_ex init = { .attr = { .max_wr = 4, .max_sge = 1 } };

	return rdma_create_srq_ex(id, &init);
}

static int get_request(struct rdma_cm_id *id)
{
	struct rdma_cm_id *new;

	return rdma_get_request(id, &new);
}

static int attributes(struct rdma_cm_id *id, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask;

	return rdma_init_qp_attr(id, &attr, &mask);
}

static int attributes_init(struct rdma_cm_id *id)
{
	return attributes(id, IBV_QPS_INIT);
}

static int attributes_rtr(struct rdma_cm_id *id)
{
	return attributes(id, IBV_QPS_RTR);
}

static int attributes_rts(struct rdma_cm_id *id)
{
	return attributes(id, IBV_QPS_RTS);
}

static int attributes_err(struct rdma_cm_id *id)
{
	return attributes(id, IBV_QPS_ERR);
}

static int reuse(struct rdma_cm_id *id)
{
	int off = 0;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &off, sizeof(off));
}

static int one_family(struct rdma_cm_id *id)
{
	int on = 1;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on));
}

static int set_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece = { .vendor_id = 1 };

	return rdma_set_local_ece(id, &ece);
}

static int get_ece(struct rdma_cm_id *id)
{
	struct ibv_ece ece;

	return rdma_get_remote_ece(id, &ece);
}

/* The states, one bit each, in the order in which an id passes through them. */
enum {
	FRESH = 1 << 0,
	BOUND = 1 << 1, /* with a device */
	RESOLVED = 1 << 2,
	ROUTED = 1 << 3,
	LISTENING = 1 << 4,
	ASKING = 1 << 5, /* it has sent its request; with a queue pair */
	ASKED = 1 << 6, /* it has a request to answer; with a queue pair */
	CALLER = 1 << 7, /* established */
	CALLED = 1 << 8,
	PARTED = 1 << 9, /* disconnected; both ends */
	REFUSED = 1 << 10, /* its request was rejected */
	LATER = ROUTED | LISTENING | ASKING | ASKED | CALLER | CALLED | PARTED | REFUSED,
	ALL = FRESH | BOUND | RESOLVED | LATER,
};

static const struct refusal {
	const char *name;
	int (*call)(struct rdma_cm_id *id);
	unsigned int states; /* in which the call fails */
	int error;
} calls[] = {
	{ "rdma_bind_addr", bind_addr, ALL & ~FRESH, EINVAL },
	{ "rdma_resolve_addr", resolve_addr, ALL & ~(FRESH | BOUND), EINVAL },
	{ "rdma_resolve_route", resolve_route, ALL & ~RESOLVED, EINVAL },
	{ "rdma_listen", listen_, ALL & ~(FRESH | BOUND), EINVAL },
	{ "rdma_connect", connect_, ALL & ~ROUTED, EINVAL },
	{ "rdma_accept", accept_, ALL & ~ASKED, EINVAL },
	{ "rdma_reject", reject, ALL & ~(ASKING | ASKED), EINVAL },
	{ "rdma_reject_ece", reject_ece, ALL & ~(ASKING | ASKED), EINVAL },
	{ "rdma_disconnect", rdma_disconnect, FRESH | BOUND | RESOLVED | ROUTED | LISTENING,
	  EINVAL },
	{ "rdma_establish", rdma_establish, ALL, EINVAL },
	{ "rdma_notify", notify, ALL & ~(CALLER | CALLED), EINVAL },
	{ "rdma_notify, too late", notify, CALLER | CALLED, EISCONN },
	{ "rdma_join_multicast", join, ALL, EINVAL },
	{ "rdma_join_multicast_ex", join_ex, ALL, EINVAL },
	{ "rdma_leave_multicast", leave, ALL, EADDRNOTAVAIL },
	{ "rdma_create_qp", create_qp, FRESH | ASKING | ASKED | CALLER | CALLED, EINVAL },
	{ "rdma_create_qp_ex", create_qp_ex, FRESH | ASKING | ASKED | CALLER | CALLED, EINVAL },
	{ "rdma_create_srq", create_srq, FRESH, EINVAL },
	{ "rdma_create_srq_ex", create_srq_ex, FRESH, EINVAL },
	{ "rdma_get_request", get_request, ALL, EINVAL }, /* none of them is synchronous */
	{ "rdma_init_qp_attr, INIT", attributes_init, PARTED | REFUSED, EINVAL },
	{ "rdma_init_qp_attr, RTR", attributes_rtr, ALL & ~(ASKED | CALLER | CALLED), EINVAL },
	{ "rdma_init_qp_attr, RTS", attributes_rts, ALL & ~(ASKED | CALLER | CALLED), EINVAL },
	{ "rdma_init_qp_attr, ERR", attributes_err, ALL, EINVAL },
	{ "rdma_set_option, REUSEADDR off", reuse, ALL & ~FRESH, EINVAL },
	{ "rdma_set_option, AFONLY", one_family, ALL & ~(FRESH | BOUND), EINVAL },
	{ "rdma_set_local_ece", set_ece, ASKING | ASKED | CALLER | CALLED, EINVAL },
	{ "rdma_get_remote_ece", get_ece, ASKING | ASKED | CALLER | CALLED, EINVAL },
};

static int acknowledgement_timeout(struct rdma_cm_id *id)
{
	uint8_t timeout = 14;

	return rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1);
}

/* The same for datagram services: ASKING and CALLER look one up, ASKED answers. */
static const struct refusal datagram_calls[] = {
	{ "rdma_bind_addr", bind_addr, ALL & ~FRESH, EINVAL },
	{ "rdma_resolve_addr", resolve_addr, ALL & ~(FRESH | BOUND), EINVAL },
	{ "rdma_resolve_route", resolve_route, ALL & ~RESOLVED, EINVAL },
	{ "rdma_listen", listen_, ALL & ~(FRESH | BOUND), EINVAL },
	{ "rdma_connect", connect_, ALL & ~ROUTED, EINVAL },
	{ "rdma_accept", accept_, ALL & ~ASKED, EINVAL },
	{ "rdma_reject", reject, ALL & ~ASKED, EINVAL },
	{ "rdma_reject_ece", reject_ece, ALL & ~ASKED, EINVAL },
	{ "rdma_disconnect", rdma_disconnect, FRESH | BOUND | RESOLVED | ROUTED | LISTENING,
	  EINVAL },
	{ "rdma_establish", rdma_establish, ALL, EINVAL },
	{ "rdma_notify", notify, ALL, EINVAL },
	{ "rdma_join_multicast", join, FRESH, EINVAL },
	{ "rdma_leave_multicast", leave, ALL, EADDRNOTAVAIL },
	{ "rdma_create_qp", create_qp, FRESH, EINVAL },
	{ "rdma_get_request", get_request, ALL, EINVAL },
	{ "rdma_init_qp_attr, ERR", attributes_err, ALL, EINVAL },
	{ "rdma_set_option, REUSEADDR off", reuse, ALL & ~FRESH, EINVAL },
	{ "rdma_set_option, AFONLY", one_family, ALL & ~(FRESH | BOUND), EINVAL },
	{ "rdma_set_option, ACK_TIMEOUT", acknowledgement_timeout, ALL, EINVAL },
};

static void expect_refused(const struct refusal *r, struct rdma_cm_id *id, const char *name)
{
	uint64_t objects = engine_objects();

	errno = 0;
	cr_expect_eq(r->call(id), -1, "%s: %s", name, r->name);
	cr_expect_eq(errno, r->error, "%s: %s: %s", name, r->name, strerror(errno));
	cr_expect_eq(engine_objects(), objects, "%s: %s left an object", name, r->name);
}

/* Makes every call that this state does not allow. */
static void expect_refusals(struct rdma_cm_id *id, unsigned int state, const char *name)
{
	bool datagram = id->qp_type == IBV_QPT_UD;
	const struct refusal *table = datagram ? datagram_calls : calls;
	size_t n = datagram ? ARRAY_SIZE(datagram_calls) : ARRAY_SIZE(calls);

	for (size_t i = 0; i < n; i++)
		if ((table[i].states & state) != 0)
			expect_refused(&table[i], id, name);
	cr_expect(!event_waits(channel), "%s: a failed call caused an event", name);
}

Test(refused_states, before_a_connection)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP), *listener;
	uint16_t port;

	expect_refusals(id, FRESH, "fresh");
	cr_assert_eq(rdma_bind_addr(id, address(&(struct sockaddr_in){ 0 }, OWN_ADDRESS, 0)), 0);
	expect_refusals(id, BOUND, "bound");
	cr_assert_eq(resolve_addr(id), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	expect_refusals(id, RESOLVED, "resolved");
	cr_assert_eq(resolve_route(id), 0);
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	expect_refusals(id, ROUTED, "routed");
	listener = open_listener(channel, RDMA_PS_TCP, &port);
	expect_refusals(listener, LISTENING, "listening");
	cr_expect_eq(rdma_destroy_id(listener), 0);
	cr_expect_eq(rdma_destroy_id(id), 0);
}

Test(refused_states, of_a_connection)
{
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, NULL), 0);
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	give_qp(called);
	rdma_ack_cm_event(event);
	expect_refusals(caller, ASKING, "asking");
	expect_refusals(called, ASKED, "asked");
	cr_assert_eq(rdma_accept(called, NULL), 0, "%s", strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_refusals(caller, CALLER, "caller");
	expect_refusals(called, CALLED, "called");
	cr_expect_eq(caller->qp->state, IBV_QPS_RTS);
	cr_expect_eq(called->qp->state, IBV_QPS_RTS);
	cr_assert_eq(rdma_disconnect(caller), 0);
	pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	cr_assert_eq(rdma_disconnect(called), 0);
	/* wait for both TIMEWAIT_EXITs, so that they do not disturb what follows */
	pass_end(channel, 2);
	expect_refusals(caller, PARTED, "the active side, disconnected");
	expect_refusals(called, PARTED, "the passive side, disconnected");
	rdma_destroy_ep(caller);
	rdma_destroy_ep(called);
	rdma_destroy_ep(listener);
}

Test(refused_states, of_a_connection_that_was_refused)
{
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *event;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	cr_assert_eq(connect_(caller), 0);
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	cr_assert_eq(rdma_reject(called, NULL, 0), 0);
	rdma_ack_cm_event(event);
	pass_event(channel, RDMA_CM_EVENT_REJECTED);
	expect_refusals(caller, REFUSED, "refused");
	expect_refusals(called, REFUSED, "the side that rejected");
	rdma_destroy_id(caller);
	rdma_destroy_id(called);
	rdma_destroy_id(listener);
}

Test(refused_states, of_a_datagram_service)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_UDP), *listener, *caller, *called;
	struct rdma_cm_event *event;
	struct sockaddr_in a;
	uint16_t port;

	expect_refusals(id, FRESH, "fresh");
	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	expect_refusals(id, BOUND, "bound");
	cr_assert_eq(resolve_addr(id), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	expect_refusals(id, RESOLVED, "resolved");
	cr_expect_eq(rdma_destroy_id(id), 0);
	listener = open_listener(channel, RDMA_PS_UDP, &port);
	expect_refusals(listener, LISTENING, "listening");
	caller = open_caller(channel, RDMA_PS_UDP, port);
	expect_refusals(caller, ROUTED, "routed");
	cr_assert_eq(rdma_connect(caller, NULL), 0);
	event = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = event->id;
	rdma_ack_cm_event(event);
	expect_refusals(caller, ASKING, "asking");
	expect_refusals(called, ASKED, "asked");
	cr_assert_eq(accept_(called), 0, "%s", strerror(errno));
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	expect_refusals(caller, CALLER, "the side that looked it up");
	expect_refusals(called, CALLED, "the side that answered");
	rdma_destroy_id(caller);
	rdma_destroy_id(called);
	rdma_destroy_id(listener);
}
