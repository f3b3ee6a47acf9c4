/* SPDX-License-Identifier: BSD-3-Clause */
/* Users, their programs, and the queue pairs of those take turns; nobody is left behind. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/bits.h"
#include "lcore/turns/turns.h"

#define MANY 1000u

static struct turns turns;
/* User 7 has the programs 0 and 1, user 3 has program 2, user 5 program 1023. */
static struct client program[] = {
	{ .number = 0, .user = 7 },
	{ .number = 1, .user = 7 },
	{ .number = 2, .user = 3 },
	{ .number = LIMIT_CLIENTS - 1, .user = LIMIT_CLIENTS - 1 },
};
static struct engine_qp qp[MANY];

static void begin(void)
{
	memset(&turns, 0, sizeof(turns));
	memset(qp, 0, sizeof(qp));
	cr_assert(turns_open(&turns));
}

static void end(void)
{
	turns_close(&turns);
}

TestSuite(turns, .init = begin, .fini = end);

static struct engine_qp *add(uint32_t i, uint32_t of)
{
	qp[i].client = &program[of];
	turns_add(&turns, &qp[i]);
	return &qp[i];
}

/* The numbers of the queue pairs of the next turns. */
static void expect_turns(const uint32_t *numbers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct engine_qp *q = turns_next(&turns);

		cr_assert_not_null(q, "turn %u", i);
		cr_expect_eq((uint32_t)(q - qp), numbers[i], "turn %u is that of %u, not of %u", i,
			     (uint32_t)(q - qp), numbers[i]);
	}
}

#define EXPECT_TURNS(...) \
	expect_turns((const uint32_t[]){ __VA_ARGS__ }, ARRAY_SIZE(((uint32_t[]){ __VA_ARGS__ })))

Test(turns, nobody_is_there)
{
	cr_expect(turns_none(&turns));
	cr_expect_null(turns_next(&turns));
}

Test(turns, queue_pairs_of_a_program)
{
	for (uint32_t i = 0; i < 3; i++)
		add(i, 0);
	cr_expect_not(turns_none(&turns));
	EXPECT_TURNS(0, 1, 2, 0, 1);
	turns_leave(&turns, &qp[2]);
	EXPECT_TURNS(0, 1, 0);
	turns_add(&turns, &qp[2]);
	EXPECT_TURNS(1, 0, 2);
}

/* hostile H-25: a user with a thousand queue pairs, and one with a single one that comes last. */
Test(turns, many_queue_pairs_are_no_more_than_one)
{
	for (uint32_t i = 0; i < MANY - 1; i++)
		add(i, 0);
	EXPECT_TURNS(0, 1, 2);
	add(MANY - 1, 2);
	EXPECT_TURNS(3, MANY - 1, 4, MANY - 1, 5, MANY - 1);
}

/* ... also if each of them has only one packet, and leaves. */
Test(turns, who_leaves_has_had_a_turn)
{
	for (uint32_t i = 0; i < MANY - 1; i++)
		add(i, 0);
	add(MANY - 1, 2);
	for (uint32_t i = 0; i < MANY - 1; i++) {
		struct engine_qp *q = turns_next(&turns);

		cr_assert_eq(q, &qp[i]);
		turns_leave(&turns, q);
		cr_assert_eq(turns_next(&turns), &qp[MANY - 1], "after %u", i);
	}
	EXPECT_TURNS(MANY - 1, MANY - 1);
}

/* A user with two programs has as many turns as one with one. */
Test(turns, programs_of_a_user)
{
	add(0, 0);
	add(1, 0);
	add(2, 1);
	add(3, 2);
	EXPECT_TURNS(0, 3, 2, 3, 1, 3, 2, 3, 0);
}

Test(turns, the_last_one_takes_its_program_and_user_along)
{
	add(0, 0);
	add(1, 1);
	add(2, 3);
	turns_leave(&turns, &qp[0]);
	EXPECT_TURNS(1, 2, 1, 2);
	turns_leave(&turns, &qp[1]);
	EXPECT_TURNS(2, 2);
	turns_leave(&turns, &qp[2]);
	cr_expect(turns_none(&turns));
	add(0, 1);
	EXPECT_TURNS(0, 0);
}

Test(turns, of_one_program)
{
	add(0, 0);
	add(1, 1);
	add(2, 0);
	cr_expect_eq(TAILQ_FIRST(turns_of(&turns, &program[0])), &qp[0]);
	cr_expect_eq(TAILQ_LAST(turns_of(&turns, &program[0]), ready_list), &qp[2]);
	cr_expect(TAILQ_EMPTY(turns_of(&turns, &program[2])));
}

/* Some stood elsewhere meanwhile; one leaves from there. */
Test(turns, who_comes_back_is_first)
{
	struct ready_list elsewhere = TAILQ_HEAD_INITIALIZER(elsewhere);
	const uint32_t away[] = { 0, 2, 4, 1 };

	add(0, 0);
	add(1, 0);
	add(2, 0);
	add(3, 0);
	add(4, 2);
	for (uint32_t i = 0; i < ARRAY_SIZE(away); i++) {
		turns_leave(&turns, &qp[away[i]]);
		TAILQ_INSERT_TAIL(&elsewhere, &qp[away[i]], ready_link);
		qp[away[i]].stands_in = &elsewhere;
	}
	EXPECT_TURNS(3, 3);
	turns_leave(&turns, &qp[1]);
	turns_return(&turns, &elsewhere);
	cr_expect(TAILQ_EMPTY(&elsewhere));
	cr_expect_eq(qp[0].stands_in, turns_of(&turns, &program[0]));
	EXPECT_TURNS(0, 4, 2, 4, 3, 4, 0);
	turns_leave(&turns, &qp[0]);
	EXPECT_TURNS(4, 2, 4, 3);
}

/* An XRC target's heir is another program. */
Test(turns, of_another_program_meanwhile)
{
	add(0, 0);
	qp[0].client = &program[2];
	EXPECT_TURNS(0, 0);
	add(1, 2);
	EXPECT_TURNS(0, 1, 0);
	turns_leave(&turns, &qp[0]);
	EXPECT_TURNS(1, 1);
	turns_leave(&turns, &qp[1]);
	cr_expect(turns_none(&turns));
}
