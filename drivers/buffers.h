/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet buffers of an engine and of its port. */
#ifndef DRIVERS_BUFFERS_H
#define DRIVERS_BUFFERS_H

#include <stdbool.h>
#include <stdint.h>

struct port;
struct rte_mempool;

/*
 * `n` buffers, each with `room` octets behind its descriptor; the caller frees them with rte_mempool_free(). `port` is the
 * one that will send and receive them, or NULL. NULL: rte_errno says why, ENOMEM for instance.
 */
struct rte_mempool *buffers_make(const char *name, uint32_t n, uint16_t room,
				 const struct port *port);

/* Whether they take memory that the EAL does not have: its option -m makes no difference to them. */
bool buffers_are_private(const struct port *port);

/*
 * The same for a port that is not open yet, whose driver takes buffers of any memory or does not (ethdev_takes_any_buffer()).
 */
bool buffers_may_be_private(bool any);

/*
 * Buffers in private memory, as buffers_make() returns them. `flags` are rte_mempool_create()'s; `cache` is how many an
 * lcore may keep to itself.
 */
struct rte_mempool *buffers_make_private(const char *name, uint32_t n, uint32_t cache,
					 uint16_t room, unsigned int flags);

#endif
