/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles of the lcores by stage (base/stage.h). The rules of protocol/command.h apply, which
 * includes this file. Only root and the engine's own user may ask, because the cost of one program
 * tells something about the others.
 */
#ifndef PROTOCOL_COMMAND_CYCLES_H
#define PROTOCOL_COMMAND_CYCLES_H

#include "base/stage.h"
#include "protocol/command.h"

enum cycles_action {
	/*
	 * Measures one round in `every` for this long. The counters begin at 0, and the measurement
	 * ends by itself. EBUSY: a measurement is running already. 0 ms ends it.
	 */
	CYCLES_START = 1,
	/* Returns the measurements since the last start. */
	CYCLES_READ = 2,
};

#define CYCLES_EVERY 65536u /* rounds, at most */
#define CYCLES_MS    3600000u

struct request_cycles {
	struct command_request h;
	uint32_t action; /* enum cycles_action */
	uint32_t every; /* CYCLES_START: 1 .. CYCLES_EVERY */
	uint32_t milliseconds; /* CYCLES_START: 0 .. CYCLES_MS */
	uint32_t reserved;
};

/* Sums over all lcores. If nothing was measured, all of it is zero except the rate of the clock. */
struct reply_cycles {
	struct command_reply h;
	uint64_t hz; /* cycles of the clock (TSC) in a second */
	uint64_t rounds; /* measured rounds that had work; the stages are theirs */
	uint64_t idle_rounds, idle_cycles; /* ... and those that had none */
	/*
	 * ... and those in which a stage took 250 us or more at a stretch: probably an interruption
	 */
	uint64_t interrupted_rounds, interrupted_cycles;
	uint32_t running; /* 1: the measurement is still running */
	uint32_t switch_cycles; /* roughly what one switch of stages takes */
	struct {
		uint64_t cycles;
		uint64_t passes; /* the cycles include one switch for each */
	} stage[STAGE_COUNT];
};

static_assert(sizeof(struct reply_cycles) <= LIMIT_COMMAND_BYTES, "it fits one message");

#endif
