/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers of a datagram socket: their addresses, and how to reach their queue pairs. */
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>

#include "rdmacm/rsockets/rs_datagram.h"

bool rs_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
	const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;

	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
	return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
	       IN6_ARE_ADDR_EQUAL(&a6->sin6_addr, &b6->sin6_addr);
}

/* ---- the path ---- */

static void end_resolving(struct rs_socket *s, struct rs_destination *d)
{
	s->datagrams.resolving -= d->resolving;
	d->resolving = false;
	if (d->channel != NULL)
		rs_service_unwatch(d->channel->fd);
	if (d->id != NULL)
		rdma_destroy_id(d->id);
	if (d->channel != NULL)
		rdma_destroy_event_channel(d->channel);
	d->id = NULL;
	d->channel = NULL;
}

static int make_id(const struct rs_socket *s, struct rs_destination *d)
{
	uint8_t tos = (uint8_t)s->options.tos;
	struct id *id;
	int error = id_create(d->channel, d, RDMA_PS_UDP, IBV_QPT_UD, &id);

	if (error != 0)
		return error;
	d->id = &id->rdma;
	return rdma_set_option(d->id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof(tos)) == 0
		       ? 0
		       : errno;
}

static int begin_resolving(struct rs_socket *s, struct rs_destination *d)
{
	struct sockaddr_storage source = d->local->address;
	int error;

	/*
	 * Clears the port, because the id does not own it. sin_port and sin6_port have the same
	 * offset.
	 */
	((struct sockaddr_in *)&source)->sin_port = 0;
	d->resolving = true;
	s->datagrams.resolving++;
	d->channel = rdma_create_event_channel();
	if (d->channel == NULL || fcntl(d->channel->fd, F_SETFL, O_NONBLOCK) != 0)
		return errno;
	error = make_id(s, d);
	if (error == 0)
		error = rs_service_watch(d->channel->fd, s->fd);
	if (error == 0 &&
	    rdma_resolve_addr(d->id, (struct sockaddr *)&source, (struct sockaddr *)&d->address,
			      LIMIT_RS_DATAGRAM_RESOLVE_MS) != 0)
		error = errno;
	return error;
}

/* If this fails, datagrams go on over UDP, and the peer's next answer tries again. */
void rs_destination_resolve(struct rs_socket *s, struct rs_destination *d, uint32_t qpn)
{
	if (d->ah != NULL && d->qpn != qpn) {
		ibv_destroy_ah(d->ah);
		d->ah = NULL;
	}
	d->qpn = qpn;
	if (d->ah != NULL || d->resolving || s->datagrams.resolving >= LIMIT_RS_RESOLVING)
		return;
	if (begin_resolving(s, d) != 0)
		end_resolving(s, d);
}

static void resolve_again(struct rs_socket *s, struct rs_destination *d)
{
	if (d->ah == NULL && !d->resolving)
		return; /* the queue pair is not known */
	end_resolving(s, d);
	if (d->ah != NULL)
		ibv_destroy_ah(d->ah);
	d->ah = NULL;
	rs_destination_resolve(s, d, d->qpn);
}

void rs_destinations_resolve_again(struct rs_socket *s)
{
	for (struct rs_destination *d = s->datagrams.destinations; d != NULL; d = d->next)
		resolve_again(s, d);
}

static int gid_index(struct ibv_context *context, const union ibv_gid *wanted, uint8_t *index)
{
	union ibv_gid gid;

	for (int i = 0; i <= UINT8_MAX && ibv_query_gid(context, 1, i, &gid) == 0; i++) {
		if (memcmp(&gid, wanted, sizeof(gid)) == 0) {
			*index = (uint8_t)i;
			return 0;
		}
	}
	return ENOENT;
}

static void make_ah(struct rs_destination *d)
{
	const struct ibv_sa_path_rec *p = d->id->route.path_rec;
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	if (p == NULL || gid_index(d->id->verbs, &p->sgid, &attr.grh.sgid_index) != 0)
		return;
	attr.grh.dgid = p->dgid;
	attr.grh.flow_label = ntohl(p->flow_label);
	attr.grh.hop_limit = p->hop_limit;
	attr.grh.traffic_class = p->traffic_class;
	attr.sl = p->sl;
	d->ah = ibv_create_ah(d->local->id->pd, &attr);
}

/* Whether more events are to come. */
static bool take_event(struct rs_destination *d, const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		return rdma_resolve_route(d->id, LIMIT_RS_DATAGRAM_RESOLVE_MS) == 0;
	if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		make_ah(d);
	return false;
}

static void progress(struct rs_socket *s, struct rs_destination *d)
{
	struct pollfd p = { .fd = d->channel->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	bool goes_on = true;

	if (poll(&p, 1, 0) != 1 || rdma_get_cm_event(d->channel, &event) != 0)
		return;
	goes_on = take_event(d, event);
	rdma_ack_cm_event(event);
	if (!goes_on)
		end_resolving(s, d);
}

void rs_destinations_progress(struct rs_socket *s)
{
	for (struct rs_destination *d = s->datagrams.destinations; d != NULL; d = d->next)
		if (d->resolving)
			progress(s, d);
}

/* ---- whether it is still there ---- */

void rs_destination_heard(struct rs_destination *d)
{
	d->ask_at = rs_now_us() + LIMIT_RS_SILENCE_MS * 1000;
}

/* One datagram for each question. It may change places with others, as any datagram may. */
bool rs_destination_must_answer(struct rs_destination *d)
{
	int64_t now = rs_now_us();

	if (now < d->ask_at)
		return false;
	d->ask_at = now + LIMIT_RS_SILENCE_MS * 1000;
	return true;
}

/* ---- finding and making ---- */

static void free_one(struct rs_socket *s, struct rs_destination *d)
{
	end_resolving(s, d);
	if (d->ah != NULL)
		ibv_destroy_ah(d->ah);
	free(d);
}

static bool is_in_use(const struct rs_socket *s, const struct rs_destination *d)
{
	return d->uses != 0 || d == s->datagrams.peer || d == s->datagrams.last;
}

/* Returns 0, or ENOBUFS: all destinations are in use. */
static int make_room(struct rs_socket *s)
{
	struct rs_destination **oldest = NULL, *d;

	for (struct rs_destination **link = &s->datagrams.destinations; *link != NULL;
	     link = &(*link)->next)
		if (!is_in_use(s, *link))
			oldest = link;
	if (oldest == NULL)
		return ENOBUFS;
	d = *oldest;
	*oldest = d->next;
	free_one(s, d);
	return 0;
}

/* Takes the destination out of the list. NULL: it is not there, and *count is the list's length. */
static struct rs_destination *take_known(struct rs_socket *s,
					 const struct sockaddr_storage *address, uint32_t *count)
{
	struct rs_destination **link = &s->datagrams.destinations, *d;

	for (*count = 0; *link != NULL; link = &(*link)->next, ++*count) {
		d = *link;
		if (rs_same_address(&d->address, address)) {
			*link = d->next;
			return d;
		}
	}
	return NULL;
}

static int make(struct rs_socket *s, const struct sockaddr_storage *address,
		struct rs_destination **made)
{
	struct rs_destination *d = calloc(1, sizeof(*d));
	int error;

	if (d == NULL)
		return ENOMEM;
	d->address = *address;
	error = rs_local_for(s, (const struct sockaddr *)address, &d->local);
	if (error == 0)
		*made = d;
	else
		free(d);
	return error;
}

int rs_destination_for(struct rs_socket *s, const struct sockaddr *to, struct rs_destination **d)
{
	struct sockaddr_storage address = { 0 };
	uint32_t count;
	int error = 0;

	memcpy(&address, to, rs_address_length(to));
	*d = take_known(s, &address, &count);
	if (*d == NULL && count >= LIMIT_RS_DESTINATIONS)
		error = make_room(s);
	if (*d == NULL && error == 0)
		error = make(s, &address, d);
	if (error != 0)
		return error;
	(*d)->next = s->datagrams.destinations;
	s->datagrams.destinations = *d;
	return 0;
}

void rs_destinations_free(struct rs_socket *s)
{
	struct rs_destination *d;

	while ((d = s->datagrams.destinations) != NULL) {
		s->datagrams.destinations = d->next;
		free_one(s, d);
	}
}
