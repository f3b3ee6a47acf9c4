/* SPDX-License-Identifier: BSD-3-Clause */
/* An lcore that cannot be made leaves nothing behind, and takes nothing of others along. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "loop_rig.h"

static bool no_memory;

bool __real_turns_open(struct turns *t);
bool __wrap_turns_open(struct turns *t);

bool __wrap_turns_open(struct turns *t)
{
	return !no_memory && __real_turns_open(t);
}

/* The memory ends before the lcore has descriptors. Descriptor 0 is the program's. */
Test(init, an_lcore_without_memory_closes_no_descriptor_of_others, .timeout = 60)
{
	static struct lcore another;
	struct rig *r = rig_open();
	int fd = open("/dev/null", O_RDONLY);

	cr_assert_geq(fd, 0);
	cr_assert_eq(dup2(fd, 0), 0);
	no_memory = true;
	cr_assert_eq(lcore_init(&r->engine, &another, 1), ENOMEM);
	cr_expect_geq(fcntl(0, F_GETFD), 0, "it was closed");
	if (fd != 0)
		close(fd);
	rig_close(r);
}
