/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "base/reason.h"

/* Numbers come from an engine of another version, too. */
Test(reason, numbers_that_are_none_have_words)
{
	for (unsigned int n = 0; n < REASON_COUNT; n++) {
		cr_expect_gt(strlen(reason_name((enum reason)n)), 0, "%u", n);
		cr_expect_gt(strlen(reason_sentence((enum reason)n)), 0, "%u", n);
	}
	cr_expect_str_eq(reason_name(REASON_COUNT), "unknown");
	cr_expect_str_eq(reason_sentence(REASON_COUNT), "an unknown reason");
}
