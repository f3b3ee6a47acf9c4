/* SPDX-License-Identifier: BSD-3-Clause */
/* When queue pairs are due: never early, late by a slot at most, and none is lost. */
#include <criterion/criterion.h>

#include "loop_rig.h"

#define SLOT ((nanotime)1 << WHEEL_TICK_SHIFT)
#define TURN (WHEEL_SLOTS * SLOT)

static struct rig *r;
static struct lcore *l;
static struct wheel *w;
static nanotime start; /* the wheel's */

static struct engine_qp *qp(uint32_t i)
{
	return &r->side[i].qp;
}

static void begin(void)
{
	rig_timeout = 0; /* the cores want nothing */
	r = rig_open();
	l = r->engine.lcore;
	w = &l->wheel;
	start = w->tick << WHEEL_TICK_SHIFT;
}

static void end(void)
{
	rig_close(r);
}

TestSuite(wheel, .init = begin, .fini = end, .timeout = 30);

Test(wheel, a_deadline_is_never_early_and_late_by_a_slot)
{
	static const nanotime in[] = { 0, 1, SLOT - 1, SLOT, 100 * SLOT + 7, TURN - 2 * SLOT };
	nanotime now = start;

	for (uint32_t i = 0; i < sizeof(in) / sizeof(in[0]); i++) {
		nanotime at = now + in[i];

		wheel_set(w, qp(0), at);
		cr_expect_eq(wheel_turn(l, at), 0, "case %u: early", i);
		cr_expect(qp(0)->in_wheel);
		cr_expect_gt(wheel_next(w), at);
		cr_expect_leq(wheel_next(w), at + SLOT, "case %u: late", i);
		cr_expect_eq(wheel_turn(l, at + SLOT), 1, "case %u", i);
		cr_expect_not(qp(0)->in_wheel);
		cr_expect_eq(wheel_next(w), TIME_NEVER);
		now = at + SLOT;
	}
}

/* One that moves away stays where it is: its queue pair is asked again then. */
Test(wheel, a_deadline_that_moves_nearer_counts_at_once)
{
	wheel_set(w, qp(0), start + 50 * SLOT);
	wheel_set(w, qp(0), start + 90 * SLOT);
	cr_expect_leq(wheel_next(w), start + 51 * SLOT);
	wheel_set(w, qp(0), start + 10 * SLOT);
	cr_expect_leq(wheel_next(w), start + 11 * SLOT);
	wheel_set(w, qp(0), TIME_NEVER);
	cr_expect_eq(w->entries, 1);
	cr_expect_eq(wheel_turn(l, start + 11 * SLOT), 1);
	cr_expect_eq(wheel_turn(l, start + 100 * SLOT), 0, "it stood there twice");
}

/* In the past: with the next look. Beyond a turn of the wheel: asked again at its end. */
Test(wheel, a_deadline_may_be_anywhere)
{
	wheel_turn(l, start + 10 * SLOT);
	wheel_set(w, qp(0), start);
	cr_expect_eq(wheel_turn(l, start + 11 * SLOT), 1);
	wheel_set(w, qp(0), start + 100 * TURN);
	cr_expect_eq(wheel_turn(l, start + TURN), 0);
	cr_expect_eq(wheel_turn(l, start + TURN + 12 * SLOT), 1);
}

/* However long nobody looked: the first slot of a turn, the last one, and what is between. */
Test(wheel, after_a_long_sleep_none_is_lost)
{
	static const nanotime slept[] = { TURN - SLOT, TURN, TURN + SLOT, 7 * TURN + 5 * SLOT };
	nanotime now = start;

	for (uint32_t i = 0; i < sizeof(slept) / sizeof(slept[0]); i++) {
		wheel_set(w, qp(0), now);
		wheel_set(w, qp(1), now + SLOT);
		wheel_set(w, qp(2), now + TURN / 2);
		wheel_set(w, qp(3), now + TURN - 3 * SLOT);
		now += slept[i];
		cr_expect_eq(wheel_turn(l, now), 4, "%u", i);
		cr_expect_eq(w->entries, 0);
		now += SLOT;
	}
}

/* A slot is empty when the last one of it has gone. */
Test(wheel, one_that_goes_leaves_the_others_of_its_slot)
{
	for (uint32_t i = 0; i < 3; i++)
		wheel_set(w, qp(i), start + 20 * SLOT);
	wheel_remove(w, qp(1));
	wheel_remove(w, qp(1));
	cr_expect_eq(w->entries, 2);
	cr_expect_neq(wheel_next(w), TIME_NEVER);
	wheel_remove(w, qp(0));
	cr_expect_eq(wheel_turn(l, start + 30 * SLOT), 1);
	wheel_set(w, qp(0), start + 40 * SLOT);
	wheel_remove(w, qp(0));
	cr_expect_eq(wheel_next(w), TIME_NEVER);
}

/* It is not looked at any more. */
Test(wheel, a_queue_pair_that_goes_leaves_the_wheel)
{
	wheel_set(w, qp(0), start + 20 * SLOT);
	lcore_qp_detach(l, qp(0), clock_now());
	cr_expect_not(qp(0)->in_wheel);
	cr_expect_eq(w->entries, 0);
	directory_publish(&r->engine, qp(0)); /* rig_close detaches it again */
}
