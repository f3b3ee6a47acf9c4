/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of neighbours that is full: which of them give up their places. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "neighbour_frames.h"
#include "neighbour_rig.h"

static const struct gid peer4 = { { [10] = 0xff, 0xff, 10, 0, 0, 2 } };
static const struct gid peer6 = { { 0xfe, 0x80, [15] = 2 } };

TestSuite(neighbour_crowded, .init = neighbour_rig_open, .fini = neighbour_rig_close);

Test(neighbour_crowded, a_full_table_gives_up_its_least_used_entry)
{
	struct mac mac;

	neighbour_resolve(t, &peer4, 0, &mac);
	input(arp_answer, sizeof(arp_answer), 0);
	for (uint32_t i = 0; i < 2 * LIMIT_NEIGHBOUR_ENTRIES; i++) {
		struct gid g = peer6;

		store_be16(g.octet + 12, (uint16_t)(i + 1));
		cr_expect_eq(neighbour_resolve(t, &g, 1 + i, &mac), EINPROGRESS);
		neighbour_resolve(t, &peer4, 1 + i, &mac);
	}
	cr_expect_eq(neighbour_resolve(t, &peer4, 9999, &mac), 0);
	neighbour_tick(t, TIME_S, &out);
	cr_expect_eq(out.count, LIMIT_NEIGHBOUR_FRAMES, "the list bounds what one tick sends");
}

/* Resolves the n-th of many IPv6 addresses. */
static int resolve_one_of_many(uint32_t n, nanotime now)
{
	struct gid g = peer6;
	struct mac mac;

	store_be16(g.octet + 12, (uint16_t)(n + 1));
	return neighbour_resolve(t, &g, now, &mac);
}

/* A known neighbour that no flow asks for meanwhile. */
Test(neighbour_crowded, addresses_without_a_host_push_out_only_each_other)
{
	uint32_t generation;
	struct mac mac;

	neighbour_resolve(t, &peer4, 0, &mac);
	input(arp_answer, sizeof(arp_answer), 0);
	generation = neighbour_generation(t);
	for (uint32_t i = 0; i < 2 * LIMIT_NEIGHBOUR_ENTRIES; i++)
		cr_expect_eq(resolve_one_of_many(i, 1 + i), EINPROGRESS);
	cr_expect_eq(neighbour_generation(t), generation, "nothing was forgotten");
	cr_expect_eq(neighbour_resolve(t, &peer4, 9999, &mac), 0);
}

/* Answers for the n-th neighbour of 10.0.0.0/8. */
static void know_one_of_many(uint32_t n, nanotime now)
{
	struct gid g = peer4;
	uint8_t frame[60];
	struct mac mac;

	store_be16(g.octet + 13, (uint16_t)(n + 1));
	neighbour_resolve(t, &g, now, &mac);
	memcpy(frame, arp_answer, sizeof(frame));
	memcpy(frame + 28, g.octet + 12, 4);
	cr_assert(input(frame, sizeof(frame), now));
	cr_assert_eq(neighbour_resolve(t, &g, now, &mac), 0);
}

Test(neighbour_crowded, a_known_neighbour_that_is_given_up_is_news)
{
	static const struct neighbour_address wide[] = {
		{ { { [10] = 0xff, 0xff, 10, 0, 0, 1 } }, 8 },
		{ { { 0xfe, 0x80, [15] = 1 } }, 64 },
	};
	uint32_t generation;

	neighbour_set_addresses(t, wide, 2);
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_ENTRIES; i++)
		know_one_of_many(i, 1 + i);
	generation = neighbour_generation(t);
	cr_expect_eq(resolve_one_of_many(0, 9999), EINPROGRESS);
	cr_expect_neq(neighbour_generation(t), generation);
	generation = neighbour_generation(t);
	cr_expect_eq(resolve_one_of_many(1, 10000), EINPROGRESS);
	cr_expect_eq(neighbour_generation(t), generation, "only the unanswered one was given up");
}

static bool is_known_one_of_many(uint32_t n, nanotime now)
{
	struct gid g = peer4;
	struct mac mac;

	store_be16(g.octet + 13, (uint16_t)(n + 1));
	return neighbour_resolve(t, &g, now, &mac) == 0;
}

/* As the engine does all the time. */
static void tick_for(nanotime from, nanotime duration)
{
	for (nanotime now = from; now <= from + duration; now += 100 * TIME_MS) {
		neighbour_tick(t, now, &out);
		neighbour_frames_clear(&out);
	}
}

/* Half of the known neighbours have flows, which ask at news. */
Test(neighbour_crowded, new_neighbours_get_the_places_of_unused_ones)
{
	static const struct neighbour_address wide[] = {
		{ { { [10] = 0xff, 0xff, 10, 0, 0, 1 } }, 8 },
		{ { { 0xfe, 0x80, [15] = 1 } }, 64 },
	};
	const nanotime later = TIME_S + LIMIT_NEIGHBOUR_OFFER;
	uint32_t generation;
	struct mac mac;

	neighbour_set_addresses(t, wide, 2);
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_ENTRIES; i++)
		know_one_of_many(i, 1 + i);
	generation = neighbour_generation(t);
	resolve_one_of_many(0, TIME_S);
	cr_assert_neq(neighbour_generation(t), generation, "flows are not asked");
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_ENTRIES; i += 2)
		is_known_one_of_many(i, TIME_S + 1);
	tick_for(TIME_S, LIMIT_NEIGHBOUR_OFFER);
	/* a scan, and a neighbour that answers meanwhile */
	cr_expect_eq(neighbour_resolve(t, &peer4, later, &mac), EINPROGRESS);
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_PLACES / 2; i++)
		cr_expect_eq(resolve_one_of_many(i, later + 1), EINPROGRESS);
	cr_assert(input(arp_answer, sizeof(arp_answer), later + 2));
	cr_expect_eq(neighbour_resolve(t, &peer4, later + 2, &mac), 0, "it was pushed out");
	for (uint32_t i = 0; i < 4 * LIMIT_NEIGHBOUR_ENTRIES; i++)
		resolve_one_of_many(i, later + 3);
	for (uint32_t i = 2; i < LIMIT_NEIGHBOUR_ENTRIES; i += 2)
		cr_expect(is_known_one_of_many(i, later + 4), "%u has flows", i);
}

/* Flows cannot ask for their neighbours while the engine gets no processor. */
Test(neighbour_crowded, a_pause_of_the_engine_makes_no_neighbour_unused)
{
	static const struct neighbour_address wide[] = {
		{ { { [10] = 0xff, 0xff, 10, 0, 0, 1 } }, 8 },
		{ { { 0xfe, 0x80, [15] = 1 } }, 64 },
	};
	const nanotime pause = 5 * LIMIT_NEIGHBOUR_OFFER, later = TIME_S + pause;

	neighbour_set_addresses(t, wide, 2);
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_ENTRIES; i++)
		know_one_of_many(i, 1 + i);
	neighbour_tick(t, TIME_S - 1, &out);
	resolve_one_of_many(0, TIME_S);
	neighbour_tick(t, later, &out);
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_PLACES; i++)
		resolve_one_of_many(1 + i, later + 1);
	for (uint32_t i = 1; i < LIMIT_NEIGHBOUR_ENTRIES; i++)
		cr_expect(is_known_one_of_many(i, later + 2), "%u is pushed out", i);
}

/* It has not answered again, but flows still have its address. */
Test(neighbour_crowded, a_silent_neighbour_that_is_given_up_is_news)
{
	uint32_t generation;
	nanotime now;
	struct mac mac;

	neighbour_resolve(t, &peer4, 1, &mac);
	input(arp_answer, sizeof(arp_answer), 1);
	cr_expect_eq(neighbour_resolve(t, &peer4, 20 * TIME_S, &mac), 0);
	generation = neighbour_generation(t);
	for (now = 21 * TIME_S; neighbour_resolve(t, &peer4, now, &mac) == 0; now += TIME_S) {
		cr_assert_lt(now, 60 * TIME_S, "it is asked for no more");
		neighbour_tick(t, now, &out);
	}
	cr_assert_eq(neighbour_generation(t), generation);
	for (uint32_t i = 0; i < LIMIT_NEIGHBOUR_ENTRIES; i++)
		cr_expect_eq(resolve_one_of_many(i, now + 1 + i), EINPROGRESS);
	cr_expect_neq(neighbour_generation(t), generation);
}
