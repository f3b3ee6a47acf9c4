/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours, compared with frames made by scapy: which frames the table answers, sends, accepts
 * and ignores, and when.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "neighbour_frames.h"
#include "neighbour_rig.h"

static const struct mac ours = { { 2, 0, 0, 0, 0, 1 } };
static const struct mac peers = { { 2, 0, 0, 0, 0, 2 } };
static const struct gid peer4 = { { [10] = 0xff, 0xff, 10, 0, 0, 2 } };
static const struct gid far4 = { { [10] = 0xff, 0xff, 192, 168, 7, 7 } };
static const struct gid own6 = { { 0xfe, 0x80, [15] = 1 } };
static const struct gid peer6 = { { 0xfe, 0x80, [15] = 2 } };

TestSuite(neighbour, .init = neighbour_rig_open, .fini = neighbour_rig_close);

static void expect_frame(uint32_t i, const uint8_t *frame, size_t length)
{
	cr_assert_gt(out.count, i, "frame %u was not sent", i);
	cr_assert_eq(out.frame[i].length, length, "length %u", out.frame[i].length);
	cr_expect_arr_eq(out.octets + out.frame[i].offset, frame, length);
}

static void answers(const uint8_t *request, size_t length, const uint8_t *reply,
		    size_t reply_length)
{
	cr_expect(input(request, length, 0));
	cr_assert_eq(out.count, 1);
	expect_frame(0, reply, reply_length);
}

#define ANSWERS(request, reply) answers(request, sizeof(request), reply, sizeof(reply))

Test(neighbour, answers_arp)
{
	ANSWERS(arp_request, arp_reply);
}

Test(neighbour, answers_echo_over_ipv4)
{
	ANSWERS(echo4_request, echo4_reply);
}

Test(neighbour, answers_solicitation)
{
	ANSWERS(ns_request, na_reply);
}

Test(neighbour, defends_its_address_against_duplicates)
{
	ANSWERS(dad_request, dad_reply);
}

Test(neighbour, answers_echo_over_ipv6)
{
	ANSWERS(echo6_request, echo6_reply);
}

static void resolves(const struct gid *peer, const uint8_t *question, size_t question_length,
		     const uint8_t *answer, size_t answer_length)
{
	uint32_t generation = neighbour_generation(t);
	struct mac mac;

	cr_expect_eq(neighbour_resolve(t, peer, TIME_S, &mac), EINPROGRESS);
	cr_expect_eq(neighbour_tick(t, TIME_S, &out), 2 * TIME_S);
	cr_assert_eq(out.count, 1);
	expect_frame(0, question, question_length);
	cr_expect(input(answer, answer_length, TIME_S + TIME_MS));
	cr_assert_eq(neighbour_resolve(t, peer, TIME_S + TIME_MS, &mac), 0);
	cr_expect_arr_eq(mac.octet, peers.octet, 6);
	cr_expect_neq(neighbour_generation(t), generation);
	cr_expect_eq(out.count, 1, "an answer was answered");
}

Test(neighbour, resolves_by_arp)
{
	resolves(&peer4, arp_question, sizeof(arp_question), arp_answer, sizeof(arp_answer));
}

Test(neighbour, resolves_by_solicitation)
{
	resolves(&peer6, ns_question, sizeof(ns_question), na_answer, sizeof(na_answer));
}

Test(neighbour, gives_up_after_three_tries_and_tries_again_later)
{
	struct mac mac;

	cr_expect_eq(neighbour_resolve(t, &peer4, 0, &mac), EINPROGRESS);
	for (uint32_t s = 0; s < LIMIT_NEIGHBOUR_TRIES; s++) {
		neighbour_tick(t, s * TIME_S, &out);
		cr_expect_eq(out.count, s + 1);
		cr_expect_eq(neighbour_resolve(t, &peer4, s * TIME_S, &mac), EINPROGRESS);
	}
	neighbour_tick(t, 3 * TIME_S, &out);
	cr_expect_eq(out.count, 3);
	cr_expect_eq(neighbour_resolve(t, &peer4, 3 * TIME_S, &mac), EHOSTUNREACH);
	cr_expect_eq(neighbour_resolve(t, &peer4, 6 * TIME_S, &mac), EINPROGRESS);
	neighbour_tick(t, 6 * TIME_S, &out);
	cr_expect_eq(out.count, 4);
}

/*
 * Without an address the table cannot ask any neighbour; a table that wants to be called at once
 * keeps a core busy.
 */
Test(neighbour, gives_up_when_its_addresses_are_gone)
{
	nanotime now = TIME_S;
	struct mac mac;

	cr_expect_eq(neighbour_resolve(t, &peer4, now, &mac), EINPROGRESS);
	cr_expect_eq(neighbour_resolve(t, &peer6, now, &mac), EINPROGRESS);
	neighbour_set_addresses(t, NULL, 0);
	for (int i = 0; i < 10 && now != TIME_NEVER; i++) {
		nanotime next = neighbour_tick(t, now, &out);

		cr_assert_gt(next, now, "turn %d: nothing can be done now", i);
		now = next;
	}
	cr_expect_eq(now, TIME_NEVER, "it still tries");
	cr_expect_eq(out.count, 0);
}

Test(neighbour, asks_again_by_unicast_when_a_used_answer_grows_old)
{
	struct mac mac;

	neighbour_resolve(t, &peer4, 0, &mac);
	input(arp_answer, sizeof(arp_answer), 0);
	cr_expect_eq(neighbour_resolve(t, &peer4, 20 * TIME_S, &mac), 0);
	neighbour_tick(t, 30 * TIME_S, &out);
	cr_assert_eq(out.count, 1);
	cr_expect_arr_eq(out.octets, peers.octet, 6);
	cr_expect_eq(neighbour_resolve(t, &peer4, 30 * TIME_S, &mac), 0, "the old answer is used");
	for (uint32_t s = 31; s <= 36; s++)
		neighbour_tick(t, s * TIME_S, &out);
	cr_expect_eq(neighbour_resolve(t, &peer4, 36 * TIME_S, &mac), EHOSTUNREACH);
	cr_expect_eq(out.count, 6);
}

Test(neighbour, forgets_unused_entries)
{
	struct mac mac;

	neighbour_resolve(t, &peer4, 0, &mac);
	input(arp_answer, sizeof(arp_answer), 0);
	for (uint32_t s = 1; s <= 1200; s++)
		neighbour_tick(t, s * TIME_S, &out);
	cr_expect_eq(out.count, 0, "an unused entry caused a request");
	cr_expect_eq(neighbour_tick(t, 1201 * TIME_S, &out), TIME_NEVER);
}

/* Flows keep an address for as long as there are no news, and have to learn of a later one. */
Test(neighbour, an_entry_that_a_flow_still_needs_stays)
{
	uint32_t last = 0;
	uint8_t frame[60];
	struct mac mac;

	neighbour_resolve(t, &peer4, 0, &mac);
	input(arp_answer, sizeof(arp_answer), 0);
	for (uint32_t s = 1; s <= 1800; s++) {
		nanotime now = s * TIME_S;

		if (last != neighbour_generation(t))
			cr_assert_eq(neighbour_resolve(t, &peer4, now, &mac), 0, "second %u", s);
		last = neighbour_generation(t);
		neighbour_tick(t, now, &out);
		if (out.count > 0)
			input(arp_answer, sizeof(arp_answer), now);
		neighbour_frames_clear(&out);
	}
	memcpy(frame, arp_request, 60);
	memcpy(frame + 38, frame + 28, 4); /* a gratuitous ARP */
	frame[11] = frame[27] = 9;
	input(frame, 60, 1801 * TIME_S);
	cr_expect_neq(neighbour_generation(t), last, "nobody learns of the new address");
	cr_assert_eq(neighbour_resolve(t, &peer4, 1801 * TIME_S, &mac), 0);
	cr_expect_eq(mac.octet[5], 9);
}

Test(neighbour, goes_through_the_gateway)
{
	struct mac mac;

	cr_expect_eq(neighbour_resolve(t, &far4, 0, &mac), EHOSTUNREACH, "no gateway");
	neighbour_set_gateways(t, &peer4, 1);
	cr_expect_eq(neighbour_resolve(t, &far4, 0, &mac), EINPROGRESS);
	neighbour_tick(t, 0, &out);
	expect_frame(0, arp_question, sizeof(arp_question));
	input(arp_answer, sizeof(arp_answer), 0);
	cr_expect_eq(neighbour_resolve(t, &far4, 0, &mac), 0);
	cr_expect_arr_eq(mac.octet, peers.octet, 6);
}

/* Prefixes that end within an octet: the last address inside, and the first outside. */
Test(neighbour, a_prefix_is_compared_bit_for_bit)
{
	static const struct {
		uint8_t prefix, inside[4], outside[4];
	} row[] = {
		{ 20, { 10, 9, 31, 254 }, { 10, 9, 32, 1 } },
		{ 21, { 10, 9, 23, 254 }, { 10, 9, 24, 1 } },
		{ 23, { 10, 9, 17, 254 }, { 10, 9, 18, 1 } },
		{ 25, { 10, 9, 16, 126 }, { 10, 9, 16, 129 } },
		{ 30, { 10, 9, 16, 1 }, { 10, 9, 16, 5 } },
		{ 31, { 10, 9, 16, 3 }, { 10, 9, 16, 4 } },
	};
	struct neighbour_address own = { .gid = { { [10] = 0xff, 0xff, 10, 9, 16, 2 } } };
	struct gid gid = own.gid;
	struct mac mac;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		own.prefix = row[i].prefix;
		neighbour_set_addresses(t, &own, 1);
		memcpy(gid.octet + 12, row[i].inside, 4);
		cr_expect_eq(neighbour_resolve(t, &gid, 0, &mac), EINPROGRESS, "row %zu", i);
		memcpy(gid.octet + 12, row[i].outside, 4);
		cr_expect_eq(neighbour_resolve(t, &gid, 0, &mac), EHOSTUNREACH, "row %zu", i);
	}
}

Test(neighbour, multicast_and_own_addresses_need_no_question)
{
	struct gid group = { { [10] = 0xff, 0xff, 239, 129, 2, 3 } };
	static const uint8_t expected[6] = { 0x01, 0x00, 0x5e, 0x01, 0x02, 0x03 };
	struct mac mac;

	cr_assert_eq(neighbour_resolve(t, &group, 0, &mac), 0);
	cr_expect_arr_eq(mac.octet, expected, 6);
	cr_assert_eq(neighbour_resolve(t, &own6, 0, &mac), 0);
	cr_expect_arr_eq(mac.octet, ours.octet, 6);
}

Test(neighbour, broadcast_and_unspecified_are_unreachable)
{
	struct gid all = { { [10] = 0xff, 0xff, 255, 255, 255, 255 } };
	struct gid subnet = { { [10] = 0xff, 0xff, 10, 0, 0, 255 } };
	struct gid nobody = { { [10] = 0xff, 0xff } };
	struct mac mac;

	neighbour_set_gateways(t, &peer4, 1);
	cr_expect_eq(neighbour_resolve(t, &all, 0, &mac), EHOSTUNREACH);
	cr_expect_eq(neighbour_resolve(t, &subnet, 0, &mac), EHOSTUNREACH);
	cr_expect_eq(neighbour_resolve(t, &nobody, 0, &mac), EHOSTUNREACH);
}

Test(neighbour, a_gratuitous_arp_moves_a_known_address_only)
{
	uint8_t frame[60];
	struct mac mac;

	memcpy(frame, arp_request, 60);
	memcpy(frame + 38, frame + 28, 4); /* target = sender: 10.0.0.2 */
	input(frame, 60, 0);
	cr_expect_eq(neighbour_resolve(t, &peer4, 0, &mac), EINPROGRESS,
		     "an unsolicited answer created an entry");
	input(arp_answer, 60, 0);
	frame[11] = frame[27] = 9;
	input(frame, 60, 0);
	cr_assert_eq(neighbour_resolve(t, &peer4, 0, &mac), 0);
	cr_expect_eq(mac.octet[5], 9);
	cr_expect_eq(out.count, 0);
}

/*
 * hostile H-74: the first change takes effect at once; of a flood, ten a second and the last one.
 */
Test(neighbour, changes_of_a_mac_address_are_rate_limited)
{
	nanotime now = TIME_S;
	uint8_t frame[60];
	uint32_t before;
	struct mac mac;

	neighbour_resolve(t, &peer4, now, &mac);
	input(arp_answer, 60, now);
	memcpy(frame, arp_answer, 60);
	frame[9] = frame[25] = 7;
	before = neighbour_generation(t);
	for (uint32_t i = 1; i <= 10000; i++) {
		frame[10] = frame[26] = (uint8_t)(i >> 8);
		frame[11] = frame[27] = (uint8_t)i;
		input(frame, 60, now);
		neighbour_tick(t, now, &out);
		neighbour_frames_clear(&out);
		if (i == 1) {
			cr_assert_eq(neighbour_resolve(t, &peer4, now, &mac), 0);
			cr_expect_eq(mac.octet[5], 1, "the first change takes effect at once");
		}
		now += TIME_S / 10000;
	}
	cr_expect_leq(neighbour_generation(t) - before, 11, "%u changes",
		      neighbour_generation(t) - before);
	now += LIMIT_NEIGHBOUR_CHANGE;
	neighbour_tick(t, now, &out);
	cr_assert_eq(neighbour_resolve(t, &peer4, now, &mac), 0);
	cr_expect_arr_eq(mac.octet, frame + 6, 6, "the last one wins");
}

/* ... and one that is taken back in time never takes effect. */
Test(neighbour, a_mac_change_taken_back_in_time_is_ignored)
{
	nanotime now = TIME_S;
	uint8_t frame[60], lie[60];
	uint32_t before;
	struct mac mac;

	neighbour_resolve(t, &peer4, now, &mac);
	input(arp_answer, 60, now);
	memcpy(frame, arp_answer, 60);
	frame[11] = frame[27] = 9;
	input(frame, 60, now);
	before = neighbour_generation(t);
	memcpy(lie, frame, 60);
	lie[11] = lie[27] = 66;
	input(lie, 60, now + TIME_MS);
	input(frame, 60, now + 2 * TIME_MS);
	neighbour_tick(t, now + TIME_S, &out);
	cr_assert_eq(neighbour_resolve(t, &peer4, now + TIME_S, &mac), 0);
	cr_expect_eq(mac.octet[5], 9);
	cr_expect_eq(neighbour_generation(t), before);
}

struct sample {
	const uint8_t *frame;
	size_t length;
};

static const struct sample samples[] = {
	{ arp_request, sizeof(arp_request) },	  { arp_answer, sizeof(arp_answer) },
	{ echo4_request, sizeof(echo4_request) }, { ns_request, sizeof(ns_request) },
	{ na_answer, sizeof(na_answer) },	  { echo6_request, sizeof(echo6_request) },
	{ dad_request, sizeof(dad_request) },
};

/* The octets that the protocol needs of each frame; the rest is Ethernet padding. */
static size_t needed(const struct sample *s)
{
	switch (load_be16(s->frame + 12)) {
	case 0x0806:
		return 14 + 28;
	case 0x0800:
		return 14u + load_be16(s->frame + 16);
	default:
		return 14u + 40u + load_be16(s->frame + 18);
	}
}

Test(neighbour, a_frame_cut_anywhere_is_ignored)
{
	struct mac mac;

	neighbour_resolve(t, &peer4, 0, &mac);
	neighbour_resolve(t, &peer6, 0, &mac);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		for (size_t length = 0; length < needed(&samples[i]); length++)
			input(samples[i].frame, length, 0);
	cr_expect_eq(out.count, 0);
	cr_expect_eq(neighbour_resolve(t, &peer4, 0, &mac), EINPROGRESS);
	cr_expect_eq(neighbour_resolve(t, &peer6, 0, &mac), EINPROGRESS);
}

/* A loop brings back our own frames; no frame comes from a group, and others' are not for us. */
Test(neighbour, frames_with_wrong_mac_addresses_are_ignored)
{
	static const struct mac group = { { 3, 0, 0, 0, 0, 2 } }, other = { { 2, 0, 0, 0, 0, 9 } };
	uint8_t frame[200];

	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		cr_assert_leq(samples[i].length, sizeof(frame));
		memcpy(frame, samples[i].frame, samples[i].length);
		memcpy(frame + 6, ours.octet, 6);
		cr_expect_not(input(frame, samples[i].length, 0), "sample %zu, our own", i);
		memcpy(frame + 6, group.octet, 6);
		cr_expect_not(input(frame, samples[i].length, 0), "sample %zu, of a group", i);
		memcpy(frame + 6, peers.octet, 6);
		memcpy(frame, other.octet, 6);
		cr_expect_not(input(frame, samples[i].length, 0), "sample %zu, to another", i);
	}
	cr_expect_eq(out.count, 0);
}

/* Every octet after the Ethernet header of a checksummed message counts. */
Test(neighbour, a_wrong_checksum_is_ignored)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		size_t start = load_be16(samples[i].frame + 12) == 0x0806 ? SIZE_MAX : 14;

		for (size_t at = start; at < needed(&samples[i]); at++) {
			uint8_t frame[256];

			if (start == 14 && load_be16(samples[i].frame + 12) == 0x86dd &&
			    (at < 18 || at == 21))
				continue; /* traffic class, flow label, hop limit: not covered */
			memcpy(frame, samples[i].frame, samples[i].length);
			frame[at] ^= 0x10;
			input(frame, samples[i].length, 0);
			cr_expect_eq(out.count, 0, "sample %zu octet %zu", i, at);
		}
	}
}

Test(neighbour, nd_from_beyond_the_link_is_ignored)
{
	uint8_t frame[sizeof(ns_request)];

	memcpy(frame, ns_request, sizeof(frame));
	frame[21] = 254;
	input(frame, sizeof(frame), 0);
	cr_expect_eq(out.count, 0);
}

Test(neighbour, random_octets_are_harmless)
{
	uint64_t x = 88172645463325252u;
	uint8_t frame[256];

	for (uint32_t round = 0; round < 200000; round++) {
		const struct sample *s = &samples[round % ARRAY_SIZE(samples)];

		memcpy(frame, s->frame, s->length);
		for (int k = 0; k < 3; k++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			frame[x % s->length] = (uint8_t)(x >> 32);
		}
		neighbour_frames_clear(&out);
		input(frame, (x >> 40) % (s->length + 1), round);
		cr_assert_leq(out.count, 1);
	}
}

/* hostile H-13: tags of other VLANs. */
Test(neighbour, speaks_only_on_its_vlan)
{
	uint8_t tagged[64];

	neighbour_rig_on_vlan(5);
	input(arp_request, sizeof(arp_request), 0);
	cr_expect_eq(out.count, 0, "an untagged frame is not ours");
	memcpy(tagged, arp_request, 12);
	store_be16(tagged + 12, 0x8100);
	store_be16(tagged + 14, 0x6005);
	memcpy(tagged + 16, arp_request + 12, 48);
	input(tagged, 64, 0);
	cr_assert_eq(out.count, 1);
	cr_expect_eq(load_be16(out.octets + 12), 0x8100);
	cr_expect_eq(load_be16(out.octets + 14), 5);
	cr_expect_arr_eq(out.octets + 18, arp_reply + 14, 28);
}
