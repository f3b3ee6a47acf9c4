/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/loading.h"
#include "queue/cancel.h"
#include "client/carrier_socket.h"
#include "client/attachment.h"
#include "client/log.h"
#include "client/verbs_object.h"
#include "drivers/client_memory/promote.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t promotion_lock = PTHREAD_MUTEX_INITIALIZER;
static struct attachment *attachments;
static struct carrier_device embedded[LIMIT_EMBEDDED_ENGINES];
static uint32_t embedded_count;
static void (*fork_child)(void);
static bool forking; /* under `lock` */

int __attribute__((visibility("default")))
uroce_register_carrier(const struct carrier_device *device)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < embedded_count; i++) {
		if (strcmp(embedded[i].name, device->name) == 0)
			error = EEXIST;
	}
	if (error == 0 && embedded_count == LIMIT_EMBEDDED_ENGINES)
		error = ENOSPC;
	if (error == 0)
		embedded[embedded_count++] = *device;
	pthread_mutex_unlock(&lock);
	return error;
}

int __attribute__((visibility("default"))) uroce_unregister_carrier(const char *name)
{
	int error = ENOENT;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < embedded_count; i++) {
		if (strcmp(embedded[i].name, name) == 0) {
			embedded[i] = embedded[--embedded_count];
			error = 0;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return error;
}

static bool find_embedded(const char *name, struct carrier_device *out)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < embedded_count && !found; i++) {
		if (strcmp(embedded[i].name, name) == 0) {
			*out = embedded[i];
			found = true;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

static int query(const struct engine_source *source, struct reply_device *out)
{
	struct carrier_device device;

	if (source->embedded[0] == '\0')
		return carrier_socket_query(source->path, out);
	return find_embedded(source->embedded, &device) ? device.device(device.engine, out)
							: ENODEV;
}

int attachment_query_engine(const struct engine_source *source, struct reply_device *out)
{
	int cancel = cancel_off(), error = query(source, out);

	cancel_restore(cancel);
	return error;
}

static uint32_t copy_embedded_names(char names[][32])
{
	uint32_t n;

	pthread_mutex_lock(&lock);
	n = embedded_count;
	for (uint32_t i = 0; i < n; i++)
		strncpy(names[i], embedded[i].name, 31);
	pthread_mutex_unlock(&lock);
	return n;
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&promotion_lock);
	verbs_objects_lock();
	forking = true;
}

/* An engine that is gone does not use the file any more. */
static bool leave_promoted_of(struct attachment *c, uint32_t leaves)
{
	struct request_leave_promoted request = { .leaves = leaves };
	struct reply_empty reply;

	if (c->stale || c->promotion != PROMOTION_YES)
		return true;
	return attachment_command(c, COMMAND_LEAVE_PROMOTED, &request.h, sizeof(request), &reply.h,
				  sizeof(reply), NULL, NULL) == 0 ||
	       attachment_gone(c);
}

/*
 * Called between before_fork and the fork, in the same thread. A fork that began before this library
 * was loaded does not have the locks.
 */
static bool leave_promoted(uint32_t leaves)
{
	bool left = forking;

	for (struct attachment *c = attachments; left && c != NULL; c = c->next)
		left = leave_promoted_of(c, leaves);
	client_info("registered memory is %s before a fork",
		    left ? "taken back from the engine" : "still in use by the engine");
	return left;
}

static void after_fork_parent(void)
{
	forking = false;
	verbs_objects_unlock();
	pthread_mutex_unlock(&promotion_lock);
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	forking = false;
	for (struct attachment *c = attachments; c != NULL; c = c->next) {
		c->stale = true;
		if (c->source.embedded[0] == '\0')
			carrier_socket_abandon(c->carrier);
	}
	if (fork_child != NULL)
		fork_child();
	verbs_objects_unlock();
	pthread_mutex_unlock(&promotion_lock);
	pthread_mutex_unlock(&lock);
}

static AT_LOAD(LOAD_ATTACHMENTS) void prepare_for_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	promote_before_fork(leave_promoted);
}

void attachment_each_engine(void (*found)(const struct engine_source *source,
					  const struct reply_device *facts, void *argument),
			    void *argument)
{
	char names[LIMIT_EMBEDDED_ENGINES][32] = { 0 };
	struct engine_source source;
	struct reply_device facts;
	struct locations where;
	uint32_t n;

	n = copy_embedded_names(names);
	for (uint32_t i = 0; i < n; i++) {
		memset(&source, 0, sizeof(source));
		memcpy(source.embedded, names[i], sizeof(source.embedded));
		if (attachment_query_engine(&source, &facts) == 0)
			found(&source, &facts, argument);
	}
	locate_engines(&where);
	for (uint32_t i = 0; i < where.count; i++) {
		memset(&source, 0, sizeof(source));
		memcpy(source.path, where.path[i], sizeof(source.path));
		if (attachment_query_engine(&source, &facts) != 0)
			continue;
		found(&source, &facts, argument);
		return;
	}
	if (n == 0)
		client_info("no engine answers, so there is no device");
}

void attachment_at_fork(void (*child)(void))
{
	__atomic_store_n(&fork_child, child, __ATOMIC_RELAXED);
}

static struct attachment *find_attachment(const struct engine_source *source, uint64_t engine_id)
{
	for (struct attachment *c = attachments; c != NULL; c = c->next) {
		if (strcmp(c->source.path, source->path) == 0 &&
		    strcmp(c->source.embedded, source->embedded) == 0 &&
		    c->carrier->engine_id == engine_id && !attachment_gone(c))
			return c;
	}
	return NULL;
}

static int attach_carrier(const struct engine_source *source, struct carrier **out)
{
	if (source->embedded[0] == '\0')
		return carrier_socket_attach(source->path, source->passed_on, out);
	for (uint32_t i = 0; i < embedded_count; i++) {
		if (strcmp(embedded[i].name, source->embedded) == 0)
			return embedded[i].attach(embedded[i].engine, out);
	}
	return ENODEV;
}

static int new_attachment(const struct engine_source *source, struct attachment **out)
{
	struct attachment *c = calloc(1, sizeof(*c));
	int error;

	if (c == NULL)
		return ENOMEM;
	c->source = *source;
	error = attach_carrier(source, &c->carrier);
	if (error != 0) {
		free(c);
		return error;
	}
	c->next = attachments;
	attachments = c;
	*out = c;
	return 0;
}

int attachment_get(const struct engine_source *source, uint64_t engine_id, struct attachment **out)
{
	int error = 0, cancel = cancel_off();

	pthread_mutex_lock(&lock);
	*out = find_attachment(source, engine_id);
	if (*out == NULL)
		error = new_attachment(source, out);
	if (error == 0)
		(*out)->references++;
	pthread_mutex_unlock(&lock);
	cancel_restore(cancel);
	return error;
}

static void release(struct attachment *c)
{
	int cancel = cancel_off();

	/* In a fork's child the carrier of an embedded engine still belongs to the parent. */
	if (!c->stale || c->source.embedded[0] == '\0')
		c->carrier->ops->release(c->carrier);
	free(c);
	cancel_restore(cancel);
}

void attachment_put(struct attachment *c)
{
	struct attachment **link;
	bool last;

	pthread_mutex_lock(&lock);
	last = --c->references == 0;
	if (last) {
		for (link = &attachments; *link != c; link = &(*link)->next)
			;
		*link = c->next;
	}
	pthread_mutex_unlock(&lock);
	if (last)
		release(c);
}

int attachment_command(struct attachment *c, enum command what, struct command_request *request,
		       size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		       const struct carrier_descriptors *in, struct carrier_descriptors *out)
{
	struct carrier_descriptors none = { 0 };
	int error, cancel;

	if (c->stale)
		return ENODEV;
	cancel = cancel_off();
	error = c->carrier->ops->command(c->carrier, what, request, request_bytes, reply,
					 reply_bytes, in, out != NULL ? out : &none);
	cancel_restore(cancel);
	return error;
}

int attachment_post(struct attachment *c, enum command what, struct command_request *request,
		    size_t request_bytes)
{
	int error, cancel;

	if (c->stale)
		return ENODEV;
	cancel = cancel_off();
	error = c->carrier->ops->post(c->carrier, what, request, request_bytes);
	cancel_restore(cancel);
	return error;
}

int attachment_command_handle(struct attachment *c, enum command what, uint32_t handle)
{
	struct request_handle request = { .handle = handle };
	struct reply_empty reply;

	return attachment_command(c, what, &request.h, sizeof(request), &reply.h, sizeof(reply),
				  NULL, NULL);
}

static uint32_t pass_promoted_file(struct attachment *c, int fd)
{
	struct carrier_descriptors file = { .count = 1, .fd = { fd } };
	struct request_empty request = { 0 };
	struct reply_empty reply;
	int error;

	if (fd < 0)
		return PROMOTION_NO;
	error = attachment_command(c, COMMAND_PROMOTED_FILE, &request.h, sizeof(request), &reply.h,
				   sizeof(reply), &file, NULL);
	return error == 0 ? PROMOTION_YES : PROMOTION_NO;
}

/*
 * Acquire and release: a thread that reads YES without the lock sees what made it so. Only threads
 * of this program share the word, so it is not in lib/queue.
 */
bool attachment_promotes(struct attachment *c)
{
	uint32_t answer = __atomic_load_n(&c->promotion, __ATOMIC_ACQUIRE);
	int fd;

	if (c->stale)
		return false; /* no registration would succeed */
	if (answer != PROMOTION_NOT_ASKED)
		return answer == PROMOTION_YES;
	/* Before our lock is taken: promotion has its own lock, and fork handlers take both. */
	fd = promote_file();
	pthread_mutex_lock(&promotion_lock);
	if (c->promotion == PROMOTION_NOT_ASKED)
		__atomic_store_n(&c->promotion, pass_promoted_file(c, fd), __ATOMIC_RELEASE);
	answer = c->promotion;
	pthread_mutex_unlock(&promotion_lock);
	return answer == PROMOTION_YES;
}
