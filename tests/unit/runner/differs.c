/* SPDX-License-Identifier: BSD-3-Clause */
/* The only test that uses criterion/new/assert.h: what an author gets who does. Run by differences_test.py. */
#include <criterion/assert.h>
#include <criterion/internal/test.h>
#include <criterion/new/assert.h>

Test(differs, with_an_assertion_that_needs_libgit2)
{
	char one[] = "first\nsecond\n", other[] = "first\n2nd\n";

	cr_assert(eq(str, one, other));
}
