/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine of the test's own, $UROCED, at 127.0.0.1, that dies when the test wants it. UROCE_SOCKET
 * names it while a test runs; what is left of it goes with the test.
 */
#ifndef TESTS_VERBS_MORTAL_ENGINE_H
#define TESTS_VERBS_MORTAL_ENGINE_H

void mortal_engine_begin(void);
void mortal_engine_end(void);
/* Dead, and its socket with it, so that another may start. */
void mortal_engine_kill(void);
/* Returns when it serves. */
void mortal_engine_start(void);

#endif
