/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's rings of pointers, between threads of the engine: frames, messages, numbers of queue pairs.
 * DPDK's own functions are inline, and each use of one compiles all of its ways to copy: 130 KB of code
 * with sanitizers. So the engine calls these instead.
 *
 * A ring may have one or several threads at either end, as it was created.
 */
#ifndef QUEUE_POINTERS_H
#define QUEUE_POINTERS_H

#include <stdbool.h>
#include <stdint.h>

struct rte_ring;

/* As many of n as there is room for. */
uint32_t pointers_put(struct rte_ring *r, void *const *p, uint32_t n);
/* Up to n, the oldest first. */
uint32_t pointers_take(struct rte_ring *r, void **p, uint32_t n);
/* False: the ring is full. */
bool pointer_put(struct rte_ring *r, void *p);
/* False: the ring is empty. */
bool pointer_take(struct rte_ring *r, void **p);
/* Frees a ring of mbufs, and those in it. NULL: nothing. No thread uses it any more. */
void pointers_free_frames(struct rte_ring *r);

#endif
