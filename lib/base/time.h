/* SPDX-License-Identifier: BSD-3-Clause */
/* Time in the core: nanoseconds of a monotonic clock. The core never reads the clock itself. */
#ifndef BASE_TIME_H
#define BASE_TIME_H

#include <stdint.h>

typedef uint64_t nanotime; /* an instant or a duration, ns */

#define TIME_NEVER UINT64_MAX
#define TIME_US	   UINT64_C(1000)
#define TIME_MS	   UINT64_C(1000000)
#define TIME_S	   UINT64_C(1000000000)

static inline nanotime time_earlier(nanotime a, nanotime b)
{
	return a < b ? a : b;
}

#endif
