/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the time of an lcore goes. A stopwatch is switched from stage to stage, so that every cycle
 * between its start and its last switch belongs to one stage. Stages nest: code that enters a stage
 * switches back to the previous one when it is done.
 *
 * Code with stages has a pointer to a stopwatch. The pointer is NULL while nothing is measured, and
 * a switch then costs only the test of that pointer. The owner provides the clock, so that pure
 * code reads none.
 */
#ifndef BASE_STAGE_H
#define BASE_STAGE_H

#include <stddef.h>
#include <stdint.h>

/* X(NAME, name, what is done there) */
#define STAGE_LIST(X)                                                                    \
	X(RX, "rx", "frames from the port, other lcores and ourselves")                  \
	X(DECODE, "decode", "headers of received frames")                                \
	X(TRANSPORT, "transport", "queue pairs are found, and their state machines")     \
	X(KEY, "key", "keys are checked, and lead to memory")                            \
	X(PLACE, "place", "received octets into memory, atomics")                        \
	X(COMPLETE, "complete", "completions, events, deadlines, turns")                 \
	X(ENCODE, "encode", "headers of frames to send")                                 \
	X(COPY_SUM, "copy+sum", "payload into frames, and the ICRC of frames both ways") \
	X(TX, "tx", "turns, buffers, frames to the port")                                \
	X(POST, "post", "doorbells, requests out of their rings")                        \
	X(OTHER, "other", "the clock, timers, messages of the control path")

enum stage {
#define X(NAME, name, what) STAGE_##NAME,
	STAGE_LIST(X)
#undef X
	STAGE_COUNT
};

struct stage_watch {
	uint64_t (*clock)(void); /* a counter of cycles */
	uint64_t since; /* the last reading of the clock */
	uint64_t longest; /* the longest time between two readings */
	enum stage at;
	uint64_t cycles[STAGE_COUNT];
	uint64_t passes[STAGE_COUNT]; /* switches away from the stage */
};

/* Starts the stopwatch, in this stage. */
void stage_start(struct stage_watch *w, uint64_t (*clock)(void), enum stage at);
/* Adds the cycles since the last switch to the stage that ends. Returns that stage. */
enum stage stage_enter(struct stage_watch *w, enum stage to) __attribute__((cold));

/* The same, if cycles are measured. */
static inline void stage_switch(struct stage_watch *w, enum stage to)
{
	if (__builtin_expect(w != NULL, 0))
		stage_enter(w, to);
}

/* The same, and returns the stage to which the caller must switch back. */
static inline enum stage stage_nest(struct stage_watch *w, enum stage to)
{
	return __builtin_expect(w != NULL, 0) ? stage_enter(w, to) : to;
}

/* The name of a stage, such as "key", and what is done there, as a part of a sentence. */
const char *stage_name(enum stage s);
const char *stage_what(enum stage s);

#endif
