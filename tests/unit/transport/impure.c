/* SPDX-License-Identifier: BSD-3-Clause */
/* What the purity test must notice: a clock. */
#include <time.h>

time_t impure_now(void);

time_t impure_now(void)
{
	return time(NULL);
}
