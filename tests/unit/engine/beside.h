/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A healthy pair of root's beside an attack: its WRITEs and commands have no error, and are not
 * held up. Other work on the machine makes one in ten slow at most; what the control thread had of a
 * processor says how long it kept a command waiting, whatever else the machine does.
 */
#ifndef TESTS_ENGINE_BESIDE_H
#define TESTS_ENGINE_BESIDE_H

#include "../verbs/endpoint.h"
#include "control_rig.h"

#define BESIDE_COMMAND 0.2 /* s */
#define BESIDE_DATA    0.1

struct beside {
	struct endpoint e; /* of the test's own process, which has the engine inside */
	int fd; /* of another program */
	uint32_t rounds, slow_commands, slow_writes;
	double control; /* s, the most other work of the control thread before it answered */
};

/* The engine is there; libibverbs.so.1 of this process learns of it. */
void beside_open(struct beside *b);
/* One WRITE and one command. */
void beside_once(struct beside *b);
/* Looks at what was measured. */
void beside_close(struct beside *b);

#endif
