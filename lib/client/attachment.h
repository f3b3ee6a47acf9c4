/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * This process as a client of engines: one carrier per engine, shared by all contexts, ended with
 * the last of them. Registered (embedded) engines are found here too.
 */
#ifndef CLIENT_ATTACHMENT_H
#define CLIENT_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/carrier.h"
#include "client/locate.h"

/* How an engine is reached. */
struct engine_source {
	char embedded[32]; /* name of a registered device; "": by socket */
	char path[LOCATE_PATH];
	bool passed_on; /* somebody told us: believed if the superuser or we ourselves listen there */
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
	bool stale; /* the parent's: this process is a fork's child */
	uint32_t promotion; /* enum attachment_promotion */
	struct attachment *next;
};

/* Calls `found` for each engine that answers, embedded ones first. */
void attachment_each_engine(void (*found)(const struct engine_source *source,
					  const struct reply_device *facts, void *argument),
			    void *argument);

/* Facts of one engine, asked without attaching. 0 or an errno. */
int attachment_query_engine(const struct engine_source *source, struct reply_device *out);

/* The process's client of that engine, attached if need be; takes a reference. 0 or an errno. */
int attachment_get(const struct engine_source *source, uint64_t engine_id, struct attachment **out);
void attachment_put(struct attachment *c);

/* One command; ENODEV once the engine is gone or after a fork. */
int attachment_command(struct attachment *c, enum command what, struct command_request *request,
		       size_t request_bytes, struct command_reply *reply, size_t reply_bytes,
		       const struct carrier_descriptors *in, struct carrier_descriptors *out);

/*
 * Whether this program's pages can move to where the engine maps them
 * (drivers/client_memory/promote.h). Asked once, with the first registration.
 */
bool attachment_promotes(struct attachment *c);

/* A command that names one object and wants no answer but the error. */
int attachment_command_handle(struct attachment *c, enum command what, uint32_t handle);

static inline bool attachment_gone(const struct attachment *c)
{
	return c->stale || c->carrier->ops->gone(c->carrier);
}

/* A descriptor whose other end the engine held has ended. */
static inline void attachment_ended(struct attachment *c)
{
	if (!c->stale && c->carrier->ops->ended != NULL)
		c->carrier->ops->ended(c->carrier);
}

static inline void *attachment_at(const struct attachment *c, uint64_t offset)
{
	return (char *)c->carrier->arena + offset;
}

/* What lib/verbs does to the parent's objects in the child of a fork. */
void attachment_at_fork(void (*child)(void));

#endif
