/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cycles of the lcores by stage (base/stage.h). The rules of protocol/command.h apply, which includes this
 * file. Root and the engine's own user only, as what one program costs tells of the others.
 */
#ifndef PROTOCOL_COMMAND_CYCLES_H
#define PROTOCOL_COMMAND_CYCLES_H

#include "base/stage.h"
#include "protocol/command.h"

enum cycles_action {
	/*
	 * Measure one round in `every` for this long, with counters that begin at 0; it ends by
	 * itself. EBUSY: it is measured already. 0 ms ends that.
	 */
	CYCLES_START = 1,
	/* The measurements since the last start. */
	CYCLES_READ = 2,
};

#define CYCLES_EVERY 65536u /* rounds, at most */
#define CYCLES_MS    3600000u

struct request_cycles {
	struct command_request h;
	uint32_t action; /* enum cycles_action */
	uint32_t every; /* CYCLES_START: 1 .. CYCLES_EVERY */
	uint32_t milliseconds; /* likewise: 0 .. CYCLES_MS */
	uint32_t reserved;
};

/* Sums of all lcores; all zero but for the rate of the clock: nothing was measured. */
struct reply_cycles {
	struct command_reply h;
	uint64_t hz; /* cycles of the clock (TSC) in a second */
	uint64_t rounds; /* measured ones that had work, as have the stages */
	uint64_t idle_rounds, idle_cycles; /* ... that had none */
	/* ... in which a stage took 250 us or more at a stretch: its thread hardly ran all the time */
	uint64_t interrupted_rounds, interrupted_cycles;
	uint32_t running; /* 1: it is still being measured */
	uint32_t switch_cycles; /* about what one switch of stages takes */
	struct {
		uint64_t cycles;
		uint64_t passes; /* each has one switch in its cycles */
	} stage[STAGE_COUNT];
};

static_assert(sizeof(struct reply_cycles) <= LIMIT_COMMAND_BYTES, "it fits one message");

#endif
