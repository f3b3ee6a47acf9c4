/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups: joining, receiving, leaving. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "rig.h"

TestSuite(multicast, .timeout = 60);

#define GROUP "230.9.9.9"

static struct rdma_cm_id *open_member(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = open_id(channel, RDMA_PS_UDP);
	struct sockaddr_in a, group;

	cr_assert_eq(
		rdma_resolve_addr(id, address(&a, OWN_ADDRESS, 0), address(&group, GROUP, 0), 2000),
		0, "%s", strerror(errno));
	if (channel != NULL)
		pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	give_qp(id);
	return id;
}

static struct rdma_ud_param join(struct rdma_cm_id *id, void *context)
{
	struct rdma_cm_event *event;
	struct rdma_ud_param param;
	struct sockaddr_in group;

	cr_assert_eq(rdma_join_multicast(id, address(&group, GROUP, 0), context), 0, "%s",
		     strerror(errno));
	event = expect_event(id->channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(event->id, id);
	param = event->param.ud;
	cr_expect_eq(param.private_data, context);
	cr_expect_eq(param.qp_num, 0xffffffu);
	cr_expect_eq(param.qkey, (uint32_t)RDMA_UDP_QKEY);
	rdma_ack_cm_event(event);
	return param;
}

static void send_to_group(struct rdma_cm_id *from, struct rdma_ud_param *to, char *text,
			  struct ibv_mr *mr)
{
	struct ibv_ah *ah = ibv_create_ah(from->pd, &to->ah_attr);
	struct ibv_wc wc;

	cr_assert_not_null(ah, "%s", strerror(errno));
	cr_assert_eq(rdma_post_ud_send(from, NULL, text, 64, mr, 0, ah, to->qp_num), 0);
	cr_assert_eq(rdma_get_send_comp(from, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	ibv_destroy_ah(ah);
}

Test(multicast, leaving_a_group_drops_its_event)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_member(channel);
	struct sockaddr_in group;

	cr_assert_eq(rdma_join_multicast(id, address(&group, GROUP, 0), NULL), 0);
	cr_expect(event_waits(channel));
	cr_assert_eq(rdma_leave_multicast(id, (struct sockaddr *)&group), 0);
	cr_expect(!event_waits(channel));
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
}

static struct rdma_cm_id *leaves; /* as soon as a thread has taken an event */

void uroce_path_from_engine(struct ibv_ah_attr *a, const void *p);

/* The library calls it for an event that a thread has taken from the channel. */
__attribute__((visibility("default"))) void uroce_path_from_engine(struct ibv_ah_attr *a,
								   const void *p)
{
	void (*real)(struct ibv_ah_attr *, const void *);
	struct rdma_cm_id *id = leaves;
	struct sockaddr_in group;

	leaves = NULL;
	if (id != NULL)
		cr_assert_eq(rdma_leave_multicast(id, address(&group, GROUP, 0)), 0);
	*(void **)&real = dlsym(RTLD_NEXT, "uroce_path_from_engine");
	real(a, p);
}

/* The program may have freed the context of the join, and does not expect its event any more. */
Test(multicast, leaving_a_group_drops_an_event_that_was_taken)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_member(channel);
	struct rdma_cm_event *event;
	struct sockaddr_in group;
	int context;

	cr_assert_eq(rdma_join_multicast(id, address(&group, GROUP, 0), &context), 0);
	cr_assert(event_waits(channel));
	cr_assert_eq(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	leaves = id;
	cr_expect_eq(rdma_get_cm_event(channel, &event), -1, "it has an event");
	cr_expect_eq(errno, EAGAIN, "%s", strerror(errno));
	cr_expect_null(leaves);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
}

Test(multicast, members_receive_until_they_leave)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *speaker = open_member(channel), *hearer = open_member(channel);
	char text[64] = "to all", in[104] = "";
	struct ibv_mr *out = rdma_reg_msgs(speaker, text, sizeof(text));
	struct ibv_mr *mr = rdma_reg_msgs(hearer, in, sizeof(in));
	struct rdma_ud_param group;
	struct sockaddr_in a;
	struct ibv_wc wc;
	int context;

	join(hearer, &context);
	group = join(speaker, NULL);
	cr_assert_eq(rdma_post_recv(hearer, NULL, in, sizeof(in), mr), 0);
	send_to_group(speaker, &group, text, out);
	cr_assert_eq(rdma_get_recv_comp(hearer, &wc), 1);
	cr_expect_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_str_eq(in + 40, text);
	cr_assert_eq(rdma_leave_multicast(hearer, address(&a, GROUP, 0)), 0, "%s", strerror(errno));
	errno = 0;
	cr_expect_eq(rdma_leave_multicast(hearer, (struct sockaddr *)&a), -1);
	cr_expect_eq(errno, EADDRNOTAVAIL);
	cr_assert_eq(rdma_post_recv(hearer, NULL, in, sizeof(in), mr), 0);
	send_to_group(speaker, &group, text, out);
	/* a datagram sent before it would have arrived before it */
	group = join(hearer, NULL);
	strcpy(text, "again");
	send_to_group(speaker, &group, text, out);
	cr_assert_eq(rdma_get_recv_comp(hearer, &wc), 1);
	cr_expect_str_eq(in + 40, "again");
	rdma_dereg_mr(out);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(speaker);
	rdma_destroy_ep(hearer);
	rdma_destroy_event_channel(channel);
}

Test(multicast, an_id_without_its_queue_pair_leaves_its_group)
{
	struct rdma_cm_id *id = open_member(NULL);
	struct sockaddr_in group;

	cr_assert_eq(rdma_join_multicast(id, address(&group, GROUP, 0), NULL), 0);
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_assert_eq(ibv_detach_mcast(id->qp, &id->event->param.ud.ah_attr.grh.dgid, 0), 0);
	rdma_destroy_qp(id);
	cr_assert_null(id->qp);
	cr_expect_eq(rdma_leave_multicast(id, (struct sockaddr *)&group), 0, "%s", strerror(errno));
	rdma_destroy_ep(id);
}

/* With events that its program has not taken (hostile H-75). */
Test(multicast, destroying_an_id_leaves_its_groups)
{
	struct rdma_event_channel *channel = open_channel();
	struct rdma_cm_id *id = open_member(channel);
	struct sockaddr_in group;

	cr_assert_eq(rdma_join_multicast(id, address(&group, GROUP, 0), NULL), 0);
	cr_assert_eq(rdma_join_multicast(id, address(&group, "230.9.9.10", 0), NULL), 0);
	pass_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	/* one join has completed, of the other no event was taken */
	rdma_destroy_ep(id);
	id = open_member(channel);
	join(id, NULL);
	rdma_destroy_ep(id);
	rdma_destroy_event_channel(channel);
}

Test(multicast, a_send_only_member_receives_nothing)
{
	struct rdma_cm_id *id = open_member(NULL);
	struct sockaddr_in group;
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = address(&group, GROUP, 0),
	};

	cr_assert_eq(rdma_join_multicast_ex(id, &attr, id), 0, "%s", strerror(errno));
	cr_assert_eq(id->event->event, RDMA_CM_EVENT_MULTICAST_JOIN);
	cr_expect_eq(id->event->param.ud.private_data, id);
	/* not attached, so it cannot be detached */
	cr_expect_neq(ibv_detach_mcast(id->qp, &id->event->param.ud.ah_attr.grh.dgid, 0), 0);
	rdma_destroy_ep(id);
}
