/* SPDX-License-Identifier: BSD-3-Clause */
#include "beside.h"

#include <criterion/logging.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"

void beside_open(struct beside *b)
{
	*b = (struct beside){ 0 };
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
	endpoint_open(&b->e);
	b->fd = attach();
	starved_open(&b->starved);
}

/* It takes none of the engine's resources. */
static void ask_once(int fd)
{
	struct request_empty q = { 0 };
	struct reply_device r;

	cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0,
		     "a command beside an attack");
}

/*
 * How long the control thread did other work before it answered: what it did until we heard of the
 * answer, less the time in which we could not hear of it.
 */
static double asked_for(struct beside *b)
{
	double deaf = seconds_without_processor(), control = seconds_of_control();

	starved_begin(&b->starved);
	ask_once(b->fd);
	b->command = MAX_OF(b->command, starved_command(&b->starved));
	control = seconds_of_control() - control;
	return control - (seconds_without_processor() - deaf);
}

void beside_once(struct beside *b)
{
	double took = starved_write(&b->starved, &b->e, b->rounds++);

	b->data = MAX_OF(b->data, took);
	took = asked_for(b);
	b->control = MAX_OF(b->control, took);
}

void beside_close(struct beside *b)
{
	cr_log_info("%u rounds, WRITEs up to %.3f s, commands up to %.3f s, control up to %.3f s",
		    b->rounds, b->data, b->command, b->control);
	cr_expect_gt(b->rounds, 0);
	cr_expect_lt(b->data, BESIDE_DATA, "no data for %.3f s", b->data);
	cr_expect_lt(b->command, BESIDE_COMMAND, "a command took %.3f s", b->command);
	cr_expect_lt(b->control, BESIDE_COMMAND, "the control thread did other work for %.3f s",
		     b->control);
	starved_close(&b->starved);
	close(b->fd);
	endpoint_close(&b->e);
}
