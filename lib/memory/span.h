/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Octets of registered memory by place: spans. A key check turns (key, address, length, access)
 * into them; no other code sees an address of the application.
 */
#ifndef MEMORY_SPAN_H
#define MEMORY_SPAN_H

#include <stdbool.h>
#include <stdint.h>

#include "config/limits.h"

/*
 * No memory: reads give zeros and writes are lost. A list with such a span says has_peer, too, as
 * not all of it is direct.
 */
#define SPAN_NOBODY UINT32_MAX

struct span {
	void *direct; /* mapped by the engine; NULL: a peer span */
	uint64_t peer_address; /* peer: the address in the client's address space */
	uint32_t client; /* peer: whose, or SPAN_NOBODY */
	uint32_t length; /* octets */
};

struct span_list {
	uint32_t count;
	uint32_t length; /* octets in all */
	bool has_peer; /* at least one span is a peer span */
	struct span span[LIMIT_SPANS];
};

static inline void span_list_clear(struct span_list *l)
{
	l->count = 0;
	l->length = 0;
	l->has_peer = false;
}

#endif
