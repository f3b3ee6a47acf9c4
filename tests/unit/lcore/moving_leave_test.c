/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that a mover is to make yet, to memory that its program takes back meanwhile. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/moving/moving.h"
#include "moving_rig.h"

static void begin(void)
{
	moving_rig_open(0);
}

TestSuite(moving_leave, .init = begin, .fini = moving_rig_close, .timeout = 60);

/* The side's memory is this client's: its first page as peer memory, the rest is direct. */
static void make_half_peer_of(uint32_t side, const struct client *c)
{
	struct region *old =
		(struct region *)(uintptr_t)key_withdraw(&r->engine.keys, r->side[side].key);
	struct region *m = calloc(1, sizeof(*m) + 2 * sizeof(m->piece[0]));

	*m = *old;
	free(old);
	m->client = c->number;
	m->pieces = 2;
	m->piece[0].peer_address = (uintptr_t)r->side[side].buffer;
	m->piece[1].offset = PAGE;
	m->piece[1].direct = r->side[side].buffer + PAGE;
	m->piece[1].peer_address = (uintptr_t)r->side[side].buffer + PAGE;
	key_publish(&r->engine.keys, r->side[side].key, m);
}

static bool all(const struct client *c, const void *at)
{
	return true;
}

static uint32_t jobs_into(const struct client *c)
{
	return moving_jobs_into(r->engine.lcore, c, moving_newest(r->engine.lcore));
}

/* The queue pair is another program's, as its protection domain is shared. */
Test(moving_leave, a_copy_goes_to_the_program_whose_memory_it_was)
{
	make_half_peer_of(1, &other);
	close_gate(&r->client);
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 0, 0, 8, 0));
	poll_some();
	cr_assert_eq(jobs_into(&other), 1);
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 64, PAGE + 64, 8, WORK_SIGNALED));
	poll_some();
	cr_assert_eq(r->engine.direct_moves[other.number], 1, "it waits for the one before it");
	cr_assert_eq(jobs_into(&other), 1);
	moving_leave(r->engine.lcore, &other, all);
	cr_expect_eq(r->engine.direct_moves[other.number], 0);
	cr_expect_eq(jobs_into(&other), 2, "its end does not wait for the second one");
	open_gate();
	run_until(0, 1);
	cr_expect_arr_eq(r->side[1].buffer + PAGE + 64, r->side[0].buffer + 64, 8);
}
