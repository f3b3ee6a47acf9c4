/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a cable, with the queue in front of it: a port of a switch, or of a host.
 *
 *	line_put -> [full? dropped] [past the threshold? marked] -> queue -> rate -> delay -> taker
 *
 * A switch's buffer may also be shared by its ports: then a frame needs room in both. The cable may
 * lose frames, and let up to `places` others overtake one.
 */
#ifndef SIM_LINE_H
#define SIM_LINE_H

#include "fabric.h"

#define LINE_ENDLESS UINT64_MAX
#define LINE_GAP     24u /* octets around a frame: preamble, FCS, gap */

/* A buffer that several ports share. */
struct buffer {
	uint64_t room, used; /* octets */
};

struct line_config {
	uint64_t rate; /* bits a second */
	nanotime delay;
	uint64_t room; /* octets of queue; LINE_ENDLESS */
	uint64_t ecn; /* octets of queue above which frames are marked; LINE_ENDLESS: never */
	double loss, reorder; /* probabilities */
	uint32_t places; /* places by which a frame may be late */
};

struct line_counts {
	uint64_t frames, octets; /* frames that left, and their octets without the gap */
	uint64_t dropped; /* no room */
	uint64_t lost; /* by the cable */
	uint64_t marked, reordered;
	uint64_t longest; /* the longest queue, in octets */
};

struct line {
	struct line_config is;
	struct taker *to;
	struct buffer *shared; /* NULL: none */
	struct event *room_made; /* happens when a frame has left; NULL: no event waits for room */
	struct event departure; /* of the first frame in the queue */
	struct parcel *first, **last;
	uint32_t frames; /* in the queue, including the frame that is being sent */
	uint64_t octets; /* of them */
	struct line_counts counts;
};

void line_init(struct line *l, const struct line_config *is, struct taker *to,
	       struct buffer *shared);
/* Takes the parcel. False: there was no room, and the parcel was freed. */
bool line_put(struct line *l, struct fabric *f, struct parcel *p);

/* How long these octets take. */
nanotime line_time(const struct line *l, uint64_t octets);

#endif
