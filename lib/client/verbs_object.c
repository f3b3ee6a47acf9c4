/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#include "client/verbs_object.h"

#define FIRST_SLOTS 64u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct verbs_object **slot; /* the low half of a number is an index here */
static uint32_t slots;
static uint32_t next_slot; /* where the search for a free slot begins */
static uint32_t generation; /* the high half */

void verbs_objects_lock(void)
{
	pthread_mutex_lock(&lock);
}

void verbs_objects_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool grow(void)
{
	uint32_t wanted = slots == 0 ? FIRST_SLOTS : 2 * slots;
	struct verbs_object **more = realloc(slot, wanted * sizeof(struct verbs_object *));

	if (more == NULL)
		return false;
	for (uint32_t i = slots; i < wanted; i++)
		more[i] = NULL;
	slot = more;
	next_slot = slots;
	slots = wanted;
	return true;
}

static bool find_free(uint32_t *index)
{
	for (uint32_t i = 0; i < slots; i++) {
		uint32_t candidate = (next_slot + i) % slots;

		if (slot[candidate] == NULL) {
			*index = candidate;
			next_slot = candidate + 1;
			return true;
		}
	}
	if (!grow())
		return false;
	*index = next_slot++;
	return true;
}

int verbs_object_enter(struct verbs_object *o, enum verbs_object_kind kind)
{
	uint32_t index;
	int error = ENOMEM;

	verbs_objects_lock();
	if (find_free(&index)) {
		o->kind = kind;
		o->id = (uint64_t)++generation << 32 | index;
		slot[index] = o;
		error = 0;
	}
	verbs_objects_unlock();
	return error;
}

void verbs_object_leave(struct verbs_object *o)
{
	verbs_objects_lock();
	if (o->id != 0)
		slot[(uint32_t)o->id] = NULL;
	o->id = 0;
	verbs_objects_unlock();
}

struct verbs_object *verbs_object_find(uint64_t id, enum verbs_object_kind kind)
{
	uint32_t index = (uint32_t)id;
	struct verbs_object *o = index < slots ? slot[index] : NULL;

	return o != NULL && o->id == id && o->kind == kind ? o : NULL;
}

void verbs_objects_each(enum verbs_object_kind kind,
			void (*visit)(struct verbs_object *o, void *argument), void *argument)
{
	for (uint32_t i = 0; i < slots; i++) {
		if (slot[i] != NULL && slot[i]->kind == kind)
			visit(slot[i], argument);
	}
}
