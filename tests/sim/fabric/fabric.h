/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time, and the frames that are under way in it. Whatever happens at an instant is an event:
 * a frame arrives, a line is free again, a host polls. Events stand in one heap and happen one after
 * the other. Everything follows from the seed.
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

/* A part of what it happens to. */
struct event {
	struct heap_node when;
	void (*happen)(struct event *e, struct fabric *f);
};

struct taker;

/* A frame in its buffer. Between lines it belongs to the receiver that took it. */
struct parcel {
	struct event arrival;
	struct parcel *next; /* in a queue, or of those that are not used */
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

/* Lets it happen at `at`, or earlier if that was said before. */
void fabric_at(struct fabric *f, struct event *e, nanotime at);
/* The next event happens. False: there is none until `end`, which is the time now. */
bool fabric_step(struct fabric *f, nanotime end);

struct parcel *parcel_new(struct fabric *f);
void parcel_free(struct fabric *f, struct parcel *p);

/* The host that a frame is for, or that it comes from: the low 16 bits of the IPv4 address, less 1. */
uint32_t parcel_host(const struct parcel *p, bool source);
/* Marks it CE if its sender said that it understands that. False: it did not. */
bool parcel_mark(struct parcel *p);

/* What the run is about is broken: the first reason is kept. */
#define fabric_wrong(f, ...)                                               \
	do {                                                               \
		if ((f)->why[0] == '\0')                                   \
			snprintf((f)->why, sizeof((f)->why), __VA_ARGS__); \
	} while (0)

#endif
