/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way to one peer, for all queue pairs that send to it from here: how long a round trip takes,
 * and how many octets may be in flight. Its caller makes one for each peer (address, VLAN, traffic
 * class) and gives it to the queue pairs (qp_give_path). All of them belong to one thread.
 *
 * A queue pair without a path (NULL) knows no round trip; only its own window limits it.
 *
 * The window (docs/decisions/0014-paths.md) is in octets of frames, for all queue pairs together.
 * It may be less than a packet: then one packet is in flight at a time, and the time between two
 * packets exceeds a round trip as much as the packet exceeds the window.
 *
 *	it grows	with what is acknowledged in less than the target, if it was used: as much again
 *			until it was cut for the first time, then a packet for each LIMIT_PATH_STEP_US, and
 *			faster and faster while round trips are far below the target
 *	it shrinks	once a round trip at most, and to a half at most:
 *			when all samples of a round trip take longer than the target, by as much as
 *			they do; if by so much that a host must be late, not below LIMIT_PATH_FLOOR;
 *			when the network says so (CNP), as DCQCN does, not below LIMIT_PATH_MARKED;
 *			when nearly a third of the packets is sent again, to what is not;
 *			when packets are lost while samples take longer, or towards a peer that
 *			drops what is behind a lost packet (but not below LIMIT_PATH_GO_BACK, which is
 *			all that it has while such a peer loses often);
 *			when packets are lost while a host is late, to LIMIT_PATH_RING of them for a while;
 *			when nobody answers (a retransmission timer, or probes of the whole path),
 *			not below a packet
 *
 * The target is the least round trip, what a queue may add (LIMIT_PATH_DELAY_US, and more for small
 * windows, so that they are fair to each other), and what the caller and the peer themselves are
 * late.
 *
 * Queue pairs that are held back. A queue pair asks before each packet (NEXT_HELD of
 * qp_next_packet). Its caller keeps those that are held in a list, in their order, and resumes the
 * first ones (qp_resume) when qp_may_resume() says so. While others wait, only queue pairs that
 * were resumed may send, one turn each.
 */
#ifndef TRANSPORT_PATH_H
#define TRANSPORT_PATH_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/time.h"
#include "config/limits.h"
#include "transport/late.h"

/* Events that are counted for statistics. */
enum path_event {
	PATH_AGAIN, /* a packet was repeated */
	PATH_OVERTAKEN, /* losses, found by what was sent later and arrived: each window's once */
	PATH_REPORTED, /* losses that the peer reported (NAK) */
	PATH_PROBE, /* silence, broken by a probe */
	PATH_TIMEOUT, /* a retransmission timer fired */
	PATH_CNP_RECEIVED, /* the network asked us to slow down, */
	PATH_CNP_SENT, /* ... and the peer, by us */
	PATH_CUT, /* the window shrank */
	PATH_WAIT, /* a queue pair was held back */
	PATH_EVENTS,
};

struct path {
	/* the round trip */
	nanotime srtt; /* smoothed (RFC 6298: an eighth of each sample); 0: not known yet */
	nanotime rttvar; /* their deviation from it (a quarter of each) */
	nanotime min_rtt; /* the least of this period and the last; 0: not known yet */
	nanotime min_now; /* the least of this period so far */
	nanotime min_until; /* the end of this period of LIMIT_PATH_MIN_S */
	nanotime last, before; /* the last two samples */
	nanotime reordered_at; /* it changed the order of packets last */
	nanotime long_at; /* since then all samples exceed the target; 0: they do not */
	uint8_t places; /* places by which it changed the order of packets lately */
	uint8_t doubt; /* silence is doubled so often, as answers to probes gave no sample */
	uint8_t lone; /* losses in a row that stood alone, LIMIT_PATH_LONE at most */
	uint32_t heard; /* answers to any queue pair */
	uint32_t asked_heard; /* ... when it was asked first, */
	uint32_t asked; /* ... and how often since then */
	uint32_t given_up; /* how often all packets in flight were given up */
	nanotime answered; /* the newest packet that was answered left then */
	nanotime asked_at, asked_until; /* a probe asks for all, until then or its answer */
	bool asked_alone; /* ... only for those that are alone */
	const struct late *late; /* how late its caller hands packets in, as of now */
	uint8_t peer_step; /* of peer_late */
	nanotime peer_late; /* ... and the peer, as it said last; 0: it says nothing */

	/* the window */
	uint64_t window; /* octets, LIMIT_PATH_LEAST .. LIMIT_PATH_WINDOW */
	uint64_t flying; /* octets in flight, of all queue pairs */
	uint64_t used; /* octets that let it grow, as they filled half of it */
	uint32_t packet; /* octets of the largest frame so far */
	uint32_t mean; /* ... of a frame lately, or so */
	uint32_t held; /* queue pairs that it holds back */
	uint16_t looks; /* packets that went alone to probe the way, */
	uint16_t met; /* ... and more of them, which waited behind others */
	bool starting; /* nothing has cut it yet */
	bool slowly; /* path_sent_slowly is to see every packet */
	nanotime open_at; /* less than a packet: the next one not before */
	nanotime next_at; /* ... of a window that is spread; TIME_NEVER: the looks go first */
	nanotime cut_at; /* it shrank last */
	bool full; /* the network said lately that it is, */
	nanotime full_at; /* ... by a loss with delay, or a CNP, last */
	nanotime cnp_at; /* ... for a CNP */
	nanotime small_until; /* a loss says that a ring on the way is short of room; 0: none did */
	uint64_t back_at,
		back_until; /* octets acknowledged when a peer went back last, and until then it may again */
	uint32_t alpha; /* how often the network marks lately; ALPHA_ONE: always */
	nanotime calm_at; /* the next update of alpha; 0: there was no CNP */
	uint32_t rounds; /* round trips in a row that took far less than the target */
	nanotime round_at; /* the next one ends */
	uint64_t batch, batch_again; /* octets of the last packets, and of lost ones */
	bool lossy; /* many of the packets before were repeated */
	nanotime gentle_until; /* it grows slowly, as much was lost; 0: it need not */

	/* statistics */
	uint64_t samples, sent; /* packets */
	uint64_t acknowledged; /* octets */
	uint64_t events[PATH_EVENTS];
};

void path_init(struct path *p);

/* The way is known: no more packets go alone to probe it. */
static inline void path_looked(struct path *p)
{
	p->looks = LIMIT_PATH_LOOKS;
	p->next_at = 0;
}

/*
 * A packet that was sent once was acknowledged `rtt` after it had left. Samples above
 * LIMIT_PATH_RTT_MS count as that limit, a sample of 0 as 1 ns.
 */
void path_rtt(struct path *p, nanotime rtt, nanotime now);

static inline void path_count(struct path *p, enum path_event e)
{
	if (p != NULL)
		p->events[e]++;
}

/* It was not sent after all. */
static inline void path_uncount(struct path *p, enum path_event e)
{
	if (p != NULL)
		p->events[e]--;
}
/* The part of path_sent that few packets need. */
void path_sent_slowly(struct path *p, uint32_t octets, nanotime now);

/*
 * A packet was made, with so many octets as a frame (a READ request: including its responses).
 * `lost`: the octets of packets that were taken for lost, if this one makes up for them; 0: it is
 * new.
 */
static inline void path_sent(struct path *p, uint32_t octets, uint32_t lost, nanotime at)
{
	p->sent++;
	p->batch += octets;
	p->batch_again += lost;
	p->flying += octets;
	p->mean += octets / 16 - p->mean / 16;
	if (2 * p->flying >= p->window)
		p->used = p->flying;
	if (octets > p->packet || octets > p->window || p->slowly)
		path_sent_slowly(p, octets, at);
}

/*
 * A packet was sent that does not count as in flight. Nothing but the time from one to the next
 * bounds such packets: at most a window of them leaves in a round trip.
 */
void path_sent_alone(struct path *p, uint32_t octets, nanotime now);

/* Whether all recent losses stood alone: those are a bad cable's, where patience gains nothing. */
static inline bool path_losses_are_lone(const struct path *p)
{
	return p->lone == LIMIT_PATH_LONE;
}

/*
 * A packet arrived behind one that was sent so many places later. A packet overtaken by up to twice
 * as many places as lately may only have changed its place; a packet further behind is lost. The
 * limit is LIMIT_REORDER while the network is full, or nothing is known yet: haste gains nothing
 * then.
 */
void path_reordered(struct path *p, uint32_t places, nanotime now);
uint32_t path_places(const struct path *p, nanotime now);

/* The part of path_gone for a window that was used, and may grow. */
void path_grow(struct path *p, uint64_t octets);

/* So many octets are not in flight any more; acknowledged: because they arrived. */
static inline void path_gone(struct path *p, uint64_t octets, bool acknowledged)
{
	bool used = p->held > 0 || p->used > 0;

	assert(octets <= p->flying && "what was sent");
	p->flying -= octets;
	p->used -= MIN_OF(p->used, octets);
	if (!acknowledged)
		return;
	p->acknowledged += octets;
	if (used)
		path_grow(p, octets);
}

/*
 * The network lost packets. goes_back: the peer drops all that is behind a lost one, so that each loss
 * costs a window.
 */
void path_lost(struct path *p, bool goes_back, nanotime now);
/* No answer came for the time of a retransmission timer, or to probes of the whole path. */
void path_silent(struct path *p, nanotime now);
/* A queue pair heard nothing for long enough, so its oldest packet is sent once more. */
void path_probed(struct path *p);
/* So many probes were sent before it was answered. */
void path_doubt(struct path *p, uint32_t probes);

static inline uint32_t path_heard(const struct path *p)
{
	return p != NULL ? p->heard : 0;
}

/* A packet that left at that time was answered. */
static inline void path_answered(struct path *p, nanotime left)
{
	if (p == NULL)
		return;
	p->answered = MAX_OF(p->answered, left);
	if (left >= p->asked_at)
		p->asked_until = 0;
}

/*
 * A queue pair that heard nothing since `quiet` may probe at that time: at once if the peer answers
 * what left later. If the whole path is as quiet, its probe asks for all others, until it is
 * answered, or `until`. When LIMIT_PROBES_ALONE probes in a row were not answered, all packets in
 * flight are given up (flight_follow), and after each further one. A queue pair that is alone
 * (flight.h) asks only for others that are, because its peer may be gone.
 */
nanotime path_ask(struct path *p, bool alone, nanotime quiet, nanotime now, nanotime until);
/* The network asks to slow down. */
void path_cnp(struct path *p, nanotime now);
#define ALPHA_ONE (1u << 20)

/* Whether a packet of so many octets may be sent now. */
static inline bool path_may_send(const struct path *p, uint32_t octets, nanotime at)
{
	return (p->flying + octets <= p->window && at >= p->next_at) ||
	       (p->flying == 0 && at >= p->open_at);
}

/* Octets that may be sent now: 0 or at least a packet. */
uint64_t path_room(const struct path *p, nanotime now);
/* When there will be room for so many octets if nothing is acknowledged: TIME_NEVER or an instant.
 */
nanotime path_opens_at(const struct path *p, uint32_t octets, nanotime now);

/* ns that a round trip may take before the window shrinks; TIME_NEVER: not known yet. */
nanotime path_target(const struct path *p);

/* 0: not known yet */
static inline nanotime path_srtt(const struct path *p)
{
	return p != NULL ? p->srtt : 0;
}

/*
 * An answer seldom takes longer (RFC 6298); 0: not known yet. Round trips became longer if answers
 * to probes gave no sample.
 */
static inline nanotime path_longest(const struct path *p)
{
	return p != NULL ? (p->srtt + 4 * p->rttvar) << p->doubt : 0;
}

/* How much later than its arrival the caller may see a packet. */
static inline nanotime path_late(const struct path *p)
{
	return p->late->time;
}

/* The step that each packet carries: how late its sender is. */
static inline uint8_t path_late_step(const struct path *p)
{
	return p != NULL ? p->late->step : 0;
}

/* A packet of the peer that passed every check carried this step. */
static inline void path_peer_says(struct path *p, uint8_t step)
{
	if (p == NULL || p->peer_step == step)
		return;
	p->peer_step = step;
	p->peer_late = late_time(step);
}

static inline nanotime path_min_rtt(const struct path *p)
{
	return p != NULL ? p->min_rtt : 0;
}

#endif
