/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles by stage on an lcore: what a WRITE passes, which rounds count, and that off is off. */
#include <criterion/criterion.h>

#include "lcore/cycles.h"
#include "loop_rig.h"

#define POLLS 1000

static struct rig *r;
static struct lcore *l;
static uint64_t now, readings;

/* Each reading finds that a cycle passed. */
static uint64_t read_clock(void)
{
	readings++;
	return ++now;
}

static void begin(void)
{
	r = rig_open();
	l = r->engine.lcore;
	now = readings = 0;
	l->cycles->clock = read_clock;
}

static void end(void)
{
	rig_close(r);
}

TestSuite(cycles, .init = begin, .fini = end, .timeout = 60);

static void start(uint32_t every, nanotime until)
{
	cycles_start(l, &(struct cycles_wish){ .every = every, .until = until }, clock_now());
}

static struct cycles_reading reading(void)
{
	struct cycles_reading now_it_is = { .running = false };

	cycles_read(l, &now_it_is, clock_now());
	return now_it_is;
}

/* One message from side 0 to side 1, until it completes. */
static void message(enum work_opcode opcode, uint32_t length)
{
	uint32_t before = r->side[0].completions;

	cr_assert(rig_post(r, 0, opcode, length, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[0].completions == before; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, before + 1);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
}

static uint64_t sum_of(const struct cycles_sum *s)
{
	uint64_t sum = s->idle_cycles + s->interrupted_cycles;

	for (enum stage i = 0; i < STAGE_COUNT; i++)
		sum += s->cycles[i];
	return sum;
}

Test(cycles, off_reads_no_clock)
{
	struct cycles_sum s;

	message(WORK_RDMA_WRITE, 8);
	s = reading().sum;
	cr_expect_eq(readings, 0);
	cr_expect_eq(sum_of(&s) + s.rounds + s.idle_rounds, 0);
	cr_expect_null(l->stages);
	cr_expect_null(l->keys.stages);
}

Test(cycles, a_write_passes_each_stage)
{
	struct cycles_sum s;

	start(1, TIME_NEVER);
	message(WORK_RDMA_WRITE, 8);
	s = reading().sum;
	for (enum stage i = 0; i < STAGE_COUNT; i++)
		cr_expect_gt(s.passes[i], 0, "%s", stage_name(i));
	cr_expect_eq(s.passes[STAGE_DECODE], 2, "the WRITE and its ACK");
	cr_expect_eq(s.passes[STAGE_ENCODE], 2);
	cr_expect_eq(s.passes[STAGE_PLACE] - s.rounds, 1, "the WRITE");
	cr_expect_eq(s.passes[STAGE_KEY], 2, "of its memory there and here");
	for (enum stage i = 0; i < STAGE_COUNT; i++)
		cr_expect_eq(s.cycles[i], s.passes[i], "%s: a cycle a pass", stage_name(i));
	cr_expect_eq(s.interrupted_rounds, 0);
	cr_expect_eq(sum_of(&s) + s.rounds + s.idle_rounds, now,
		     "all but those between two rounds, of which each takes one");
	cr_expect_null(l->stages, "between rounds");
}

/* Each reading finds that a cycle passed, and the one behind a completion, a thousand. */
static uint64_t read_slow_clock(void)
{
	static uint64_t seen;
	uint64_t pushed = r->side[0].send_cq.rings.now->head;

	now += pushed != seen ? 1000 : 1;
	seen = pushed;
	return now;
}

Test(cycles, are_those_of_the_stage_whose_work_it_was)
{
	struct cycles_sum s;

	read_slow_clock();
	l->cycles->clock = read_slow_clock;
	start(1, TIME_NEVER);
	message(WORK_RDMA_WRITE, 8);
	s = reading().sum;
	for (enum stage i = 0; i < STAGE_COUNT; i++)
		cr_expect_eq(s.cycles[i] >= 1000, i == STAGE_COMPLETE, "%s: %lu", stage_name(i),
			     s.cycles[i]);
}

Test(cycles, what_is_not_passed_has_none)
{
	struct cycles_sum s;

	start(1, TIME_NEVER);
	cr_assert(rig_receive(r, 1));
	message(WORK_SEND, 0);
	s = reading().sum;
	cr_expect_eq(s.passes[STAGE_KEY] + s.cycles[STAGE_KEY], 0, "there is no memory");
	cr_expect_gt(s.passes[STAGE_COMPLETE], 0);
}

Test(cycles, rounds_without_work_count_apart)
{
	struct cycles_sum s;

	start(1, TIME_NEVER);
	for (int i = 0; i < 10; i++)
		rig_poll(r);
	s = reading().sum;
	cr_expect_eq(s.idle_rounds, 10);
	cr_expect_eq(s.rounds, 0);
	cr_expect_gt(s.idle_cycles, 0);
	cr_expect_eq(sum_of(&s), s.idle_cycles);
}

/* As if another thread had had the processor within a stage. */
Test(cycles, interrupted_rounds_count_apart)
{
	struct cycles_sum s;

	l->cycles->stretch = 1000;
	start(1, TIME_NEVER);
	cycles_begin(l, clock_now());
	now += 999;
	cycles_end(l, true);
	cycles_begin(l, clock_now());
	now += 1000;
	cycles_end(l, true);
	s = reading().sum;
	cr_expect_eq(s.rounds, 1);
	cr_expect_eq(s.interrupted_rounds, 1);
	cr_expect_eq(s.cycles[STAGE_OTHER], 1000);
	cr_expect_eq(s.interrupted_cycles, 1001);
}

Test(cycles, one_round_of_so_many)
{
	start(7, TIME_NEVER);
	for (int i = 0; i < 70; i++)
		rig_poll(r);
	cr_expect_eq(reading().sum.idle_rounds, 10);
}

Test(cycles, it_ends_by_itself)
{
	struct cycles_sum s;
	uint64_t then;

	start(1, clock_now() + TIME_S * 3600);
	message(WORK_RDMA_WRITE, 8);
	cr_expect(reading().running);
	l->cycles->until = clock_now();
	cr_expect_not(reading().running);
	then = readings;
	message(WORK_RDMA_WRITE, 8);
	cr_expect_eq(readings, then);
	s = reading().sum;
	cr_expect_eq(s.passes[STAGE_DECODE], 2, "what was measured stays");
	start(0, 0);
	cr_expect_eq(reading().sum.rounds, s.rounds);
	start(1, TIME_NEVER);
	cr_expect_eq(reading().sum.rounds, 0, "from nothing");
}

/* A message of the control path, within a round that is being measured. */
Test(cycles, switched_in_a_round)
{
	struct cycles_sum s;

	start(1, TIME_NEVER);
	cycles_begin(l, clock_now());
	cr_assert_not_null(l->stages);
	start(1, TIME_NEVER);
	cr_expect_null(l->stages, "that round is not a whole one");
	cr_expect_null(l->keys.stages);
	message(WORK_RDMA_WRITE, 8);
	s = reading().sum;
	cr_expect_eq(s.passes[STAGE_DECODE], 2);
}

Test(cycles, a_switch_takes_a_little)
{
	uint64_t cycles = cycles_of_switch();

	cr_expect(cycles > 0 && cycles < 1000000, "%lu", (unsigned long)cycles);
}
