/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to one peer, for all queue pairs that send to it from here: how long a round trip takes.
 * Its caller makes one for each peer (address, VLAN, traffic class) and gives it to the queue pairs
 * (qp_give_path). All of them belong to one thread.
 *
 * A queue pair without a path (NULL) knows no round trip.
 */
#ifndef TRANSPORT_PATH_H
#define TRANSPORT_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "base/time.h"

/* What is counted, for those who watch. */
enum path_event {
	PATH_AGAIN, /* a packet was sent again */
	PATH_OVERTAKEN, /* losses, found by what was sent later and arrived: each window's once */
	PATH_REPORTED, /* losses that the peer reported (NAK) */
	PATH_PROBE, /* silence, broken by a probe */
	PATH_TIMEOUT, /* a retransmission timer fired */
	PATH_CNP_RECEIVED, /* the network asked us to slow down, */
	PATH_CNP_SENT, /* ... and the peer, by us */
	PATH_EVENTS,
};

struct path {
	nanotime srtt; /* smoothed (RFC 6298: an eighth of each sample); 0: not known yet */
	nanotime rttvar; /* how far samples are from it (a quarter of each distance) */
	nanotime min_rtt; /* the least of this period and the last; 0: not known yet */
	nanotime min_now; /* the least of this period so far */
	nanotime min_until; /* the end of this period of LIMIT_PATH_MIN_S */
	uint64_t samples;
	uint64_t events[PATH_EVENTS];
};

void path_init(struct path *p);

/*
 * A packet that was sent once was acknowledged `rtt` after it had left. Samples above
 * LIMIT_PATH_RTT_MS count as that, one of 0 as 1 ns.
 */
void path_rtt(struct path *p, nanotime rtt, nanotime now);

static inline void path_count(struct path *p, enum path_event e)
{
	if (p != NULL)
		p->events[e]++;
}

/* It did not happen after all. */
static inline void path_uncount(struct path *p, enum path_event e)
{
	if (p != NULL)
		p->events[e]--;
}

/* 0: not known yet */
static inline nanotime path_srtt(const struct path *p)
{
	return p != NULL ? p->srtt : 0;
}

static inline nanotime path_min_rtt(const struct path *p)
{
	return p != NULL ? p->min_rtt : 0;
}

#endif
