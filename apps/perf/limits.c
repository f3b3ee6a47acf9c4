/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures what this machine can do without an engine, in the same run: the copies, checksums and
 * hand-overs that every engine needs. Each figure is the best of several short rounds, because
 * these are limits.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>

#include "base/bits.h"
#include "bare.h"
#include "load.h"
#include "perf.h"
#include "wire/icrc.h"

#define BLOCK	       4096u
#define SMALL	       8u
#define ROUNDS	       5
#define ROUND_LONGEST  (20 * TIME_MS)
#define ROUND_SHORTEST TIME_MS
#define PATIENCE       (10 * TIME_S)
#define TURNS	       16 /* between two looks at the clock */
/* Of the port, if one core sends and receives. */
#define SLOTS_OF_ONE   256u
#define BUFFERS_OF_ONE 1023u

struct work {
	struct bare_port port;
	struct bare_end from;
	struct bare_end to;
	bool two; /* another core receives */
	nanotime round; /* how long each is measured */
	uint32_t sum;
};

/* ns per call, in the best round. */
static double best_ns(void (*once)(struct work *), struct work *w, uint32_t per_call)
{
	double best = 0;

	for (int round = 0; round < ROUNDS; round++) {
		nanotime begin = time_now(), now;
		uint64_t n = 0;
		double ns;

		do {
			for (int i = 0; i < TURNS; i++)
				once(w);
			n += TURNS;
			now = time_now();
		} while (now - begin < w->round);
		ns = (double)(now - begin) / (double)(n * per_call);
		if (round == 0 || ns < best)
			best = ns;
	}
	return best;
}

static void once_copy(struct work *w)
{
	memcpy(w->to.octets, w->from.octets, BLOCK);
	/* Keeps the compiler from dropping the copy. */
	__asm__ volatile("" : : "r"(w->to.octets) : "memory");
}

static void once_sum(struct work *w)
{
	w->sum = icrc_add(w->sum, w->from.octets, BLOCK);
}

static void once_copy_and_sum(struct work *w)
{
	w->sum = icrc_copy(w->sum, w->to.octets, w->from.octets, BLOCK);
	__asm__ volatile("" : : "r"(w->to.octets) : "memory");
}

/* Sends a burst of frames through a net_ring port and receives it on the same core. */
static void once_raw(struct work *w)
{
	bare_send(&w->from);
	bare_receive(&w->to);
}

/* The other core. Both numbers are atomic: its thread and the sender's use them at once. */
struct taker {
	struct bare_end *end;
	uint64_t taken; /* frames */
	uint32_t stop;
};

static int taker_main(void *arg)
{
	struct taker *t = arg;
	uint64_t taken = 0;
	uint32_t n;

	do {
		n = bare_receive(t->end);
		taken += n;
		__atomic_store_n(&t->taken, taken, __ATOMIC_RELAXED);
	} while (n > 0 || __atomic_load_n(&t->stop, __ATOMIC_ACQUIRE) == 0);
	return 0;
}

/*
 * Frames per second in one round, which lasts until the other core has taken some: a busy machine may run it late. 0:
 * it took none.
 */
static double round_of_two(struct work *w, const struct taker *t)
{
	uint64_t before = __atomic_load_n(&t->taken, __ATOMIC_RELAXED), taken;
	nanotime begin = time_now(), now;

	do {
		for (int i = 0; i < TURNS; i++)
			bare_send(&w->from);
		now = time_now();
		taken = __atomic_load_n(&t->taken, __ATOMIC_RELAXED) - before;
	} while (now - begin < w->round || (taken == 0 && now - begin < PATIENCE));
	return (double)taken / (double)(now - begin) * 1e9;
}

/* One core sends and another one receives. */
static double pps_of_two(struct work *w)
{
	struct taker t = { .end = &w->to };
	unsigned int lcore = rte_get_next_lcore(-1, 1, 0);
	double best = 0;

	if (rte_eal_remote_launch(taker_main, &t, lcore) != 0)
		return 0;
	for (int round = 0; round < ROUNDS; round++) {
		double pps = round_of_two(w, &t);

		best = MAX_OF(best, pps);
	}
	__atomic_store_n(&t.stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(lcore);
	bare_end(&w->from);
	return best;
}

static double raw_pps(struct work *w, uint32_t payload, uint32_t message, bool touch)
{
	struct bare_kind k = { .payload = payload, .message = message, .touch = touch };

	bare_begin(&w->from, &k);
	bare_begin(&w->to, &k);
	return w->two ? pps_of_two(w) : 1e9 / best_ns(once_raw, w, BARE_BURST);
}

/* A last frame with less payload counts for its part. */
static double messages_pps(const struct perf_options *o, struct work *w, uint32_t size)
{
	uint32_t payload = MIN_OF(size, o->mtu);

	return raw_pps(w, payload, size, true) * payload / size;
}

/* SIZE_MAX: not measured. */
static size_t place_of(const struct limit_result *l, uint32_t size)
{
	for (uint32_t i = 0; i < l->sizes; i++)
		if (l->message[i].size == size)
			return i;
	return SIZE_MAX;
}

double limits_of_one(const struct limit_result *l, uint32_t size)
{
	size_t i = place_of(l, size);

	if (i != SIZE_MAX)
		return l->message[i].of_one;
	/* Atomics have this size, whatever sizes are asked for. */
	return size == SMALL ? l->raw_small_full_pps : 0;
}

double limits_messages(const struct limit_result *l, uint32_t size)
{
	size_t i = place_of(l, size);

	if (l->small_of_two <= 0)
		return limits_of_one(l, size);
	if (i != SIZE_MAX)
		return l->message[i].of_two;
	return size == SMALL ? l->small_of_two : 0;
}

/* The other end of the hand-over: returns every element. */
struct echo {
	struct rte_ring *there;
	struct rte_ring *back;
	uint32_t stop; /* atomic: read by the echo's lcore while the other thread sets it */
};

static int echo_main(void *arg)
{
	struct echo *e = arg;
	uint64_t element[8];

	while (__atomic_load_n(&e->stop, __ATOMIC_ACQUIRE) == 0)
		if (rte_ring_dequeue_elem(e->there, element, sizeof(element)) == 0)
			rte_ring_enqueue_elem(e->back, element, sizeof(element));
	return 0;
}

static double handoff_ns(unsigned int lcore)
{
	struct echo e = {
		.there = rte_ring_create_elem("limit-there", 64, 64, SOCKET_ID_ANY,
					      RING_F_SP_ENQ | RING_F_SC_DEQ),
		.back = rte_ring_create_elem("limit-back", 64, 64, SOCKET_ID_ANY,
					     RING_F_SP_ENQ | RING_F_SC_DEQ),
	};
	uint64_t element[8] = { 0 };
	nanotime begin;
	const uint32_t trips = 20000;

	if (e.there == NULL || e.back == NULL || rte_eal_remote_launch(echo_main, &e, lcore) != 0)
		return 0;
	begin = time_now();
	for (uint32_t i = 0; i < trips; i++) {
		rte_ring_enqueue_elem(e.there, element, sizeof(element));
		while (rte_ring_dequeue_elem(e.back, element, sizeof(element)) != 0)
			;
	}
	begin = time_now() - begin;
	__atomic_store_n(&e.stop, 1, __ATOMIC_RELEASE);
	rte_eal_wait_lcore(lcore);
	rte_ring_free(e.there);
	rte_ring_free(e.back);
	return (double)begin / trips / 2;
}

/* Frames for another core wait in as many slots and buffers as those of an engine. */
static int work_begin(struct work *w, const struct perf_options *o, uint32_t octets, bool two)
{
	uint32_t slots = two ? PERF_PORT_SLOTS : SLOTS_OF_ONE;
	uint32_t buffers = two ? PERF_PORT_BUFFERS : BUFFERS_OF_ONE;

	*w = (struct work){ .two = two };
	w->round = (nanotime)(o->seconds * 1e8); /* a tenth of what is measured beside it */
	w->round = MAX_OF(MIN_OF(w->round, ROUND_LONGEST), ROUND_SHORTEST);
	w->from.port = w->to.port = &w->port;
	if (posix_memalign((void **)&w->from.octets, 4096, octets) != 0 ||
	    posix_memalign((void **)&w->to.octets, 4096, octets) != 0 ||
	    bare_port_open(&w->port, slots, buffers) != 0) {
		fputs("uroce perf: no memory to measure the limits; try --memory with more\n",
		      stderr);
		return 1;
	}
	memset(w->from.octets, 1, octets);
	memset(w->to.octets, 2, octets);
	return 0;
}

static void work_end(struct work *w)
{
	bare_port_close(&w->port);
	free(w->from.octets);
	free(w->to.octets);
}

static int of_one_core(const struct perf_options *o, uint32_t octets, struct limit_result *r)
{
	struct work w;

	if (work_begin(&w, o, octets, false) != 0)
		return 1;
	r->copy_ns = best_ns(once_copy, &w, 1);
	r->icrc_ns = best_ns(once_sum, &w, 1);
	r->copy_and_sum_ns = best_ns(once_copy_and_sum, &w, 1);
	r->raw_small_pps = raw_pps(&w, SMALL, SMALL, false);
	r->raw_small_full_pps = raw_pps(&w, SMALL, SMALL, true);
	r->raw_full_pps = raw_pps(&w, BLOCK, BLOCK, true);
	r->raw_full_bits = r->raw_full_pps * BLOCK * 8;
	for (uint32_t i = 0; i < r->sizes; i++)
		r->message[i].of_one = messages_pps(o, &w, r->message[i].size);
	work_end(&w);
	return 0;
}

static int of_two_cores(const struct perf_options *o, uint32_t octets, struct limit_result *r)
{
	struct work w;

	if (work_begin(&w, o, octets, true) != 0)
		return 1;
	r->small_of_two = raw_pps(&w, SMALL, SMALL, true);
	for (uint32_t i = 0; i < r->sizes; i++)
		r->message[i].of_two = messages_pps(o, &w, r->message[i].size);
	work_end(&w);
	if (r->small_of_two > 0)
		return 0;
	fputs("uroce perf: the other core received no frame, so it has no limit\n", stderr);
	return 1;
}

int limits_run(const struct perf_options *o, struct limit_result *r)
{
	uint32_t octets = BLOCK;

	memset(r, 0, sizeof(*r));
	r->sizes = o->sizes;
	for (uint32_t i = 0; i < o->sizes; i++) {
		r->message[i].size = o->size[i];
		octets = MAX_OF(octets, o->size[i]);
	}
	if (of_one_core(o, octets, r) != 0)
		return 1;
	if (o->placement != PLACE_ONE)
		r->handoff_ns = handoff_ns(rte_get_next_lcore(-1, 1, 0));
	return o->placement == PLACE_TWO ? of_two_cores(o, octets, r) : 0;
}
