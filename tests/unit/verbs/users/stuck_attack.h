/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs whose registered memory blocks for ever (mute_fuse.h): every kind of request reads or
 * writes it; then they are killed or deregister it.
 */
#ifndef TESTS_VERBS_STUCK_ATTACK_H
#define TESTS_VERBS_STUCK_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define STUCK_PROGRAMS 20u

enum stuck_begun {
	STUCK_ALL,
	STUCK_CANNOT, /* there is no FUSE, or there are no mount namespaces */
	STUCK_NOT_ALL, /* within WAIT_SECONDS */
};

/* In a child: a program of that user, which ends with its parent. */
bool stuck_become(uid_t uid);

/* Forks them. hidden: descriptors that they must not have. */
void stuck_begin(uid_t uid, const int hidden[2]);
/* Until the engine waits for the memory of each; why: which one is missing. */
enum stuck_begun stuck_await(char why[200]);
/* Those whose way out it is. */
void stuck_kill_some(void);
/* Its pid, 0 if it was killed. It has two queue pairs and two regions at most. */
pid_t stuck_program(size_t i);
/*
 * The engine has taken apart what was destroyed, or killed, although its memory blocks; `others` are queue
 * pairs beside them. It may end others of them, too.
 */
void stuck_await_queue_pairs(uint32_t others);
void stuck_end(void);

#endif
