/* SPDX-License-Identifier: BSD-3-Clause */
/* How many places a user may have: users share them, however many programs a user has. */
#include <criterion/criterion.h>

#include <rte_mbuf.h>

#include "lcore/moving/slots.h"

#define PLACES 100u
#define KEPT   20u
#define FEW    4u

static struct slots *slots;

static void open_slots(void)
{
	slots = slots_create(PLACES, KEPT, FEW, 1);
	cr_assert_not_null(slots);
}

static void close_slots(void)
{
	slots_destroy(slots);
}

TestSuite(slots, .init = open_slots, .fini = close_slots, .timeout = 30);

static struct held_packet *take(uint32_t program, uint32_t user)
{
	const struct client c = { .number = program, .user = user };
	const struct packet p = { .psn = program };

	return slot_take(slots, &c, &p, NULL);
}

/* As many as it is given. */
static uint32_t take_all(uint32_t program, uint32_t user)
{
	uint32_t n = 0;

	while (n <= PLACES && take(program, user) != NULL)
		n++;
	return n;
}

/* So that its user's other programs find some, too. */
Test(slots, one_program_has_a_third)
{
	cr_expect_eq(take_all(1, 1), (PLACES - KEPT + 2) / 3);
}

/* As many as are free then, beside those that are kept. */
Test(slots, the_programs_of_a_user_have_half_together)
{
	uint32_t of_user = 0;

	for (uint32_t program = 0; program < 50; program++)
		of_user += take_all(program, 1);
	cr_expect_eq(of_user, (PLACES - KEPT) / 2);
}

/* The next user has its few, the last one, too, as long as there are any. */
Test(slots, each_user_has_a_few)
{
	uint32_t taken = 0;

	for (uint32_t program = 0; program < 50; program++)
		taken += take_all(program, 1);
	for (uint32_t user = 2; user < 2 + KEPT / FEW; user++) {
		uint32_t n = take_all(100 + user, user);

		cr_expect_geq(n, FEW, "user %u has %u", user, n);
		taken += n;
	}
	cr_expect_leq(taken, PLACES);
}

Test(slots, a_user_with_many_places_gets_no_more_when_others_come)
{
	for (uint32_t program = 0; program < 50; program++)
		take_all(program, 1);
	cr_assert_gt(take_all(100, 2), FEW);
	cr_expect_null(take(60, 1));
}

Test(slots, there_are_as_many_places_as_asked_for)
{
	uint32_t taken = 0;

	for (uint32_t user = 1; user < 64; user++)
		taken += take_all(user, user);
	cr_expect_eq(taken, PLACES);
	cr_expect_null(take(64, 64), "not even one of a few");
}

/* A place that is given back counts neither for its program nor for its user. */
Test(slots, what_is_given_back_is_free_again)
{
	struct held_packet *held[PLACES];
	uint32_t before = 0;

	while ((held[before] = take(1, 1)) != NULL)
		before++;
	for (uint32_t i = 0; i < before; i++)
		slot_free(slots, held[i]);
	cr_expect_eq(take_all(2, 1), before, "another program of the user");
}

Test(slots, a_place_says_whose_it_is)
{
	const struct client c = { .number = 3, .user = 5 };
	const struct packet p = { .psn = 77 };
	struct rte_mbuf m;
	struct held_packet *e = slot_take(slots, &c, &p, &m);

	cr_assert_not_null(e);
	cr_expect_eq(e->client, 3);
	cr_expect_eq(e->user, 5);
	cr_expect_eq(e->packet.psn, 77);
	cr_expect_eq(e->mbuf, &m);
}
