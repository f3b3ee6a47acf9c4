/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose a frame is that came in by a port with an interface of the kernel's beside it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/exception/exception.h"
#include "raw_frames.h"
#include "wire/decode.h"

#define OWN4  "10.7.0.1"
#define OWN6  "fd07::1"
#define PEER4 "10.7.0.2"
#define PEER6 "fd07::2"
#define ROCE  4791

static struct exception_addresses own;

static void set_own(void)
{
	struct engine_gid gid[LIMIT_GIDS] = { 0 };

	gid[1].gid = (struct gid){ { [10] = 0xff, [11] = 0xff } };
	inet_pton(AF_INET, OWN4, gid[1].gid.octet + 12);
	inet_pton(AF_INET6, OWN6, gid[3].gid.octet);
	exception_addresses_set(&own, gid);
}

TestSuite(exception, .init = set_own);

static bool is_kernels(const struct built_frame *b, uint16_t vlan, enum reason *why)
{
	const struct decode_options options = { .check_icrc = true, .vlan = vlan };
	struct packet p;

	*why = packet_decode(&p, b->octet, b->length, &options);
	if (*why == REASON_NONE)
		return false;
	return exception_wants(&own, vlan, *why, b->octet, b->length);
}

static const struct {
	const char *what;
	struct frame_recipe frame;
	uint16_t vlan;
	bool kernels;
} table[] = {
	{ "ARP", { .type = 0x0806, .payload = 46 }, 0, true },
	{ "LLDP", { .type = 0x88cc, .payload = 46 }, 0, true },
	{ "TCP", { .src = PEER4, .dst = OWN4, .protocol = 6, .dst_port = 22 }, 0, true },
	{ "TCP to the number of RoCE's port",
	  { .src = PEER4, .dst = OWN4, .protocol = 6, .dst_port = ROCE },
	  0,
	  true },
	{ "TCP over IPv6", { .src = PEER6, .dst = OWN6, .protocol = 6, .dst_port = 22 }, 0, true },
	{ "echo", { .src = PEER4, .dst = OWN4, .protocol = 1, .payload = 56 }, 0, true },
	{ "neighbour discovery",
	  { .src = PEER6, .dst = OWN6, .protocol = 58, .payload = 24 },
	  0,
	  true },
	{ "MLD behind a hop-by-hop header",
	  { .src = PEER6, .dst = "ff02::16", .protocol = 58, .options = 1, .payload = 24 },
	  0,
	  true },
	{ "UDP",
	  { .src = PEER4, .dst = OWN4, .protocol = 17, .dst_port = 53, .payload = 9 },
	  0,
	  true },
	{ "UDP from RoCE's port",
	  { .src = PEER4,
	    .dst = OWN4,
	    .protocol = 17,
	    .src_port = ROCE,
	    .dst_port = 53,
	    .payload = 9 },
	  0,
	  true },
	{ "UDP with options",
	  { .src = PEER4, .dst = OWN4, .protocol = 17, .dst_port = 53, .options = 2, .payload = 9 },
	  0,
	  true },
	{ "RoCE that is none, to us",
	  { .src = PEER4, .dst = OWN4, .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  false },
	{ "... over IPv6",
	  { .src = PEER6, .dst = OWN6, .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  false },
	{ "... with options, which the engine refuses",
	  { .src = PEER4,
	    .dst = OWN4,
	    .protocol = 17,
	    .dst_port = ROCE,
	    .options = 1,
	    .payload = 40 },
	  0,
	  false },
	{ "... behind an extension header",
	  { .src = PEER6,
	    .dst = OWN6,
	    .protocol = 17,
	    .dst_port = ROCE,
	    .options = 1,
	    .payload = 40 },
	  0,
	  false },
	{ "... to a group",
	  { .src = PEER4, .dst = "239.1.2.3", .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  false },
	{ "... to a group of IPv6",
	  { .src = PEER6, .dst = "ff15::1", .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  false },
	{ "... to somebody behind the kernel",
	  { .src = PEER4, .dst = "10.7.0.3", .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  true },
	{ "... to somebody behind it over IPv6",
	  { .src = PEER6, .dst = "fd07::3", .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  true },
	{ "a first fragment of UDP 4791",
	  { .src = PEER4,
	    .dst = OWN4,
	    .protocol = 17,
	    .dst_port = ROCE,
	    .fragment = 0x2000,
	    .payload = 40 },
	  0,
	  true },
	{ "a later fragment",
	  { .src = PEER4, .dst = OWN4, .protocol = 17, .fragment = 0x0010, .payload = 40 },
	  0,
	  true },
	{ "a fragment of TCP",
	  { .src = PEER4, .dst = OWN4, .protocol = 6, .fragment = 0x2000, .payload = 40 },
	  0,
	  true },
	{ "a fragment of IPv6",
	  { .src = PEER6,
	    .dst = OWN6,
	    .protocol = 17,
	    .dst_port = ROCE,
	    .fragment_header = true,
	    .fragment = 1,
	    .payload = 40 },
	  0,
	  true },
	{ "another VLAN", { .tags = 1, .src = PEER4, .dst = OWN4, .protocol = 6 }, 0, true },
	{ "another VLAN's RoCE",
	  { .tags = 1, .src = PEER4, .dst = OWN4, .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  0,
	  true },
	{ "two tags", { .tags = 2, .src = PEER4, .dst = OWN4, .protocol = 6 }, 0, true },
	{ "our VLAN", { .tags = 1, .src = PEER4, .dst = OWN4, .protocol = 6 }, 100, true },
	{ "our VLAN's RoCE",
	  { .tags = 1, .src = PEER4, .dst = OWN4, .protocol = 17, .dst_port = ROCE, .payload = 40 },
	  100,
	  false },
	{ "our VLAN's RoCE to others",
	  { .tags = 1,
	    .src = PEER4,
	    .dst = PEER4,
	    .protocol = 17,
	    .dst_port = ROCE,
	    .payload = 40 },
	  100,
	  true },
	{ "not our VLAN", { .tags = 1, .src = PEER4, .dst = OWN4, .protocol = 6 }, 99, false },
	{ "no tag where we have a VLAN", { .src = PEER4, .dst = OWN4, .protocol = 6 }, 99, false },
	{ "our VLAN outside of another",
	  { .tags = 2, .src = PEER4, .dst = OWN4, .protocol = 6 },
	  100,
	  true },
};

Test(exception, whose_a_frame_is)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct built_frame b;
		struct raw_frame f;
		enum reason why;

		build_frame(&b, &table[i].frame);
		raw_frame_parse(&f, b.octet, b.length);
		raw_frame_fill_checksums(&f, b.octet);
		cr_expect_eq(is_kernels(&b, table[i].vlan, &why), table[i].kernels, "%s (%s)",
			     table[i].what, reason_name(why));
	}
}

/*
 * An octet more or less, wherever the frame ends: no octet after the end is read, and UDP 4791 to
 * the engine stays the engine's. hostile H-152: every value of the opcode.
 */
Test(exception, cut_anywhere)
{
	struct frame_recipe recipe = {
		.src = PEER4, .dst = OWN4, .protocol = 17, .dst_port = ROCE, .payload = 40
	};
	struct built_frame whole;

	build_frame(&whole, &recipe);
	for (size_t length = 0; length <= whole.length; length++) {
		uint8_t *exact = malloc(length + 1);
		bool kernels;

		memcpy(exact, whole.octet, length);
		kernels = exception_wants(&own, 0, REASON_LENGTHS_DISAGREE, exact, length);
		cr_expect(!kernels, "cut to %zu", length);
		kernels = exception_wants(&own, 0, REASON_FRAME_SHORT, exact, length);
		cr_expect_eq(kernels, length >= 14, "cut to %zu", length);
		free(exact);
	}
}

Test(exception, addresses_follow_the_table)
{
	struct engine_gid gid[LIMIT_GIDS];
	struct gid other = { { 0xfd, [15] = 200 } };

	for (uint8_t i = 0; i < LIMIT_GIDS; i++)
		gid[i].gid = (struct gid){ { 0xfd, [15] = i } };
	exception_addresses_set(&own, gid);
	for (uint8_t i = 0; i < LIMIT_GIDS; i++)
		cr_expect(exception_is_own(&own, &gid[i].gid), "entry %u", i);
	cr_expect_not(exception_is_own(&own, &other));
	memset(gid, 0, sizeof(gid));
	gid[7].gid = other;
	exception_addresses_set(&own, gid);
	cr_expect(exception_is_own(&own, &other));
	cr_expect_not(exception_is_own(&own, &gid[0].gid), "an empty entry is nobody's address");
}
