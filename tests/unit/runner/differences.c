/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stands in for libgit2, which Criterion 2.4 uses to show how two texts differ (assertions of
 * criterion/new/assert.h, which no test uses). libgit2 brings 16 more libraries. A test program loads all of them
 * when it starts, Criterion reads their symbols 17 times, and each test is a process of its own: 2,090 page faults for a
 * program with one small test instead of 690. The dynamic linker takes the first library that has the name, and this one is
 * the test program's own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

SEEN int git_libgit2_init(void)
{
	return 1;
}

SEEN int git_libgit2_shutdown(void)
{
	return 0;
}

/* Criterion calls it after such an assertion has failed, and ends the program without a word if this fails. */
SEEN int git_diff_buffers(void)
{
	static const char why[] =
		"criterion/new/assert.h needs libgit2, which tests do not load: use the "
		"assertions of criterion/criterion.h\n";

	if (write(STDERR_FILENO, why, strlen(why)) < 0)
		exit(1);
	abort();
}
