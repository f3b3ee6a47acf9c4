/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of queue pairs: which are handed out, and when again. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lcore/inside.h"

#define SLOTS (1u << 20)

static struct engine *engine;
static struct engine_qp *qp;

static void begin(void)
{
	engine = calloc(1, sizeof(*engine));
	qp = calloc(1, sizeof(*qp));
	cr_assert(engine != NULL && qp != NULL);
	cr_assert_eq(directory_init(engine), 0);
}

static void end(void)
{
	directory_destroy(engine);
	free(engine);
	free(qp);
}

TestSuite(directory, .init = begin, .fini = end, .timeout = 60);

static void give_back(uint32_t slot, nanotime when)
{
	qp->qpn = slot << 4;
	directory_remove(engine, qp, when);
}

/* hostile H-113: a number that comes again. */
Test(directory, a_number_is_found_from_its_publication_to_its_end)
{
	uint32_t qpn = directory_reserve(engine, 3, qp);

	cr_assert_neq(qpn, 0);
	cr_expect_eq(qpn & 15, 3, "the lcore's");
	cr_expect_null(directory_find(engine, qpn), "not yet");
	directory_publish(engine, qp);
	cr_expect_eq(directory_find(engine, qpn), qp);
	cr_expect_null(directory_find(engine, qpn ^ 1), "of another lcore");
	directory_remove(engine, qp, clock_now());
	cr_expect_null(directory_find(engine, qpn), "it rests");
}

/*
 * Half of all numbers were given back just now: none of them is handed out.
 * hostile H-51: what arrives after a reset.
 */
Test(directory, a_number_that_was_given_back_rests)
{
	for (uint32_t slot = 0; slot < SLOTS; slot += 2)
		give_back(slot, clock_now());
	for (uint32_t i = 0; i < 10000; i++) {
		uint32_t qpn = directory_reserve(engine, 0, qp);

		cr_assert_eq(qpn >> 4 & 1, 1, "0x%x rests", qpn);
	}
}

Test(directory, not_for_ever)
{
	nanotime long_ago = clock_now() > TIME_S * 60 ? clock_now() - TIME_S * 60 : 0;
	uint32_t even = 0;

	for (uint32_t slot = 0; slot < SLOTS; slot += 2)
		give_back(slot, long_ago);
	for (uint32_t i = 0; i < 1000; i++)
		even += (directory_reserve(engine, 0, qp) >> 4 & 1) == 0;
	cr_expect_gt(even, 300, "%u of 1000", even);
}

/*
 * No number tells of the next one, and all twenty bits that are free to choose are chosen.
 * hostile H-56: numbers that tell of the next.
 */
Test(directory, numbers_tell_nothing_of_each_other)
{
	enum {
		NUMBERS = 4096
	};
	uint32_t ones[20] = { 0 }, near = 0, last = 0;

	for (uint32_t i = 0; i < NUMBERS; i++) {
		uint32_t slot = directory_reserve(engine, 0, qp) >> 4;

		near += i > 0 && slot - last + 16 <= 32;
		last = slot;
		for (uint32_t bit = 0; bit < 20; bit++)
			ones[bit] += slot >> bit & 1;
	}
	cr_expect_leq(near, 5, "%u of them follow the last at less than 17", near);
	for (uint32_t bit = 0; bit < 20; bit++) {
		cr_expect_gt(ones[bit], NUMBERS * 4 / 10, "bit %u: %u", bit, ones[bit]);
		cr_expect_lt(ones[bit], NUMBERS * 6 / 10, "bit %u: %u", bit, ones[bit]);
	}
}

/* It is better than none. */
Test(directory, when_all_rest_one_is_taken)
{
	for (uint32_t slot = 0; slot < SLOTS; slot++)
		give_back(slot, clock_now());
	cr_expect_neq(directory_reserve(engine, 0, qp), 0);
}
