/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire format of rsockets, octet by octet. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include "rdmacm/rsockets/rs_wire.h"

/* version, flags, credits, reserved, entries; address, key, length twice: all big endian */
static const uint8_t example[RS_GREETING_SIZE] = {
	1,    2,    0x01, 0x80, 0,    0,    0,	  8, /* 384 credits, 8 entries */
	0x00, 0x00, 0x55, 0x66, 0x77, 0x88, 0x99, 0x00, 0x00, 0x00, 0x12, 0x34, 0, 0, 0, 2,
	0x00, 0x00, 0x7f, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x56, 0x78, 0, 1, 0, 0,
};

Test(rs_wire, the_greeting_in_private_data)
{
	struct rs_greeting g = {
		.has_iomap = true,
		.credits = 384,
		.iomap_entries = 8,
		.table = { .address = 0x556677889900, .key = 0x1234, .length = 2 },
		.buffer = { .address = 0x7f0000010000, .key = 0x5678, .length = 65536 },
	};
	struct rs_greeting loaded;
	uint8_t stored[RS_GREETING_SIZE];

	rs_greeting_store(stored, &g);
	cr_expect_arr_eq(stored, example, sizeof(example));
	cr_assert(rs_greeting_load(&loaded, example, sizeof(example)));
	cr_expect(loaded.has_iomap && !loaded.big_endian);
	cr_expect_eq(loaded.credits, 384);
	cr_expect_eq(loaded.iomap_entries, 8);
	cr_expect_eq(loaded.table.address, g.table.address);
	cr_expect_eq(loaded.table.key, 0x1234);
	cr_expect_eq(loaded.buffer.length, 65536);
}

Test(rs_wire, invalid_greetings)
{
	struct rs_greeting g;
	uint8_t bad[RS_GREETING_SIZE];

	for (size_t length = 0; length < RS_GREETING_SIZE; length++)
		cr_expect(!rs_greeting_load(&g, example, length));
	memcpy(bad, example, sizeof(bad));
	bad[0] = 2;
	cr_expect(!rs_greeting_load(&g, bad, sizeof(bad)), "another version");
	memcpy(bad, example, sizeof(bad));
	bad[23] = 0;
	cr_expect(!rs_greeting_load(&g, bad, sizeof(bad)), "a table without entries");
}

Test(rs_wire, messages)
{
	cr_expect_eq(rs_message(RS_DATA, 70000), 70000);
	cr_expect_eq(rs_message(RS_CREDIT, 0x1ffff), 0x8001ffff);
	cr_expect_eq(rs_message(RS_IOMAP, 3), 0xc0000003);
	cr_expect_eq(rs_message(RS_CONTROL, RS_SHUTDOWN), 0xe0000002);
	cr_expect_eq(rs_message_kind(0xe0000002), RS_CONTROL);
	cr_expect_eq(rs_message_value(0xe0000002), RS_SHUTDOWN);
}

Test(rs_wire, entries_in_one_octet)
{
	static const struct {
		uint32_t entries;
		uint8_t scale;
		uint16_t back;
	} row[] = {
		{ 0, 0, 0 },
		{ 1, 1, 1 },
		{ 128, 128, 128 },
		{ 256, 129, 256 },
		{ 300, 129, 256 },
		{ 512, 130, 512 },
		{ 0x7fff, 255, 0x7f00 },
		{ 1000000, 255, 0x7f00 },
	};

	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		cr_expect_eq(rs_entries_to_scale(row[i].entries), row[i].scale, "%u",
			     row[i].entries);
		cr_expect_eq(rs_entries_from_scale(row[i].scale), row[i].back, "%u",
			     row[i].entries);
	}
}

Test(rs_wire, entries_for_the_other_byte_order)
{
	struct rs_sge s = { .address = 0x0102030405060708, .key = 0x0a0b0c0d, .length = 0x100 };
	struct rs_sge swapped = rs_sge_for(&s, true), same = rs_sge_for(&s, false);

	cr_expect_eq(sizeof(s), 16);
	cr_expect_eq(sizeof(struct rs_iomap), 24);
	cr_expect_eq(swapped.address, 0x0807060504030201);
	cr_expect_eq(swapped.key, 0x0d0c0b0a);
	cr_expect_eq(swapped.length, 0x10000);
	cr_expect_eq(same.address, s.address);
}

static struct sockaddr_in v4(const char *text, uint16_t port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &a.sin_addr);
	return a;
}

static struct sockaddr_in6 v6(const char *text, uint16_t port)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	inet_pton(AF_INET6, text, &a.sin6_addr);
	return a;
}

Test(rs_wire, header_of_a_datagram)
{
	static const uint8_t expected[] = { 4, 8, 0x1c, 0x06, 10, 0, 0, 2 };
	struct sockaddr_in a = v4("10.0.0.2", 7174);
	struct sockaddr_in6 b = v6("fd00::2", 7174);
	uint8_t stored[RS_DATAGRAM_HEADER_MAX];
	struct sockaddr_storage back;

	cr_assert_eq(rs_datagram_store(stored, (struct sockaddr *)&a), 8);
	cr_expect_arr_eq(stored, expected, sizeof(expected));
	cr_assert_eq(rs_datagram_load(&back, stored, 8, 3), 8);
	cr_expect_arr_eq(&back, &a, sizeof(a));
	cr_expect_eq(rs_datagram_load(&back, stored, 7, 3), 0);
	cr_assert_eq(rs_datagram_store(stored, (struct sockaddr *)&b), 24);
	cr_assert_eq(rs_datagram_load(&back, stored, 100, 3), 24);
	cr_expect_arr_eq(&back, &b, sizeof(b));
	cr_expect_eq(rs_datagram_load(&back, stored, 23, 3), 0);
	stored[1] = 8;
	cr_expect_eq(rs_datagram_load(&back, stored, 24, 3), 0,
		     "the length of the other IP version");
}

/* The header has no scope, and without one no answer can be sent. */
Test(rs_wire, a_link_local_sender_is_on_the_link_that_it_came_from)
{
	struct sockaddr_in6 local = v6("fe80::2", 7174), global = v6("fd00::2", 7174);
	uint8_t stored[RS_DATAGRAM_HEADER_MAX];
	struct sockaddr_storage back;
	const struct sockaddr_in6 *source = (const struct sockaddr_in6 *)(const void *)&back;

	rs_datagram_store(stored, (struct sockaddr *)&local);
	cr_assert_eq(rs_datagram_load(&back, stored, 24, 3), 24);
	cr_expect_eq(source->sin6_scope_id, 3);
	rs_datagram_store(stored, (struct sockaddr *)&global);
	cr_assert_eq(rs_datagram_load(&back, stored, 24, 3), 24);
	cr_expect_eq(source->sin6_scope_id, 0);
}

Test(rs_wire, header_of_a_udp_datagram)
{
	static const uint8_t expected[] = { 0x55, 0x55, 0x55, 0x55, 4,	7, 16, 0,
					    0,	  0x12, 0x34, 0x56, 10, 0, 0,  2 };
	struct rs_udp u = { .operation = RS_UDP_CONTROL, .qpn = 0x123456 }, back;
	struct sockaddr_in a = v4("10.0.0.2", 7174);
	struct sockaddr_in6 b = v6("fd00::2", 7174);
	uint8_t stored[RS_UDP_HEADER_MAX];

	cr_assert_eq(rs_udp_store(stored, &u, (struct sockaddr *)&a), 16);
	cr_expect_arr_eq(stored, expected, sizeof(expected));
	cr_assert_eq(rs_udp_load(&back, stored, 16, AF_INET), 16);
	cr_expect_eq(back.operation, RS_UDP_CONTROL);
	cr_expect_eq(back.qpn, 0x123456);
	cr_expect_eq(rs_udp_load(&back, stored, 15, AF_INET), 0);
	cr_expect_eq(rs_udp_load(&back, stored, 28, AF_INET6), 0);
	cr_assert_eq(rs_udp_store(stored, &u, (struct sockaddr *)&b), 28);
	cr_expect_eq(rs_udp_load(&back, stored, 28, AF_INET6), 28);
	stored[5] = 3;
	cr_expect_eq(rs_udp_load(&back, stored, 28, AF_INET6), 0, "an unknown operation");
	stored[5] = 0;
	stored[0] = 0x54;
	cr_expect_eq(rs_udp_load(&back, stored, 28, AF_INET6), 0, "another tag");
}
