/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client's side of the rings: rte_ring's inline functions on the memory that the engine
 * formatted. Nothing of DPDK is linked. Callers hold the lock of the queue (one producer of a
 * send or receive queue, one consumer of a CQ at a time); the doorbell ring takes many producers.
 */
#ifndef QUEUE_RING_CLIENT_H
#define QUEUE_RING_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct rte_ring;

/* Room for how many requests, and where the next one is written; NULL: the ring is full. */
void *ring_client_reserve(struct rte_ring *r, uint32_t stride);
/* Shows the request that was written to the reserved slot. */
void ring_client_publish(struct rte_ring *r);

/* The oldest completion, or NULL; it stays in place until ring_client_release. */
const void *ring_client_peek(struct rte_ring *r, uint32_t stride);
void ring_client_release(struct rte_ring *r, uint32_t n);

/*
 * Marks the queue pair, enters it into the doorbell ring if it was not marked, and wakes the lcore
 * if it sleeps.
 */
void doorbell_ring(struct rte_ring *bell, uint32_t *mark, uint32_t handle, const uint32_t *sleeping,
		   int wake_fd);

#endif
