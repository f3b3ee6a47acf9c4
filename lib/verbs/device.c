/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Devices: one for each engine that answers. Listing devices starts and attaches nothing, because
 * programs list them often and may never open one.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bits.h"
#include "base/loading.h"
#include "verbs/device.h"

#define NAME_SIZE 40 /* octets: an engine's name for its device has 31, and a number may follow */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device *devices;

/* struct device.provider points here, so no other provider's library recognises it as its own. */
static const char not_of_another_provider;

static void lock_devices(void)
{
	pthread_mutex_lock(&lock);
}

static void unlock_devices(void)
{
	pthread_mutex_unlock(&lock);
}

static AT_LOAD(LOAD_DEVICES) void prepare_for_forks(void)
{
	pthread_atfork(lock_devices, unlock_devices, unlock_devices);
}

/* Not inlined: with -fsanitize=undefined, gcc 12 would warn of strings of size 0. */
static __attribute__((noinline)) bool is_same(const struct device *d,
					      const struct engine_source *source,
					      uint64_t engine_id)
{
	return d->facts.engine_id == engine_id && strcmp(d->source.path, source->path) == 0 &&
	       strcmp(d->source.embedded, source->embedded) == 0;
}

static void set_name(struct device *d, const char *name)
{
	snprintf(d->ibv.name, sizeof(d->ibv.name), "%s", name);
	snprintf(d->ibv.dev_name, sizeof(d->ibv.dev_name), "%s", name);
	snprintf(d->ibv.dev_path, sizeof(d->ibv.dev_path), "/sys/class/infiniband_verbs/%s", name);
	snprintf(d->ibv.ibdev_path, sizeof(d->ibv.ibdev_path), "/sys/class/infiniband/%s", name);
}

static struct device *new_device(const struct engine_source *source,
				 const struct reply_device *facts)
{
	struct device *d = calloc(1, sizeof(*d));
	char name[NAME_SIZE];

	if (d == NULL)
		return NULL;
	d->ibv.node_type = IBV_NODE_CA;
	d->ibv.transport_type = IBV_TRANSPORT_IB;
	snprintf(name, sizeof(name), "%.*s", (int)sizeof(facts->name), facts->name);
	set_name(d, name);
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

/*
 * The device of this engine. Creates it if there is none yet. Takes a reference. NULL: no memory.
 */
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
		/* The other properties stay the same, and threads read them without the lock. */
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

static void match_engine(const struct engine_source *source, const struct reply_device *facts,
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

	attachment_each_engine(match_engine, &s);
	if (s.found != NULL || path[0] == '\0')
		return s.found;
	snprintf(source.path, sizeof(source.path), "%s", path);
	if (attachment_query_engine(&source, &facts) == 0)
		match_engine(&source, &facts, &s);
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

	if (l->count == (int)LIMIT_DEVICES)
		return;
	/* An embedded engine may also have a socket, so it may be found twice. */
	for (int i = 0; i < l->count; i++)
		if (device_of(l->list[i])->facts.engine_id == facts->engine_id)
			return;
	d = device_enter(source, facts);
	if (d != NULL)
		l->list[l->count++] = &d->ibv;
}

/* ---- unique names, as the kernel's devices have ---- */

static bool is_listed(const struct listing *l, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(l->list[i]->name, name) == 0)
			return true;
	return false;
}

/* "uroce0" -> the first of "uroce0", "uroce1", ... that is free. The caller holds the lock. */
static void number(const struct listing *l, struct device *d)
{
	char name[NAME_SIZE];
	int stem = (int)strlen(d->ibv.name);
	unsigned int n = 0;

	while (stem > 0 && d->ibv.name[stem - 1] >= '0' && d->ibv.name[stem - 1] <= '9')
		stem--;
	do {
		snprintf(name, sizeof(name), "%.*s%u", MIN_OF(stem, NAME_SIZE - 12), d->ibv.name,
			 n++);
	} while (is_listed(l, l->count, name));
	set_name(d, name);
}

/*
 * If two devices have one name, the one in use keeps it; if neither is in use, the first (embedded)
 * one.
 */
static void make_names_unique(struct listing *l)
{
	pthread_mutex_lock(&lock);
	for (int i = 1; i < l->count; i++) {
		struct device *d = device_of(l->list[i]);

		for (int k = 0; k < i; k++) {
			struct device *first = device_of(l->list[k]);

			if (strcmp(first->ibv.name, d->ibv.name) == 0)
				number(l, d->references > 1 && first->references == 1 ? first : d);
		}
	}
	pthread_mutex_unlock(&lock);
}

EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct listing l = { .list = calloc(LIMIT_DEVICES + 1, sizeof(struct ibv_device *)) };

	if (num_devices != NULL)
		*num_devices = 0;
	if (l.list == NULL)
		return fail_with(ENOMEM);
	attachment_each_engine(list_engine, &l);
	make_names_unique(&l);
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

/* ibv_get_device_index(3): -1, because there is no kernel device. */
EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return -1;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return __atomic_load_n(&device_of(device)->facts.node_guid, __ATOMIC_RELAXED);
}
