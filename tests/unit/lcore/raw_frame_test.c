/* SPDX-License-Identifier: BSD-3-Clause */
/* Layers, checksums, and the frames that a raw queue pair must not send (hostile input H-55). */
#include <criterion/criterion.h>

#include "raw_frames.h"

#define V4  .src = "10.0.0.1", .dst = "10.0.0.2"
#define V6  .src = "fd00::1", .dst = "fd00::2"
#define UDP .protocol = 17
#define TCP .protocol = 6

static void parse(struct raw_frame *f, struct built_frame *b, const struct frame_recipe *r)
{
	build_frame(b, r);
	raw_frame_parse(f, b->octet, b->length);
}

Test(raw_frame, layers_are_told)
{
	static const struct {
		struct frame_recipe recipe;
		uint32_t layers;
		uint16_t l3, l4;
	} row[] = {
		{ { .payload = 46 }, FLOW_LAYER_ETH, 14, 0 },
		{ { V4, UDP }, FLOW_LAYER_ETH | FLOW_LAYER_IPV4 | FLOW_LAYER_UDP, 14, 34 },
		{ { V4, TCP }, FLOW_LAYER_ETH | FLOW_LAYER_IPV4 | FLOW_LAYER_TCP, 14, 34 },
		{ { V4, .protocol = 1 }, FLOW_LAYER_ETH | FLOW_LAYER_IPV4, 14, 34 },
		{ { V4, UDP, .options = 3 },
		  FLOW_LAYER_ETH | FLOW_LAYER_IPV4 | FLOW_LAYER_UDP,
		  14,
		  46 },
		{ { V6, UDP }, FLOW_LAYER_ETH | FLOW_LAYER_IPV6 | FLOW_LAYER_UDP, 14, 54 },
		{ { V6, TCP, .options = 2 },
		  FLOW_LAYER_ETH | FLOW_LAYER_IPV6 | FLOW_LAYER_TCP,
		  14,
		  70 },
		{ { V4, TCP, .tags = 1 },
		  FLOW_LAYER_ETH | FLOW_LAYER_VLAN | FLOW_LAYER_IPV4 | FLOW_LAYER_TCP,
		  18,
		  38 },
		{ { V6, UDP, .tags = 3 },
		  FLOW_LAYER_ETH | FLOW_LAYER_VLAN | FLOW_LAYER_IPV6 | FLOW_LAYER_UDP,
		  26,
		  66 },
		/* the first fragment has ports, the others have none */
		{ { V4, UDP, .fragment = 0x2000 },
		  FLOW_LAYER_ETH | FLOW_LAYER_IPV4 | FLOW_LAYER_UDP,
		  14,
		  34 },
		{ { V4, UDP, .fragment = 0x0010 }, FLOW_LAYER_ETH | FLOW_LAYER_IPV4, 14, 34 },
		{ { V6, UDP, .fragment_header = true, .fragment = 8 },
		  FLOW_LAYER_ETH | FLOW_LAYER_IPV6,
		  14,
		  62 },
	};
	struct built_frame b;
	struct raw_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		parse(&f, &b, &row[i].recipe);
		cr_expect_eq(f.layers, row[i].layers, "row %zu: %#x", i, f.layers);
		cr_expect_eq(f.l3, row[i].l3, "row %zu: l3 %u", i, f.l3);
		cr_expect_eq(f.l4, row[i].l4, "row %zu: l4 %u", i, f.l4);
		cr_expect_not(f.cut, "row %zu", i);
	}
}

Test(raw_frame, the_key_holds_what_stands_in_the_frame)
{
	struct built_frame b;
	struct raw_frame f;

	parse(&f, &b,
	      &(struct frame_recipe){ V4, UDP, .tags = 2, .src_port = 1234, .dst_port = 5678 });
	cr_assert_arr_eq(f.key.dst_mac, "\x02\x03\x04\x05\x06\x07", 6);
	cr_assert_arr_eq(f.key.src_mac, "\x0a\x0b\x0c\x0d\x0e\x0f", 6);
	cr_assert_eq(load_be16(f.key.ether_type), 0x0800, "behind the last tag");
	cr_assert_eq(load_be16(f.key.vlan_tag), 0xa064, "of the first tag");
	cr_assert_arr_eq(f.key.src_ip, "\x0a\0\0\1", 4);
	cr_assert_arr_eq(f.key.dst_ip, "\x0a\0\0\2", 4);
	cr_assert_eq(load_be16(f.key.src_port), 1234);
	cr_assert_eq(load_be16(f.key.dst_port), 5678);
	cr_assert_eq(f.key.protocol, 17);
	cr_assert_eq(f.key.ttl, 64);
	cr_assert_eq(f.vlan_tags, 2);
}

/* hostile H-55: RoCE from a raw queue pair. */
Test(raw_frame, roce_may_not_be_sent)
{
	static const struct {
		const char *what;
		struct frame_recipe recipe;
	} row[] = {
		{ "IPv4", { V4, UDP, .dst_port = 4791 } },
		{ "IPv6", { V6, UDP, .dst_port = 4791 } },
		{ "a tag", { V4, UDP, .dst_port = 4791, .tags = 1 } },
		{ "seven tags", { V6, UDP, .dst_port = 4791, .tags = 7 } },
		{ "service tags", { V4, UDP, .dst_port = 4791, .tags = 2, .tag_type = 0x88a8 } },
		{ "old service tags",
		  { V4, UDP, .dst_port = 4791, .tags = 1, .tag_type = 0x9100 } },
		{ "options", { V4, UDP, .dst_port = 4791, .options = 10 } },
		{ "extension headers", { V6, UDP, .dst_port = 4791, .options = 4 } },
		{ "too many extension headers", { V6, UDP, .dst_port = 1, .options = 70 } },
		{ "a first fragment", { V4, UDP, .dst_port = 4791, .fragment = 0x2000 } },
		{ "a first fragment, IPv6",
		  { V6, UDP, .dst_port = 4791, .fragment_header = true, .fragment = 1 } },
		{ "an atomic fragment",
		  { V6, UDP, .dst_port = 4791, .fragment_header = true, .options = 1 } },
	};
	struct built_frame b;
	struct raw_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		parse(&f, &b, &row[i].recipe);
		cr_expect(raw_frame_is_roce(&f, b.octet, b.length), "%s", row[i].what);
	}
}

/* hostile H-55: RoCE from a raw queue pair. */
Test(raw_frame, roce_cut_anywhere_behind_the_ip_header_may_not_be_sent)
{
	static const struct frame_recipe recipe[] = { { V4, UDP, .dst_port = 4791 },
						      { V6, UDP, .dst_port = 4791, .options = 2 } };
	struct built_frame b;
	struct raw_frame f;

	for (size_t r = 0; r < ARRAY_SIZE(recipe); r++) {
		build_frame(&b, &recipe[r]);
		for (size_t n = 14; n <= b.length; n++) {
			raw_frame_parse(&f, b.octet, n);
			cr_expect(raw_frame_is_roce(&f, b.octet, n), "recipe %zu, %zu octets", r,
				  n);
		}
	}
}

/* As some are, before they are padded. */
Test(raw_frame, a_frame_that_ends_with_its_ipv4_header_is_whole)
{
	struct built_frame b;
	struct raw_frame f;

	build_frame(&b, &(struct frame_recipe){ V4, .protocol = 1 });
	raw_frame_parse(&f, b.octet, 34);
	cr_expect_not(f.cut);
	raw_frame_parse(&f, b.octet, 33);
	cr_expect(f.cut, "an octet less");
}

/* hostile H-55: RoCE from a raw queue pair. */
Test(raw_frame, lengths_that_lie_hide_no_port)
{
	static const uint16_t length[] = { 0, 1, 20, 24, 27, 1000, 65535 };
	struct built_frame b;
	struct raw_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(length); i++) {
		build_frame(&b, &(struct frame_recipe){ V4, UDP, .dst_port = 4791, .payload = 30 });
		store_be16(b.octet + 16, length[i]);
		raw_frame_parse(&f, b.octet, b.length);
		cr_expect(raw_frame_is_roce(&f, b.octet, b.length), "IPv4, %u", length[i]);
		build_frame(&b, &(struct frame_recipe){ V6, UDP, .dst_port = 4791, .payload = 30 });
		store_be16(b.octet + 18, length[i]);
		raw_frame_parse(&f, b.octet, b.length);
		cr_expect(raw_frame_is_roce(&f, b.octet, b.length), "IPv6, %u", length[i]);
	}
}

Test(raw_frame, others_may_be_sent)
{
	static const struct frame_recipe row[] = {
		{ .payload = 46 },
		{ V4, UDP, .dst_port = 4790 },
		{ V4, UDP, .dst_port = 4792 },
		{ V4, UDP, .src_port = 4791, .dst_port = 53 },
		{ V4, TCP, .dst_port = 4791 },
		{ V6, TCP, .dst_port = 4791, .tags = 2 },
		{ V6, UDP, .dst_port = 1, .options = 3 },
		{ V4, .protocol = 1, .dst_port = 4791 },
		{ V4, UDP, .dst_port = 4791, .fragment = 0x0001 }, /* a later one has no port */
		{ V6, UDP, .dst_port = 4791, .fragment_header = true, .fragment = 8 },
		{ .type = 0x0806, .payload = 28 },
	};
	struct built_frame b;
	struct raw_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		parse(&f, &b, &row[i]);
		cr_expect_not(raw_frame_is_roce(&f, b.octet, b.length), "row %zu", i);
	}
}

/* hostile H-152: every value of the opcode. */
Test(raw_frame, any_octets_may_be_parsed)
{
	struct raw_frame f;
	uint8_t octet[256];
	uint64_t x = 88172645463325252u;

	for (int round = 0; round < 200000; round++) {
		size_t n;

		for (size_t i = 0; i < sizeof(octet); i++) {
			x ^= x << 13, x ^= x >> 7, x ^= x << 17;
			octet[i] = (uint8_t)x;
		}
		/* mostly something that gets further than its type */
		store_be16(octet + 12, round % 3 == 0 ? 0x0800 : round % 3 == 1 ? 0x86dd : 0x8100);
		if (round % 3 == 0)
			octet[14] = (uint8_t)(0x40 | (octet[14] & 15));
		if (round % 3 == 1) {
			octet[14] = 0x60;
			octet[20] = (uint8_t[]){ 0, 43, 44, 51, 60, 17 }[octet[20] % 6];
		}
		n = x % sizeof(octet);
		raw_frame_parse(&f, octet, n);
		cr_assert(f.end <= n && f.l4 <= n && f.l3 <= n);
		raw_frame_is_roce(&f, octet, n);
		raw_frame_checksums_right(&f, octet);
		raw_frame_fill_checksums(&f, octet);
	}
}

Test(raw_frame, checksums_known_answers)
{
	/* An ARP-free classic: RFC 1071's arithmetic on a header from the net. */
	static const uint8_t ip[] = { 0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
				      0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7 };
	uint8_t frame[14 + 0x73] = { [12] = 0x08, [13] = 0x00 };
	struct raw_frame f;

	memcpy(frame + 14, ip, sizeof(ip));
	raw_frame_parse(&f, frame, sizeof(frame));
	raw_frame_fill_checksums(&f, frame);
	cr_assert_eq(load_be16(frame + 24), 0xb861);
}

Test(raw_frame, checksums_that_were_filled_are_right_and_others_are_not)
{
	static const struct frame_recipe row[] = {
		{ V4, UDP, .payload = 100 },
		{ V4, UDP, .payload = 101, .tags = 1 },
		{ V4, TCP, .payload = 7 },
		{ V4, TCP, .payload = 0, .options = 2 },
	};
	struct built_frame b;
	struct raw_frame f;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		parse(&f, &b, &row[i]);
		raw_frame_fill_checksums(&f, b.octet);
		cr_expect(raw_frame_checksums_right(&f, b.octet), "row %zu", i);
		for (size_t at = f.l3; at < b.length; at++) {
			b.octet[at] ^= 0x10;
			raw_frame_parse(&f, b.octet, b.length);
			cr_expect_not(raw_frame_checksums_right(&f, b.octet), "row %zu octet %zu",
				      i, at);
			b.octet[at] ^= 0x10;
		}
	}
}

Test(raw_frame, udp_without_checksum_is_right_and_ipv6_is_not_told)
{
	struct built_frame b;
	struct raw_frame f;

	parse(&f, &b, &(struct frame_recipe){ V4, UDP, .payload = 10 });
	raw_frame_fill_checksums(&f, b.octet);
	store_be16(b.octet + f.l4 + 6, 0);
	cr_assert(raw_frame_checksums_right(&f, b.octet));
	parse(&f, &b, &(struct frame_recipe){ V6, UDP, .payload = 10 });
	raw_frame_fill_checksums(&f, b.octet);
	cr_assert_neq(load_be16(b.octet + f.l4 + 6), 0, "it is filled for IPv6, too");
	cr_assert_not(raw_frame_checksums_right(&f, b.octet));
}
