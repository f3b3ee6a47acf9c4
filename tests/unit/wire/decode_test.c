/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that are malformed or not RoCEv2. Each one lies directly before inaccessible memory, so
 * reading one octet too many ends the test.
 */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "frames.h"
#include "wire/opcode.h"

#define L3  14u
#define BTH (L3 + 20 + 8) /* of an untagged IPv4 frame */

static uint8_t *fence; /* the first octet that may not be read */

static void map_fence(void)
{
	long page = sysconf(_SC_PAGESIZE);
	uint8_t *area = mmap(NULL, 4 * (size_t)page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(area != MAP_FAILED);
	fence = area + 3 * page;
	cr_assert_eq(mprotect(fence, (size_t)page, PROT_NONE), 0);
}

TestSuite(decode, .init = map_fence);

static enum reason decode_with(const uint8_t *frame, size_t length,
			       const struct decode_options *options, struct packet *p)
{
	uint8_t *at = fence - length;

	memcpy(at, frame, length);
	return packet_decode(p, at, length, options);
}

static enum reason decode(const uint8_t *frame, size_t length)
{
	struct packet p;

	return decode_with(frame, length, &untagged, &p);
}

static void expect(enum reason got, enum reason want, const char *what)
{
	cr_expect_eq(got, want, "%s: %s, not %s", what, reason_name(got), reason_name(want));
}

/* An RC SEND ONLY of 13 octets. */
static size_t a_send(uint8_t *frame, int ipv6)
{
	struct address_vector av = address_of(ipv6, 0);
	struct packet p = packet_of(0x04, (const uint8_t *)"thirteen octs", 13);

	return frame_of(frame, &av, &p);
}

/* To a queue pair and to a multicast group. */
static void opcodes_at_all_lengths(bool group)
{
	uint8_t frame[FRAME_MAX];
	struct packet p;

	a_send(frame, 0);
	for (unsigned int o = 0; o < 256; o++)
		for (size_t n = 0; n <= 200; n++) {
			size_t total = BTH + n;
			size_t least = opcode_table[o].header_length + ICRC_LENGTH;
			enum reason want = n < 16			 ? REASON_BTH_SHORT
					   : !opcode_defined((uint8_t)o) ? REASON_OPCODE_UNKNOWN
					   : n < least			 ? REASON_HEADER_SHORT
									 : REASON_NONE;

			memset(frame + BTH, 0, n);
			frame[BTH] = (uint8_t)o;
			if (group && n >= 8)
				memset(frame + BTH + 5, 0xff, 3);
			frame_fix_lengths(frame, L3, total);
			if (n >= 16)
				frame_fix_icrc(frame, L3, total);
			cr_assert_eq(decode_with(frame, total, &untagged, &p), want,
				     "opcode %#x, %zu octets", o, n);
			if (want == REASON_NONE)
				cr_assert_eq(p.payload_length, n - least);
		}
}

/*
 * Every opcode value with every UDP payload from 0 to 200 octets; the ICRC is right where it fits.
 * hostile H-1: a payload shorter than a BTH and its ICRC; H-3: no opcode, to the number of all
 * groups; H-151: errors in headers; H-152: every value of the opcode.
 */
Test(decode, all_opcodes_at_all_lengths)
{
	opcodes_at_all_lengths(false);
	opcodes_at_all_lengths(true);
}

/*
 * The same over IPv6, and each frame cut at every octet with its length fields unchanged.
 * hostile H-1: a payload shorter than a BTH and its ICRC; H-150: a length shorter than the
 * headers.
 */
Test(decode, frames_cut_at_every_octet_are_refused)
{
	uint8_t frame[FRAME_MAX];

	for (unsigned int o = 0; o < 256; o++)
		for (int ipv6 = 0; opcode_defined((uint8_t)o) && ipv6 < 2; ipv6++) {
			struct address_vector av = address_of(ipv6, 0);
			struct packet p = packet_of((uint8_t)o, NULL, 0);
			size_t n = frame_of(frame, &av, &p);

			cr_assert_eq(decode(frame, n), REASON_NONE, "opcode %#x", o);
			for (size_t cut = 0; cut < n; cut++) {
				enum reason r = decode(frame, cut);
				size_t headers = L3 + (ipv6 ? 40 : 20) + 8;

				cr_assert_eq(r,
					     cut < headers ? REASON_FRAME_SHORT
							   : REASON_LENGTHS_DISAGREE,
					     "opcode %#x cut at %zu: %s", o, cut, reason_name(r));
			}
		}
}

/*
 * Each extended header cut at each octet; lengths and ICRC are those of the cut frame.
 * hostile H-14: extended headers that are cut.
 */
Test(decode, extended_headers_cut_at_every_octet)
{
	uint8_t frame[FRAME_MAX];

	for (unsigned int o = 0; o < 256; o++)
		for (size_t cut = BTH_LENGTH; cut < opcode_table[o].header_length; cut++) {
			struct address_vector av = address_of(0, 0);
			struct packet p = packet_of((uint8_t)o, NULL, 0);
			size_t total = BTH + cut + ICRC_LENGTH;

			frame_of(frame, &av, &p);
			frame_fix_lengths(frame, L3, total);
			frame_fix_icrc(frame, L3, total);
			cr_assert_eq(decode(frame, total), REASON_HEADER_SHORT, "opcode %#x, %zu",
				     o, cut);
		}
}

/* hostile H-2: more padding than payload. */
Test(decode, pad_larger_than_what_follows_the_headers)
{
	uint8_t frame[FRAME_MAX];
	struct packet p;

	for (unsigned int o = 0; o < 256; o++)
		for (unsigned int pad = 0; opcode_defined((uint8_t)o) && pad < 4; pad++)
			for (size_t rest = 0; rest < 4; rest++) {
				size_t total = BTH + opcode_table[o].header_length + rest + 4;

				a_send(frame, 0);
				memset(frame + BTH, 0, total - BTH);
				frame[BTH] = (uint8_t)o;
				frame[BTH + 1] = (uint8_t)(pad << 4);
				frame_fix_lengths(frame, L3, total);
				frame_fix_icrc(frame, L3, total);
				cr_assert_eq(decode_with(frame, total, &untagged, &p),
					     pad > rest ? REASON_PAD_COUNT : REASON_NONE,
					     "opcode %#x pad %u rest %zu", o, pad, rest);
				if (pad <= rest)
					cr_assert(p.payload_length == rest - pad && p.pad == pad);
			}
}

/*
 * Any of the length fields may be wrong. All are refused but octets after the datagram.
 * hostile H-5: lengths that contradict each other; H-150: a length shorter than the headers.
 */
Test(decode, lengths_that_disagree_are_refused)
{
	static const int deltas[] = { -70, -13, -4, -1, 1, 4, 13, 60000 };
	uint8_t frame[FRAME_MAX];

	for (int ipv6 = 0; ipv6 < 2; ipv6++)
		for (unsigned int i = 0; i < ARRAY_SIZE(deltas); i++)
			for (unsigned int which = 1; which < 4; which++) {
				size_t n = a_send(frame, ipv6);
				size_t ip = L3 + (ipv6 ? 4 : 2), udp = L3 + (ipv6 ? 40 : 20) + 4;
				enum reason r;

				if (which & 1)
					store_be16(frame + ip,
						   (uint16_t)(load_be16(frame + ip) + deltas[i]));
				if (which & 2)
					store_be16(frame + udp,
						   (uint16_t)(load_be16(frame + udp) + deltas[i]));
				if (!ipv6)
					frame_fix_checksum(frame, L3);
				r = decode(frame, n);
				/* both shortened by the same amount: the ICRC is wrong then */
				cr_expect(r == REASON_LENGTHS_DISAGREE ||
						  (which == 3 && deltas[i] < 0 &&
						   (r == REASON_ICRC || r == REASON_BTH_SHORT)),
					  "ipv6 %d delta %d which %u: %s", ipv6, deltas[i], which,
					  reason_name(r));
			}
}

/* hostile H-6: octets after the datagram. */
Test(decode, octets_after_the_datagram_do_not_matter)
{
	struct address_vector av = address_of(0, 0);
	struct packet p = packet_of(0x04, NULL, 0), q;
	uint8_t frame[FRAME_MAX];
	size_t n = frame_of(frame, &av, &p);

	cr_assert_eq(n, 58);
	for (size_t extra = 0; extra < 100; extra++) {
		memset(frame + n, (int)(extra * 7), extra);
		cr_assert_eq(decode_with(frame, n + extra, &untagged, &q), REASON_NONE);
		cr_assert_eq(q.payload_length, 0);
	}
	n = a_send(frame, 1);
	memset(frame + n, 0xab, 30);
	cr_assert_eq(decode_with(frame, n + 30, &untagged, &q), REASON_NONE);
	cr_assert_eq(q.payload_length, 13);
}

/*
 * Behaviours 20, 23: a frame with any one bit flipped is refused, unless routers may change that
 * bit. hostile H-10: wrong ICRCs.
 */
Test(decode, every_flipped_bit_is_noticed)
{
	static const uint8_t free_octets[] = { L3 + 1, L3 + 8, L3 + 10, L3 + 11 };
	uint8_t frame[FRAME_MAX];
	size_t n = a_send(frame, 0);

	for (size_t i = L3 * 8; i < n * 8; i++) {
		size_t at = i / 8;
		enum reason r;
		bool ignored = at == L3 + 26 || at == L3 + 27 || at == BTH + 4;

		frame[at] ^= (uint8_t)(1 << i % 8);
		r = decode(frame, n);
		cr_expect_eq(r == REASON_NONE, ignored, "octet %zu: %s", at, reason_name(r));
		frame[at] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t i = 0; i < sizeof(free_octets); i++) { /* a router also updates the checksum */
		frame[free_octets[i]] ^= 0x5a;
		frame_fix_checksum(frame, L3);
		expect(decode(frame, n), REASON_NONE, "changed by a router");
	}
}

/* hostile H-10: wrong ICRCs. */
Test(decode, known_wrong_icrcs_are_refused)
{
	uint8_t frame[FRAME_MAX], swapped[4];
	size_t n = a_send(frame, 0);
	uint32_t right = icrc_load(frame + n - 4);

	icrc_store(frame + n - 4, __builtin_bswap32(right));
	memcpy(swapped, frame + n - 4, 4);
	expect(decode(frame, n), REASON_ICRC, "most significant octet first");
	icrc_store(frame + n - 4, icrc_begin(frame + L3, n - L3 - 4 - 3));
	expect(decode(frame, n), REASON_ICRC, "summed without the pad");
	icrc_store(frame + n - 4, icrc_add(0, frame + L3, n - L3 - 4));
	expect(decode(frame, n), REASON_ICRC, "summed without mask and LRH");
	icrc_store(frame + n - 4, ~right);
	expect(decode(frame, n), REASON_ICRC, "without the final complement");
	icrc_store(frame + n - 4, 0);
	expect(decode(frame, n), REASON_ICRC, "0");
	icrc_store(frame + n - 4, right);
	frame[n - 5] ^= 1;
	expect(decode(frame, n), REASON_ICRC, "another pad octet");
	frame_fix_icrc(frame, L3, n);
	expect(decode(frame, n), REASON_NONE, "a pad octet of 1 that the sum covers");
}

/* hostile H-12: any UDP checksum. */
Test(decode, the_udp_checksum_is_not_checked)
{
	uint8_t frame[FRAME_MAX];

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		size_t n = a_send(frame, ipv6);

		store_be16(frame + L3 + (ipv6 ? 40 : 20) + 6, 0xbad0);
		expect(decode(frame, n), REASON_NONE, "a wrong UDP checksum");
	}
}

/* hostile H-9: versions and reserved bits. */
Test(decode, bth_bits_are_decoded)
{
	uint8_t frame[FRAME_MAX];
	struct packet p;
	size_t n;

	for (unsigned int bits = 0; bits < 256; bits++) {
		n = a_send(frame, 0);
		frame[BTH + 1] = (uint8_t)bits;
		frame_fix_icrc(frame, L3, n);
		expect(decode_with(frame, n, &untagged, &p), bits & 15 ? REASON_TVER : REASON_NONE,
		       "SE, M, pad, TVer");
		if (!(bits & 15))
			cr_expect(p.solicited == (bits >> 7) && p.mig_req == (bits >> 6 & 1) &&
				  p.pad == (bits >> 4 & 3));
		n = a_send(frame, 0);
		frame[BTH + 4] = (uint8_t)bits;
		frame[BTH + 8] = (uint8_t)~bits;
		frame_fix_icrc(frame, L3, n);
		expect(decode_with(frame, n, &untagged, &p), REASON_NONE, "F, B, A, reserved");
		cr_expect(p.fecn == (bits >> 7) && p.becn == (bits >> 6 & 1) &&
			  p.ack_req == !(bits >> 7) && p.psn == 0xfedcba && p.dest_qpn == 0x123456);
	}
}

/* Inserts n zero octets and corrects all lengths, so that only the insertion is wrong. */
static size_t insert(uint8_t *frame, size_t length, size_t at, size_t n)
{
	memmove(frame + at + n, frame + at, length - at);
	memset(frame + at, 0, n);
	return length + n;
}

/* hostile H-7: options, fragments, extension headers. */
Test(decode, ipv4_headers_that_are_refused)
{
	uint8_t frame[FRAME_MAX];
	size_t n;

	for (unsigned int ihl = 6; ihl < 16; ihl++) {
		n = insert(frame, a_send(frame, 0), L3 + 20, (ihl - 5) * 4);
		frame[L3] = (uint8_t)(0x40 | ihl);
		store_be16(frame + L3 + 2, (uint16_t)(n - L3));
		frame_fix_checksum(frame, L3);
		expect(decode(frame, n), REASON_IP_OPTIONS, "options");
	}
	for (unsigned int first = 0; first < 256; first++) {
		n = a_send(frame, 0);
		frame[L3] = (uint8_t)first;
		if (first >> 4 != 4 || (first & 15) < 5)
			expect(decode(frame, n), REASON_IP_HEADER, "version, IHL");
	}
	for (unsigned int bit = 0; bit < 16; bit++) {
		n = a_send(frame, 0);
		store_be16(frame + L3 + 6, (uint16_t)(1 << bit));
		frame_fix_checksum(frame, L3);
		frame_fix_icrc(frame, L3, n);
		expect(decode(frame, n), bit < 14 ? REASON_IP_FRAGMENT : REASON_NONE,
		       "fragment offset, MF, DF, reserved");
	}
	n = a_send(frame, 0);
	frame[L3 + 11] ^= 1;
	expect(decode(frame, n), REASON_IP_CHECKSUM, "checksum");
}

static enum reason decode_said(const uint8_t *frame, size_t length, enum header_sum said)
{
	uint8_t *at = fence - length;
	struct packet p;

	memcpy(at, frame, length);
	return packet_decode_said(&p, at, length, &untagged, said);
}

/*
 * A port with an offload has checked the frame; its word about one header replaces that check, and
 * no other.
 */
Test(decode, the_port_may_say_whether_the_header_checksum_is_right)
{
	static const struct {
		enum header_sum said;
		bool spoilt;
		enum reason want;
	} rows[] = {
		{ HEADER_SUM_UNKNOWN, false, REASON_NONE },
		{ HEADER_SUM_UNKNOWN, true, REASON_IP_CHECKSUM },
		{ HEADER_SUM_RIGHT, true, REASON_NONE },
		{ HEADER_SUM_RIGHT, false, REASON_NONE },
		{ HEADER_SUM_WRONG, false, REASON_IP_CHECKSUM },
		{ HEADER_SUM_WRONG, true, REASON_IP_CHECKSUM },
	};
	uint8_t frame[FRAME_MAX];

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		size_t n = a_send(frame, 0);

		frame[L3 + 11] ^= rows[i].spoilt;
		expect(decode_said(frame, n, rows[i].said), rows[i].want, "IPv4");
		n = a_send(frame, 1);
		expect(decode_said(frame, n, rows[i].said), REASON_NONE, "IPv6 has none");
		n = a_send(frame, 0);
		frame[n - 1] ^= 1;
		expect(decode_said(frame, n, rows[i].said),
		       rows[i].said == HEADER_SUM_WRONG ? REASON_IP_CHECKSUM : REASON_ICRC,
		       "the ICRC is ours to check");
	}
}

/* hostile H-7: options, fragments, extension headers. */
Test(decode, ipv6_extension_headers_are_refused)
{
	static const struct {
		uint8_t next;
		enum reason want;
		const char *name;
	} rows[] = {
		{ 0, REASON_IP_OPTIONS, "hop by hop" },
		{ 43, REASON_IP_OPTIONS, "routing" },
		{ 60, REASON_IP_OPTIONS, "destination options" },
		{ 44, REASON_IP_FRAGMENT, "fragment" },
		{ 59, REASON_NOT_ROCE, "no next header" },
		{ 58, REASON_NOT_ROCE, "ICMPv6" },
		{ 6, REASON_NOT_ROCE, "TCP" },
	};
	uint8_t frame[FRAME_MAX];
	size_t n;

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		n = insert(frame, a_send(frame, 1), L3 + 40, 8);
		frame[L3 + 6] = rows[i].next;
		frame[L3 + 40] = 17;
		store_be16(frame + L3 + 4, (uint16_t)(n - L3 - 40));
		expect(decode(frame, n), rows[i].want, rows[i].name);
		for (size_t cut = L3; cut < n; cut++)
			decode(frame, cut);
	}
	n = insert(frame, a_send(frame, 1), L3 + 40, 8);
	frame[L3 + 6] = 0; /* a jumbo payload: RFC 2675 */
	memcpy(frame + L3 + 40, "\x11\x00\xc2\x04\x00\x01\x00\x00", 8);
	store_be16(frame + L3 + 4, 0);
	expect(decode(frame, n), REASON_IP_OPTIONS, "jumbo payload option");
	n = insert(frame, a_send(frame, 1), L3 + 40, 8);
	frame[L3 + 6] = 0;
	frame[L3 + 40] = 58; /* MLD is ICMPv6 after a hop-by-hop header: for the control path */
	expect(decode(frame, n), REASON_NOT_ROCE, "MLD");
	n = insert(frame, a_send(frame, 1), L3 + 40, 80);
	frame[L3 + 6] = 0; /* an endless chain of hop-by-hop headers */
	expect(decode(frame, n), REASON_IP_OPTIONS, "a chain");
	n = a_send(frame, 1);
	frame[L3] = 0x46;
	expect(decode(frame, n), REASON_IP_HEADER, "version");
}

Test(decode, other_frames_are_not_roce)
{
	uint8_t frame[FRAME_MAX];
	size_t n = a_send(frame, 0);

	store_be16(frame + 12, 0x0806);
	expect(decode(frame, n), REASON_NOT_ROCE, "ARP");
	expect(decode(frame, 14), REASON_NOT_ROCE, "an empty frame");
	store_be16(frame + 12, 46);
	expect(decode(frame, n), REASON_NOT_ROCE, "802.3 length");
	n = a_send(frame, 0);
	frame[L3 + 9] = 1;
	expect(decode(frame, n), REASON_NOT_ROCE, "ICMP");
	expect(decode(frame, L3 + 20), REASON_NOT_ROCE, "ICMP, short");
	frame[L3] = 0x46;
	frame[L3 + 9] = 2;
	expect(decode(frame, n), REASON_NOT_ROCE, "IGMP carries options");
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		n = a_send(frame, ipv6);
		store_be16(frame + L3 + (ipv6 ? 40 : 20) + 2, 4790);
		expect(decode(frame, n), REASON_NOT_ROCE, "another UDP port");
		store_be16(frame + L3 + (ipv6 ? 40 : 20), 4791);
		expect(decode(frame, n), REASON_NOT_ROCE, "4791 as source only");
	}
}

/* hostile H-13: tags of other VLANs. */
Test(decode, vlan_tags)
{
	static const struct {
		uint16_t wanted, outer, inner; /* 0xffff: no tag */
		enum reason want;
	} rows[] = {
		{ 0, 0xffff, 0xffff, REASON_NONE },
		{ 0, 0x6000, 0xffff, REASON_NONE }, /* a priority tag */
		{ 0, 0x0064, 0xffff, REASON_VLAN_TAG },
		{ 100, 0x0064, 0xffff, REASON_NONE },
		{ 100, 0xf064, 0xffff, REASON_NONE }, /* any priority, drop eligible */
		{ 100, 0x0065, 0xffff, REASON_VLAN_TAG },
		{ 100, 0x0000, 0xffff, REASON_VLAN_TAG },
		{ 100, 0xffff, 0xffff, REASON_VLAN_TAG },
		{ 100, 0x0064, 0x0064, REASON_VLAN_TAG },
		{ 0, 0x0000, 0x0000, REASON_VLAN_TAG },
		{ 100, 0x0064, 0x0065, REASON_VLAN_TAG },
	};
	uint8_t frame[FRAME_MAX];
	struct packet p;

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++) {
		struct decode_options options = { .check_icrc = true, .vlan = rows[i].wanted };
		const uint16_t tags[] = { rows[i].inner, rows[i].outer };
		size_t n = a_send(frame, 0);

		for (unsigned int t = 0; t < 2; t++)
			if (tags[t] != 0xffff) {
				n = insert(frame, n, 12, 4);
				store_be16(frame + 12, 0x8100);
				store_be16(frame + 14, tags[t]);
			}
		cr_expect_eq(decode_with(frame, n, &options, &p), rows[i].want, "row %u", i);
		for (size_t cut = 0; cut < n; cut++)
			decode_with(frame, cut, &options, &p);
	}
	{
		size_t n = insert(frame, a_send(frame, 0), 12, 4);

		store_be16(frame + 12, 0x88a8);
		expect(decode(frame, n), REASON_VLAN_TAG, "a service tag");
	}
}

Test(decode, multicast_and_ecn_are_decoded)
{
	struct address_vector av = address_of(0, 0);
	struct packet p = packet_of(0x64, NULL, 0), q;
	uint8_t frame[FRAME_MAX];

	av.dst_gid.octet[12] = 224;
	av.traffic_class = 0xbf;
	cr_assert_eq(packet_decode(&q, frame, frame_of(frame, &av, &p), &untagged), REASON_NONE);
	cr_expect(q.multicast && q.ecn == 3 && q.traffic_class == 0xbf);
	av.dst_gid.octet[12] = 240;
	cr_assert_eq(packet_decode(&q, frame, frame_of(frame, &av, &p), &untagged), REASON_NONE);
	cr_expect_not(q.multicast);
	av = address_of(1, 0);
	av.dst_gid.octet[0] = 0xff;
	av.traffic_class = 0x41;
	cr_assert_eq(packet_decode(&q, frame, frame_of(frame, &av, &p), &untagged), REASON_NONE);
	cr_expect(q.multicast && q.ecn == 1 && q.traffic_class == 0x41);
}

/*
 * protocol-map 178: the GRH that a UD receiver gets, with and without VLAN tag and immediate data.
 */
Test(decode, a_datagram_gets_its_header_in_front)
{
	static const uint8_t zero[20];

	for (uint32_t i = 0; i < 8; i++) {
		struct address_vector av = address_of(i & 1, i & 2 ? 5 : 0);
		struct packet p = packet_of(i & 4 ? 0x65 : 0x64, (const uint8_t *)"thirteen octs",
					    13),
			      q;
		struct decode_options options = { .check_icrc = true, .vlan = av.vlan };
		uint8_t frame[FRAME_MAX], ip[40];
		const uint8_t *grh;

		cr_assert_eq(packet_decode(&q, frame, frame_of(frame, &av, &p), &options),
			     REASON_NONE);
		cr_assert_not(q.checksum, "checksums in the payload are not checked");
		memcpy(ip, frame + q.ip_header, 40);
		packet_make_grh(frame, &q);
		grh = q.payload - GRH_LENGTH;
		cr_assert_arr_eq(q.payload, "thirteen octs", 13);
		cr_assert(grh >= frame);
		if (i & 1) {
			cr_assert_arr_eq(grh, ip, 40);
			continue;
		}
		cr_assert_arr_eq(grh, zero, 20);
		cr_assert_arr_eq(grh + 20, ip, 20);
	}
}

/*
 * Frames with random changes, for two seconds at most: any verdict, but never a wrong payload.
 * hostile H-151: errors in headers.
 */
Test(decode, random_changes_never_yield_a_wrong_payload)
{
	uint64_t seed = 0x9e3779b97f4a7c15;
	uint8_t frame[FRAME_MAX];
	struct packet p;

	for (unsigned int turn = 0; turn < 200000; turn++) {
		size_t n = a_send(frame, turn & 1);
		unsigned int changes;
		enum reason r;

		seed = seed * 6364136223846793005 + 1442695040888963407;
		for (changes = 1 + (seed >> 61); changes > 0; changes--) {
			seed = seed * 6364136223846793005 + 1442695040888963407;
			frame[(seed >> 33) % n] ^= (uint8_t)(seed >> 20);
		}
		if (seed & 1 << 16)
			n = (seed >> 17) % (n + 1);
		else if (seed & 1 << 18 && (turn & 1 || frame[L3] >> 4 != 6))
			frame_fix_icrc(frame, L3, n); /* the headers of its IP version fit */
		r = decode_with(frame, n, &(struct decode_options){ .check_icrc = seed >> 63 }, &p);
		cr_assert_lt((unsigned int)r, REASON_COUNT);
		if (r == REASON_NONE)
			cr_assert(p.payload >= fence - n &&
					  p.payload + p.payload_length + p.pad + 4 <= fence,
				  "turn %u: the payload lies outside the frame", turn);
	}
}
