/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of an id. Its queue pair is attached before the program gets the event. */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/types.h"

/* The engine's values, which differ from enum rdma_cm_mc_join_flags. */
#define JOIN_FULL      1u
#define JOIN_SEND_ONLY 2u

static socklen_t address_length(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* The family says which other members of the address count. */
static bool is_same(const struct join *j, const struct cm_address *address)
{
	struct cm_address mine;

	return address_to_engine(&mine, (const struct sockaddr *)&j->address) == 0 &&
	       mine.family == address->family && gid_equal(&mine.ip, &address->ip);
}

/* Takes a join out of the list. NULL: there is no such join. The caller holds cm_lock. */
static struct join *take(struct id *id, const struct cm_address *address, uint64_t cookie)
{
	for (struct join **link = &id->joins; *link != NULL; link = &(*link)->next) {
		struct join *j = *link;

		if (address != NULL ? is_same(j, address) : j->cookie == cookie) {
			*link = j->next;
			return j;
		}
	}
	return NULL;
}

static struct join *new_join(const struct sockaddr *address, bool send_only, void *context)
{
	static uint64_t last;
	struct join *j = calloc(1, sizeof(*j));

	if (j == NULL)
		return NULL;
	memcpy(&j->address, address, address_length(address));
	/*
	 * Atomic, because threads join without a lock. Relaxed, because it only has to be unique.
	 */
	j->cookie = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	j->send_only = send_only;
	j->context = context;
	return j;
}

/*
 * The join enters the list before the engine knows about it, because its event may come before the
 * answer.
 */
static int join_in_engine(struct id *id, struct join *j, const struct cm_address *group)
{
	struct request_cm_join request = {
		.id = id->handle,
		.join_flags = j->send_only ? JOIN_SEND_ONLY : JOIN_FULL,
		.group = *group,
		.cookie = j->cookie,
	};
	uint64_t cookie = j->cookie;
	struct reply_handle reply;
	int error;

	pthread_mutex_lock(&cm_lock);
	j->next = id->joins;
	id->joins = j;
	error = COMMAND(id->device, CM_JOIN, &request, &reply);
	if (error == 0)
		j->handle = reply.handle;
	else
		free(take(id, NULL, cookie));
	pthread_mutex_unlock(&cm_lock);
	return error;
}

static int join(struct rdma_cm_id *id, struct sockaddr *address, bool send_only, void *context)
{
	struct cm_address group;
	struct join *j;
	int error;

	if (id == NULL)
		return result(EINVAL);
	error = address_to_engine(&group, address);
	if (error != 0)
		return result(error);
	j = new_join(address, send_only, context);
	error = j != NULL ? join_in_engine(id_of(id), j, &group) : ENOMEM;
	return error != 0 ? result(error) : id_complete(id_of(id));
}

/*
 * rdma_join_multicast(3). Causes MULTICAST_JOIN or MULTICAST_ERROR, with `context` in its
 * private_data; a synchronous id waits for it. errno also: EAFNOSUPPORT, ENOMEM.
 */
EXPORT int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	return join(id, addr, false, context);
}

/*
 * rdma_join_multicast_ex(3): as rdma_join_multicast, with join flags. errno also: EOPNOTSUPP for
 * unknown bits of comp_mask.
 */
EXPORT int rdma_join_multicast_ex(struct rdma_cm_id *id,
				  struct rdma_cm_join_mc_attr_ex *mc_join_attr, void *context)
{
	if (mc_join_attr == NULL)
		return result(EINVAL);
	if (mc_join_attr->comp_mask & ~(uint32_t)(RDMA_CM_JOIN_MC_ATTR_RESERVED - 1))
		return result(EOPNOTSUPP);
	if (!(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_ADDRESS) ||
	    !(mc_join_attr->comp_mask & RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS) ||
	    mc_join_attr->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
		return result(EINVAL);
	return join(id, mc_join_attr->addr,
		    mc_join_attr->join_flags == RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER, context);
}

/* The queue pair is attached before the program learns that it has joined. */
static int attach(struct id *id, struct join *j)
{
	int error;

	if (id->rdma.qp == NULL || j->send_only)
		return 0;
	error = ibv_attach_mcast(id->rdma.qp, &j->gid, 0);
	j->attached = error == 0;
	return error;
}

bool id_take_join(struct id *id, const struct reply_cm_event *e, const struct ibv_ah_attr *to,
		  const void **context, int *status)
{
	struct join *j;
	int error = 0;

	pthread_mutex_lock(&cm_lock);
	for (j = id->joins; j != NULL && j->cookie != e->cookie; j = j->next)
		;
	if (j != NULL) {
		*context = j->context;
		j->gid = to->grh.dgid;
		if (e->event == RDMA_CM_EVENT_MULTICAST_JOIN && *status == 0)
			error = attach(id, j);
	}
	pthread_mutex_unlock(&cm_lock);
	if (error != 0)
		*status = -error;
	return j != NULL;
}

static int leave_in_engine(struct id *id, uint32_t handle)
{
	struct request_cm_leave request = { .id = id->handle, .join = handle };
	struct reply_cm_gone reply;
	int error;

	pthread_mutex_lock(&cm_lock);
	error = COMMAND(id->device, CM_LEAVE, &request, &reply);
	if (error == 0)
		channel_drop_octets(id->rdma.channel, reply.octets);
	pthread_mutex_unlock(&cm_lock);
	return error;
}

/*
 * rdma_leave_multicast(3): detaches the queue pair. errno also: EADDRNOTAVAIL if the id has not
 * joined.
 */
EXPORT int rdma_leave_multicast(struct rdma_cm_id *rdma, struct sockaddr *addr)
{
	struct id *id = id_of(rdma);
	struct cm_address group;
	struct join *j;
	int error;

	if (rdma == NULL)
		return result(EINVAL);
	error = address_to_engine(&group, addr);
	if (error != 0)
		return result(error);
	pthread_mutex_lock(&cm_lock);
	j = take(id, &group, 0);
	pthread_mutex_unlock(&cm_lock);
	if (j == NULL)
		return result(EADDRNOTAVAIL);
	if (j->attached && rdma->qp != NULL)
		ibv_detach_mcast(rdma->qp, &j->gid, 0);
	error = leave_in_engine(id, j->handle);
	free(j);
	return result(error);
}

void id_forget_joins(struct id *id)
{
	for (struct join *j = id->joins, *next; j != NULL; j = next) {
		next = j->next;
		free(j);
	}
}
