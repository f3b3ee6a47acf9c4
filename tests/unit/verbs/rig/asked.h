/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the libraries of this program ask the engine. They announce commands with write(2) and wait
 * for answers in a futex (queue/command_slot.h), and call this program's functions instead of libc's.
 */
#ifndef TESTS_VERBS_ASKED_H
#define TESTS_VERBS_ASKED_H

#include <stdint.h>

extern uint32_t asked; /* commands that were announced; also those without an answer */
/* Called once, in the thread that asks: the engine was asked, and the answer has not been looked at. */
extern void (*asked_before_reply)(void);
/* ... the engine has answered, and the thread does not know it yet. */
extern void (*asked_after_reply)(void);

#endif
