/* SPDX-License-Identifier: BSD-3-Clause */
/* A program of another user (nobody) that takes as much as it can, and keeps it. */
#ifndef TESTS_ENGINE_ATTACKER_H
#define TESTS_ENGINE_ATTACKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "control_rig.h"

struct taken {
	uint64_t n; /* of those that it wanted */
	int error; /* that ended it */
	char why[104]; /* the sentence of the refusal */
};

struct attacker {
	pid_t pid;
	int go, said; /* pipes */
};

/* Runs take() as nobody in a program of its own, which then waits. Skips where we are not root. */
void attack_begin(struct attacker *a, void (*take)(struct taken *t));
/* ... it does this before it ends. */
void attack_begin_with(struct attacker *a, void (*take)(struct taken *t), bool (*last)(void));
/* Whether the attacker was done within that time: then attack_result() does not wait. */
bool attack_is_over(const struct attacker *a, int within_ms);
/* What it got. */
struct taken attack_result(struct attacker *a);
/* It is to end. */
void attack_let_go(struct attacker *a);
/* ... and has ended. */
void attack_end(struct attacker *a);

/* One request again and again, many on their way at a time, until `most` were made or one fails. */
void take_many(int fd, enum command what, struct command_request *q, size_t q_size, uint64_t most,
	       struct taken *t);
/*
 * A connection with HELLO and a context, -1: t->error says why not. Without assertions, which are
 * for the test's own process.
 */
int try_attach(struct taken *t, uint32_t *context);

#endif
