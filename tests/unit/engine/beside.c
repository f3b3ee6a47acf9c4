/* SPDX-License-Identifier: BSD-3-Clause */
#include "beside.h"

#include <stdlib.h>
#include <unistd.h>

void beside_open(struct beside *b)
{
	*b = (struct beside){ 0 };
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
	endpoint_open(&b->e);
	b->fd = attach();
	starved_open(&b->starved);
}

static double write_once(struct endpoint *e, struct starved *s, uint8_t value)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;
	double took;

	e->buffer[0] = value;
	wr.wr.rdma.remote_addr = (uintptr_t)e->buffer + 4096;
	wr.wr.rdma.rkey = e->mr->rkey;
	took = starved_request(s, e->qp[0], e->cq, &wr, &wc);
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "a WRITE beside an attack: %s",
		     ibv_wc_status_str(wc.status));
	cr_assert_eq(e->buffer[4096], value);
	return took;
}

/* It takes nothing of the engine. */
static double ask_once(int fd, struct starved *s)
{
	struct request_empty q = { 0 };
	struct reply_device r;

	starved_begin(s);
	cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0,
		     "a command beside an attack");
	return starved_control(s);
}

void beside_once(struct beside *b)
{
	double took = write_once(&b->e, &b->starved, (uint8_t)b->rounds++);

	b->data = took > b->data ? took : b->data;
	took = ask_once(b->fd, &b->starved);
	b->command = took > b->command ? took : b->command;
}

void beside_close(struct beside *b)
{
	cr_log_info("%u rounds, WRITEs up to %.3f s, commands up to %.3f s", b->rounds, b->data,
		    b->command);
	cr_expect_lt(b->data, BESIDE_DATA, "a WRITE took %.3f s", b->data);
	cr_expect_lt(b->command, BESIDE_COMMAND, "a command took %.3f s", b->command);
	starved_close(&b->starved);
	close(b->fd);
	endpoint_close(&b->e);
}
