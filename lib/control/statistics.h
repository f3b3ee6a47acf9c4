/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine's counters, for programs that are linked with the engine's parts. */
#ifndef CONTROL_STATISTICS_H
#define CONTROL_STATISTICS_H

struct reply_statistics; /* protocol/command.h */
struct uroce_engine;

/*
 * Reads the counters since uroce_create(). Fills the numbers of *out and leaves out->h zero. Lcores
 * count meanwhile, so the numbers are of nearly the same instant. Any thread, but not from a burst
 * function of the port.
 */
void uroce_statistics(struct uroce_engine *e, struct reply_statistics *out);

#endif
