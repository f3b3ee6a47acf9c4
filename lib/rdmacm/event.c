/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events are taken from the engine, processed here, and acknowledged. For example, the id of a
 * connection request is made before the program gets the event.
 */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/types.h"

/* rdma_event_str(3): a static string. */
EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((unsigned)event < sizeof(names) / sizeof(names[0]))
		return names[event];
	return "UNKNOWN EVENT";
}

/* ---- what the engine has reported ---- */

static void take_private_data(struct event *e, const struct cm_connect_parameters *p,
			      const void **data, uint8_t *length)
{
	if (p->private_length == 0)
		return;
	memcpy(e->private_data, p->private_data, p->private_length);
	*data = e->private_data;
	*length = p->private_length;
}

static void take_connected(struct event *e, const struct cm_connect_parameters *p)
{
	struct rdma_conn_param *to = &e->rdma.param.conn;

	to->responder_resources = p->responder_resources;
	to->initiator_depth = p->initiator_depth;
	to->flow_control = p->flow_control;
	to->retry_count = p->retry_count;
	to->rnr_retry_count = p->rnr_retry_count;
	to->srq = p->srq;
	to->qp_num = p->qpn;
	take_private_data(e, p, &to->private_data, &to->private_data_len);
}

static void take_datagram(struct event *e, const struct reply_cm_event *said)
{
	struct rdma_ud_param *to = &e->rdma.param.ud;

	uroce_path_from_engine(&to->ah_attr, &said->path);
	to->qp_num = said->parameters.qpn;
	to->qkey = said->parameters.qkey;
	take_private_data(e, &said->parameters, &to->private_data, &to->private_data_len);
}

static void take_parameters(struct event *e, const struct reply_cm_event *said)
{
	if (is_datagram(e->of))
		take_datagram(e, said);
	else
		take_connected(e, &said->parameters);
}

static void destroy_unknown(struct id *listener, uint32_t handle)
{
	struct request_handle request = { .handle = handle };
	struct reply_cm_gone reply;

	pthread_mutex_lock(&cm_lock);
	if (COMMAND(listener->device, CM_DESTROY_ID, &request, &reply) == 0)
		channel_drop_octets(listener->rdma.channel, reply.octets);
	pthread_mutex_unlock(&cm_lock);
}

/* ---- what this library does about it ---- */

/*
 * Makes the new id, of the listener's kind. Returns 0, or an errno, and then the request is
 * dropped.
 */
static int process_request(struct event *e, const struct reply_cm_event *said)
{
	struct id *listener = e->of;
	struct id *id = id_adopt(listener, said->id);
	int error = 0;

	if (id == NULL) {
		destroy_unknown(listener, said->id);
		return ENOMEM;
	}
	pthread_mutex_lock(&cm_lock);
	id_take_route(id, &said->route);
	pthread_mutex_unlock(&cm_lock);
	if (listener->sync)
		error = id_migrate(id, NULL);
	if (error != 0) {
		rdma_destroy_id(&id->rdma);
		return error;
	}
	take_parameters(e, said);
	id->remote_ece.vendor_id = said->parameters.ece_vendor;
	id->remote_ece.options = said->parameters.ece_options;
	if (!is_datagram(id)) {
		id->initiator_depth = e->rdma.param.conn.initiator_depth;
		id->responder_resources = e->rdma.param.conn.responder_resources;
	}
	e->rdma.listen_id = &listener->rdma;
	e->rdma.id = &id->rdma;
	return 0;
}

/*
 * The engine has moved the queue pair of the active side to RTS. The program has not seen the event yet, so another thread
 * may destroy the queue pair meanwhile: rdma_destroy_qp() takes it from the id under the same lock. So it is with
 * the next two events.
 */
static void process_established(struct id *id)
{
	struct ibv_qp *qp;

	pthread_mutex_lock(&cm_lock);
	id->is_connected = true;
	qp = id->rdma.qp;
	if (qp != NULL && !is_datagram(id) &&
	    __atomic_load_n(&qp->state, __ATOMIC_RELAXED) < IBV_QPS_RTS)
		id_qp_moves(qp, CM_QP_TO_RTS);
	pthread_mutex_unlock(&cm_lock);
}

/* The engine has moved it to ERR if it can. */
static void process_connect_error(struct id *id)
{
	pthread_mutex_lock(&cm_lock);
	if (id->rdma.qp != NULL)
		id_qp_moved_in_part(id->rdma.qp);
	pthread_mutex_unlock(&cm_lock);
}

static void process_rejected(struct id *id)
{
	pthread_mutex_lock(&cm_lock);
	id_qp_to_error(id);
	pthread_mutex_unlock(&cm_lock);
}

static void process_route(struct id *id, const struct reply_cm_event *said)
{
	pthread_mutex_lock(&cm_lock);
	id_take_route(id, &said->route);
	pthread_mutex_unlock(&cm_lock);
}

static void process_resolved(struct id *id)
{
	pthread_mutex_lock(&cm_lock);
	id->is_resolved = true;
	pthread_mutex_unlock(&cm_lock);
}

/* Returns 0, or ENOENT: the group was left, so the program does not expect the event any more. */
static int process_join(struct event *e, const struct reply_cm_event *said)
{
	struct rdma_ud_param *to = &e->rdma.param.ud;

	take_datagram(e, said);
	if (!id_take_join(e->of, said, &to->ah_attr, &to->private_data, &e->rdma.status))
		return ENOENT;
	if (e->rdma.status != 0)
		e->rdma.event = RDMA_CM_EVENT_MULTICAST_ERROR;
	return 0;
}

static int process(struct event *e, const struct reply_cm_event *said)
{
	struct id *id = e->of;

	e->rdma.id = &id->rdma;
	e->rdma.event = said->event;
	e->rdma.status = said->status;
	switch (e->rdma.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: /* the call has stored the result already */
		process_resolved(id);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		process_route(id, said);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return process_request(e, said);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		take_parameters(e, said);
		id->remote_ece.vendor_id = said->parameters.ece_vendor;
		id->remote_ece.options = said->parameters.ece_options;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		take_parameters(e, said);
		process_established(id);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		take_parameters(e, said);
		process_connect_error(id);
		break;
	case RDMA_CM_EVENT_REJECTED:
		take_parameters(e, said);
		process_rejected(id);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
	case RDMA_CM_EVENT_MULTICAST_ERROR:
		return process_join(e, said);
	default:
		take_parameters(e, said);
		break;
	}
	return 0;
}

/* ---- waiting ---- */

/* Takes the oldest event that the engine shows. False: there is none. The caller holds cm_lock. */
static bool take_shown(struct channel *ch, struct reply_cm_event *said)
{
	const void *oldest;

	while ((oldest = event_ring_oldest(ch->ring, ch->taken, sizeof(*said))) != NULL) {
		memcpy(said, oldest, sizeof(*said));
		event_ring_take(ch->ring, ++ch->taken);
		if (said->event != CM_EVENT_WITHDRAWN)
			return true;
	}
	return false;
}

/*
 * Asks the engine, because more events wait than are shown, or the octet's event is gone. The
 * caller holds cm_lock.
 */
static int ask(struct channel *ch, struct reply_cm_event *said)
{
	struct request_handle request = { .handle = ch->handle };

	return COMMAND(ch->device, CM_GET_EVENT, &request, said);
}

/*
 * Fetches the event that an octet announced, and the id that counts it. EAGAIN: the event is gone,
 * because its id was destroyed or moved to another channel, or the channel was destroyed. The
 * caller goes on waiting.
 */
static int fetch(struct channel *ch, struct reply_cm_event *said, struct id **of)
{
	int error = 0;

	pthread_mutex_lock(&cm_lock);
	if (ch->destroyed)
		error = EAGAIN;
	else if (!take_shown(ch, said))
		error = ask(ch, said);
	if (error == 0) {
		bool is_request = said->event == RDMA_CM_EVENT_CONNECT_REQUEST;

		*of = id_find(ch->device, is_request ? said->listen_id : said->id);
		if (*of != NULL)
			(*of)->delivered++;
		else
			error = EAGAIN;
	}
	pthread_mutex_unlock(&cm_lock);
	return error;
}

/*
 * The engine is gone. Every id on the channel gets one event. Returns an id that has not got it, or
 * NULL.
 */
static struct id *find_untold(struct channel *ch)
{
	const struct handle_map *map = &ch->device->ids;
	struct id *found = NULL;

	pthread_mutex_lock(&cm_lock);
	for (uint32_t i = 0; i < map->slots && found == NULL; i++) {
		struct id *id = map->slot[i].handle != 0 ? map->slot[i].object : NULL;

		if (id != NULL && id->rdma.channel == &ch->rdma && !id->told_gone)
			found = id;
	}
	if (found != NULL) {
		found->told_gone = true;
		found->delivered++;
	}
	pthread_mutex_unlock(&cm_lock);
	return found;
}

static void make_removal(struct event *e, struct id *id)
{
	e->of = id;
	e->rdma.id = &id->rdma;
	e->rdma.event = RDMA_CM_EVENT_DEVICE_REMOVAL;
}

/*
 * The descriptor is at its end. Returns 0 and sets e->of, or returns ENODEV, or EAGAIN if the
 * program made the descriptor non-blocking. From then on the descriptor is mute: it is not
 * readable, and no thread blocks in it.
 */
static int at_end(struct channel *ch, struct event *e)
{
	struct id *id;

	if (device_is_inherited(ch->device))
		return ENODEV;
	id = find_untold(ch);
	if (id != NULL) {
		make_removal(e, id);
		return 0;
	}
	return uroce_silence(ch->device->context, ch->rdma.fd, &ch->idle_fd);
}

/* Pairs with the release that publishes the mute descriptor (verbs/events.c). */
static bool is_mute(const struct channel *ch)
{
	return __atomic_load_n(&ch->idle_fd, __ATOMIC_ACQUIRE) >= 0;
}

/* A thread that takes an event. It may be cancelled while it waits. */
struct taker {
	struct channel *channel;
	struct event *event;
	int cancelstate; /* the program's */
};

static void end_taking(void *arg)
{
	struct taker *t = arg;

	channel_leave(t->channel);
	free(t->event);
}

/* Returns 0, or an errno: EAGAIN if the program made the descriptor non-blocking, EINTR, ENODEV. */
static int next_event(const struct taker *t)
{
	struct channel *ch = t->channel;
	struct event *e = t->event;
	struct reply_cm_event said;
	int error;

	for (;;) {
		error = channel_wait(ch, t->cancelstate);
		if (error == ENODEV || (error == EAGAIN && is_mute(ch)))
			return at_end(ch, e);
		if (error != 0)
			return error;
		error = fetch(ch, &said, &e->of);
		if (error == EAGAIN || error == ENODEV)
			continue;
		if (error != 0)
			return error;
		if (process(e, &said) == 0)
			return 0;
		/* There is no memory to process the event, or its group was left: it is lost. */
		id_acknowledge(e->of);
		memset(e, 0, sizeof(*e));
	}
}

/*
 * rdma_get_cm_event(3): the next event. Blocks unless the program made channel->fd non-blocking.
 * Give the event back with rdma_ack_cm_event. errno also: ENOMEM, EAGAIN, EINTR. Any number of
 * threads may call it, and may be cancelled in it.
 *
 * Built without the address sanitizer. A thread may be cancelled here, in the landing pad of
 * pthread_cleanup_push, and the sanitizer mistakes that for an overwritten stack.
 */
EXPORT __attribute__((no_sanitize_address)) int rdma_get_cm_event(
	struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct taker t = { .channel = channel_of(channel) };
	int error;

	if (channel == NULL || event == NULL)
		return result(EINVAL);
	t.event = calloc(1, sizeof(*t.event));
	if (t.event == NULL)
		return result(ENOMEM);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &t.cancelstate);
	channel_enter(t.channel);
	pthread_cleanup_push(end_taking, &t);
	error = next_event(&t);
	if (error == 0) {
		*event = &t.event->rdma;
		t.event = NULL; /* the program owns it now */
	}
	pthread_cleanup_pop(1);
	pthread_setcancelstate(t.cancelstate, NULL);
	return result(error);
}

/* rdma_ack_cm_event(3): frees the event with its private data. Any thread may call it. */
EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct event *e = (struct event *)event;

	if (event == NULL)
		return result(EINVAL);
	id_acknowledge(e->of);
	free(e);
	return 0;
}

void id_drop_event(struct id *id)
{
	if (id->rdma.event != NULL)
		rdma_ack_cm_event(id->rdma.event);
	id->rdma.event = NULL;
}

static int error_of(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return ENODEV;
	if (event->status == 0)
		return 0;
	/* a positive status is the peer's reject reason */
	return event->status > 0 ? ECONNREFUSED : -event->status;
}

/*
 * The next event of a synchronous id. ADDR_CHANGE is left out: it is a hint that may come at any
 * time, and completes no call. 0, or -1 with errno.
 */
static int next_completion(struct id *id, struct rdma_cm_event **event)
{
	while (rdma_get_cm_event(id->rdma.channel, event) == 0) {
		if ((*event)->event != RDMA_CM_EVENT_ADDR_CHANGE)
			return 0;
		rdma_ack_cm_event(*event);
	}
	return -1;
}

int id_complete(struct id *id)
{
	struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	id_drop_event(id);
	if (id->told_gone)
		return result(ENODEV);
	if (next_completion(id, &event) != 0)
		return -1;
	id->rdma.event = event;
	return result(error_of(event));
}

/*
 * rdma_get_request(3): waits for the next request of a synchronous listener, and makes the id's
 * queue pair if rdma_create_ep was given attributes. errno also: what rdma_create_qp fails with;
 * then the request is rejected.
 */
EXPORT int rdma_get_request(struct rdma_cm_id *listen, struct rdma_cm_id **id)
{
	struct ibv_qp_init_attr init;
	struct rdma_cm_event *event;
	struct id *listener;
	int error = 0;

	if (listen == NULL || id == NULL || !id_of(listen)->sync)
		return result(EINVAL);
	listener = id_of(listen);
	id_drop_event(listener);
	if (listener->told_gone)
		return result(ENODEV);
	if (next_completion(listener, &event) != 0)
		return -1;
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		error = error_of(event) != 0 ? error_of(event) : EINVAL;
		listen->event = event;
		return result(error);
	}
	if (listener->init != NULL) {
		init = *listener->init;
		if (rdma_create_qp(event->id, listener->init_pd, &init) != 0)
			error = errno;
	}
	if (error != 0) {
		/* the program will never see this id */
		rdma_reject(event->id, NULL, 0);
		rdma_destroy_id(event->id);
		rdma_ack_cm_event(event);
		return result(error);
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}
