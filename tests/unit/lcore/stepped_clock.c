/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock of tests that are alone with their lcore: each reading is a microsecond after the last
 * one. A machine that stops the test for a while then cannot make a timer expire.
 */
#include "lcore/inside.h"

nanotime __wrap_clock_now(void);

nanotime __wrap_clock_now(void)
{
	static nanotime now = TIME_S;

	return now += TIME_US;
}
