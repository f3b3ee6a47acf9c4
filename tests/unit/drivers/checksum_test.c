/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums that a sender left to hardware, and complete ones. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/kernel_interface/checksum.h"
#include "lcore/raw_frames.h"

static uint32_t add(uint32_t sum, const uint8_t *octet, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += (uint32_t)octet[i] << (i % 2 == 0 ? 8 : 0);
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

struct case_frame {
	struct built_frame b;
	size_t l3, l4, at; /* at: offset of the checksum */
	uint32_t pseudo;
};

static void make(struct case_frame *c, bool ipv6, uint8_t protocol, uint32_t tags)
{
	struct frame_recipe r = { .tags = tags,
				  .src = ipv6 ? "fd07::2" : "10.7.0.2",
				  .dst = ipv6 ? "fd07::1" : "10.7.0.1",
				  .protocol = protocol,
				  .src_port = 40000,
				  .dst_port = 22,
				  .payload = 101 };
	uint8_t *frame = c->b.octet;

	build_frame(&c->b, &r);
	c->l3 = 14 + 4 * tags;
	c->l4 = c->l3 + (ipv6 ? 40 : 20);
	c->at = c->l4 + (protocol == 6 ? 16 : 6);
	c->pseudo = add(0, frame + c->l3 + (ipv6 ? 8 : 12), ipv6 ? 32 : 8);
	c->pseudo += protocol + (uint32_t)(c->b.length - c->l4);
}

/* RFC 1071, octet by octet, to compare with what the driver computes. */
static uint16_t right_sum(const struct case_frame *c)
{
	uint8_t copy[2048];

	memcpy(copy, c->b.octet, c->b.length);
	store_be16(copy + c->at, 0);
	return (uint16_t)~fold(add(c->pseudo, copy + c->l4, c->b.length - c->l4));
}

Test(checksum, partial_checksums_are_completed)
{
	for (uint32_t i = 0; i < 12; i++) {
		struct case_frame c;

		make(&c, i % 2, i % 4 < 2 ? 6 : 17, i / 4);
		store_be16(c.b.octet + c.at, fold(c.pseudo));
		cr_expect(checksum_complete(c.b.octet, (uint32_t)c.b.length), "case %u", i);
		cr_expect_eq(load_be16(c.b.octet + c.at), right_sum(&c), "case %u", i);
		cr_expect_not(checksum_complete(c.b.octet, (uint32_t)c.b.length), "once");
	}
}

Test(checksum, other_frames_are_unchanged)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct built_frame before;
		struct case_frame c;

		make(&c, i % 2, i < 2 ? 6 : 17, 0);
		store_be16(c.b.octet + c.at, right_sum(&c));
		before = c.b;
		cr_expect_not(checksum_complete(c.b.octet, (uint32_t)c.b.length), "right");
		store_be16(c.b.octet + c.at, right_sum(&c) ^ 0x0100);
		store_be16(before.octet + c.at, right_sum(&c) ^ 0x0100);
		cr_expect_not(checksum_complete(c.b.octet, (uint32_t)c.b.length), "wrong");
		cr_expect_eq(memcmp(c.b.octet, before.octet, before.length), 0,
			     "the kernel must see that it is wrong");
	}
}

/* A fragment carries the checksum of the whole packet; no octet after its end is read. */
Test(checksum, fragments_and_cut_frames_are_unchanged)
{
	struct case_frame c;

	make(&c, false, 17, 0);
	store_be16(c.b.octet + c.at, fold(c.pseudo));
	store_be16(c.b.octet + c.l3 + 6, 0x2000);
	cr_expect_not(checksum_complete(c.b.octet, (uint32_t)c.b.length));
	store_be16(c.b.octet + c.l3 + 6, 0);
	for (uint32_t length = 0; length < c.b.length; length++) {
		uint8_t *exact = malloc(length + 1);

		memcpy(exact, c.b.octet, length);
		cr_expect_not(checksum_complete(exact, length), "cut to %u", length);
		free(exact);
	}
	cr_expect(checksum_complete(c.b.octet, (uint32_t)c.b.length));
}
