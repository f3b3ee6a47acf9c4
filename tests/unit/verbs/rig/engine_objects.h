/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of the engine at $UROCE_SOCKET, which every program that may connect can read. */
#ifndef TESTS_VERBS_ENGINE_OBJECTS_H
#define TESTS_VERBS_ENGINE_OBJECTS_H

#include "protocol/command.h"

void engine_statistics(struct reply_statistics *s);
/* A queue pair of an engine that has few, as `uroce stat --qps` shows it. */
struct listed_qp engine_listed_qp(uint32_t qpn);
/* How many objects all programs have in it. */
uint64_t engine_objects(void);

#endif
