/* SPDX-License-Identifier: BSD-3-Clause */
/* A create that must fail with this errno and leave nothing in the engine. */
#ifndef TESTS_VERBS_REFUSED_H
#define TESTS_VERBS_REFUSED_H

#include <criterion/criterion.h>
#include <errno.h>

#include "rig/engine_objects.h"

static inline void refused(const void *made, int error, uint64_t objects, const char *what)
{
	cr_expect_null(made, "%s", what);
	cr_expect_eq(errno, error, "%s: errno %d (%m), not %d", what, errno, error);
	cr_expect_eq(engine_objects(), objects, "%s: left something in the engine", what);
	errno = 0;
}

#define REFUSED(call, error, what)                    \
	do {                                          \
		uint64_t objects_ = engine_objects(); \
                                                      \
		errno = 0;                            \
		refused(call, error, objects_, what); \
	} while (0)

#endif
