/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP packets as the payload of datagrams. The answers were computed by other code than ours and
 * found right by tshark (its checksum_status).
 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "base/bits.h"
#include "lcore/raw/inner_ip.h"

#define ROOM 256u

/* TCP: sequence number 0xfffffffe, CWR ACK PSH FIN, time stamps; lengths and sums are nonsense */
#define TCP_OPTIONS "0101080a1122334455667788"
#define TCP_BEFORE  "01bbc350fffffffe010203048099faf0beef0000" TCP_OPTIONS
#define V4_BEFORE   "45020007fffe40004006deadc0000201c6336402"
#define V6_BEFORE   "600123450003063f" V6_ADDRESSES
#define V6_AFTER    "600123450022063f" V6_ADDRESSES
#define V6_ADDRESSES                       \
	"20010db8000000000000000000000001" \
	"20010db8000000000000000000000002"

/* "hello" in pieces of two octets. */
static const struct {
	const char *ipoib, *before, *data, *after[3];
} streams[] = {
	{ "08000000",
	  V4_BEFORE TCP_BEFORE,
	  "68656c6c6f",
	  { "45020036fffe400040064e8ac0000201c6336402"
	    "01bbc350fffffffe010203048090faf04c480000" TCP_OPTIONS "6865",
	    "45020036ffff400040064e89c0000201c6336402"
	    "01bbc35000000000010203048010faf048c00000" TCP_OPTIONS "6c6c",
	    "450200350000400040064e8ac0000201c6336402"
	    "01bbc35000000002010203048019faf046220000" TCP_OPTIONS "6f" } },
	{ "86dd0000",
	  V6_BEFORE TCP_BEFORE,
	  "68656c6c6f",
	  { V6_AFTER "01bbc350fffffffe010203048090faf0dd0a0000" TCP_OPTIONS "6865",
	    V6_AFTER "01bbc35000000000010203048010faf0d9820000" TCP_OPTIONS "6c6c",
	    "600123450021063f" V6_ADDRESSES "01bbc35000000002010203048019faf0d6e40000" TCP_OPTIONS
	    "6f" } },
};

/* UDP to the RoCE port, which is nothing special in here, with three octets. */
static const struct {
	const char *ipoib, *before, *after;
} datagrams[] = {
	{ "08000000",
	  "4502001f0007400040110000c0000201c6336402"
	  "003512b7000b00006f6464",
	  "4502001f0007400040114e8ec0000201c6336402"
	  "003512b7000b2d506f6464" },
	{ "86dd0000", "60012345000b113f" V6_ADDRESSES "003512b7000b00006f6464",
	  "60012345000b113f" V6_ADDRESSES "003512b7000bbe126f6464" },
};

static size_t put(uint8_t *to, const char *hex)
{
	size_t n = strlen(hex) / 2;

	for (size_t i = 0; i < n; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], 0 };

		to[i] = (uint8_t)strtoul(two, NULL, 16);
	}
	return n;
}

static size_t put_both(uint8_t *to, const char *first, const char *second)
{
	size_t n = put(to, first);

	return n + put(to + n, second);
}

static void check_segment(size_t row, bool ipoib, uint32_t number)
{
	struct tcp_segment s = { .number = number, .offset = 2 * number, .last = number == 2 };
	const char *encapsulation = ipoib ? streams[row].ipoib : "";
	uint8_t octets[ROOM], data[8], after[ROOM];
	size_t all = put(data, streams[row].data), header, length, n;

	header = put_both(octets, encapsulation, streams[row].before);
	n = MIN_OF(all - s.offset, 2u);
	memcpy(octets + header, data + s.offset, n);
	length = put_both(after, encapsulation, streams[row].after[number]);
	cr_assert_eq(header + n, length);
	octets[length] = after[length] = 0xa5;
	cr_assert(inner_ip_segment(octets, length, header, &s), "row %zu segment %u", row, number);
	cr_assert_arr_eq(octets, after, length + 1, "row %zu segment %u", row, number);
	cr_assert_eq(inner_ip_checksums_right(octets, length), row == 0, "of IPv4 it is told");
}

Test(inner_ip, segments_of_a_stream)
{
	for (size_t row = 0; row < ARRAY_SIZE(streams); row++)
		for (uint32_t number = 0; number < 3; number++) {
			check_segment(row, false, number);
			check_segment(row, true, number);
		}
}

Test(inner_ip, a_header_that_is_none_of_tcp)
{
	struct tcp_segment s = { .last = true };
	uint8_t octets[ROOM], good[ROOM];

	for (size_t row = 0; row < ARRAY_SIZE(streams); row++) {
		size_t header = put_both(good, streams[row].ipoib, streams[row].before);
		size_t l4 = header - 32, protocol = row == 0 ? 4 + 9 : 4 + 6;
		const struct {
			const char *what;
			size_t at;
			uint8_t value;
		} wrong[] = {
			{ "UDP", protocol, 17 },
			{ "SCTP", protocol, 132 },
			{ "a shorter TCP", l4 + 12, 0x70 },
			{ "a longer TCP", l4 + 12, 0x90 },
			{ "no TCP", l4 + 12, 0 },
			{ "ARP", 1, 6 },
			{ "the other version", 4, row == 0 ? 0x65 : 0x45 },
			{ "no version", 4, 0x55 },
			{ "no Ethernet type", 0, 0x99 },
		};

		for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
			memcpy(octets, good, header);
			octets[wrong[i].at] = wrong[i].value;
			cr_expect_not(inner_ip_segment(octets, header, header, &s), "row %zu: %s",
				      row, wrong[i].what);
		}
		for (size_t cut = 0; cut < header; cut++) {
			memcpy(octets, good, header);
			cr_expect_not(inner_ip_segment(octets, header, cut, &s),
				      "row %zu: %zu octets of header", row, cut);
		}
		memcpy(octets, good, header);
		cr_expect(inner_ip_segment(octets, header, header, &s), "nothing is wrong");
	}
	put(octets, streams[0].before);
	octets[6] = 0x20; /* more fragments */
	cr_expect_not(inner_ip_segment(octets, 52, 52, &s), "a fragment");
}

Test(inner_ip, checksums_are_filled_in)
{
	uint8_t octets[ROOM], after[ROOM];

	for (size_t i = 0; i < 2 * ARRAY_SIZE(datagrams); i++) {
		const char *ipoib = i % 2 ? datagrams[i / 2].ipoib : "";
		size_t n = put_both(octets, ipoib, datagrams[i / 2].before);

		put_both(after, ipoib, datagrams[i / 2].after);
		inner_ip_fill_checksums(octets, n);
		cr_assert_arr_eq(octets, after, n, "row %zu", i);
	}
}

/* Only a whole packet whose sums are both there and right. */
Test(inner_ip, what_is_told_to_receivers)
{
	uint8_t octets[ROOM];
	size_t n;

	for (size_t skip = 0; skip <= 4; skip += 4) {
		n = put_both(octets, skip ? datagrams[0].ipoib : "", datagrams[0].after);
		cr_assert(inner_ip_checksums_right(octets, n));
		cr_assert(inner_ip_checksums_right(octets, n + 5), "octets behind the packet");
		cr_assert_not(inner_ip_checksums_right(octets, n - 1), "its end is missing");
		for (size_t at = 0; at < n; at++) {
			if (skip && (at == 2 || at == 3))
				continue; /* reserved */
			octets[at] ^= 0x10;
			cr_assert_not(inner_ip_checksums_right(octets, n), "octet %zu", at);
			octets[at] ^= 0x10;
		}
	}
	n = put(octets, datagrams[1].after);
	cr_assert_not(inner_ip_checksums_right(octets, n), "IPv6 has no header checksum");
	n = put(octets, datagrams[0].before);
	cr_assert_not(inner_ip_checksums_right(octets, n), "none were made");
}

Test(inner_ip, packets_that_are_not_ip_stay_as_they_were)
{
	static const char *const payloads[] = {
		"",
		"45",
		"0800",
		"08000000",
		"0800000045",
		"00000000000000000000000000000000000000000000",
		"08060000000108000604000145020007fffe40004006dead",
		"0800000060000000001106400000000000000000000000000000000000000000000000000000000000000000",
		"4f02001f0007400040110000c0000201c6336402003512b7000b00006f6464", /* options, cut */
	};
	uint8_t octets[ROOM], before[ROOM];

	for (size_t i = 0; i < ARRAY_SIZE(payloads); i++) {
		size_t n = put(octets, payloads[i]);

		memcpy(before, octets, n);
		inner_ip_fill_checksums(octets, n);
		cr_expect(memcmp(octets, before, n) == 0, "row %zu", i);
		cr_expect_not(inner_ip_checksums_right(octets, n), "row %zu", i);
	}
}

/* Nothing outside the payload is read or written: it ends where its memory does. */
Test(inner_ip, any_octets_may_come, .timeout = 60)
{
	static const uint8_t begins[][5] = {
		{ 0x45 }, { 0x60 }, { 8, 0, 0, 0, 0x45 }, { 0x86, 0xdd, 0, 0, 0x60 }, { 0x4f }
	};
	uint64_t x = 88172645463325252u;

	for (uint32_t round = 0; round < 100000; round++) {
		struct tcp_segment s = { .number = round, .offset = round, .last = round % 2 };
		size_t n = round % 150;
		uint8_t *octets = malloc(n);

		cr_assert(n == 0 || octets != NULL);
		for (size_t i = 0; i < n; i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			octets[i] = (uint8_t)x;
		}
		memcpy(octets, begins[x % ARRAY_SIZE(begins)], MIN_OF(n, 5u));
		if (n > 9 && round % 4 == 0)
			octets[9] = 6;
		inner_ip_checksums_right(octets, n);
		inner_ip_fill_checksums(octets, n);
		inner_ip_segment(octets, n, n == 0 ? 0 : x % (n + 1), &s);
		free(octets);
	}
}
