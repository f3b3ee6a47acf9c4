/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A healthy pair of root's beside an attack: its WRITEs and commands have no error, and none of them is
 * held up. Time in which threads that could run had no processor counts for nothing (starved.h). That
 * could excuse a command while lcores are busy; so what the control thread did before it answered is
 * looked at, too.
 */
#ifndef TESTS_ENGINE_BESIDE_H
#define TESTS_ENGINE_BESIDE_H

#include "../verbs/rig/endpoint.h"
#include "../verbs/rig/starved.h"
#include "control_rig.h"

#define BESIDE_COMMAND 0.2 /* s, of the engine's own */
#define BESIDE_DATA    0.1

struct beside {
	struct endpoint e; /* of the test's own process, which has the engine inside */
	int fd; /* of another program */
	uint32_t rounds;
	struct starved starved;
	double data, command; /* s, the longest */
	double control; /* s, the most other work of the control thread before it answered */
};

/* The engine is there; libibverbs.so.1 of this process learns of it. */
void beside_open(struct beside *b);
/* One WRITE and one command. */
void beside_once(struct beside *b);
/* Checks the measured times. */
void beside_close(struct beside *b);

#endif
