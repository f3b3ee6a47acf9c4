/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch and its cables: which frames they forward, keep, mark and drop, and when. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/bits.h"
#include "switch.h"

#define LENGTH 100u
#define RATE   800000000u /* 100 octets and their gap take 1240 ns */
#define TAKES  ((LENGTH + LINE_GAP) * 10)
#define DELAY  5000u
#define TOS    15u
#define MOST   64u

/* A host that only records the frames that it receives. */
struct sink {
	struct taker taker;
	uint32_t count, marked;
	uint32_t number[MOST];
	nanotime at[MOST];
};

static struct fabric f;
static struct net_switch s;
static struct sink sink[2];

static void note(struct taker *t, struct fabric *fabric, struct parcel *p)
{
	struct sink *k = container_of_type(t, struct sink, taker);

	cr_assert_lt(k->count, MOST);
	k->marked += (p->octets[p->start + TOS] & 3) == 3;
	k->number[k->count] = load_be32(p->octets + p->start + 40);
	k->at[k->count++] = fabric->now;
	parcel_free(fabric, p);
}

static const struct line_config cable = {
	.rate = RATE, .delay = DELAY, .room = LINE_ENDLESS, .ecn = LINE_ENDLESS, .places = 1
};

/*
 * A switch with two hosts; its ports have the options of `is`, and share a buffer of `shared`
 * octets.
 */
static void begin(const struct line_config *is, uint64_t shared)
{
	fabric_init(&f, 1);
	switch_init(&s, 2, 2, shared);
	for (uint32_t i = 0; i < 2; i++) {
		sink[i] = (struct sink){ .taker.take = note };
		line_init(&s.port[i], is, &sink[i].taker, &s.shared);
		s.route[i] = i;
	}
}

static void deliver(void)
{
	while (fabric_step(&f, TIME_NEVER - 1))
		;
}

static void end(void)
{
	switch_free(&s);
	fabric_free(&f);
}

/* A frame with this number for a host; its sender supports ECN, or does not. */
static void send(uint32_t host, uint32_t number, bool ect)
{
	struct parcel *p = parcel_new(&f);

	p->start = FRAME_HEADROOM;
	p->length = LENGTH;
	memset(p->octets + p->start, 0, LENGTH);
	p->octets[p->start + 14] = 0x45;
	p->octets[p->start + TOS] = ect ? 2 : 0;
	p->octets[p->start + 33] = (uint8_t)(host + 1);
	store_be32(p->octets + p->start + 40, number);
	s.taker.take(&s.taker, &f, p);
}

Test(fabric_switch, frames_arrive_in_order_at_the_rate_and_after_the_delay)
{
	begin(&cable, LINE_ENDLESS);
	for (uint32_t i = 0; i < 10; i++)
		send(0, i, true);
	deliver();
	cr_assert_eq(sink[0].count, 10);
	cr_expect_eq(sink[1].count, 0);
	for (uint32_t i = 0; i < 10; i++) {
		cr_expect_eq(sink[0].number[i], i);
		cr_expect_eq(sink[0].at[i], (i + 1) * TAKES + DELAY);
	}
	end();
}

Test(fabric_switch, a_full_buffer_drops)
{
	struct line_config is = cable;

	is.room = 4 * LENGTH;
	begin(&is, LINE_ENDLESS);
	for (uint32_t i = 0; i < 6; i++)
		send(0, i, true);
	cr_expect_eq(s.port[0].counts.dropped, 2);
	cr_expect_eq(s.port[0].octets, 4 * LENGTH);
	send(1, 0, true); /* the other port has a buffer of its own */
	cr_expect_eq(s.port[1].counts.dropped, 0);
	while (fabric_step(&f, TAKES))
		;
	send(0, 6, true); /* a frame has left */
	cr_expect_eq(s.port[0].counts.dropped, 2);
	deliver();
	cr_expect_eq(sink[0].count, 5);
	cr_expect_eq(s.port[0].counts.longest, 4 * LENGTH);
	end();
}

Test(fabric_switch, ports_share_a_buffer)
{
	begin(&cable, 4 * LENGTH);
	for (uint32_t i = 0; i < 3; i++)
		send(0, i, true);
	for (uint32_t i = 0; i < 3; i++)
		send(1, i, true);
	cr_expect_eq(s.port[0].counts.dropped, 0);
	cr_expect_eq(s.port[1].counts.dropped, 2);
	cr_expect_eq(s.shared.used, 4 * LENGTH);
	deliver();
	cr_expect_eq(sink[0].count + sink[1].count, 4);
	end();
}

Test(fabric_switch, what_finds_more_than_the_threshold_is_marked)
{
	struct line_config is = cable;

	is.ecn = 3 * LENGTH;
	begin(&is, LINE_ENDLESS);
	for (uint32_t i = 0; i < 10; i++)
		send(0, i, true);
	for (uint32_t i = 0; i < 10; i++)
		send(1, i, false);
	deliver();
	cr_expect_eq(sink[0].marked, 6);
	cr_expect_eq(s.port[0].counts.marked, 6);
	cr_expect_eq(sink[1].marked, 0, "its sender does not understand marks");
	cr_expect_eq(s.port[1].counts.marked, 0);
	end();
}

Test(fabric_switch, a_mark_keeps_the_checksum_right)
{
	struct parcel *p;
	uint32_t sum = 0;

	fabric_init(&f, 1);
	p = parcel_new(&f);
	p->start = 0;
	p->length = LENGTH;
	for (uint32_t i = 0; i < LENGTH; i++)
		p->octets[i] = (uint8_t)(37 * i);
	p->octets[TOS] = 1;
	cr_assert(parcel_mark(p));
	cr_expect_eq(p->octets[TOS], 3);
	for (uint32_t i = 14; i < 34; i += 2)
		sum += load_be16(p->octets + i);
	sum = (sum & 0xffff) + (sum >> 16);
	cr_expect_eq(sum, 0xffff);
	fabric_free(&f);
}

Test(fabric_switch, a_frame_for_nobody_goes_nowhere)
{
	begin(&cable, LINE_ENDLESS);
	send(7, 0, true);
	cr_expect_eq(s.unknown, 1);
	deliver();
	cr_expect_eq(sink[0].count + sink[1].count, 0);
	end();
}

Test(fabric_switch, a_cable_that_loses)
{
	struct line_config is = cable;

	is.loss = 1;
	begin(&is, LINE_ENDLESS);
	for (uint32_t i = 0; i < 5; i++)
		send(0, i, true);
	deliver();
	cr_expect_eq(sink[0].count, 0);
	cr_expect_eq(s.port[0].counts.lost, 5);
	cr_expect_eq(s.port[0].counts.dropped, 0);
	end();
}

Test(fabric_switch, a_cable_that_reorders_lets_so_many_overtake)
{
	struct line_config is = cable;
	uint32_t late = 0, furthest = 0;

	is.reorder = 0.2;
	is.places = 4;
	begin(&is, LINE_ENDLESS);
	for (uint32_t i = 0; i < MOST; i++)
		send(0, i, true);
	deliver();
	cr_assert_eq(sink[0].count, MOST);
	for (uint32_t i = 0, newest = 0; i < MOST; i++) {
		late += sink[0].number[i] < newest;
		if (sink[0].number[i] < newest)
			furthest = MAX_OF(furthest, newest - sink[0].number[i]);
		newest = MAX_OF(newest, sink[0].number[i]);
	}
	cr_expect_gt(late, 3);
	cr_expect_leq(furthest, 4);
	cr_expect_gt(s.port[0].counts.reordered, 3);
	end();
}
