/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gettimeofday() for programs of perftest, which rig.py loads with LD_PRELOAD.
 *
 * Such a program measures how often the processor's counter ticks in a microsecond. For that it reads
 * the time without a pause until 0.1 to 2.1 ms are over, 200 times: 0.22 s of a processor for each table
 * that it prints. This function sleeps if a thread asks again from the same place. Counter and time go on
 * meanwhile, so the measured figure stays right.
 *
 * The sleep is before the look at the time: nothing is then between the end of a measurement and the
 * program's look at the counter.
 */
#include <sys/time.h>
#include <time.h>

enum {
	PAUSE_NS = 500000
};

__attribute__((visibility("default"))) int gettimeofday(struct timeval *restrict tv,
							void *restrict tz)
{
	static _Thread_local const void *before;
	const void *place = __builtin_return_address(0);
	struct timespec now;

	if (place == before)
		nanosleep(&(struct timespec){ .tv_nsec = PAUSE_NS }, NULL);
	before = place;
	if (tz)
		*(struct timezone *)tz = (struct timezone){ 0 };
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	*tv = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}
