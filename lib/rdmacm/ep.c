/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints: an id that is ready to connect or to listen, made in one call. */
#include <stdlib.h>
#include <string.h>

#include "config/limits.h"
#include "rdmacm/types.h"

/* Stores what rdma_get_request gives to each new connection. */
static int prepare_listener(struct id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			    const struct ibv_qp_init_attr *init)
{
	if (rdma_bind_addr(&id->rdma, res->ai_src_addr) != 0)
		return errno;
	id->init_pd = pd;
	if (init == NULL)
		return 0;
	id->init = malloc(sizeof(*id->init));
	if (id->init == NULL)
		return ENOMEM;
	*id->init = *init;
	id->init->qp_type = res->ai_qp_type;
	return 0;
}

static int remember_greeting(struct id *id, const struct rdma_addrinfo *res)
{
	if (res->ai_connect_len == 0)
		return 0;
	if (res->ai_connect == NULL || res->ai_connect_len > UINT8_MAX)
		return EINVAL;
	id->greeting = malloc(res->ai_connect_len);
	if (id->greeting == NULL)
		return ENOMEM;
	memcpy(id->greeting, res->ai_connect, res->ai_connect_len);
	id->greeting_length = (uint8_t)res->ai_connect_len;
	return 0;
}

static int prepare_caller(struct id *id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *init)
{
	struct sockaddr *source = res->ai_src_len > 0 ? res->ai_src_addr : NULL;

	if (rdma_resolve_addr(&id->rdma, source, res->ai_dst_addr, LIMIT_EP_RESOLVE_MS) != 0 ||
	    rdma_resolve_route(&id->rdma, LIMIT_EP_RESOLVE_MS) != 0)
		return errno;
	if (init != NULL) {
		init->qp_type = res->ai_qp_type;
		if (rdma_create_qp(&id->rdma, pd, init) != 0)
			return errno;
	}
	return remember_greeting(id, res);
}

/*
 * rdma_create_ep(3): makes a synchronous id from an address, a listener if `res` has RAI_PASSIVE.
 * `pd` and `qp_init_attr` may be NULL. `res` may be freed afterwards. Free *id with
 * rdma_destroy_ep.
 */
EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *qp_init_attr)
{
	struct id *made;
	int error;

	if (id == NULL || res == NULL)
		return result(EINVAL);
	error = id_create(NULL, NULL, res->ai_port_space, res->ai_qp_type, &made);
	if (error != 0)
		return result(error);
	if (res->ai_flags & RAI_PASSIVE)
		error = prepare_listener(made, res, pd, qp_init_attr);
	else
		error = prepare_caller(made, res, pd, qp_init_attr);
	if (error != 0) {
		rdma_destroy_ep(&made->rdma);
		return result(error);
	}
	*id = &made->rdma;
	return 0;
}

/* rdma_destroy_ep(3): frees the id with its queue pair and SRQ. */
EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
