/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host of the fabric: memory, queue pairs, a port with a send and a receive ring, and one processor
 * that polls, as an lcore does:
 *
 *	receive ring -> decode -> endpoint -> completions -> the program posts
 *	deadlines
 *	ready endpoints, in turns -> staged frames -> port
 *
 * A poll takes time, so a host that gets more than it can handle loses frames in its receive ring. A
 * port may refuse frames for a while: they stay staged, and go first.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "config/limits.h"
#include "endpoint.h"
#include "fabric.h"
#include "line.h"
#include "parking.h"
#include "transport/late.h"
#include "transport/path.h"

struct host_config {
	enum make make;
	uint32_t receive_ring, send_ring; /* frames */
	nanotime poll_time, packet_time; /* time of a poll, and of each packet in it */
	double refuses; /* probability that a port that is offered frames refuses them */
	nanotime refuses_for;
	bool keeps; /* keeps packets that arrive early; otherwise it has no room for them */
};

struct staged {
	struct parcel *parcel;
	struct packet packet;
	struct endpoint *of;
	nanotime made_at;
};

struct host_counts {
	uint64_t received, sent, again; /* packets */
	uint64_t overflowed; /* frames that found the receive ring full */
	uint64_t refused; /* how often the port refused */
	uint64_t cnps; /* sent */
	uint64_t reasons[REASON_COUNT];
};

struct host {
	struct taker taker;
	struct event poll;
	struct host_config is;
	uint32_t number;
	struct node node;
	struct path *path; /* by peer: `peers` of them */
	struct parking *parking; /* by peer, too */
	uint32_t peers;
	uint32_t key; /* of its whole memory */
	struct line port;
	struct parcel *ring, **ring_last;
	uint32_t ring_frames;
	struct endpoint *endpoint; /* `endpoints` of them */
	uint32_t endpoints;
	struct heap deadlines;
	struct endpoint *ready, **ready_last;
	struct staged stage[LIMIT_TURN];
	uint32_t stage_first, stage_end;
	struct late late;
	nanotime busy_until, refuses_until;
	struct host_counts counts;
};

/*
 * Initializes one of `hosts`, with `octets` of memory and room for that many endpoints. The caller
 * initializes its port.
 */
void host_init(struct host *h, uint32_t number, uint32_t hosts, const struct host_config *is,
	       size_t octets, uint32_t endpoints, uint64_t seed);
void host_free(struct host *h);

/* Something happened to an endpoint outside of a poll: it may want to send. */
void host_touched(struct host *h, struct fabric *f, struct endpoint *e);

#endif
