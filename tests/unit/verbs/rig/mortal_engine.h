/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test's own engine, $UROCED, at 127.0.0.1, which dies when the test wants it. UROCE_SOCKET
 * names it while a test runs. What is left of it ends with the test.
 */
#ifndef TESTS_VERBS_MORTAL_ENGINE_H
#define TESTS_VERBS_MORTAL_ENGINE_H

#include <stdbool.h>

void mortal_engine_begin(void);
void mortal_engine_end(void);
/* Kills it and removes its socket, so that another can start. */
void mortal_engine_kill(void);
/* Whether it ends within that time after that signal; its socket is removed then. */
bool mortal_engine_ends(int signal, int milliseconds);
/* Starts it; returns when it serves. */
void mortal_engine_start(void);

#endif
