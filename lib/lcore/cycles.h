/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles by stage. While they are measured, an lcore takes the time of one round in `every`. A
 * round is one lcore_poll(). Two kinds of rounds are counted apart, so that the others say what
 * packets cost: rounds that found nothing to do, and rounds in which one stage took so long at a
 * stretch that another thread probably had the processor. Only the lcore touches this data; the
 * control path sends it messages.
 */
#ifndef LCORE_CYCLES_H
#define LCORE_CYCLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stage.h"
#include "base/time.h"

struct lcore;

struct cycles_sum {
	uint64_t cycles[STAGE_COUNT];
	uint64_t passes[STAGE_COUNT]; /* the time of each includes one switch of stages */
	uint64_t rounds, idle_rounds, interrupted_rounds;
	uint64_t idle_cycles, interrupted_cycles;
};

struct cycles {
	uint64_t (*clock)(void); /* rte_rdtsc() */
	uint32_t every; /* one round in this many is measured; 0: none */
	uint32_t left; /* rounds to the next one */
	nanotime until; /* when the measurement ends by itself */
	uint64_t stretch; /* cycles; a longer one is an interruption */
	struct stage_watch watch; /* of this round */
	struct cycles_sum sum; /* of the rounds before */
};

/* NULL: no memory. */
struct cycles *cycles_make(void);

/* The lcore calls these when a round begins, if `every` is not 0, and when a measured one ends. */
void cycles_begin(struct lcore *l, nanotime now);
void cycles_end(struct lcore *l, bool worked);

/*
 * For a message to the lcore: clears the counters and begins to measure. `every` 0 ends the
 * measurement and keeps the counters.
 */
struct cycles_wish {
	uint32_t every;
	nanotime until;
};
void cycles_start(struct lcore *l, void *wish, nanotime now);
/* ... adds the counters so far. */
struct cycles_reading {
	struct cycles_sum sum;
	bool running;
};
void cycles_read(struct lcore *l, void *reading, nanotime now);

/* Roughly the cycles of one switch of stages, including the reading of the clock. */
uint64_t cycles_of_switch(void);

#endif
