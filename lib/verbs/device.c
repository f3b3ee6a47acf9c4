/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices: one for each engine that answers. Asking starts nothing and attaches nowhere, because
 * programs ask many times and often go no further.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs/device.h"

#define DEVICES_MAX 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;

/* What stands where another provider's library looks for its own mark. */
static const char not_of_another_provider;

/* Not inlined: gcc 12 with -fsanitize=undefined sees strings of size 0 then. */
static __attribute__((noinline)) bool is_same(const struct device *d,
					      const struct engine_source *source,
					      uint64_t engine_id)
{
	return d->facts.engine_id == engine_id && strcmp(d->source.path, source->path) == 0 &&
	       strcmp(d->source.embedded, source->embedded) == 0;
}

static struct device *new_device(const struct engine_source *source,
				 const struct reply_device *facts)
{
	struct device *d = calloc(1, sizeof(*d));
	int length = (int)strnlen(facts->name, sizeof(facts->name));

	if (d == NULL)
		return NULL;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->ibv.name, sizeof(d->ibv.name), "%.*s", length, facts->name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "%.*s", length, facts->name);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%.*s",
		 length, facts->name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%.*s", length,
		 facts->name);
	d->provider = &not_of_another_provider;
	d->source = *source;
	d->facts = *facts;
	d->next = devices;
	devices = d;
	return d;
}

static void drop(struct device *d)
{
	struct device **link = &devices;

	if (--d->references != 0)
		return;
	while (*link != d)
		link = &(*link)->next;
	*link = d->next;
	free(d);
}

void device_hold(struct device *d)
{
	pthread_mutex_lock(&lock);
	d->references++;
	pthread_mutex_unlock(&lock);
}

void device_drop(struct device *d)
{
	pthread_mutex_lock(&lock);
	drop(d);
	pthread_mutex_unlock(&lock);
}

/* The device of this engine, held. NULL: no memory. */
static struct device *device_enter(const struct engine_source *source,
				   const struct reply_device *facts)
{
	struct device *d;

	pthread_mutex_lock(&lock);
	for (d = devices; d != NULL && !is_same(d, source, facts->engine_id); d = d->next)
		;
	if (d == NULL)
		d = new_device(source, facts);
	if (d != NULL) {
		/* what else was said of it stays, and threads read it */
		__atomic_store_n(&d->facts.node_guid, facts->node_guid, __ATOMIC_RELAXED);
		d->references++;
	}
	pthread_mutex_unlock(&lock);
	return d;
}

struct search {
	uint64_t engine_id;
	struct device *found;
};

static void look_at_engine(const struct engine_source *source, const struct reply_device *facts,
			   void *argument)
{
	struct search *s = argument;

	if (s->found == NULL && facts->engine_id == s->engine_id)
		s->found = device_enter(source, facts);
}

struct device *device_of_engine(uint64_t engine_id, const char *path)
{
	struct search s = { .engine_id = engine_id };
	struct engine_source source = { .passed_on = true };
	struct reply_device facts;

	client_each_engine(look_at_engine, &s);
	if (s.found != NULL || path[0] == '\0')
		return s.found;
	snprintf(source.path, sizeof(source.path), "%s", path);
	if (client_query(&source, &facts) == 0)
		look_at_engine(&source, &facts, &s);
	return s.found;
}

struct listing {
	struct ibv_device **list;
	int count;
};

static void list_engine(const struct engine_source *source, const struct reply_device *facts,
			void *argument)
{
	struct listing *l = argument;
	struct device *d;

	if (l->count == DEVICES_MAX)
		return;
	d = device_enter(source, facts);
	if (d != NULL)
		l->list[l->count++] = &d->ibv;
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct listing l = { .list = calloc(DEVICES_MAX + 1, sizeof(struct ibv_device *)) };

	if (num_devices != NULL)
		*num_devices = 0;
	if (l.list == NULL)
		return fail_with(ENOMEM);
	client_each_engine(list_engine, &l);
	if (num_devices != NULL)
		*num_devices = l.count;
	return l.list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	for (int i = 0; list[i] != NULL; i++)
		device_drop(device_of(list[i]));
	free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

/* The index is the kernel's; no kernel device is behind ours. */
EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return -1;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return __atomic_load_n(&device_of(device)->facts.node_guid, __ATOMIC_RELAXED);
}
