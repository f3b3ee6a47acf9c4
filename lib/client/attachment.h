/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attachments of this process to engines. There is one for each engine; all contexts of the
 * engine share it, and it ends with the last of them. Embedded engines are registered here, too.
 * (The engine calls an attached process its client.)
 */
#ifndef CLIENT_ATTACHMENT_H
#define CLIENT_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/carrier.h"
#include "client/locate.h"

/* How an engine is reached. */
struct engine_source {
	char embedded[32]; /* name of a registered device; "": reached by socket */
	char path[LOCATE_PATH];
	/* another process named the path: trusted if root or this user listens there */
	bool passed_on;
};

enum attachment_promotion {
	PROMOTION_NOT_ASKED,
	PROMOTION_YES,
	PROMOTION_NO,
};

struct attachment {
	struct carrier *carrier;
	struct engine_source source;
	uint32_t references;
	bool stale; /* it is the parent's, and this process the child of a fork */
	uint32_t promotion; /* enum attachment_promotion */
	struct attachment *next;
};

/* Calls `found` for each engine that answers, embedded ones first. Any thread, as all of these. */
void attachment_each_engine(void (*found)(const struct engine_source *source,
					  const struct reply_device *facts, void *argument),
			    void *argument);

/* Asks for the facts of one engine's device without attaching. 0 or an errno. */
int attachment_query_engine(const struct engine_source *source, struct reply_device *out);

/*
 * The attachment of this process to that engine, made if there is none yet. Takes a reference,
 * which attachment_put gives back. 0 or an errno.
 */
int attachment_get(const struct engine_source *source, uint64_t engine_id, struct attachment **out);
void attachment_put(struct attachment *c);

/*
 * One command, as carrier_ops.command; never a cancellation point. `out` NULL: descriptors that
 * come with the reply are not expected. ENODEV once the engine is gone, and in the child of a fork.
 */
int attachment_command(struct attachment *c, enum command what, struct command_request *request,
		       size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		       const struct carrier_descriptors *in, struct carrier_descriptors *out);

/* One command without an answer, as carrier_ops.post; never a cancellation point. */
int attachment_post(struct attachment *c, enum command what, struct command_request *request,
		    size_t request_bytes);

/*
 * Whether registered memory of this program can be promoted (drivers/client_memory/promote.h).
 * Decided once, with the first registration.
 */
bool attachment_promotes(struct attachment *c);

/* A command that names one object by its handle and returns only an error. */
int attachment_command_handle(struct attachment *c, enum command what, uint32_t handle);

static inline bool attachment_gone(const struct attachment *c)
{
	return c->stale || c->carrier->ops->gone(c->carrier);
}

/* An event descriptor of the engine has reached end of file. */
static inline void attachment_ended(struct attachment *c)
{
	if (!c->stale && c->carrier->ops->ended != NULL)
		c->carrier->ops->ended(c->carrier);
}

/* The address of an offset in the arena. */
static inline void *attachment_at(const struct attachment *c, uint64_t offset)
{
	return (char *)c->carrier->arena + offset;
}

/* Sets what lib/verbs does with the parent's objects in the child of a fork. */
void attachment_at_fork(void (*child)(void));

#endif
