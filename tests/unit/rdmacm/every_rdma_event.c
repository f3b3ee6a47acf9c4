/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that are driven by events from beginning to end, by whichever thread takes them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "every_rdma.h"

struct life *life_begin(struct rdma_cm_id *id, uint32_t holders)
{
	struct life *life = malloc(sizeof(*life));

	if (life == NULL)
		die("no memory");
	life->id = id;
	life->holders = holders;
	id->context = life;
	__atomic_add_fetch(&all.live, 1, __ATOMIC_RELAXED);
	return life;
}

/* False: another thread is about to destroy it and only waits for this event to be acknowledged. */
static bool life_hold(struct life *life)
{
	uint32_t n = __atomic_load_n(&life->holders, __ATOMIC_RELAXED);

	while (n != 0)
		if (__atomic_compare_exchange_n(&life->holders, &n, n + 1, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return true;
	return false;
}

void life_release(struct thread *t, struct life *life)
{
	if (__atomic_sub_fetch(&life->holders, 1, __ATOMIC_ACQ_REL) > 0)
		return;
	if (life->id->qp != NULL)
		rdma_destroy_qp(life->id);
	must(t, rdma_destroy_id(life->id));
	free(life);
	__atomic_sub_fetch(&all.live, 1, __ATOMIC_RELEASE);
}

/* ---- one handler for each event; true: it was the id's last event ---- */

static bool addressed(struct thread *t, struct rdma_cm_event *e)
{
	if (rdma_get_local_addr(e->id)->sa_family != AF_INET || e->id->verbs == NULL ||
	    rdma_get_peer_addr(e->id)->sa_family != AF_INET)
		die("a resolved id has no addresses");
	return tolerate(t, rdma_resolve_route(e->id, 2000)) != 0;
}

static bool routed(struct thread *t, struct rdma_cm_event *e)
{
	struct rdma_conn_param param = { .private_data = "hello",
					 .private_data_len = 6,
					 .responder_resources = 2,
					 .initiator_depth = 2,
					 .retry_count = 1 };

	if (e->id->route.num_paths != 1)
		die("an id with a route has no path");
	if (e->id->qp_type == IBV_QPT_RC && tolerate(t, give_qp(e->id)) != 0)
		return true;
	return tolerate(t, rdma_connect(e->id, &param)) != 0;
}

static void requested(struct thread *t, struct rdma_cm_event *e)
{
	struct life *life = life_begin(e->id, 2);
	bool refuse = __atomic_load_n(&all.no_more, __ATOMIC_RELAXED) || draw(t, 4) == 0;
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	int status;

	if (memcmp(e->id->qp_type == IBV_QPT_UD ? e->param.ud.private_data
						: e->param.conn.private_data,
		   "hello", 6) != 0)
		die("a request without its private data");
	/* all ids of a datagram service share one queue pair; each connection has its own */
	param.qp_num = all.member->qp->qp_num;
	if (!refuse && e->id->qp_type == IBV_QPT_RC)
		refuse = tolerate(t, give_qp(e->id)) != 0;
	status = refuse ? (draw(t, 8) == 0 ? rdma_reject_ece(e->id, "no", 3)
					   : rdma_reject(e->id, "no", 3))
			: rdma_accept(e->id, &param);
	if (tolerate(t, status) != 0 || refuse || e->id->qp_type == IBV_QPT_UD)
		life_release(t, life); /* no more events will come */
	rdma_ack_cm_event(e);
	life_release(t, life);
}

static bool established(struct thread *t, struct rdma_cm_event *e)
{
	struct ibv_wc wc;

	if (e->id->qp_type == IBV_QPT_UD)
		return true;
	if (draw(t, 2) == 0) {
		must(t, rdma_post_write(e->id, NULL, all.memory, 8, all.mr, IBV_SEND_SIGNALED,
					(uintptr_t)all.memory + 64, all.mr->rkey));
		if (rdma_get_send_comp(e->id, &wc) != 1)
			die("no completion: %s", strerror(errno));
		if (wc.status != IBV_WC_SUCCESS && wc.status != IBV_WC_WR_FLUSH_ERR &&
		    wc.status != IBV_WC_RETRY_EXC_ERR && wc.status != IBV_WC_REM_OP_ERR)
			die("a write completes with %s", ibv_wc_status_str(wc.status));
	}
	tolerate(t, rdma_disconnect(e->id));
	return false;
}

static bool disconnected(struct thread *t, struct rdma_cm_event *e)
{
	tolerate(t, rdma_disconnect(e->id));
	return true;
}

static bool joined(struct thread *t, struct rdma_cm_event *e)
{
	if (e->event == RDMA_CM_EVENT_MULTICAST_JOIN && e->param.ud.qp_num != 0xffffff)
		die("a group's queue pair is 0x%x", e->param.ud.qp_num);
	return false;
}

static bool last(struct thread *t, struct rdma_cm_event *e)
{
	return true;
}

static bool no_matter(struct thread *t, struct rdma_cm_event *e)
{
	return false;
}

static bool (*const actions[])(struct thread *t, struct rdma_cm_event *e) = {
	[RDMA_CM_EVENT_ADDR_RESOLVED] = addressed,
	[RDMA_CM_EVENT_ADDR_ERROR] = last,
	[RDMA_CM_EVENT_ROUTE_RESOLVED] = routed,
	[RDMA_CM_EVENT_ROUTE_ERROR] = last,
	[RDMA_CM_EVENT_CONNECT_ERROR] = last,
	[RDMA_CM_EVENT_UNREACHABLE] = last,
	[RDMA_CM_EVENT_REJECTED] = last,
	[RDMA_CM_EVENT_ESTABLISHED] = established,
	[RDMA_CM_EVENT_DISCONNECTED] = disconnected,
	[RDMA_CM_EVENT_MULTICAST_JOIN] = joined,
	[RDMA_CM_EVENT_MULTICAST_ERROR] = joined,
	[RDMA_CM_EVENT_TIMEWAIT_EXIT] = no_matter,
};

bool serve_event(struct thread *t)
{
	struct rdma_event_channel *channel = all.channel[draw(t, CHANNELS)];
	struct rdma_cm_event *e;
	struct life *life;
	bool is_last;

	if (rdma_get_cm_event(channel, &e) != 0) {
		if (errno != EAGAIN)
			die("no event: %s", strerror(errno));
		return false;
	}
	t->call = rdma_event_str(e->event);
	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		requested(t, e);
		return true;
	}
	if (e->event >= sizeof(actions) / sizeof(actions[0]) || actions[e->event] == NULL)
		die("%s with status %d", t->call, e->status);
	life = e->id->context;
	if (life == NULL || !life_hold(life)) { /* the id that joins groups does not end here */
		if (life == NULL)
			actions[e->event](t, e);
		rdma_ack_cm_event(e);
		return true;
	}
	is_last = actions[e->event](t, e);
	rdma_ack_cm_event(e);
	if (is_last)
		life_release(t, life);
	life_release(t, life);
	return true;
}

/* ---- calls that begin them ---- */

static void begin(struct thread *t, enum rdma_port_space ps, uint16_t port)
{
	struct rdma_cm_id *id;
	struct sockaddr_in a;
	struct life *life;

	if (__atomic_load_n(&all.live, __ATOMIC_RELAXED) > 200)
		return;
	if (tolerate(t, rdma_create_id(all.channel[draw(t, CHANNELS)], &id, NULL, ps)) != 0)
		return;
	life = life_begin(id, 2);
	/* a write to a peer that is gone must fail soon */
	if (ps == RDMA_PS_TCP)
		must(t, rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
					&(uint8_t){ 8 }, 1));
	if (tolerate(t, rdma_resolve_addr(id, NULL, address(&a, port), 2000)) != 0)
		life_release(t, life); /* no event will come */
	life_release(t, life);
}

static void begin_connection(struct thread *t)
{
	const uint16_t port[] = { 9, all.waiting_port, all.port, all.port, all.port, all.port };

	begin(t, RDMA_PS_TCP, port[draw(t, 6)]);
}

static void begin_datagrams(struct thread *t)
{
	begin(t, RDMA_PS_UDP, all.service_port);
}

const struct call event_calls[] = {
	{ "rdma_resolve_addr, TCP", begin_connection },
	{ "rdma_resolve_addr, TCP again", begin_connection },
	{ "rdma_resolve_addr, UDP", begin_datagrams },
};
const uint32_t event_calls_count = sizeof(event_calls) / sizeof(event_calls[0]);
