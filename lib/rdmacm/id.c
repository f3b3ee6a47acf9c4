/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ids are created, moved to another channel, and destroyed when all their events were acknowledged.
 */
#include <stdlib.h>

#include "rdmacm/types.h"

/* All ids share it. A waiting thread checks the counts of its own id. */
static pthread_cond_t acknowledged = PTHREAD_COND_INITIALIZER;

void ids_forked(void)
{
	pthread_cond_init(&acknowledged, NULL);
}

/* The caller holds cm_lock. */
static int enter(struct id *id)
{
	struct handle_map *map = &id->device->ids;
	uint32_t wanted = handle_map_wanted(map);
	struct handle_slot *memory;

	if (wanted != map->slots) {
		memory = handle_map_prepare(wanted);
		if (memory == NULL)
			return ENOMEM;
		free(handle_map_grow(map, memory, wanted));
	}
	handle_map_put(map, id->handle, id);
	return 0;
}

struct id *id_find(struct cm_device *d, uint32_t handle)
{
	return handle == 0 ? NULL : handle_map_get(&d->ids, handle);
}

/* Afterwards no event finds the id. The caller holds cm_lock. */
static int destroy_in_engine(struct id *id)
{
	struct request_handle request = { .handle = id->handle };
	struct reply_cm_gone reply;
	int error = COMMAND(id->device, CM_DESTROY_ID, &request, &reply);

	if (error == 0)
		channel_drop_octets(id->rdma.channel, reply.octets);
	if (error == ENODEV)
		error = 0; /* the id went with the engine */
	if (error == 0)
		handle_map_remove(&id->device->ids, id->handle);
	return error;
}

static struct id *new_id(struct channel *ch, void *context, enum rdma_port_space ps,
			 enum ibv_qp_type qp_type)
{
	struct id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->rdma.channel = &ch->rdma;
	id->rdma.context = context;
	id->rdma.ps = ps;
	id->rdma.qp_type = qp_type;
	id->device = ch->device;
	id->responder_resources = RDMA_MAX_RESP_RES;
	id->initiator_depth = RDMA_MAX_INIT_DEPTH;
	return id;
}

static int create_in_engine(struct id *id)
{
	struct request_cm_create_id request = {
		.channel = channel_of(id->rdma.channel)->handle,
		.port_space = id->rdma.ps,
		.qp_type = id->rdma.qp_type,
	};
	struct reply_handle reply;
	int error;

	pthread_mutex_lock(&cm_lock);
	error = COMMAND(id->device, CM_CREATE_ID, &request, &reply);
	if (error == 0) {
		id->handle = reply.handle;
		error = enter(id);
		if (error != 0)
			destroy_in_engine(id);
	}
	pthread_mutex_unlock(&cm_lock);
	return error;
}

int id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	      enum ibv_qp_type qp_type, struct id **out)
{
	bool sync = channel == NULL;
	struct id *id;
	int error = ENOMEM;

	if (sync)
		channel = rdma_create_event_channel();
	if (channel == NULL)
		return errno;
	id = new_id(channel_of(channel), context, ps, qp_type);
	if (id != NULL)
		error = create_in_engine(id);
	if (error != 0) {
		free(id);
		if (sync)
			rdma_destroy_event_channel(channel);
		return error;
	}
	id->sync = sync;
	*out = id;
	return 0;
}

/*
 * Programs register memory before they make a queue pair, in the domain that they find in the id.
 */
void id_set_device(struct id *id)
{
	id->rdma.verbs = id->device->context;
	id->rdma.port_num = 1;
	id->rdma.pd = id_default_pd_locked(id);
}

struct id *id_adopt(struct id *listener, uint32_t handle)
{
	struct id *id = new_id(channel_of(listener->rdma.channel), listener->rdma.context,
			       listener->rdma.ps, listener->rdma.qp_type);
	int error;

	if (id == NULL)
		return NULL;
	id->handle = handle;
	id->mapped = listener->mapped;
	pthread_mutex_lock(&cm_lock);
	error = enter(id);
	if (error == 0)
		id_set_device(id);
	pthread_mutex_unlock(&cm_lock);
	if (error != 0) {
		free(id);
		return NULL;
	}
	return id;
}

/*
 * rdma_create_id(3). A NULL channel makes the id synchronous: its calls wait for their events. Free
 *id with rdma_destroy_id.
 */
EXPORT int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space ps)
{
	bool datagram = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB;
	struct id *made;
	int error;

	if (id == NULL)
		return result(EINVAL);
	error = id_create(channel, context, ps, datagram ? IBV_QPT_UD : IBV_QPT_RC, &made);
	if (error != 0)
		return result(error);
	*id = &made->rdma;
	return 0;
}

void id_acknowledge(struct id *id)
{
	pthread_mutex_lock(&cm_lock);
	id->acknowledged++;
	pthread_cond_broadcast(&acknowledged);
	pthread_mutex_unlock(&cm_lock);
}

static void unlock(void *mutex)
{
	pthread_mutex_unlock(mutex);
}

/*
 * The caller holds cm_lock, which is released if the thread is cancelled. The child of a fork does
 * not wait, because it cannot acknowledge its parent's events. Built without the address sanitizer
 * for the reason given at rdma_get_cm_event.
 */
static __attribute__((no_sanitize_address)) void await_acknowledgements(struct id *id)
{
	pthread_cleanup_push(unlock, &cm_lock);
	while (id->acknowledged != id->delivered && !device_is_inherited(id->device))
		pthread_cond_wait(&acknowledged, &cm_lock);
	pthread_cleanup_pop(0);
}

/*
 * rdma_destroy_id(3): waits until all events of the id were acknowledged. The program destroys the
 * queue pair first. Built without the address sanitizer: if the thread ends in a stack frame that
 * the sanitizer has poisoned, the frame stays poisoned.
 */
EXPORT __attribute__((no_sanitize_address)) int rdma_destroy_id(struct rdma_cm_id *rdma)
{
	struct id *id = id_of(rdma);
	int error;

	if (rdma == NULL)
		return result(EINVAL);
	pthread_mutex_lock(&cm_lock);
	error = destroy_in_engine(id);
	pthread_mutex_unlock(&cm_lock);
	if (error != 0)
		return result(error);
	id_drop_event(id);
	pthread_mutex_lock(&cm_lock);
	await_acknowledgements(id);
	pthread_mutex_unlock(&cm_lock);
	id_forget_joins(id);
	if (id->sync)
		rdma_destroy_event_channel(rdma->channel);
	free(id->init);
	free(id->greeting);
	free(id);
	return 0;
}

/* A thread that takes one of the id's events afterwards finds the id on its new channel. */
static int migrate_in_engine(struct id *id, struct channel *to)
{
	struct request_cm_migrate request = { .id = id->handle, .channel = to->handle };
	struct reply_cm_gone reply;
	int error;

	if (to->device != id->device)
		return EINVAL;
	pthread_mutex_lock(&cm_lock);
	error = COMMAND(id->device, CM_MIGRATE, &request, &reply);
	if (error == 0) {
		channel_drop_octets(id->rdma.channel, reply.octets);
		id->rdma.channel = &to->rdma;
		await_acknowledgements(id);
	}
	pthread_mutex_unlock(&cm_lock);
	return error;
}

int id_migrate(struct id *id, struct rdma_event_channel *channel)
{
	struct rdma_event_channel *old = id->rdma.channel;
	bool sync = channel == NULL;
	int error;

	if (sync)
		channel = rdma_create_event_channel();
	if (channel == NULL)
		return errno;
	if (id->sync)
		id_drop_event(id);
	error = migrate_in_engine(id, channel_of(channel));
	if (error != 0) {
		if (sync)
			rdma_destroy_event_channel(channel);
		return error;
	}
	if (id->sync)
		rdma_destroy_event_channel(old);
	id->sync = sync;
	return 0;
}

/*
 * rdma_migrate_id(3): waits until the events taken from the old channel were acknowledged. A NULL
 * channel makes the id synchronous. EINVAL if it is synchronous already.
 */
EXPORT int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	if (id == NULL || (id_of(id)->sync && channel == NULL))
		return result(EINVAL);
	return result(id_migrate(id_of(id), channel));
}
