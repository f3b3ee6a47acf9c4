/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "frames.h"
#include "wire/opcode.h"

/* Behaviour 5: results of the Linux functions. */
Test(envelope, source_port_known_answers)
{
	static const struct {
		uint32_t label, local, remote;
		uint16_t port;
	} rows[] = {
		{ 0, 0x11, 0x12, 0xc132 },	   { 0, 0x123456, 0x654321, 0xf787 },
		{ 0, 0xffffff, 0xffffff, 0xff21 }, { 0x12345, 1, 2, 0xe341 },
		{ 0xfffff, 1, 2, 0xffc0 },	   { 0x4000, 1, 2, 0xc001 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_expect_eq(flow_source_port(rows[i].label, rows[i].local, rows[i].remote),
			     rows[i].port, "row %u", i);
		cr_expect_eq(flow_source_port(rows[i].label, rows[i].remote, rows[i].local),
			     rows[i].port, "row %u: symmetric", i);
	}
}

Test(envelope, source_port_is_dynamic_for_any_pair)
{
	for (uint32_t q = 1; q < 1 << 24; q += 9973)
		cr_assert_geq(flow_source_port(0, q, (q * 7919) & 0xffffff), 0xc000);
}

/* Behaviour 13. */
Test(envelope, multicast_macs)
{
	struct gid v4 = { { [10] = 0xff, 0xff, 239, 0x81, 2, 3 } };
	struct gid v6 = { { 0xff, 0x02, [12] = 0xde, 0xad, 0xbe, 0xef } };
	struct mac m4 = mac_of_multicast(&v4), m6 = mac_of_multicast(&v6);

	cr_expect_arr_eq(m4.octet, "\x01\x00\x5e\x01\x02\x03", 6);
	cr_expect_arr_eq(m6.octet, "\x33\x33\xde\xad\xbe\xef", 6);
}

/* Behaviours 8, 11, 12: from an address vector that uses every field. */
Test(envelope, an_ipv4_flow_octet_by_octet)
{
	static const uint8_t want[] = {
		2,    0,    0,	  0,	0,    2,    2,	  0,	0,    0,
		0,    1,    0x81, 0x00, 0x60, 0x64, 0x08, 0x00, /* tag */
		0x45, 0xc2, 0x00, 0x3c, 0x12, 0x34, 0x40, 0x00, 0x21, 0x11
	};
	struct address_vector av = address_of(0, 100);
	struct packet p = packet_of(OPCODE_CNP, NULL, 0);
	uint8_t frame[FRAME_MAX];
	size_t n;

	av.traffic_class = 0xc2;
	av.hop_limit = 33;
	n = frame_of(frame, &av, &p);
	cr_expect_eq(n, 78);
	cr_expect_arr_eq(frame, want, sizeof(want));
	cr_expect_arr_eq(frame + 30, "\xc0\x00\x02\x01\xc0\x00\x02\x02\xc1\x23\x12\xb7\x00\x28\0\0",
			 16);
}

Test(envelope, an_ipv6_flow_octet_by_octet)
{
	struct address_vector av = address_of(1, 0);
	struct packet p = packet_of(OPCODE_CNP, NULL, 0);
	uint8_t frame[FRAME_MAX];

	av.traffic_class = 0xab;
	av.flow_label = 0xcdef1;
	av.hop_limit = 255;
	cr_expect_eq(frame_of(frame, &av, &p), 94);
	cr_expect_arr_eq(frame + 12, "\x86\xdd\x6a\xbc\xde\xf1\x00\x28\x11\xff", 10);
	cr_expect_arr_eq(frame + 22, av.src_gid.octet, 16);
	cr_expect_arr_eq(frame + 38, av.dst_gid.octet, 16);
	cr_expect_arr_eq(frame + 54, "\xc1\x23\x12\xb7\x00\x28\0\0", 8);
}
