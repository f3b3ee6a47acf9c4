/* SPDX-License-Identifier: BSD-3-Clause */
/* The command that measures cycles by stage: who may, one at a time, and that it ends by itself. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "control/control.h"
#include "control/statistics.h"
#include "rig/control_rig.h"

TestSuite(cmd_cycles, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

static struct reply_cycles reply;

static int cycles(int fd, uint32_t action, uint32_t every, uint32_t milliseconds)
{
	struct request_cycles q = { .action = action,
				    .every = every,
				    .milliseconds = milliseconds };
	struct carrier_descriptors out = { .count = 0 };

	return ask(fd, COMMAND_CYCLES, &q.h, sizeof(q), &reply.h, sizeof(reply), NULL, &out);
}

static int cycles_are_refused(void)
{
	int fd = message_connect(path);

	return fd >= 0 && cycles(fd, CYCLES_START, 1, 1) == EPERM &&
			       cycles(fd, CYCLES_READ, 0, 0) == EPERM
		       ? 0
		       : 1;
}

Test(cmd_cycles, strangers_measure_nothing)
{
	as_nobody(cycles_are_refused);
}

Test(cmd_cycles, wrong_wishes_are_refused)
{
	int fd = message_connect(path);

	cr_expect_eq(cycles(fd, 0, 1, 1), EINVAL);
	cr_expect_eq(cycles(fd, CYCLES_READ + 1, 1, 1), EINVAL);
	cr_expect_eq(cycles(fd, CYCLES_START, 0, 1), EINVAL);
	cr_expect_eq(cycles(fd, CYCLES_START, CYCLES_EVERY + 1, 1), EINVAL);
	cr_expect_eq(cycles(fd, CYCLES_START, 1, CYCLES_MS + 1), EINVAL);
	cr_expect_eq(cycles(fd, CYCLES_READ, 0, 0), 0);
	cr_expect_eq(reply.running, 0, "nothing of that began");
	close(fd);
	expect_serving();
}

/* Reads until there are rounds of that kind, within ENOUGH_MS. */
static bool await_rounds(int fd)
{
	for (int ms = 0; ms < ENOUGH_MS; ms++) {
		cr_assert_eq(cycles(fd, CYCLES_READ, 0, 0), 0);
		if (reply.rounds + reply.idle_rounds > 0)
			return true;
		usleep(1000);
	}
	return false;
}

Test(cmd_cycles, it_is_measured_and_read)
{
	int fd = message_connect(path);

	cr_assert_eq(cycles(fd, CYCLES_READ, 0, 0), 0);
	cr_expect_eq(reply.rounds + reply.idle_rounds + reply.idle_cycles, 0);
	cr_expect_gt(reply.hz, 1000000u);
	cr_assert_eq(cycles(fd, CYCLES_START, 1, CYCLES_MS), 0);
	cr_assert(await_rounds(fd), "no round was measured");
	cr_expect_eq(reply.running, 1);
	cr_expect_gt(reply.idle_cycles + reply.stage[STAGE_OTHER].cycles, 0);
	cr_expect_gt(reply.switch_cycles, 0);
	cr_expect_eq(cycles(fd, CYCLES_START, 1, CYCLES_MS), EBUSY);
	cr_expect_eq(cycles(fd, CYCLES_START, 1, 0), 0, "the end");
	cr_expect_eq(cycles(fd, CYCLES_READ, 0, 0), 0);
	cr_expect_eq(reply.running, 0);
	cr_expect_gt(reply.rounds + reply.idle_rounds, 0, "what was measured stays");
	cr_expect_eq(cycles(fd, CYCLES_START, 1, CYCLES_MS), 0, "another one");
	close(fd);
}

Test(cmd_cycles, the_asking_program_may_go)
{
	int fd = message_connect(path), ms = 0;

	cr_assert_eq(cycles(fd, CYCLES_START, 1, 20), 0);
	close(fd);
	fd = message_connect(path);
	do {
		cr_assert_eq(cycles(fd, CYCLES_READ, 0, 0), 0);
		usleep(1000);
	} while (reply.running && ++ms < ENOUGH_MS);
	cr_expect_eq(reply.running, 0, "it ends by itself");
	close(fd);
}

Test(cmd_cycles, an_embedding_program)
{
	struct reply_cycles own;

	uroce_cycles_start(engine, 1, CYCLES_MS);
	uroce_cycles(engine, &own);
	cr_expect_eq(own.running, 1);
	uroce_cycles_start(engine, 1, 0);
	uroce_cycles(engine, &own);
	cr_expect_eq(own.running, 0);
}
