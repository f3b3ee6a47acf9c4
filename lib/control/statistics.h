/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's counters, for programs that are linked with the engine's parts. */
#ifndef CONTROL_STATISTICS_H
#define CONTROL_STATISTICS_H

#include <stdint.h>

struct reply_statistics; /* protocol/command.h */
struct reply_cycles; /* protocol/command_cycles.h */
struct uroce_engine;

/*
 * Reads the counters since uroce_create(). Fills the numbers of *out and leaves out->h zero. Lcores
 * count meanwhile, so the numbers are of nearly the same instant. Any thread, but not from a burst
 * function of the port.
 */
void uroce_statistics(struct uroce_engine *e, struct reply_statistics *out);

/*
 * Cycles by stage, as CYCLES_START and CYCLES_READ of protocol/command_cycles.h give them, but
 * counted from zero even while others measure. Any thread, but not from a burst function of the
 * port.
 */
void uroce_cycles_start(struct uroce_engine *e, uint32_t every, uint32_t milliseconds);
void uroce_cycles(struct uroce_engine *e, struct reply_cycles *out);

#endif
