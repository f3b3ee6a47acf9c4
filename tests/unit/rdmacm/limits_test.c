/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private data of every message and port space: the maximum length and one octet more (protocol-map
 * 188); the effect of an id's options. Runs with an engine at $UROCE_SOCKET.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig.h"

static struct rdma_event_channel *channel;
static uint8_t words[256];

/* An unused number: a number that comes again makes an older connection stale. */
static uint32_t new_qpn(void)
{
	static uint32_t last;

	return 0x100000 + (uint32_t)getpid() % 0xff0 * 0x100 + ++last;
}

static void begin(void)
{
	channel = open_channel();
	for (int i = 0; i < 256; i++)
		words[i] = (uint8_t)(255 - i);
}

static void end(void)
{
	rdma_destroy_event_channel(channel);
}

TestSuite(limits, .init = begin, .fini = end, .timeout = 60);

/* An endpoint on our channel: only this way makes ids of the IB port space. */
static struct rdma_cm_id *endpoint(int space, int type, uint16_t port, bool passive)
{
	struct sockaddr_in a;
	struct rdma_addrinfo res = { .ai_flags = passive ? RAI_PASSIVE : 0,
				     .ai_family = AF_INET,
				     .ai_port_space = space,
				     .ai_qp_type = type };
	struct rdma_cm_id *id;

	address(&a, OWN_ADDRESS, port);
	*(passive ? &res.ai_src_addr : &res.ai_dst_addr) = (struct sockaddr *)&a;
	*(passive ? &res.ai_src_len : &res.ai_dst_len) = sizeof(a);
	cr_assert_eq(rdma_create_ep(&id, &res, NULL, NULL), 0, "space %x type %d: %s", space, type,
		     strerror(errno));
	cr_expect_eq((int)id->ps, (int)space);
	cr_expect_eq((int)id->qp_type, (int)type);
	cr_assert_eq(rdma_migrate_id(id, channel), 0, "%s", strerror(errno));
	if (passive)
		cr_assert_eq(rdma_listen(id, 4), 0, "%s", strerror(errno));
	return id;
}

static const struct space {
	const char *name;
	int space, type;
	bool datagram;
	uint8_t req, rep, rej; /* octets that are left for programs */
} spaces[] = {
	{ "TCP", RDMA_PS_TCP, IBV_QPT_RC, false, 56, 196, 148 },
	{ "IB, RC", RDMA_PS_IB, IBV_QPT_RC, false, 56, 196, 148 },
	{ "IB, UC", RDMA_PS_IB, IBV_QPT_UC, false, 56, 196, 148 },
	{ "UDP", RDMA_PS_UDP, IBV_QPT_UD, true, 180, 136, 136 },
	{ "IPoIB", RDMA_PS_IPOIB, IBV_QPT_UD, true, 180, 136, 136 },
	{ "IB, UD", RDMA_PS_IB, IBV_QPT_UD, true, 180, 136, 136 },
};

static const void *data_of(const struct space *s, const struct rdma_cm_event *e, uint8_t *length)
{
	*length = s->datagram ? e->param.ud.private_data_len : e->param.conn.private_data_len;
	return s->datagram ? e->param.ud.private_data : e->param.conn.private_data;
}

static void expect_words(const struct space *s, const struct rdma_cm_event *e, uint8_t wanted)
{
	uint8_t length;
	const void *data = data_of(s, e, &length);

	cr_expect_eq(length, wanted, "%s: %s carries %u octets", s->name, rdma_event_str(e->event),
		     length);
	cr_expect(length >= wanted && memcmp(data, words, wanted) == 0, "%s: %s", s->name,
		  rdma_event_str(e->event));
}

/* A request with the maximum of private data. */
static struct rdma_cm_id *ask(const struct space *s, struct rdma_cm_id *listener)
{
	struct rdma_cm_id *id =
		endpoint(s->space, s->type, ntohs(rdma_get_src_port(listener)), false);
	struct rdma_conn_param param = { .private_data = words, .qp_num = new_qpn() };

	param.private_data_len = (uint8_t)(s->req + 1);
	FAILS(rdma_connect(id, &param), EINVAL);
	param.private_data_len = s->req;
	cr_assert_eq(rdma_connect(id, &param), 0, "%s: %s", s->name, strerror(errno));
	return id;
}

static struct rdma_cm_event *expect_request(const struct space *s, struct rdma_cm_id *listener)
{
	struct rdma_cm_event *e = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);

	cr_expect_eq(e->listen_id, listener);
	cr_expect_eq((int)e->id->ps, s->space, "%s: %x", s->name, e->id->ps);
	cr_expect_eq((int)e->id->qp_type, s->type, "%s: %d", s->name, e->id->qp_type);
	expect_words(s, e, s->req);
	return e;
}

static void accepted(const struct space *s, struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = { .private_data = words, .qp_num = new_qpn() };
	struct rdma_cm_id *caller = ask(s, listener), *called;
	struct rdma_cm_event *e = expect_request(s, listener);

	called = e->id;
	param.private_data_len = s->rep;
	cr_assert_eq(rdma_accept(called, &param), 0, "%s: %s", s->name, strerror(errno));
	rdma_ack_cm_event(e);
	e = expect_event(channel,
			 s->datagram ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE);
	cr_expect_eq(e->id, caller);
	expect_words(s, e, s->rep);
	cr_expect_eq(s->datagram ? e->param.ud.qp_num : e->param.conn.qp_num, param.qp_num);
	if (s->datagram)
		cr_expect_eq(e->param.ud.qkey, (uint32_t)RDMA_UDP_QKEY);
	rdma_ack_cm_event(e);
	if (!s->datagram) {
		cr_assert_eq(rdma_establish(caller), 0, "%s: %s", s->name, strerror(errno));
		pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	}
	cr_assert_eq(rdma_destroy_id(called), 0);
	if (!s->datagram)
		pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	cr_assert_eq(rdma_destroy_id(caller), 0);
}

/* As on Linux, an answer that cannot be given rejects the request: its sender does not wait. */
static void not_accepted(const struct space *s, struct rdma_cm_id *listener)
{
	struct rdma_conn_param param = { .private_data = words,
					 .private_data_len = (uint8_t)(s->rep + 1),
					 .qp_num = new_qpn() };
	struct rdma_cm_id *caller = ask(s, listener), *called;
	struct rdma_cm_event *e = expect_request(s, listener);

	called = e->id;
	FAILS(rdma_accept(called, &param), EINVAL);
	rdma_ack_cm_event(e);
	e = expect_event(channel, s->datagram ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED);
	cr_expect_eq(e->id, caller);
	cr_expect_eq(e->status, s->datagram ? 2 : 28, "%s: %d", s->name, e->status);
	rdma_ack_cm_event(e);
	FAILS(rdma_accept(called, &param), EINVAL);
	cr_assert_eq(rdma_destroy_id(called), 0);
	cr_assert_eq(rdma_destroy_id(caller), 0);
}

static void rejected(const struct space *s, struct rdma_cm_id *listener)
{
	struct rdma_cm_id *caller = ask(s, listener), *called;
	struct rdma_cm_event *e = expect_request(s, listener);

	called = e->id;
	FAILS(rdma_reject(called, words, (uint8_t)(s->rej + 1)), EINVAL);
	FAILS(rdma_reject(called, words, 255), EINVAL);
	cr_assert_eq(rdma_reject(called, words, s->rej), 0, "%s: %s", s->name, strerror(errno));
	rdma_ack_cm_event(e);
	e = expect_event(channel, s->datagram ? RDMA_CM_EVENT_UNREACHABLE : RDMA_CM_EVENT_REJECTED);
	cr_expect_gt(e->status, 0);
	expect_words(s, e, s->rej);
	rdma_ack_cm_event(e);
	cr_assert_eq(rdma_destroy_id(called), 0);
	cr_assert_eq(rdma_destroy_id(caller), 0);
}

Test(limits, private_data)
{
	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		const struct space *s = &spaces[i];
		struct rdma_cm_id *listener = endpoint(s->space, s->type, 0, true);

		accepted(s, listener);
		not_accepted(s, listener);
		rejected(s, listener);
		rdma_destroy_id(listener);
	}
}

/*
 * As in rdma-core a length without data counts as no data. Looking up a service needs no
 * parameters.
 */
Test(limits, no_private_data)
{
	struct rdma_conn_param param = { .private_data_len = 40, .qp_num = new_qpn() };
	static const uint8_t nothing[56];
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *e;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	e = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = e->id;
	cr_expect_eq(memcmp(e->param.conn.private_data, nothing, 56), 0);
	cr_assert_eq(rdma_reject(called, NULL, 40), 0, "%s", strerror(errno));
	rdma_ack_cm_event(e);
	pass_event(channel, RDMA_CM_EVENT_REJECTED);
	rdma_destroy_id(called);
	rdma_destroy_id(caller);
	rdma_destroy_id(listener);

	listener = open_listener(channel, RDMA_PS_UDP, &port);
	caller = open_caller(channel, RDMA_PS_UDP, port);
	cr_assert_eq(rdma_connect(caller, NULL), 0, "%s", strerror(errno));
	e = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = e->id;
	FAILS(rdma_accept(called, NULL), EINVAL); /* it has no queue pair */
	cr_assert_eq(rdma_reject(called, NULL, 0), 0);
	rdma_ack_cm_event(e);
	pass_event(channel, RDMA_CM_EVENT_UNREACHABLE);
	rdma_destroy_id(called);
	rdma_destroy_id(caller);
	rdma_destroy_id(listener);
}

/* Private data of rdma_getaddrinfo comes before the program's. */
Test(limits, private_data_of_an_endpoint)
{
	struct sockaddr_in a;
	struct rdma_addrinfo res = { .ai_port_space = RDMA_PS_TCP,
				     .ai_qp_type = IBV_QPT_RC,
				     .ai_dst_addr = (struct sockaddr *)&a,
				     .ai_dst_len = sizeof(a),
				     .ai_connect = words,
				     .ai_connect_len = 40 };
	struct rdma_conn_param param = { .private_data = words + 40, .qp_num = new_qpn() };
	struct rdma_cm_id *listener, *caller, *called;
	struct rdma_cm_event *e;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	address(&a, OWN_ADDRESS, port);
	cr_assert_eq(rdma_create_ep(&caller, &res, NULL, NULL), 0, "%s", strerror(errno));
	cr_assert_eq(rdma_migrate_id(caller, channel), 0);
	param.private_data_len = 17;
	FAILS(rdma_connect(caller, &param), EINVAL);
	param.private_data_len = 16;
	cr_assert_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	e = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = e->id;
	cr_expect_eq(memcmp(e->param.conn.private_data, words, 56), 0);
	rdma_ack_cm_event(e);
	rdma_destroy_id(caller);
	pass_event(channel, RDMA_CM_EVENT_REJECTED); /* the peer gave up */
	rdma_destroy_id(called);
	rdma_destroy_id(listener);
}

/* ---- options ---- */

static void set(struct rdma_cm_id *id, int name, int value)
{
	uint8_t octet = (uint8_t)value;
	bool is_octet = name == RDMA_OPTION_ID_TOS || name == RDMA_OPTION_ID_ACK_TIMEOUT;

	cr_assert_eq(rdma_set_option(id, RDMA_OPTION_ID, name,
				     is_octet ? (void *)&octet : (void *)&value,
				     is_octet ? 1 : sizeof(value)),
		     0, "option %d: %s", name, strerror(errno));
}

Test(limits, type_of_service_and_acknowledgement_timeout)
{
	struct rdma_cm_id *listener, *caller, *called;
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *e;
	struct ibv_qp_attr attr;
	struct sockaddr_in a;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_id(channel, RDMA_PS_TCP);
	set(caller, RDMA_OPTION_ID_TOS, 0x68);
	set(caller, RDMA_OPTION_ID_ACK_TIMEOUT, 11);
	cr_assert_eq(rdma_resolve_addr(caller, NULL, address(&a, OWN_ADDRESS, port), 2000), 0);
	pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	cr_assert_eq(rdma_resolve_route(caller, 2000), 0);
	pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	cr_expect_eq(caller->route.path_rec->traffic_class, 0x68);
	give_qp(caller);
	cr_assert_eq(rdma_connect(caller, NULL), 0);
	e = expect_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	called = e->id;
	give_qp(called);
	cr_assert_eq(rdma_accept(called, NULL), 0);
	rdma_ack_cm_event(e);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	pass_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	cr_assert_eq(ibv_query_qp(caller->qp, &attr, IBV_QP_AV | IBV_QP_TIMEOUT, &init), 0);
	cr_expect_eq(attr.ah_attr.grh.traffic_class, 0x68);
	cr_expect_eq(attr.timeout, 11);
	/* the other end uses the request's values */
	cr_assert_eq(ibv_query_qp(called->qp, &attr, IBV_QP_AV | IBV_QP_TIMEOUT, &init), 0);
	cr_expect_eq(attr.ah_attr.grh.traffic_class, 0x68);
	cr_expect_eq(attr.timeout, 11);
	rdma_destroy_ep(caller);
	pass_event(channel, RDMA_CM_EVENT_DISCONNECTED);
	rdma_destroy_ep(called);
	rdma_destroy_ep(listener);
}

Test(limits, addresses_that_are_reused)
{
	struct rdma_cm_id *id[2] = { open_id(channel, RDMA_PS_TCP), open_id(channel, RDMA_PS_TCP) };
	struct sockaddr_in a;
	uint16_t port;

	set(id[0], RDMA_OPTION_ID_REUSEADDR, 1);
	cr_assert_eq(rdma_bind_addr(id[0], address(&a, OWN_ADDRESS, 0)), 0);
	port = ntohs(rdma_get_src_port(id[0]));
	FAILS(rdma_bind_addr(id[1], address(&a, OWN_ADDRESS, port)), EADDRINUSE);
	set(id[1], RDMA_OPTION_ID_REUSEADDR, 1);
	cr_expect_eq(rdma_bind_addr(id[1], (struct sockaddr *)&a), 0, "%s", strerror(errno));
	cr_expect_eq(rdma_listen(id[0], 1), 0);
	FAILS(rdma_listen(id[1], 1), EADDRINUSE);
	rdma_destroy_id(id[0]);
	cr_expect_eq(rdma_listen(id[1], 1), 0, "%s", strerror(errno));
	rdma_destroy_id(id[1]);
}

Test(limits, one_family_only)
{
	struct rdma_cm_id *id[2] = { open_id(channel, RDMA_PS_TCP), open_id(channel, RDMA_PS_TCP) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	cr_assert_eq(rdma_bind_addr(id[0], (struct sockaddr *)&v6), 0, "%s", strerror(errno));
	v4.sin_port = v6.sin6_port = rdma_get_src_port(id[0]);
	/* :: includes all IPv4 addresses */
	FAILS(rdma_bind_addr(id[1], (struct sockaddr *)&v4), EADDRINUSE);
	rdma_destroy_id(id[0]);
	id[0] = open_id(channel, RDMA_PS_TCP);
	set(id[0], RDMA_OPTION_ID_AFONLY, 1);
	cr_assert_eq(rdma_bind_addr(id[0], (struct sockaddr *)&v6), 0, "%s", strerror(errno));
	cr_expect_eq(rdma_bind_addr(id[1], (struct sockaddr *)&v4), 0, "%s", strerror(errno));
	rdma_destroy_id(id[0]);
	rdma_destroy_id(id[1]);
}
