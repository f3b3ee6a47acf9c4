/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles by stage: while they are measured, an lcore takes the time of one round in `every`. A
 * round is one lcore_poll(). Two kinds count apart, so that the others say what packets cost: those
 * that found nothing to do, and those in which the thread hardly had its processor all the time, as
 * one stage took too long at a stretch. All is the lcore's own: the control path sends messages.
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
	uint64_t passes[STAGE_COUNT]; /* each has a switch in its time */
	uint64_t rounds, idle_rounds, interrupted_rounds;
	uint64_t idle_cycles, interrupted_cycles;
};

struct cycles {
	uint64_t (*clock)(void); /* rte_rdtsc() */
	uint32_t every; /* one round in this many is measured; 0: none */
	uint32_t left; /* rounds to the next one */
	nanotime until; /* then it ends by itself */
	uint64_t stretch; /* cycles; a longer one is an interruption */
	struct stage_watch watch; /* of this round */
	struct cycles_sum sum; /* of those before */
};

/* NULL: no memory. */
struct cycles *cycles_make(void);

/* A round begins or ends, by the lcore; the first while `every` is not 0, the second if it is measured. */
void cycles_begin(struct lcore *l, nanotime now);
void cycles_end(struct lcore *l, bool worked);

/*
 * For a message to the lcore: begins with counters of 0; `every` 0 ends it, and the counters stay.
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

/* About what a switch of stages takes, the reading of the clock included. */
uint64_t cycles_of_switch(void);

#endif
