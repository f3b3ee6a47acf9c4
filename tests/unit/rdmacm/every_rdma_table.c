/* SPDX-License-Identifier: BSD-3-Clause */
/* The other calls, one function for each family: on the thread's own objects, or on shared ones. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "every_rdma.h"

/* ---- channels, devices, ids of the thread's own ---- */

static void channels(struct thread *t)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	if (channel == NULL) {
		tolerate(t, -1);
		return;
	}
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	must(t, rdma_create_id(channel, &id, t, RDMA_PS_TCP));
	if (rdma_get_cm_event(channel, &event) != -1 || errno != EAGAIN)
		die("an event without a cause");
	/* there and back */
	must(t, rdma_migrate_id(id, all.channel[draw(t, CHANNELS)]));
	must(t, rdma_migrate_id(id, draw(t, 2) == 0 ? channel : NULL));
	must(t, rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
}

static void devices(struct thread *t)
{
	int n = -1;
	struct ibv_context **list = rdma_get_devices(&n);

	if (list == NULL || n != 1 || list[0] != all.idle->verbs)
		die("%d devices", n);
	rdma_free_devices(list);
}

static void ports(struct thread *t)
{
	struct rdma_cm_id *id;
	struct sockaddr_in a;
	int on = 1;

	must(t, rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP));
	must(t, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	if (tolerate(t, rdma_bind_addr(id, address(&a, (uint16_t)(20000 + draw(t, 4))))) == 0) {
		tolerate(t, rdma_listen(id, 1));
		if (rdma_get_src_port(id) == 0 || rdma_get_dst_port(id) != 0)
			die("a listener without a port");
	}
	must(t, rdma_destroy_id(id));
}

static void addresses(struct thread *t)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;

	if (rdma_getaddrinfo(OWN_ADDRESS, "7", &hints, &found) != 0)
		die("rdma_getaddrinfo");
	rdma_freeaddrinfo(found);
}

/* ---- synchronous ---- */

static void connect_and_wait(struct thread *t)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(OWN_ADDRESS, "9", &hints, &found) != 0)
		die("rdma_getaddrinfo");
	if (tolerate(t, rdma_create_ep(&id, found, NULL, &init)) == 0) {
		if (rdma_connect(id, NULL) != -1 || errno != ECONNREFUSED)
			die("connecting to a closed port 9: %s", strerror(errno));
		rdma_destroy_ep(id);
	}
	rdma_freeaddrinfo(found);
}

void take_request(struct thread *t)
{
	/* the call leaves its result in the listening id, so one thread at a time */
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	struct rdma_cm_id *id;

	pthread_mutex_lock(&turn);
	if (rdma_get_request(all.waiting, &id) == 0) {
		must(t, rdma_reject(id, NULL, 0));
		must(t, rdma_destroy_id(id));
	} else if (errno != EAGAIN) {
		die("rdma_get_request: %s", strerror(errno));
	}
	pthread_mutex_unlock(&turn);
}

/* ---- an id that all share ---- */

static void what_it_is(struct thread *t)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	int mask;

	if (rdma_get_src_port(all.listener) != htons(all.port) ||
	    rdma_get_local_addr(all.idle)->sa_family != AF_INET)
		die("a listener changed its port");
	must(t, rdma_init_qp_attr(all.idle, &attr, &mask));
	if ((mask & IBV_QP_STATE) == 0)
		die("a queue pair without a state");
}

static void what_it_cannot(struct thread *t)
{
	static const char *const words = "words";
	uint8_t octet = 8;
	int status;

	switch (draw(t, 7)) {
	case 0:
		status = rdma_disconnect(all.idle);
		break;
	case 1:
		status = rdma_reject(all.idle, words, 6);
		break;
	case 2:
		status = rdma_establish(all.idle);
		break;
	case 3:
		status = rdma_notify(all.idle, IBV_EVENT_COMM_EST);
		break;
	case 4:
		status = rdma_resolve_route(all.idle, 100);
		break;
	case 5:
		status = rdma_reject_ece(all.idle, words, 6);
		break;
	default:
		must(t, rdma_set_option(all.idle, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &octet, 1));
		return;
	}
	if (status != -1 || errno != EINVAL)
		die("a bound id: call %d: %s", status, strerror(errno));
}

static void groups(struct thread *t)
{
	struct sockaddr_in group;
	struct sockaddr *a = address(&group, 0);
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = draw(t, 2) == 0 ? RDMA_MC_JOIN_FLAG_FULLMEMBER
					      : RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = a,
	};

	group.sin_addr.s_addr = htonl(0xe6090900u + draw(t, GROUPS));
	switch (draw(t, 3)) {
	case 0:
		tolerate(t, rdma_join_multicast(all.member, a, t));
		break;
	case 1:
		tolerate(t, rdma_join_multicast_ex(all.member, &attr, t));
		break;
	default:
		tolerate(t, rdma_leave_multicast(all.member, a));
	}
}

/* ---- queues of the thread's own id ---- */

static void queues(struct thread *t)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq_init_attr_ex extended = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr_ex init = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_ece ece = { .vendor_id = 1 };
	struct ibv_mr *mr;
	struct rdma_cm_id *id;
	struct sockaddr_in a;

	must(t, rdma_create_id(all.channel[0], &id, NULL, RDMA_PS_TCP));
	must(t, rdma_bind_addr(id, address(&a, 0)));
	must(t, rdma_set_local_ece(id, &ece));
	must(t, rdma_get_remote_ece(id, &ece));
	if (tolerate(t, draw(t, 2) == 0 ? rdma_create_srq(id, NULL, &shared)
					: rdma_create_srq_ex(id, &extended)) == 0) {
		if (tolerate(t, rdma_create_qp_ex(id, &init)) == 0) {
			mr = rdma_reg_msgs(id, all.memory, 64);
			if (mr != NULL) {
				must(t, rdma_post_recv(id, NULL, all.memory, 64, mr));
				must(t, rdma_dereg_mr(mr));
			}
			rdma_destroy_qp(id);
		}
		rdma_destroy_srq(id);
	}
	must(t, rdma_destroy_id(id));
}

const struct call calls[] = {
	{ "channels", channels },
	{ "rdma_get_devices", devices },
	{ "rdma_bind_addr, rdma_listen", ports },
	{ "rdma_getaddrinfo", addresses },
	{ "rdma_create_ep, rdma_connect", connect_and_wait },
	{ "rdma_get_request", take_request },
	{ "rdma_init_qp_attr", what_it_is },
	{ "calls in the wrong state", what_it_cannot },
	{ "groups", groups },
	{ "queues", queues },
};
const uint32_t calls_count = sizeof(calls) / sizeof(calls[0]);
