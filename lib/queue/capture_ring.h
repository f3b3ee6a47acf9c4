/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of frames on their way from lcores to a program that writes them to a file. A shared file
 * holds one ring of octets for each lcore. The lcore never waits: frames that find no room are
 * counted and lost.
 *
 *	page | ring 0 ............ | ring 1 ............ |
 *	     tail     head
 *	       |record|record|free.......|		positions run free and are masked
 *
 * The reader can write all of the file at any time. So the engine keeps sizes and heads in private
 * memory, reads only the tail, and treats an impossible tail as a full ring.
 *
 * Atomics: head is released after the octets of a record, and acquired before they are read. tail
 * is released after they were read, and acquired before others are written there. `lost` is a
 * counter.
 */
#ifndef QUEUE_CAPTURE_RING_H
#define QUEUE_CAPTURE_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/limits.h"

enum capture_way {
	CAPTURE_RECEIVED, /* from the port */
	CAPTURE_SENT, /* to the port */
	CAPTURE_HERE, /* between queue pairs of this engine: one record for sending and receiving */
};

struct capture_record {
	uint32_t length; /* octets that follow */
	uint32_t whole; /* octets of the frame */
	uint64_t at; /* ns of CLOCK_MONOTONIC */
	uint32_t way; /* enum capture_way */
	uint32_t reserved;
};

/* The shared part of one ring: a cache line for each writer. */
struct capture_shared {
	uint64_t head __attribute__((aligned(64))); /* the engine's */
	uint64_t lost; /* frames */
	uint64_t tail __attribute__((aligned(64))); /* the reader's */
};

struct capture_page {
	struct capture_shared ring[LIMIT_LCORES];
};

#define CAPTURE_PAGE_OCTETS 4096u /* before the rings */

/* The size of the file in octets. `size`: octets of each ring, a power of two. */
static inline size_t capture_octets(uint32_t rings, uint32_t size)
{
	return CAPTURE_PAGE_OCTETS + (size_t)rings * size;
}

/* ---- the engine's side: capture_ring.c. One thread at a time for each ring. ---- */

struct capture_ring {
	struct capture_shared *shared;
	uint8_t *octets;
	uint32_t size;
	uint64_t head; /* the published value */
	uint64_t at; /* where the next octets of the unfinished record go */
	uint64_t lost;
};

/* `memory`: the file, all zero. */
void capture_ring_init(struct capture_ring *r, void *memory, uint32_t index, uint32_t size);
/* False: there is no room for this record. It is counted as lost. */
bool capture_ring_begin(struct capture_ring *r, const struct capture_record *record);
/* Appends octets of the record. All calls together must pass as many as the record announced. */
void capture_ring_append(struct capture_ring *r, const void *octets, uint32_t n);
/* Shows the record to the reader. */
void capture_ring_end(struct capture_ring *r);

/* ---- the reader's side: capture_reader.c ---- */

struct capture_reader {
	struct capture_shared *shared;
	const uint8_t *octets;
	uint32_t size;
	uint64_t tail;
};

void capture_reader_init(struct capture_reader *r, void *memory, uint32_t index, uint32_t size);
/* Copies the head of the oldest record. False: the ring is empty. */
bool capture_reader_peek(const struct capture_reader *r, struct capture_record *record);
/* Copies at most `room` octets of that record, and removes it from the ring. */
void capture_reader_take(struct capture_reader *r, const struct capture_record *record, void *to,
			 uint32_t room);
uint64_t capture_reader_lost(const struct capture_reader *r);

#endif
