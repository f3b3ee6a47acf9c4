/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/left.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "drivers/log.h"

#define BUCKETS 256u

struct left_file {
	struct user *user;
	int number; /* of the watch: one for each file, even if several users register it */
	uint64_t octets;
	LIST_ENTRY(left_file) link;
};

struct left_files {
	struct watch watch; /* inotify */
	struct engine *engine;
	LIST_HEAD(, left_file) all[BUCKETS]; /* by number */
};

static struct left_files *of(const struct engine *e)
{
	return e->control->left;
}

static void forget(struct engine *e, struct left_file *f)
{
	struct users *all = &e->control->users;

	left_take(e, f);
	user_give(all, f->user, RESOURCE_WATCHES, 1);
	user_drop(f->user);
	LIST_REMOVE(f, link);
	free(f);
}

/* The file is gone: nothing maps it, so no region has the record. */
static void file_gone(struct engine *e, int number)
{
	struct left_file *f = LIST_FIRST(&of(e)->all[(uint32_t)number % BUCKETS]), *next;

	for (; f != NULL; f = next) {
		next = LIST_NEXT(f, link);
		if (f->number == number)
			forget(e, f);
	}
}

/*
 * LIMIT_ENGINE_WATCHES is less than half of the events that Linux queues by default. If an
 * administrator has lowered that number, a lost event leaves a user charged until the engine ends.
 */
static void files_gone(struct watch *w, uint32_t events)
{
	struct left_files *l = container_of_type(w, struct left_files, watch);
	char text[4096] __attribute__((aligned(8)));
	ssize_t n = read(w->fd, text, sizeof(text));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *event = (const void *)(text + at);

		if ((event->mask & IN_IGNORED) != 0)
			file_gone(l->engine, event->wd);
		at += (ssize_t)(sizeof(*event) + event->len);
	}
}

void left_open(struct engine *e)
{
	struct left_files *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return;
	l->engine = e;
	l->watch.ready = files_gone;
	l->watch.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (l->watch.fd >= 0 && watch_add(e, &l->watch) == 0) {
		e->control->left = l;
		return;
	}
	LOG(WARNING,
	    "inotify is not available: pages of files that programs keep count for no user");
	if (l->watch.fd >= 0)
		close(l->watch.fd);
	free(l);
}

void left_close(struct engine *e)
{
	struct left_files *l = of(e);
	struct left_file *f;

	if (l == NULL)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++)
		while ((f = LIST_FIRST(&l->all[i])) != NULL)
			forget(e, f);
	watch_remove(e, &l->watch);
	free(l);
	e->control->left = NULL;
}

static struct left_file *find(const struct left_files *l, const struct user *u, int number)
{
	struct left_file *f;

	LIST_FOREACH(f, &l->all[(uint32_t)number % BUCKETS], link)
	if (f->number == number && f->user == u)
		return f;
	return NULL;
}

static struct left_file *add(struct engine *e, struct user *u, int number)
{
	struct left_file *f = calloc(1, sizeof(*f));

	if (f == NULL || !user_take(&e->control->users, u, RESOURCE_WATCHES, 1)) {
		free(f);
		return NULL;
	}
	f->user = user_hold(u);
	f->number = number;
	LIST_INSERT_HEAD(&of(e)->all[(uint32_t)number % BUCKETS], f, link);
	return f;
}

/* Whether any user has the file of that watch. */
static bool is_used(const struct left_files *l, int number)
{
	const struct left_file *f;

	LIST_FOREACH(f, &l->all[(uint32_t)number % BUCKETS], link)
	if (f->number == number)
		return true;
	return false;
}

struct left_file *left_find(struct engine *e, struct user *u, int fd)
{
	struct left_file *f;
	char path[64];
	int number;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	number = inotify_add_watch(of(e)->watch.fd, path, IN_DELETE_SELF);
	if (number < 0)
		return NULL;
	f = find(of(e), u, number);
	if (f == NULL)
		f = add(e, u, number);
	if (f == NULL && !is_used(of(e), number))
		inotify_rm_watch(of(e)->watch.fd, number);
	return f;
}

uint64_t left_take(struct engine *e, struct left_file *f)
{
	uint64_t octets = f->octets;

	user_give(&e->control->users, f->user, RESOURCE_FILES, octets);
	f->octets = 0;
	return octets;
}

void left_keep(struct engine *e, struct left_file *f, uint64_t octets)
{
	user_charge(&e->control->users, f->user, RESOURCE_FILES, octets);
	f->octets += octets;
}
