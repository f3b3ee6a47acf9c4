/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time, and the frames under way in it. Everything that happens at an instant is an event:
 * a frame arrives, a line becomes free, a host polls. One heap holds the events, and they happen
 * one after the other. The seed decides everything.
 */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include <stdbool.h>
#include <stdio.h>

#include "base/heap.h"
#include "base/time.h"
#include "sim/link.h"
#include "sim/prng.h"

struct fabric;

/* Part of the struct that it concerns. */
struct event {
	struct heap_node when;
	void (*happen)(struct event *e, struct fabric *f);
};

struct taker;

/* A frame in its buffer. Outside of lines it belongs to the receiver that took it. */
struct parcel {
	struct event arrival;
	struct parcel *next; /* in a queue, or in the list of unused parcels */
	struct parcel *made_before;
	struct taker *to; /* at the end of the line that it is on */
	uint16_t start; /* of the frame in octets[] */
	uint16_t length; /* octets */
	uint8_t octets[FRAME_OCTETS];
};

/* The receiver at the end of a line. take() owns the parcel from then on. */
struct taker {
	void (*take)(struct taker *t, struct fabric *f, struct parcel *p);
};

struct fabric {
	struct heap events;
	nanotime now;
	struct prng prng;
	struct parcel *unused, *made;
	char why[512]; /* the first violation of a rule; "" if there was none */
};

void fabric_init(struct fabric *f, uint64_t seed);
/* Frees all parcels, wherever they are. */
void fabric_free(struct fabric *f);

/* Schedules the event for `at`, unless it is already scheduled earlier. */
void fabric_at(struct fabric *f, struct event *e, nanotime at);
/* Lets the next event happen. False: there is none until `end`, and the time is now `end`. */
bool fabric_step(struct fabric *f, nanotime end);

struct parcel *parcel_new(struct fabric *f);
void parcel_free(struct fabric *f, struct parcel *p);

/* The host that a frame is for, or comes from: the low 16 bits of the IPv4 address, less 1. */
uint32_t parcel_host(const struct parcel *p, bool source);
/* Marks the frame CE if its sender supports ECN. False: it does not. */
bool parcel_mark(struct parcel *p);

/* A rule that the run checks is violated: the first reason is kept. */
#define fabric_wrong(f, ...)                                               \
	do {                                                               \
		if ((f)->why[0] == '\0')                                   \
			snprintf((f)->why, sizeof((f)->why), __VA_ARGS__); \
	} while (0)

#endif
