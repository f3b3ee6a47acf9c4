/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port spaces. Each has its own 65535 ports, which ids bind as sockets do (bind(2)). A connection
 * that a listener accepted shares the listener's port and is not counted.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "control/cm/cm_manager.h"
#include "control/commands/raw_control.h"

#define PRIVILEGED_BELOW     1024u
#define CAP_NET_BIND_SERVICE 10u
/* The range of Linux (ip_local_port_range). */

static struct cm_id_list *bucket_of(const struct engine *e, uint16_t space, uint16_t port)
{
	uint32_t h = ((uint32_t)space << 16 | port) * 0x9e3779b1u;

	return &e->control->cm->ports[h >> 20];
}

static bool addresses_meet(const struct cm_id *a, const struct cm_id *b)
{
	bool any_a = cm_address_is_any(&a->source), any_b = cm_address_is_any(&b->source);

	if (a->source.family != b->source.family && (a->family_only || b->family_only))
		return false;
	if (any_a || any_b)
		return a->source.family == b->source.family || (any_a && a->source.family == 6) ||
		       (any_b && b->source.family == 6);
	return gid_equal(&a->source.ip, &b->source.ip);
}

/* Whether another id on this port conflicts with this one. */
static bool is_taken(const struct engine *e, const struct cm_id *id, uint16_t port, bool reuse)
{
	const struct cm_id *other;

	LIST_FOREACH(other, bucket_of(e, id->space, port), port_link)
	{
		if (other == id || other->space != id->space || other->source.port != port)
			continue;
		if (reuse && other->reuse_address && other->state != CM_ID_LISTENING)
			continue;
		if (addresses_meet(id, other))
			return true;
	}
	return false;
}

/* Searches from a random port on, so that a freed port is not reused at once. 0: none is free. */
static uint16_t free_port(const struct engine *e, const struct cm_id *id)
{
	uint32_t start = 0;

	if (getrandom(&start, sizeof(start), 0) != sizeof(start))
		start = id->handle;
	for (uint32_t i = 0; i < LIMIT_CM_PORTS; i++) {
		uint32_t port = LIMIT_CM_PORT_FIRST + (start + i) % LIMIT_CM_PORTS;

		if (!is_taken(e, id, (uint16_t)port, false))
			return (uint16_t)port;
	}
	return 0;
}

int cm_port_take(struct engine *e, struct cm_id *id)
{
	uint16_t port = id->source.port;

	if (port == 0) {
		port = free_port(e, id);
		if (port == 0)
			return EADDRNOTAVAIL;
	} else if (port < PRIVILEGED_BELOW &&
		   !client_has_capability(id->client, CAP_NET_BIND_SERVICE)) {
		return EACCES;
	} else if (is_taken(e, id, port, id->reuse_address)) {
		return EADDRINUSE;
	}
	id->source.port = port;
	LIST_INSERT_HEAD(bucket_of(e, id->space, port), id, port_link);
	id->has_port = true;
	return 0;
}

void cm_port_release(struct cm_id *id)
{
	if (id->has_port)
		LIST_REMOVE(id, port_link);
	id->has_port = false;
}

int cm_port_check_listen(const struct engine *e, const struct cm_id *id)
{
	return is_taken(e, id, id->source.port, id->reuse_address) ? EADDRINUSE : 0;
}

/* How closely a listener matches: more if it names more of the address. 0: not at all. */
static int fits(const struct cm_id *id, const struct gid *to)
{
	uint8_t family = gid_is_ipv4(to) ? 4 : 6;

	if (!cm_address_is_any(&id->source))
		return gid_equal(&id->source.ip, to) ? 3 : 0;
	if (id->source.family == family)
		return 2;
	return id->source.family == 6 && !id->family_only ? 1 : 0;
}

struct cm_id *cm_port_listener(const struct engine *e, uint16_t space, uint16_t port,
			       const struct gid *to, uint8_t qp_type)
{
	struct cm_id *id, *best = NULL;
	int most = 0;

	LIST_FOREACH(id, bucket_of(e, space, port), port_link)
	{
		if (id->space != space || id->source.port != port || id->state != CM_ID_LISTENING ||
		    id->qp_type != qp_type || fits(id, to) <= most)
			continue;
		most = fits(id, to);
		best = id;
	}
	return best;
}
