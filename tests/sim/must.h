/* SPDX-License-Identifier: BSD-3-Clause */
/* The simulator ends if it has no memory left. */
#ifndef TESTS_SIM_MUST_H
#define TESTS_SIM_MUST_H

#include <stdio.h>
#include <stdlib.h>

static inline void *must(void *p)
{
	if (p == NULL) {
		perror("simulator");
		abort();
	}
	return p;
}

#endif
