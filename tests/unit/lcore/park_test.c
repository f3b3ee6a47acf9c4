/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs of one peer share a path, which holds them back in fair turns. */
#include <criterion/criterion.h>

#include "lcore/paths.h"
#include "loop_rig.h"
#include "loop_wire.h"

#define POLLS 200000
#define MANY  64u

static uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		wire[wire_head++ % WIRE] = m[i];
	return n;
}

static const struct port_ops ops = { .rx_burst = wire_rx, .tx_burst = port_tx };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };

static struct rig *open_with_port(void)
{
	struct rig *r = rig_open();

	rig_use_port(r, &port);
	for (uint32_t i = 0; i < RIG_SIDES; i++)
		lcore_qp_touch(r->engine.lcore, &r->side[i].qp, clock_now());
	return r;
}

static struct listed_path only_path(const struct rig *r)
{
	struct listed_path path[2];
	uint32_t count = 0;

	cr_assert_eq(paths_list(r->engine.lcore, 0, path, 2, &count), 0);
	cr_assert_eq(count, 1);
	return path[0];
}

Test(park, queue_pairs_of_one_peer_share_one)
{
	struct rig *r = open_with_port();
	struct listed_path path;
	uint32_t count = 0;

	for (uint32_t i = 1; i < RIG_SIDES; i++)
		cr_assert_eq(r->side[i].qp.way, r->side[0].qp.way);
	cr_assert_eq(only_path(r).qps, RIG_SIDES);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	cr_assert_gt(only_path(r).round_trip_ns, 0);
	cr_assert_eq(only_path(r).flying, 0);
	for (uint32_t i = 0; i < RIG_SIDES; i++) {
		r->side[i].qp.flow_state = FLOW_LOOP; /* one of our own addresses */
		lcore_qp_touch(r->engine.lcore, &r->side[i].qp, clock_now());
		cr_assert_null(r->side[i].qp.way);
	}
	paths_list(r->engine.lcore, 0, &path, 1, &count);
	cr_assert_eq(count, 0, "nobody is on it");
	rig_close(r);
}

/* A window of two packets for two senders: both come to their end, in step, and nothing is lost. */
Test(park, turns_are_fair)
{
	struct rig *r = open_with_port();
	struct path *p = &r->side[0].qp.way->core;

	for (uint32_t i = 0; i < MANY; i++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 4096, WORK_SIGNALED));
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 4096, WORK_SIGNALED));
	}
	for (int i = 0; i < POLLS && r->side[0].completions + r->side[2].completions < 2 * MANY;
	     i++) {
		uint32_t ahead = r->side[0].completions, behind = r->side[2].completions;

		p->starting = false;
		p->window = 2 * 4200;
		rig_poll(r);
		if (ahead < MANY && behind < MANY)
			cr_assert(ahead <= behind + 2 * LIMIT_TURN &&
					  behind <= ahead + 2 * LIMIT_TURN,
				  "%u and %u", ahead, behind);
	}
	cr_assert_eq(r->side[0].completions, MANY);
	cr_assert_eq(r->side[2].completions, MANY);
	cr_assert_eq(r->side[2].last.status, STATUS_SUCCESS);
	cr_assert_gt(p->events[PATH_WAIT], 0);
	cr_assert_eq(p->held, 0);
	cr_assert_eq(p->flying, 0);
	rig_close(r);
}

/* Queue pairs with room for whole turns go at once, and the others keep their places. */
Test(park, as_many_go_as_have_room)
{
	for (uint32_t turns = 1; turns <= 2; turns++) {
		struct rig *r = open_with_port();
		struct path *p = &r->side[0].qp.way->core;

		p->flying = p->window; /* as if others had all of it */
		path_looked(p);
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
		for (int i = 0; i < POLLS && only_path(r).parked < 2; i++)
			rig_poll(r);
		cr_assert_eq(only_path(r).parked, 2, "%u wait", only_path(r).parked);
		p->flying = 0;
		p->window = (uint64_t)turns * LIMIT_TURN * p->packet;
		paths_release(r->engine.lcore, clock_now());
		cr_expect_eq((uint32_t)(r->side[0].qp.parked + r->side[2].qp.parked), 2 - turns);
		for (int i = 0; i < POLLS && r->side[0].completions + r->side[2].completions < 2;
		     i++)
			rig_poll(r);
		cr_expect_eq(r->side[0].last.status, STATUS_SUCCESS);
		cr_expect_eq(r->side[2].last.status, STATUS_SUCCESS);
		rig_close(r);
	}
}

/* One that waits on its path and goes leaves nothing behind. */
Test(park, a_waiting_queue_pair_may_go)
{
	struct rig *r = open_with_port();
	struct path *p = &r->side[0].qp.way->core;

	p->flying = p->window; /* as if others had all of it */
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < 10; i++)
		rig_poll(r);
	cr_assert(r->side[0].qp.parked);
	cr_assert_eq(only_path(r).parked, 1);
	cr_assert_eq(r->engine.lcore->stats.timeouts, 0);
	lcore_qp_detach(r->engine.lcore, &r->side[0].qp, clock_now());
	cr_assert_eq(only_path(r).parked, 0);
	cr_assert_eq(only_path(r).qps, RIG_SIDES - 1);
	p->flying = 0;
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[2].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[2].last.status, STATUS_SUCCESS);
	directory_publish(&r->engine, &r->side[0].qp); /* rig_close detaches it again */
	rig_close(r);
}
