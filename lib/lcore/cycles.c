/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/cycles.h"

#include <stdlib.h>

#include <rte_cycles.h>

#include "base/bits.h"
#include "lcore/lcore.h"

/* The longest stretch is a second divided by this: 250 us. Schedulers give other threads more. */
#define INTERRUPTIONS 4000u

static uint64_t tsc(void)
{
	return rte_rdtsc();
}

struct cycles *cycles_make(void)
{
	struct cycles *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->clock = tsc;
	c->stretch = rte_get_tsc_hz() / INTERRUPTIONS;
	return c;
}

static void watch_with(struct lcore *l, struct stage_watch *w)
{
	l->stages = w;
	l->keys.stages = w;
}

void cycles_begin(struct lcore *l, nanotime now)
{
	struct cycles *c = l->cycles;

	if (now >= c->until) {
		c->every = 0;
		return;
	}
	if (c->left > 0) {
		c->left--;
		return;
	}
	c->left = c->every - 1;
	stage_start(&c->watch, c->clock, STAGE_OTHER);
	watch_with(l, &c->watch);
}

static uint64_t all_of(const struct stage_watch *w)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < STAGE_COUNT; i++)
		sum += w->cycles[i];
	return sum;
}

void cycles_end(struct lcore *l, bool worked)
{
	struct cycles *c = l->cycles;
	struct cycles_sum *sum = &c->sum;

	stage_enter(&c->watch, STAGE_OTHER);
	watch_with(l, NULL);
	if (c->watch.longest > c->stretch) {
		sum->interrupted_rounds++;
		sum->interrupted_cycles += all_of(&c->watch);
		return;
	}
	if (!worked) {
		sum->idle_rounds++;
		sum->idle_cycles += all_of(&c->watch);
		return;
	}
	sum->rounds++;
	for (uint32_t i = 0; i < STAGE_COUNT; i++) {
		sum->cycles[i] += c->watch.cycles[i];
		sum->passes[i] += c->watch.passes[i];
	}
}

void cycles_start(struct lcore *l, void *arg, nanotime now)
{
	const struct cycles_wish *wish = arg;
	struct cycles *c = l->cycles;

	watch_with(l, NULL);
	c->every = wish->every;
	c->left = 0;
	c->until = wish->until;
	if (wish->every != 0)
		c->sum = (struct cycles_sum){ .rounds = 0 };
}

void cycles_read(struct lcore *l, void *arg, nanotime now)
{
	struct cycles_reading *r = arg;
	const struct cycles *c = l->cycles;

	for (uint32_t i = 0; i < STAGE_COUNT; i++) {
		r->sum.cycles[i] += c->sum.cycles[i];
		r->sum.passes[i] += c->sum.passes[i];
	}
	r->sum.rounds += c->sum.rounds;
	r->sum.idle_rounds += c->sum.idle_rounds;
	r->sum.interrupted_rounds += c->sum.interrupted_rounds;
	r->sum.idle_cycles += c->sum.idle_cycles;
	r->sum.interrupted_cycles += c->sum.interrupted_cycles;
	r->running |= c->every != 0 && now < c->until;
}

#define TRIES	 8u
#define SWITCHES 256u

uint64_t cycles_of_switch(void)
{
	uint64_t least = UINT64_MAX;
	struct stage_watch w;

	for (uint32_t i = 0; i < TRIES; i++) {
		uint64_t begin = tsc();

		stage_start(&w, tsc, STAGE_OTHER);
		for (uint32_t k = 0; k < SWITCHES; k++)
			stage_enter(&w, k % STAGE_COUNT);
		least = MIN_OF(least, (tsc() - begin) / SWITCHES);
	}
	return least;
}
