/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong arguments and wrong states: -1 and an errno. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "rig.h"

static struct rdma_event_channel *channel;
static struct rdma_cm_id *fresh, *bound, *listening;

static void begin(void)
{
	struct sockaddr_in a;
	uint16_t port;

	channel = open_channel();
	fresh = open_id(channel, RDMA_PS_TCP);
	bound = open_id(channel, RDMA_PS_TCP);
	cr_assert_eq(rdma_bind_addr(bound, address(&a, OWN_ADDRESS, 0)), 0);
	listening = open_listener(channel, RDMA_PS_TCP, &port);
}

static void end(void)
{
	cr_expect(!event_waits(channel), "a failed call caused an event");
	rdma_destroy_id(fresh);
	rdma_destroy_id(bound);
	rdma_destroy_id(listening);
	rdma_destroy_event_channel(channel);
}

TestSuite(arguments, .init = begin, .fini = end, .timeout = 60);

Test(arguments, null_arguments)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	struct sockaddr_in a;

	address(&a, OWN_ADDRESS, 0);
	FAILS(rdma_create_id(channel, NULL, NULL, RDMA_PS_TCP), EINVAL);
	FAILS(rdma_destroy_id(NULL), EINVAL);
	FAILS(rdma_bind_addr(NULL, (struct sockaddr *)&a), EINVAL);
	FAILS(rdma_bind_addr(fresh, NULL), EINVAL);
	FAILS(rdma_resolve_addr(fresh, NULL, NULL, 2000), EINVAL);
	FAILS(rdma_get_cm_event(NULL, &event), EINVAL);
	FAILS(rdma_get_cm_event(channel, NULL), EINVAL);
	FAILS(rdma_ack_cm_event(NULL), EINVAL);
	FAILS(rdma_get_request(NULL, &id), EINVAL);
	FAILS(rdma_get_request(listening, NULL), EINVAL);
	FAILS(rdma_create_qp(bound, NULL, NULL), EINVAL);
	FAILS(rdma_create_qp_ex(bound, NULL), EINVAL);
	FAILS(rdma_create_srq(bound, NULL, NULL), EINVAL);
	FAILS(rdma_create_ep(NULL, NULL, NULL, NULL), EINVAL);
	FAILS(rdma_join_multicast(bound, NULL, NULL), EINVAL);
	FAILS(rdma_join_multicast_ex(bound, NULL, NULL), EINVAL);
	FAILS(rdma_leave_multicast(bound, NULL), EINVAL);
	FAILS(rdma_init_qp_attr(bound, NULL, NULL), EINVAL);
	FAILS(rdma_set_local_ece(bound, NULL), EINVAL);
	FAILS(rdma_get_remote_ece(bound, NULL), EINVAL);
	FAILS(rdma_getaddrinfo(NULL, NULL, NULL, NULL), EINVAL);
	FAILS(rdma_set_option(bound, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, NULL, 1), EINVAL);
}

Test(arguments, port_spaces)
{
	struct rdma_cm_id *id;

	FAILS(rdma_create_id(channel, &id, NULL, 0), EINVAL);
	FAILS(rdma_create_id(channel, &id, NULL, 0x107), EINVAL);
}

Test(arguments, families)
{
	struct sockaddr_in a;
	struct sockaddr *s = address(&a, OWN_ADDRESS, 0);

	s->sa_family = AF_UNIX;
	FAILS(rdma_bind_addr(fresh, s), EINVAL);
	FAILS(rdma_resolve_addr(fresh, NULL, s, 2000), EINVAL);
	s->sa_family = 27; /* AF_IB */
	FAILS(rdma_bind_addr(fresh, s), EAFNOSUPPORT);
}

Test(arguments, states)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct rdma_cm_id *id;
	struct sockaddr_in a;

	address(&a, OWN_ADDRESS, 0);
	FAILS(rdma_resolve_route(fresh, 2000), EINVAL);
	FAILS(rdma_resolve_route(bound, 2000), EINVAL);
	FAILS(rdma_bind_addr(bound, (struct sockaddr *)&a), EINVAL);
	FAILS(rdma_resolve_addr(listening, NULL, (struct sockaddr *)&a, 2000), EINVAL);
	FAILS(rdma_listen(listening, 1), EINVAL);
	FAILS(rdma_create_qp(fresh, NULL, &init), EINVAL);
	FAILS(rdma_create_srq(fresh, NULL, &srq), EINVAL);
	FAILS(rdma_get_request(listening, &id), EINVAL); /* it does not block */
	FAILS(rdma_leave_multicast(bound, (struct sockaddr *)&a), EADDRNOTAVAIL);
}

Test(arguments, queue_pairs)
{
	struct ibv_qp_init_attr wrong_type = { .qp_type = IBV_QPT_UD };
	struct ibv_qp_init_attr too_big = { .qp_type = IBV_QPT_RC,
					    .cap = { .max_send_wr = UINT32_MAX } };

	FAILS(rdma_create_qp(bound, NULL, &wrong_type), EINVAL);
	FAILS(rdma_create_qp(bound, NULL, &too_big), EINVAL);
	cr_expect_null(bound->qp);
	cr_expect_null(bound->send_cq);
	cr_expect_null(bound->send_cq_channel);
	cr_expect_null(bound->recv_cq);
	rdma_destroy_qp(bound); /* there is no queue pair: no effect */
	rdma_destroy_srq(bound);
}

Test(arguments, parameters_of_a_connection)
{
	struct rdma_conn_param too_deep = { .initiator_depth = 254 };
	struct rdma_conn_param too_many = { .responder_resources = 254 };

	FAILS(rdma_connect(bound, &too_deep), EINVAL);
	FAILS(rdma_connect(bound, &too_many), EINVAL);
	FAILS(rdma_accept(bound, &too_deep), EINVAL);
}

Test(arguments, a_connection_as_deep_as_the_device)
{
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *listener, *caller;
	struct ibv_device_attr device;
	uint16_t port;

	listener = open_listener(channel, RDMA_PS_TCP, &port);
	caller = open_caller(channel, RDMA_PS_TCP, port);
	give_qp(caller);
	cr_assert_eq(ibv_query_device(caller->verbs, &device), 0);
	param.responder_resources = (uint8_t)(device.max_qp_rd_atom + 1);
	FAILS(rdma_connect(caller, &param), EINVAL);
	param.responder_resources = (uint8_t)device.max_qp_rd_atom;
	param.initiator_depth = (uint8_t)(device.max_qp_init_rd_atom + 1);
	FAILS(rdma_connect(caller, &param), EINVAL);
	param.initiator_depth = (uint8_t)device.max_qp_init_rd_atom;
	cr_expect_eq(rdma_connect(caller, &param), 0, "%s", strerror(errno));
	rdma_destroy_ep(caller);
	rdma_destroy_ep(listener);
}

Test(arguments, options)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_TCP);
	char path[128] = "";
	uint8_t octet = 8;
	int flag = 1;

	cr_expect_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &octet, 1), 0);
	cr_expect_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &flag, 4), 0);
	cr_expect_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &flag, 4), 0);
	cr_expect_eq(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &octet, 1), 0);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &flag, 4), EINVAL);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &octet, 1), EINVAL);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, path, sizeof(path)), EINVAL);
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, 99, &octet, 1), ENOSYS);
	FAILS(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, path, 64), EOPNOTSUPP);
	octet = 32;
	FAILS(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &octet, 1), EINVAL);
	rdma_destroy_id(id);
}

Test(arguments, groups)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_UDP);
	struct sockaddr_in group;
	struct rdma_cm_join_mc_attr_ex extended = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.addr = address(&group, "230.9.9.9", 0),
	};
	struct sockaddr_in a;

	FAILS(rdma_join_multicast(id, extended.addr, NULL), EINVAL); /* not bound */
	FAILS(rdma_join_multicast(bound, extended.addr, NULL), EINVAL); /* not a datagram id */
	cr_assert_eq(rdma_bind_addr(id, address(&a, OWN_ADDRESS, 0)), 0);
	FAILS(rdma_join_multicast(id, (struct sockaddr *)&a, NULL), EINVAL); /* not a group */
	extended.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
	FAILS(rdma_join_multicast_ex(id, &extended, NULL), EINVAL);
	extended.join_flags = RDMA_MC_JOIN_FLAG_FULLMEMBER;
	extended.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS;
	FAILS(rdma_join_multicast_ex(id, &extended, NULL), EINVAL);
	extended.comp_mask = RDMA_CM_JOIN_MC_ATTR_RESERVED;
	FAILS(rdma_join_multicast_ex(id, &extended, NULL), EOPNOTSUPP);
	FAILS(rdma_leave_multicast(id, extended.addr), EADDRNOTAVAIL);
	rdma_destroy_id(id);
}

Test(arguments, ece_is_for_ids_without_a_queue_pair)
{
	struct ibv_ece ece = { .vendor_id = 0x2c9, .options = 1 };

	cr_expect_eq(rdma_set_local_ece(bound, &ece), 0);
	cr_expect_eq(rdma_get_remote_ece(bound, &ece), 0);
	cr_expect_eq(ece.vendor_id, 0);
	FAILS(rdma_set_local_ece(bound, &ece), EINVAL); /* no vendor */
	ece = (struct ibv_ece){ .vendor_id = 1, .comp_mask = 1 };
	FAILS(rdma_set_local_ece(bound, &ece), EINVAL);
}

Test(arguments, names_of_events)
{
	cr_expect_str_eq(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED),
			 "RDMA_CM_EVENT_ADDR_RESOLVED");
	cr_expect_str_eq(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT),
			 "RDMA_CM_EVENT_TIMEWAIT_EXIT");
	cr_expect_str_eq(rdma_event_str(99), "UNKNOWN EVENT");
}
