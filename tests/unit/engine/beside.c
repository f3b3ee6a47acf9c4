/* SPDX-License-Identifier: BSD-3-Clause */
#include "beside.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void beside_open(struct beside *b)
{
	*b = (struct beside){ 0 };
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
	endpoint_open(&b->e);
	b->fd = attach();
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_once(struct endpoint *e, uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	e->buffer[0] = value;
	wr.wr.rdma.remote_addr = (uintptr_t)e->buffer + 4096;
	wr.wr.rdma.rkey = e->mr->rkey;
	cr_assert_eq(ibv_post_send(e->qp[0], &wr, &bad), 0);
	poll_completions(e->cq, &wc, 1, "a WRITE beside an attack");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(e->buffer[4096], value);
}

/* It takes nothing of the engine. */
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

	ask_once(b->fd);
	control = seconds_of_control() - control;
	return control - (seconds_without_processor() - deaf);
}

void beside_once(struct beside *b)
{
	double began = seconds(), control;

	write_once(&b->e, (uint8_t)b->rounds++);
	b->slow_writes += seconds() - began > BESIDE_DATA;
	began = seconds();
	control = asked_for(b);
	b->slow_commands += seconds() - began > BESIDE_COMMAND;
	b->control = control > b->control ? control : b->control;
}

void beside_close(struct beside *b)
{
	cr_log_info("%u rounds, %u WRITEs and %u commands slow, control up to %.3f s", b->rounds,
		    b->slow_writes, b->slow_commands, b->control);
	cr_expect_lt(b->slow_writes, b->rounds / 10 + 1, "%u of %u WRITEs were slow",
		     b->slow_writes, b->rounds);
	cr_expect_lt(b->slow_commands, b->rounds / 10 + 1, "%u of %u commands were slow",
		     b->slow_commands, b->rounds);
	cr_expect_lt(b->control, BESIDE_COMMAND, "the control thread did other work for %.3f s",
		     b->control);
	close(b->fd);
	endpoint_close(&b->e);
}
