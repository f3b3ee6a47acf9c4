/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The path between two nodes: a line of 100 Gbit/s in each direction with a delay. Frames on it are
 * lost, duplicated, overtaken and corrupted, controlled by one random generator. Frames are in a
 * pool and their arrivals in a heap, so no frame needs an allocation.
 */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include <stdbool.h>
#include <stdio.h>

#include "base/heap.h"
#include "base/time.h"
#include "prng.h"

#define LINK_FRAMES    8192u
#define LINK_ARRIVALS  (2 * LINK_FRAMES)
#define FRAME_HEADROOM 128u /* headers are written just before the payload */
#define FRAME_OCTETS   (FRAME_HEADROOM + 4096u + 16u)

struct frame {
	uint16_t start; /* of the frame in octets[] */
	uint16_t length;
	uint16_t references; /* arrivals still to come */
	uint8_t octets[FRAME_OCTETS];
};

struct arrival {
	struct heap_node when;
	struct frame *frame;
	struct arrival *next; /* the next unused arrival */
	uint32_t to;
};

struct impairment { /* probabilities for one frame */
	double loss, duplicate, reorder, corrupt;
	nanotime delay;
};

struct link_counts {
	uint64_t sent, octets, lost, duplicated, reordered, corrupted, arrived;
};

struct link {
	struct impairment bad;
	struct prng prng;
	struct frame *frame;
	uint16_t *free; /* stack */
	uint32_t frees;
	struct heap arrivals;
	struct arrival *arrival; /* a pool: arrivals from `used` on were never used */
	uint32_t used;
	struct arrival *unused; /* arrivals that can be used again */
	nanotime line_free_at[2]; /* by the sending node */
	nanotime last_arrival[2];
	struct link_counts counts;
	FILE *pcap;
};

void link_init(struct link *l, const struct impairment *bad, uint64_t seed);
void link_free(struct link *l);
/* Writes the link's frames to this capture file. */
bool link_capture(struct link *l, const char *path);

/* A buffer to build a frame in; NULL: all of them are in use. */
struct frame *link_buffer(struct link *l);
/* Returns an unused buffer. */
void link_return(struct link *l, struct frame *f);
void link_send(struct link *l, uint32_t from, struct frame *f, nanotime now);

/* When the next frame arrives; TIME_NEVER: none will. */
static inline nanotime link_next(const struct link *l)
{
	return heap_next(&l->arrivals);
}

/* The next frame that has arrived by now, or NULL. Return it with link_taken. */
struct frame *link_take(struct link *l, nanotime now, uint32_t *to);
void link_taken(struct link *l, struct frame *f);

#endif
