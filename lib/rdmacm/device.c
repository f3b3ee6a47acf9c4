/* SPDX-License-Identifier: BSD-3-Clause */
/* The devices that this library has opened: one context for each, shared by all ids on it. */
#include <stdlib.h>

#include "base/loading.h"
#include "queue/cancel.h"
#include "rdmacm/types.h"

pthread_mutex_t cm_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cm_device *devices;
static struct cm_device *home;

static void before_fork(void)
{
	pthread_mutex_lock(&cm_lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&cm_lock);
}

static void after_fork_child(void)
{
	for (struct cm_device *d = devices; d != NULL; d = d->next)
		d->inherited = true;
	channels_forked();
	ids_forked();
	pthread_mutex_unlock(&cm_lock);
}

/* libibverbs was loaded before. So cm_lock is taken before any lock of that library. */
static AT_LOAD(LOAD_IDS) void prepare_for_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static uint8_t octet_of(int n)
{
	return n < 0 ? 0 : n > UINT8_MAX ? UINT8_MAX : (uint8_t)n;
}

static struct cm_device *open_device(struct ibv_device *ibv)
{
	struct cm_device *d = calloc(1, sizeof(*d));
	struct ibv_device_attr attr;

	if (d == NULL)
		return NULL;
	d->context = ibv_open_device(ibv);
	if (d->context == NULL) {
		free(d);
		return NULL;
	}
	if (ibv_query_device(d->context, &attr) == 0) {
		d->max_responder_resources = octet_of(attr.max_qp_rd_atom);
		d->max_initiator_depth = octet_of(attr.max_qp_init_rd_atom);
	}
	d->next = devices;
	devices = d;
	return d;
}

/*
 * Finds or opens the device. A context whose engine is gone, or that a parent opened, cannot be
 * used for new objects.
 */
static struct cm_device *device_enter(struct ibv_device *ibv)
{
	for (struct cm_device *d = devices; d != NULL; d = d->next) {
		if (d->context->device == ibv && !uroce_context_gone(d->context))
			return d;
	}
	return open_device(ibv);
}

static struct cm_device *find_home(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct cm_device *d = NULL;

	if (list == NULL)
		return NULL;
	if (list[0] != NULL)
		d = device_enter(list[0]);
	else
		errno = ENODEV;
	ibv_free_device_list(list);
	return d;
}

struct cm_device *device_home(void)
{
	struct cm_device *d;
	int cancel = cancel_off();

	pthread_mutex_lock(&cm_lock);
	if (home == NULL || uroce_context_gone(home->context))
		home = find_home();
	d = home;
	pthread_mutex_unlock(&cm_lock);
	cancel_restore(cancel);
	return d;
}

static int open_all(struct ibv_device **list, struct ibv_context **contexts)
{
	struct cm_device *d;
	int n = 0, cancel = cancel_off();

	pthread_mutex_lock(&cm_lock);
	for (int i = 0; list[i] != NULL; i++) {
		d = device_enter(list[i]);
		if (d != NULL)
			contexts[n++] = d->context;
	}
	pthread_mutex_unlock(&cm_lock);
	cancel_restore(cancel);
	return n;
}

/*
 * rdma_get_devices(3): a NULL-terminated array of open contexts; NULL with errno: none. Free it
 * with rdma_free_devices. `num_devices` may be NULL.
 */
EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	struct ibv_context **contexts = NULL;
	struct ibv_device **list;
	int count = 0;

	if (num_devices != NULL)
		*num_devices = 0; /* some programs check only the number */
	list = ibv_get_device_list(&count);
	if (list == NULL)
		return NULL;
	errno = ENODEV;
	if (count > 0)
		contexts = calloc((size_t)count + 1, sizeof(contexts[0]));
	if (contexts != NULL)
		count = open_all(list, contexts);
	ibv_free_device_list(list);
	if (contexts != NULL && count == 0) {
		free(contexts);
		contexts = NULL;
	}
	if (contexts != NULL && num_devices != NULL)
		*num_devices = count;
	return contexts;
}

/* rdma_free_devices(3): frees the array; the devices stay open. */
EXPORT void rdma_free_devices(struct ibv_context **list)
{
	free(list);
}
