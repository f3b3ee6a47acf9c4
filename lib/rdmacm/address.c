/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: conversion to and from the engine's form, and the calls that bind an id to one. */
#include <arpa/inet.h>
#include <string.h>

#include "rdmacm/types.h"

#define FAMILY_IB 27 /* AF_IB, which libc does not name */

static const uint8_t ipv4_prefix[12] = { [10] = 0xff, [11] = 0xff };

static bool is_mapped(const struct sockaddr *a)
{
	const struct sockaddr_in6 *v6 = (const void *)a;

	return a != NULL && a->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
}

static bool is_any_ipv6(const struct cm_address *a)
{
	static const struct gid any;

	return a->family == 6 && gid_equal(&a->ip, &any);
}

int address_to_engine(struct cm_address *to, const struct sockaddr *from)
{
	const struct sockaddr_in *v4 = (const void *)from;
	const struct sockaddr_in6 *v6 = (const void *)from;

	memset(to, 0, sizeof(*to));
	if (from == NULL)
		return EINVAL;
	switch (from->sa_family) {
	case AF_INET:
		to->family = 4;
		to->port = ntohs(v4->sin_port);
		memcpy(to->ip.octet, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(to->ip.octet + 12, &v4->sin_addr, 4);
		return 0;
	case AF_INET6:
		to->family = is_mapped(from) ? 4 : 6;
		to->port = ntohs(v6->sin6_port);
		to->scope = v6->sin6_scope_id;
		memcpy(to->ip.octet, &v6->sin6_addr, 16);
		return 0;
	case FAMILY_IB:
		return EAFNOSUPPORT;
	default:
		return EINVAL;
	}
}

void address_from_engine(struct sockaddr_storage *to, const struct cm_address *from, bool mapped)
{
	struct sockaddr_in *v4 = (void *)to;
	struct sockaddr_in6 *v6 = (void *)to;

	if (from->family != 4 && from->family != 6)
		return;
	memset(to, 0, sizeof(*to));
	if (from->family == 4 && !mapped) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(from->port);
		memcpy(&v4->sin_addr, from->ip.octet + 12, 4);
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(from->port);
		v6->sin6_scope_id = from->scope;
		memcpy(&v6->sin6_addr, from->ip.octet, 16);
	}
}

static uint8_t packet_life_time(const struct cm_route *q)
{
	return q->ack_timeout > 0 ? q->ack_timeout - 1 : 0; /* the timeout is twice this time */
}

static void take_path(struct id *id, const struct cm_route *q)
{
	struct ibv_sa_path_rec *p = &id->path;

	memset(p, 0, sizeof(*p));
	memcpy(&p->sgid, &q->sgid, sizeof(p->sgid));
	memcpy(&p->dgid, &q->dgid, sizeof(p->dgid));
	p->flow_label = htonl(q->flow_label);
	p->hop_limit = q->hop_limit;
	p->traffic_class = q->traffic_class;
	p->reversible = htonl(1);
	p->numb_path = 1;
	p->pkey = htons((uint16_t)q->pkey);
	p->sl = q->sl;
	p->mtu_selector = 2; /* IBTA 15.2.5.16: exactly */
	p->mtu = (uint8_t)q->path_mtu;
	p->rate_selector = 2;
	p->packet_life_time_selector = 2;
	p->packet_life_time = packet_life_time(q);
	id->rdma.route.path_rec = p;
	id->rdma.route.num_paths = 1;
}

void id_take_route(struct id *id, const struct cm_route *q)
{
	struct rdma_addr *a = &id->rdma.route.addr;

	address_from_engine(&a->src_storage, &q->source, id->mapped);
	address_from_engine(&a->dst_storage, &q->destination, id->mapped);
	if (q->bound == 0)
		return;
	id_set_device(id);
	memcpy(&a->addr.ibaddr.sgid, &q->sgid, sizeof(a->addr.ibaddr.sgid));
	memcpy(&a->addr.ibaddr.dgid, &q->dgid, sizeof(a->addr.ibaddr.dgid));
	a->addr.ibaddr.pkey = htons((uint16_t)q->pkey);
	if (q->path_mtu != 0)
		take_path(id, q);
}

int id_query(struct id *id)
{
	struct request_handle request = { .handle = id->handle };
	struct reply_cm_query reply;
	int error;

	pthread_mutex_lock(&cm_lock);
	error = COMMAND(id->device, CM_QUERY, &request, &reply);
	if (error == 0)
		id_take_route(id, &reply.route);
	pthread_mutex_unlock(&cm_lock);
	return error;
}

/*
 * rdma_bind_addr(3). Port 0 takes a free port; a wildcard address binds to no device yet. errno
 * also: EAFNOSUPPORT, EADDRINUSE, EADDRNOTAVAIL.
 */
EXPORT int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	struct request_cm_bind request = { 0 };
	struct reply_cm_query reply;
	int error;

	if (id == NULL)
		return result(EINVAL);
	request.id = id_of(id)->handle;
	error = address_to_engine(&request.address, addr);
	if (error == 0)
		error = scope_check_source(addr);
	if (error != 0)
		return result(error);
	pthread_mutex_lock(&cm_lock);
	error = COMMAND(id_of(id)->device, CM_BIND, &request, &reply);
	if (error == 0)
		id_of(id)->mapped = is_mapped(addr);
	if (error == 0)
		id_take_route(id_of(id), &reply.route);
	pthread_mutex_unlock(&cm_lock);
	return result(error);
}

/*
 * Checks the scopes of both addresses. The address to which an id is bound takes precedence over
 * `source`.
 */
static int check_scopes(struct rdma_cm_id *id, const struct sockaddr *source,
			const struct sockaddr *destination)
{
	const struct sockaddr *bound = (const void *)&id->route.addr.src_storage;
	int error = 0;

	if (bound->sa_family != AF_UNSPEC)
		source = bound;
	else
		error = scope_check_source(source);
	return error != 0 ? error : scope_check_destination(id_of(id), source, destination);
}

/*
 * rdma_resolve_addr(3). `src_addr` may be NULL, `timeout_ms` is in milliseconds. Binds an unbound
 * id. Causes ADDR_RESOLVED or ADDR_ERROR; a synchronous id waits for it. errno also: EAFNOSUPPORT,
 * or why the kernel has no route (ENETUNREACH, EHOSTUNREACH, EACCES, EINVAL, ENODEV).
 */
EXPORT int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
			     struct sockaddr *dst_addr, int timeout_ms)
{
	struct request_cm_resolve request = { .timeout = (uint32_t)MAX_OF(timeout_ms, 0) };
	struct reply_cm_query reply;
	int error;

	if (id == NULL)
		return result(EINVAL);
	request.id = id_of(id)->handle;
	error = address_to_engine(&request.destination, dst_addr);
	if (error == 0 && src_addr != NULL)
		error = address_to_engine(&request.source, src_addr);
	if (error == 0)
		error = check_scopes(id, src_addr, dst_addr);
	if (error != 0)
		return result(error);
	/*
	 * The source is any address, so it takes the destination's family, like a socket for both.
	 */
	if (is_mapped(dst_addr) && is_any_ipv6(&request.source))
		request.source.family = 4;
	pthread_mutex_lock(&cm_lock);
	error = COMMAND(id_of(id)->device, CM_RESOLVE_ADDR, &request, &reply);
	if (error == 0) {
		id_of(id)->mapped |= is_mapped(dst_addr);
		id_take_route(id_of(id), &reply.route);
	}
	pthread_mutex_unlock(&cm_lock);
	return error != 0 ? result(error) : id_complete(id_of(id));
}

static int resolve_route(struct id *id, uint32_t timeout)
{
	struct request_cm_timeout request = { .id = id->handle, .timeout = timeout };
	struct reply_empty reply;
	bool is_known;

	pthread_mutex_lock(&cm_lock);
	is_known = id->is_resolved && !id->asked_route;
	id->asked_route = true;
	pthread_mutex_unlock(&cm_lock);
	return is_known ? POST(id->device, CM_RESOLVE_ROUTE, &request)
			: COMMAND(id->device, CM_RESOLVE_ROUTE, &request, &reply);
}

/*
 * rdma_resolve_route(3). `timeout_ms` is in milliseconds. RoCE has no path records, so the route is
 * the engine's. Causes ROUTE_RESOLVED or ROUTE_ERROR; a synchronous id waits for it.
 */
EXPORT int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	int error;

	if (id == NULL)
		return result(EINVAL);
	error = resolve_route(id_of(id), (uint32_t)MAX_OF(timeout_ms, 0));
	return error != 0 ? result(error) : id_complete(id_of(id));
}

/* rdma_listen(3). Binds an unbound id to a free port. */
EXPORT int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct request_cm_listen request = { .backlog = backlog };
	struct reply_empty reply;
	int error;

	if (id == NULL)
		return result(EINVAL);
	request.id = id_of(id)->handle;
	error = COMMAND(id_of(id)->device, CM_LISTEN, &request, &reply);
	if (error == 0)
		error = id_query(id_of(id)); /* the port is known only now */
	return result(error);
}

static __be16 port_of(const struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_port;
	return a->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port : 0;
}

/* rdma_get_src_port(3): in network byte order; 0: the id is not bound. */
EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.src_storage);
}

/* rdma_get_dst_port(3): in network byte order; 0: no destination was resolved. */
EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return port_of(&id->route.addr.dst_storage);
}

/*
 * rdma_set_option(3). errno also: EOPNOTSUPP for RDMA_OPTION_IB, because RoCE has no path records.
 */
EXPORT int rdma_set_option(struct rdma_cm_id *id, int level, int optname, void *optval,
			   size_t optlen)
{
	struct request_cm_option request = { .level = (uint32_t)level, .name = (uint32_t)optname };
	struct reply_empty reply;

	if (id == NULL || (optval == NULL && optlen != 0))
		return result(EINVAL);
	if (level == RDMA_OPTION_IB)
		return result(EOPNOTSUPP);
	if (optlen > sizeof(request.value))
		return result(EINVAL);
	request.id = id_of(id)->handle;
	request.length = (uint32_t)optlen;
	if (optlen != 0)
		memcpy(request.value, optval, optlen);
	return result(COMMAND(id_of(id)->device, CM_SET_OPTION, &request, &reply));
}
