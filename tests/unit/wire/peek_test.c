/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair number before decoding: it is the one that decoding finds, and no octet behind the end of the
 * frame is read (the frame ends before inaccessible memory).
 */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "frames.h"
#include "wire/header.h"
#include "wire/peek.h"

static uint8_t *fence; /* the first octet that may not be read */

static void map_fence(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *area =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(area != MAP_FAILED);
	fence = area + 3 * page;
	cr_assert_eq(mprotect(fence, page, PROT_NONE), 0);
}

TestSuite(peek, .init = map_fence);

static uint32_t peek(const uint8_t *frame, size_t length)
{
	return packet_peek(memcpy(fence - length, frame, length), length);
}

static const struct {
	const char *name;
	int ipv6;
	uint16_t vlan;
} kinds[] = {
	{ "IPv4", 0, 0 }, { "IPv6", 1, 0 }, { "IPv4 in a VLAN", 0, 7 }, { "IPv6, VLAN", 1, 7 }
};

Test(peek, it_is_what_decoding_finds)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct address_vector av = address_of(kinds[i].ipv6, kinds[i].vlan);
		struct packet p = packet_of(0x04, (const uint8_t *)"four", 4);
		uint8_t frame[FRAME_MAX];
		size_t n = frame_of(frame, &av, &p);
		size_t bth = ETHER_LENGTH + (kinds[i].vlan != 0 ? VLAN_TAG_LENGTH : 0) +
			     (kinds[i].ipv6 ? IPV6_LENGTH : IPV4_LENGTH) + UDP_LENGTH;

		cr_assert_neq(p.dest_qpn, 0);
		cr_expect_eq(peek(frame, n), p.dest_qpn, "%s", kinds[i].name);
		for (size_t cut = 0; cut < n; cut++)
			cr_expect_eq(peek(frame, cut), cut < bth + BTH_LENGTH ? 0 : p.dest_qpn,
				     "%s, %zu octets of it", kinds[i].name, cut);
	}
}

static const struct {
	const char *name;
	size_t at;
	uint8_t is;
} others[] = {
	{ "ARP", ETHER_TYPE + 1, 6 },
	{ "options", ETHER_LENGTH + IPV4_VERSION_IHL, 0x46 },
	{ "TCP", ETHER_LENGTH + IPV4_PROTOCOL, 6 },
	{ "the first fragment", ETHER_LENGTH + IPV4_FRAGMENT, 0x20 },
	{ "a later fragment", ETHER_LENGTH + IPV4_FRAGMENT + 1, 1 },
	{ "another port", ETHER_LENGTH + IPV4_LENGTH + UDP_DST_PORT, 0 },
};

Test(peek, other_frames_are_for_nobody)
{
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct address_vector av = address_of(0, 0);
		struct packet p = packet_of(0x04, (const uint8_t *)"four", 4);
		uint8_t frame[FRAME_MAX];
		size_t n = frame_of(frame, &av, &p);

		frame[others[i].at] = others[i].is;
		cr_expect_eq(peek(frame, n), 0, "%s", others[i].name);
	}
}
