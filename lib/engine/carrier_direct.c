/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The carrier of a program that embeds the engine: commands are direct calls under control_lock,
 * the queues are in an arena of plain memory, and all registered memory is direct. Dedicated
 * threads (uroce_start) or the program itself (uroce_poll) poll the engine's lcores. Empty polls of
 * a CQ yield, so that a polling thread on the same core can run.
 *
 * libibverbs.so.1 is not linked; its functions are found by name in whatever libibverbs.so.1 the
 * program loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "drivers/node.h"
#include "engine/carrier_direct.h"

struct carrier_direct {
	struct carrier carrier; /* first */
	LIST_ENTRY(carrier_direct) link; /* carriers, under carriers_lock */
	struct client *client;
	struct engine
		*engine; /* NULL: it was destroyed. Atomic, as direct_gone() looks at any time. */
	struct arena *arena; /* ours, as the carrier's wake_fd, once the engine was destroyed */
	uint32_t empty_polls;
};

static LIST_HEAD(, carrier_direct) carriers;
static pthread_mutex_t carriers_lock = PTHREAD_MUTEX_INITIALIZER;

/* Waits while a thread of the program closes a context, as a connection is not read meanwhile. */
static void await_turn(struct engine *e, const struct client *c)
{
	while (c != NULL && c->objects->closing) {
		pthread_mutex_unlock(&e->control_lock);
		usleep(100);
		pthread_mutex_lock(&e->control_lock);
	}
}

static void execute(struct engine *e, struct client *c, struct call *call, enum command what,
		    struct command_request *request, size_t request_bytes)
{
	request->magic = COMMAND_MAGIC;
	request->version = COMMAND_VERSION;
	request->command = (uint16_t)what;
	request->length = (uint32_t)request_bytes;
	request->sequence = 0;
	call->engine = e;
	call->client = c;
	call->request = request;
	call->length = request_bytes;
	pthread_mutex_lock(&e->control_lock);
	await_turn(e, c);
	command_execute(call);
	if (call->finish != NULL)
		call_wait(call);
	pthread_mutex_unlock(&e->control_lock);
}

/* As over the socket, the engine gets descriptors of its own. */
static bool take_copies(struct carrier_descriptors *to, const struct carrier_descriptors *from)
{
	for (uint32_t i = 0; i < from->count; i++) {
		int fd = fcntl(from->fd[i], F_DUPFD_CLOEXEC, 0);

		if (fd < 0) {
			while (to->count > 0)
				close(to->fd[--to->count]);
			return false;
		}
		to->fd[to->count++] = fd;
	}
	return true;
}

static bool direct_gone(struct carrier *carrier)
{
	struct carrier_direct *d = container_of_type(carrier, struct carrier_direct, carrier);

	return __atomic_load_n(&d->engine, __ATOMIC_ACQUIRE) == NULL;
}

static int direct_command(struct carrier *carrier, enum command what,
			  struct command_request *request, size_t request_bytes,
			  struct command_reply *reply, size_t reply_bytes,
			  const struct carrier_descriptors *in, struct carrier_descriptors *out)
{
	struct carrier_direct *d = container_of_type(carrier, struct carrier_direct, carrier);
	struct call call = { 0 };

	if (direct_gone(carrier))
		return ENODEV;
	if (in != NULL && !take_copies(&call.in, in))
		return EMFILE;
	execute(d->engine, d->client, &call, what, request, request_bytes);
	memset(reply, 0, reply_bytes);
	memcpy(reply, call.reply_octets, MIN_OF(reply_bytes, call.reply_length));
	if (out != NULL) {
		*out = call.out;
		call.out.count = 0;
	}
	call_close_descriptors(&call);
	return call.reply.error;
}

static int direct_post(struct carrier *carrier, enum command what, struct command_request *request,
		       size_t request_bytes)
{
	struct reply_empty reply;
	int error = direct_command(carrier, what, request, request_bytes, &reply.h, sizeof(reply),
				   NULL, NULL);

	return error == ENODEV && direct_gone(carrier) ? ENODEV : 0;
}

static bool polled_by_threads(const struct engine *e)
{
	return __atomic_load_n(&e->control->polled, __ATOMIC_RELAXED) != 0;
}

static void direct_empty_poll(struct carrier *carrier)
{
	struct carrier_direct *d = container_of_type(carrier, struct carrier_direct, carrier);

	/*
	 * A program that polls the engine itself does that next. Dedicated threads may share this
	 * core.
	 */
	if (!direct_gone(carrier) && polled_by_threads(d->engine) &&
	    ++d->empty_polls % LIMIT_DIRECT_POLLS == 0)
		sched_yield();
}

static void direct_release(struct carrier *carrier)
{
	struct carrier_direct *d = container_of_type(carrier, struct carrier_direct, carrier);
	struct engine *e;

	pthread_mutex_lock(&carriers_lock);
	LIST_REMOVE(d, link);
	e = d->engine;
	if (e != NULL) {
		pthread_mutex_lock(&e->control_lock);
		client_leave(d->client);
		pthread_mutex_unlock(&e->control_lock);
	} else {
		for (uint32_t i = 0; i < d->carrier.lcores; i++)
			close(d->carrier.wake_fd[i]);
		arena_destroy(d->arena);
	}
	pthread_mutex_unlock(&carriers_lock);
	free(d);
}

/* From here on no call enters the engine; verbs objects can still read their data in the arena. */
static void orphan(struct carrier_direct *d)
{
	d->arena = d->client->arena;
	d->client->objects->orphan = true;
	__atomic_store_n(&d->client->page->closed, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&d->engine, NULL, __ATOMIC_RELEASE);
}

void carrier_direct_orphan(struct engine *e)
{
	struct carrier_direct *d;

	pthread_mutex_lock(&carriers_lock);
	LIST_FOREACH(d, &carriers, link)
	if (d->engine == e)
		orphan(d);
	pthread_mutex_unlock(&carriers_lock);
}

static const struct carrier_ops direct_ops = {
	.command = direct_command,
	.post = direct_post,
	.empty_poll = direct_empty_poll,
	.gone = direct_gone,
	.release = direct_release,
};

static int direct_device(void *engine, struct reply_device *out)
{
	struct request_empty request;
	struct call call = { 0 };

	execute(engine, NULL, &call, COMMAND_DEVICE, &request.h, sizeof(request));
	memcpy(out, call.reply_octets, sizeof(*out));
	return call.reply.error;
}

static void fill_carrier(struct carrier_direct *d)
{
	struct client *c = d->client;
	struct carrier *carrier = &d->carrier;

	carrier->ops = &direct_ops;
	carrier->arena = arena_base(c->arena);
	carrier->page = c->page;
	carrier->client = c->number;
	carrier->lcores = c->engine->lcores;
	carrier->engine_id = c->engine->id;
	carrier->embedded = true;
	for (uint32_t i = 0; i < c->engine->lcores; i++) {
		carrier->bell[i] = arena_at(c->arena, c->objects->bell_offset[i]);
		carrier->wake_fd[i] = c->objects->wake_fd[i];
	}
}

static int direct_attach(void *engine, struct carrier **out)
{
	struct engine *e = engine;
	struct carrier_direct *d = calloc(1, sizeof(*d));
	struct arena *arena = arena_create_private();
	int error = ENOMEM;

	if (d == NULL || arena == NULL) {
		free(d);
		if (arena != NULL)
			arena_destroy(arena);
		return ENOMEM;
	}
	d->engine = e;
	if (e->port != NULL)
		node_place(arena_base(arena), LIMIT_ARENA_BYTES, e->port->node);
	pthread_mutex_lock(&e->control_lock);
	d->client = client_create(e, arena, geteuid(), true, &error);
	if (d->client != NULL)
		client_start(d->client);
	pthread_mutex_unlock(&e->control_lock);
	if (d->client == NULL) {
		free(d);
		return error;
	}
	fill_carrier(d);
	pthread_mutex_lock(&carriers_lock);
	LIST_INSERT_HEAD(&carriers, d, link);
	pthread_mutex_unlock(&carriers_lock);
	*out = &d->carrier;
	return 0;
}

int carrier_direct_register(struct engine *e)
{
	int (*enter)(const struct carrier_device *) = NULL;
	struct carrier_device device = { e->name, direct_device, direct_attach, e };
	void *symbol = dlsym(RTLD_DEFAULT, "uroce_register_carrier");
	int error;

	if (e->control->registered)
		return EEXIST;
	if (symbol == NULL)
		return ENOENT; /* no libibverbs.so.1 in this process, or not uroce's */
	memcpy(&enter, &symbol, sizeof(enter));
	error = enter(&device);
	e->control->registered = error == 0;
	return error;
}

void carrier_direct_unregister(struct engine *e)
{
	int (*leave)(const char *) = NULL;
	void *symbol = dlsym(RTLD_DEFAULT, "uroce_unregister_carrier");

	if (!e->control->registered || symbol == NULL)
		return;
	memcpy(&leave, &symbol, sizeof(leave));
	leave(e->name);
	e->control->registered = false;
}
