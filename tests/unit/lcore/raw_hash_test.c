/* SPDX-License-Identifier: BSD-3-Clause */
/* Known answers: Microsoft's "Verifying the RSS Hash Calculation". */
#include <criterion/criterion.h>

#include "lcore/raw/raw_hash.h"
#include "raw_frames.h"

static const uint8_t key[RSS_KEY_LENGTH] __attribute__((aligned(4))) = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
	0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
	0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	struct frame_recipe recipe;
	uint32_t addresses, with_ports;
} row[] = {
	{ { .src = "66.9.149.187", .dst = "161.142.100.80", .src_port = 2794, .dst_port = 1766 },
	  0x323e8fc2,
	  0x51ccc178 },
	{ { .src = "199.92.111.2", .dst = "65.69.140.83", .src_port = 14230, .dst_port = 4739 },
	  0xd718262a,
	  0xc626b0ea },
	{ { .src = "24.19.198.95", .dst = "12.22.207.184", .src_port = 12898, .dst_port = 38024 },
	  0xd2d0a5de,
	  0x5c2b394a },
	{ { .src = "38.27.205.30", .dst = "209.142.163.6", .src_port = 48228, .dst_port = 2217 },
	  0x82989176,
	  0xafc7327f },
	{ { .src = "153.39.163.191", .dst = "202.188.127.2", .src_port = 44251, .dst_port = 1303 },
	  0x5d1809c5,
	  0x10e828a2 },
	{ { .src = "3ffe:2501:200:1fff::7",
	    .dst = "3ffe:2501:200:3::1",
	    .src_port = 2794,
	    .dst_port = 1766 },
	  0x2cc18cd5,
	  0x40207d3d },
	{ { .src = "3ffe:501:8::260:97ff:fe40:efab",
	    .dst = "ff02::1",
	    .src_port = 14230,
	    .dst_port = 4739 },
	  0x0f0c461c,
	  0xdde51bbf },
	{ { .src = "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
	    .dst = "fe80::200:f8ff:fe21:67cf",
	    .src_port = 44251,
	    .dst_port = 38024 },
	  0x4b61e985,
	  0x02d1feef },
};

static uint32_t hash_of(struct frame_recipe recipe, uint8_t protocol, uint32_t fields)
{
	struct built_frame b;
	struct raw_frame f;

	recipe.protocol = protocol;
	build_frame(&b, &recipe);
	raw_frame_parse(&f, b.octet, b.length);
	return raw_hash(&f, fields, key);
}

Test(raw_hash, addresses)
{
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		cr_expect_eq(hash_of(row[i].recipe, 17,
				     RSS_SRC_IPV4 | RSS_DST_IPV4 | RSS_SRC_IPV6 | RSS_DST_IPV6),
			     row[i].addresses, "row %zu", i);
}

Test(raw_hash, addresses_and_ports)
{
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cr_expect_eq(hash_of(row[i].recipe, 6, 0x3f), row[i].with_ports, "row %zu, TCP", i);
		cr_expect_eq(hash_of(row[i].recipe, 17, 0xcf), row[i].with_ports, "row %zu, UDP",
			     i);
	}
}

Test(raw_hash, fields_that_a_frame_lacks_are_left_out)
{
	/* ports of the other protocol, and addresses of the other version */
	cr_expect_eq(hash_of(row[0].recipe, 17, 0x33), row[0].addresses);
	cr_expect_eq(hash_of(row[5].recipe, 6, 0xcc), row[5].addresses);
	cr_expect_eq(hash_of(row[0].recipe, 17, RSS_SRC_IPV6 | RSS_DST_IPV6), 0);
	cr_expect_eq(hash_of((struct frame_recipe){ .payload = 50 }, 0, RSS_FIELDS), 0);
	cr_expect_eq(hash_of(row[0].recipe, 17, 0), 0);
}

Test(raw_hash, one_port_alone)
{
	struct frame_recipe other = row[0].recipe;
	uint32_t only_source = RSS_SRC_PORT_TCP;

	other.dst_port ^= 0x5a5a;
	cr_expect_eq(hash_of(other, 6, only_source), hash_of(row[0].recipe, 6, only_source));
	other.src_port ^= 1;
	cr_expect_neq(hash_of(other, 6, only_source), hash_of(row[0].recipe, 6, only_source));
}

Test(raw_hash, fragments_of_a_packet_stay_together)
{
	struct frame_recipe first = row[0].recipe, later = row[0].recipe;

	first.fragment = 0x2000;
	later.fragment = 0x0100;
	cr_expect_eq(hash_of(first, 17, 0xcf), row[0].addresses);
	cr_expect_eq(hash_of(later, 17, 0xcf), row[0].addresses);
}
