/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which frames an engine wants. The engine has only two addresses and a VLAN; each frame ends where its
 * memory ends.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "engine/inside.h"

static struct engine *e;

/* 10.9.0.1, and the link-local address of 02:00:00:00:00:01. */
static void begin(void)
{
	e = calloc(1, sizeof(*e));
	cr_assert_not_null(e);
	e->gid[0].gid = (struct gid){ { 0xfe, 0x80, [11] = 0xff, [12] = 0xfe, [15] = 1 } };
	e->gid[1].gid = (struct gid){ { [10] = 0xff, 0xff, 10, 9, 0, 1 } };
	cr_assert_eq(live_add(e), 0);
	live_open(e);
}

static void end(void)
{
	live_remove(e);
	free(e);
}

TestSuite(wants, .init = begin, .fini = end, .timeout = 30);

static uint8_t *octets_of(const char *hex, size_t *n)
{
	uint8_t *octets;

	*n = strlen(hex) / 2;
	octets = malloc(*n + (*n == 0));
	cr_assert_not_null(octets);
	for (size_t i = 0; i < *n; i++) {
		unsigned int v;

		cr_assert_eq(sscanf(hex + 2 * i, "%2x", &v), 1);
		octets[i] = (uint8_t)v;
	}
	return octets;
}

static bool wanted(const uint8_t *octets, size_t n)
{
	struct rte_mbuf m = { .buf_addr = (void *)(uintptr_t)octets, .data_len = (uint16_t)n };

	return uroce_wants((struct uroce_engine *)e, &m);
}

#define HEADER "020000000001020000000099"
#define TAG5   "8100e005"
#define IPV4_OF(first, protocol, to)  \
	"0800" first "00002800000000" \
	"40" protocol "0000"          \
	"0a090063" to
#define IPV4(protocol, to, rest) HEADER IPV4_OF("45", protocol, to) rest
#define IPV6(next, to, rest)            \
	HEADER "86dd"                   \
	       "600000000008" next "40" \
	       "fe800000000000000000000000000099" to rest
#define ARP(target)                    \
	"ffffffffffff0200000000990806" \
	"00010800060400010200000000990a090063000000000000" target
#define PORTS_ROCE  "c00012b700080000"
#define PORTS_OTHER "c000003500080000"
#define OPTION	    "01010101"

static const struct {
	const char *what, *hex;
	bool wanted;
} frames[] = {
	{ "RoCE for us", IPV4("11", "0a090001", PORTS_ROCE), true },
	{ "echo for us", IPV4("01", "0a090001", PORTS_OTHER), true },
	{ "RoCE for another host", IPV4("11", "0a090003", PORTS_ROCE), false },
	{ "RoCE to a group", IPV4("11", "e0010101", PORTS_ROCE), true },
	{ "... the last of them", IPV4("11", "efffffff", PORTS_ROCE), true },
	{ "... an address above groups", IPV4("11", "f0010101", PORTS_ROCE), false },
	{ "... behind an option", HEADER IPV4_OF("46", "11", "e0010101") OPTION PORTS_ROCE, true },
	{ "... its ports are cut off", IPV4("11", "e0010101", "c00012"), false },
	{ "TCP to a group", IPV4("06", "e0010101", PORTS_ROCE), false },
	{ "other UDP to a group", IPV4("11", "e0010101", PORTS_OTHER), false },
	{ "an IGMP query", IPV4("02", "e0000001", PORTS_OTHER), true },
	{ "IGMP to another host", IPV4("02", "0a090003", PORTS_OTHER), false },
	{ "ARP for us", ARP("0a090001"), true },
	{ "ARP for another host", ARP("0a090003"), false },
	{ "ARP that announces a host",
	  "ffffffffffff0200000000990806"
	  "00010800060400010200000000990a0900630000000000000a090063",
	  true },
	{ "ARP that is cut", ARP("0a0900"), false },
	{ "solicitation of our link-local address",
	  IPV6("3a", "ff0200000000000000000001ff000001", PORTS_OTHER), true },
	{ "solicitation of another", IPV6("3a", "ff0200000000000000000001ff000077", PORTS_OTHER),
	  false },
	{ "solicitation of a free entry",
	  IPV6("3a", "ff0200000000000000000001ff000000", PORTS_OTHER), false },
	{ "solicitation of what ends as our IPv4 address",
	  IPV6("3a", "ff0200000000000000000001ff090001", PORTS_OTHER), false },
	{ "our link-local address", IPV6("11", "fe80000000000000000000fffe000001", PORTS_ROCE),
	  true },
	{ "another link-local address", IPV6("11", "fe80000000000000000000fffe000002", PORTS_ROCE),
	  false },
	{ "no address at all", IPV6("11", "00000000000000000000000000000000", PORTS_ROCE), false },
	{ "ICMPv6 to all nodes", IPV6("3a", "ff020000000000000000000000000001", PORTS_OTHER),
	  true },
	{ "MLD, which has a header in between",
	  IPV6("00", "ff020000000000000000000000000001", PORTS_OTHER), true },
	{ "UDP to all nodes", IPV6("11", "ff020000000000000000000000000001", PORTS_OTHER), false },
	{ "RoCE to an IPv6 group", IPV6("11", "ff0e0000000000000000000000001234", PORTS_ROCE),
	  true },
	{ "other UDP to an IPv6 group", IPV6("11", "ff0e0000000000000000000000001234", PORTS_OTHER),
	  false },
	{ "ICMPv6 to all routers", IPV6("3a", "ff020000000000000000000000000002", PORTS_OTHER),
	  false },
	{ "in another VLAN", HEADER TAG5 IPV4_OF("45", "11", "0a090001") PORTS_ROCE, false },
	{ "with a priority", HEADER "8100e000" IPV4_OF("45", "11", "0a090001") PORTS_ROCE, true },
	{ "LLDP", HEADER "88cc0207040200000000", false },
	{ "cut in the IPv4 header", "02000000000102000000009908004500002800000000401100000a0900",
	  false },
	{ "nothing but addresses", HEADER, false },
	{ "nothing", "", false },
};

Test(wants, frames_for_it_alone)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		size_t n;
		uint8_t *octets = octets_of(frames[i].hex, &n);

		cr_expect_eq(wanted(octets, n), frames[i].wanted, "%s", frames[i].what);
		free(octets);
	}
}

/* The sanitizer sees a look behind the end. Without its last octets a frame is wanted no more than with them. */
Test(wants, frames_that_are_cut_anywhere)
{
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		size_t n;
		uint8_t *octets = octets_of(frames[i].hex, &n);

		for (size_t k = 0; k < n; k++) {
			uint8_t *part = malloc(k + (k == 0));

			memcpy(part, octets, k);
			cr_expect(!wanted(part, k) || frames[i].wanted, "%s, %zu octets",
				  frames[i].what, k);
			free(part);
		}
		free(octets);
	}
}

Test(wants, frames_of_its_vlan)
{
	static const char *const own = HEADER TAG5 IPV4_OF("45", "11", "0a090001") PORTS_ROCE;
	static const char *const untagged = IPV4("11", "0a090001", PORTS_ROCE);
	size_t n;
	uint8_t *octets;

	e->vlan = 5;
	octets = octets_of(own, &n);
	cr_expect(wanted(octets, n));
	octets[15] = 6;
	cr_expect_not(wanted(octets, n));
	octets[15] = 5;
	octets[14] = 0xf1; /* VLAN 261 */
	cr_expect_not(wanted(octets, n));
	free(octets);
	octets = octets_of(untagged, &n);
	cr_expect_not(wanted(octets, n));
	free(octets);
}

Test(wants, no_engine_and_no_frame)
{
	size_t n;
	uint8_t *octets = octets_of(frames[0].hex, &n);
	struct rte_mbuf m = { .buf_addr = octets, .data_len = (uint16_t)n };

	cr_expect_not(uroce_wants((struct uroce_engine *)e, NULL));
	cr_expect_not(uroce_wants(NULL, &m));
	live_remove(e);
	cr_expect_not(uroce_wants((struct uroce_engine *)e, &m), "it is gone");
	free(octets);
}
