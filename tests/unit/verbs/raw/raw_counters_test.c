/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads may bind counters to rules at once. Runs, privileged, with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>

#include "raw_rig.h"
#include "rig/asked.h"
#include "verbs/queues/raw.h"

static struct raw_rig r;
static const struct counters *watched;
static bool locked; /* the lock of the watched counters, while the engine was asked */

static void look_at_lock(void)
{
	locked = watched->lock.taken != 0;
}

static void open_all(void)
{
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
}

TestSuite(raw_counters, .init = open_all, .fini = close_all, .timeout = 60);

Test(raw_counters, are_bound_under_their_lock)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *k = ibv_create_counters(r.context, &init);
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });

	cr_assert(k != NULL && flow != NULL, "%m");
	watched = counters_of(k);
	asked_before_reply = look_at_lock;
	cr_expect_eq(ibv_attach_counters_point_flow(k, &packets, flow), 0);
	cr_expect_eq(watched->lock.taken, 0, "it is given back");
	cr_expect_null(asked_before_reply, "the engine was asked");
	cr_expect(locked, "another thread could have bound the rule meanwhile");
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_counters(k), 0);
}
