/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/backing.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "control/share/left.h"

#define PAGE UINT64_C(4096)

/*
 * A larger file is mapped only in the parts that regions need. The promoted pages' file is such a
 * file.
 */
#define WHOLE_MOST (UINT64_C(64) << 30)

static bool take_map(struct account *a, uint64_t octets)
{
	if (!account_take(a, RESOURCE_MAPPINGS, 1))
		return false;
	if (account_take(a, RESOURCE_ADDRESSES, octets))
		return true;
	account_give(a, RESOURCE_MAPPINGS, 1);
	return false;
}

static void give_map(struct account *a, uint64_t octets)
{
	account_give(a, RESOURCE_MAPPINGS, 1);
	account_give(a, RESOURCE_ADDRESSES, octets);
}

static struct backing_file *file_open(struct client *c, int fd, const struct direct_file *what,
				      uint64_t offset, uint64_t length, bool writable)
{
	struct account *a = &c->objects->account;
	struct backing_file *f = calloc(1, sizeof(*f));

	if (f == NULL)
		return NULL;
	if (c->engine->control->left != NULL && !c->embedded) {
		f->left = left_find(c->engine, a->user, fd);
		if (f->left == NULL) {
			free(f);
			return NULL;
		}
	}
	if (!take_map(a, length)) {
		free(f);
		return NULL;
	}
	if (direct_open(&f->map, fd, offset, length, writable) != 0) {
		give_map(a, length);
		free(f);
		return NULL;
	}
	f->device = what->device;
	f->inode = what->inode;
	f->writable = writable;
	f->whole = length == what->size;
	LIST_INSERT_HEAD(&c->objects->files[f->inode % BACKING_BUCKETS], f, link);
	return f;
}

/* This may free the file's pages, if it is the last reference. */
static void file_unmap(void *arg)
{
	struct backing_file *f = arg;

	direct_close(&f->map);
	free(f);
}

static void file_drop(struct client *c, struct backing_file *f)
{
	struct account *a = &c->objects->account;

	if (f->users > 0)
		return;
	LIST_REMOVE(f, link);
	account_give(a, RESOURCE_FILES, f->counted);
	if (f->left != NULL)
		left_keep(c->engine, f->left, f->counted);
	give_map(a, f->map.length);
	dispose(&c->engine->control->disposal, file_unmap, f);
}

static struct backing_file *file_find(struct client *c, const struct direct_file *what,
				      uint64_t offset, uint64_t length, bool writable)
{
	struct backing_file *f;

	LIST_FOREACH(f, &c->objects->files[what->inode % BACKING_BUCKETS], link)
	if (f->device == what->device && f->inode == what->inode && (f->writable || !writable) &&
	    direct_at(&f->map, offset, length) != NULL)
		return f;
	return NULL;
}

/* Maps the whole file, so that other regions can use the mapping, unless it is large. */
static struct backing_file *file_provide(struct client *c, int fd, const struct direct_file *what,
					 uint64_t offset, uint64_t length, bool writable)
{
	struct backing_file *f = file_find(c, what, offset, length, writable);
	uint64_t into = offset % PAGE;

	if (f != NULL || !range_inside(offset, length, what->size))
		return f;
	if (what->size <= WHOLE_MOST)
		return file_open(c, fd, what, 0, what->size, writable);
	return file_open(c, fd, what, offset - into, length + into, writable);
}

/* The octets that the file has, or may get, with that many octets registered in this part. */
static uint64_t holds(const struct backing_file *f, const struct direct_file *what,
		      uint64_t registered)
{
	uint64_t allocated = f->whole ? what->allocated : 0;

	return MIN_OF(MAX_OF(registered, allocated), f->map.length);
}

/* Charges what the file then holds. False: that exceeds the limit. */
static bool file_charge(struct client *c, struct backing_file *f, const struct direct_file *what,
			uint64_t registered)
{
	uint64_t counted = holds(f, what, registered);
	struct account *a = &c->objects->account;

	if (what->allocated > a->users->of_program[RESOURCE_FILES])
		return false;
	if (counted > f->counted) {
		if (!account_take(a, RESOURCE_FILES, counted - f->counted))
			return false;
	} else {
		account_give(a, RESOURCE_FILES, f->counted - counted);
	}
	f->counted = counted;
	return true;
}

/* Adds a region to the file. False: the file would exceed the limit. */
static bool file_enter(struct client *c, struct backing_file *f, const struct direct_file *what,
		       uint64_t octets, struct backing_use *use)
{
	uint64_t left = f->left != NULL ? left_take(c->engine, f->left) : 0;
	bool enters = file_charge(c, f, what, f->registered + octets);

	/*
	 * At most the octets that the file holds now. If the whole file is mapped, they are already
	 * counted.
	 */
	if (f->left != NULL && !(enters && f->whole))
		left_keep(c->engine, f->left, MIN_OF(left, what->allocated));
	if (!enters)
		return false;
	f->registered += octets;
	f->users++;
	*use = (struct backing_use){ f, octets };
	return true;
}

bool backing_use(struct client *c, int fd, uint64_t offset, uint64_t length, bool writable,
		 struct backing_use *use, uint8_t **at)
{
	struct direct_file what;
	struct backing_file *f;

	if (direct_look(fd, &what) != 0)
		return false;
	f = file_provide(c, fd, &what, offset, length, writable);
	if (f == NULL)
		return false;
	*at = direct_at(&f->map, offset, length);
	if (*at != NULL && file_enter(c, f, &what, length, use))
		return true;
	file_drop(c, f);
	return false;
}

void backing_leave(struct client *c, const struct backing_use *use)
{
	use->file->registered -= use->octets;
	use->file->users--;
	file_drop(c, use->file);
}

static bool maps_promoted(const struct client_objects *o, const struct backing_file *f,
			  const void *at)
{
	return f->inode == o->promoted_inode && f->device == o->promoted_device &&
	       (uintptr_t)at - (uintptr_t)f->map.base < f->map.length;
}

bool backing_use_is_promoted(const struct client *c, const struct backing_use *use, const void *at)
{
	return maps_promoted(c->objects, use->file, at);
}

bool backing_maps_promoted(const struct client *c, const void *at)
{
	const struct client_objects *o = c->objects;
	const struct backing_file *f;

	LIST_FOREACH(f, &o->files[o->promoted_inode % BACKING_BUCKETS], link)
	if (maps_promoted(o, f, at))
		return true;
	return false;
}

int backing_promote(struct client *c, int fd)
{
	struct direct_file what;
	int error = direct_look(fd, &what);

	if (error != 0)
		return error;
	if (!account_take(&c->objects->account, RESOURCE_DESCRIPTORS, 1))
		return ENOMEM;
	c->objects->promoted = fd;
	c->objects->promoted_device = what.device;
	c->objects->promoted_inode = what.inode;
	return 0;
}

void backing_close(struct client *c)
{
	if (c->objects->promoted < 0)
		return;
	dispose_descriptor(&c->engine->control->disposal, c->objects->promoted);
	account_give(&c->objects->account, RESOURCE_DESCRIPTORS, 1);
	c->objects->promoted = -1;
}
