/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of scapy, a ConnectX-4 Lx and Linux' rdma_rxe. See tests/vectors/README.md. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bits.h"
#include "fields.h"
#include "frames.h"
#include "wire/opcode.h"

static const struct vector {
	const char *name;
	uint8_t opcode;
	uint16_t vlan;
	uint16_t identification;
	uint32_t payload_length;
	uint32_t dest_qpn;
	uint32_t psn;
	uint8_t icrc[4];
} vectors[] = {
	{ "rc_send_only_v4", 0x04, 0, 0x1234, 13, 0x123, 0xabcd, { 0x84, 0x25, 0xf0, 0x9b } },
	{ "rc_send_only_vlan_v4",
	  0x04,
	  100,
	  0x1234,
	  13,
	  0x123,
	  0xabcd,
	  { 0x84, 0x25, 0xf0, 0x9b } },
	{ "rc_write_only_v6", 0x0a, 0, 0, 32, 0x124, 0xffffff, { 0xf6, 0x75, 0xfe, 0x7c } },
	{ "rc_ack_v4", 0x11, 0, 0x1234, 0, 0x123, 0xabcd, { 0x72, 0xf6, 0x96, 0xd1 } },
	{ "ud_send_only_v4", 0x64, 0, 0x1234, 16, 0x125, 0, { 0xb0, 0x8f, 0x3d, 0xab } },
	{ "cnp_v4", 0x81, 0, 0x1234, 0, 0x123, 0, { 0x26, 0x9c, 0x2c, 0x42 } },
	{ "x_rc_nak_psn_v4", 0x11, 0, 0x1234, 0, 0x123, 0xabce, { 0x15, 0x47, 0x91, 0x6f } },
	{ "x_rc_rnr_nak_v4", 0x11, 0, 0x1234, 0, 0x123, 0xabce, { 0x90, 0xa0, 0x53, 0xbe } },
	{ "x_rc_fetch_add_v6", 0x14, 0, 0, 0, 0x124, 0, { 0x35, 0xd0, 0x16, 0x0d } },
	{ "kat_cnp_connectx4lx_v4", 0x81, 0, 0x718c, 0, 0x118, 0, { 0x82, 0xfd, 0x00, 0x2a } },
	{ "kat_uc_send_only_v4", 0x24, 0, 0x0478, 18, 0xd3, 0xcf1710, { 0x78, 0xf3, 0x53, 0xf3 } },
	{ "kat_uc_send_only_v6", 0x24, 0, 0, 18, 0xd3, 0xcf1710, { 0x3e, 0x5b, 0x74, 0x3b } },
};

static struct packet decode_vector(const struct vector *v, uint8_t *frame, size_t *length)
{
	struct decode_options options = { .check_icrc = true, .vlan = v->vlan };
	struct packet p;
	enum reason r;

	*length = frame_load(v->name, frame);
	r = packet_decode(&p, frame, *length, &options);
	cr_assert_eq(r, REASON_NONE, "%s: %s", v->name, reason_sentence(r));
	return p;
}

Test(vectors, are_decoded)
{
	uint8_t frame[FRAME_MAX];
	size_t n;

	for (unsigned int i = 0; i < ARRAY_SIZE(vectors); i++) {
		const struct vector *v = &vectors[i];
		struct packet p = decode_vector(v, frame, &n);

		cr_expect_eq(p.opcode, v->opcode, "%s", v->name);
		cr_expect_eq(p.payload_length, v->payload_length, "%s", v->name);
		cr_expect_eq(p.dest_qpn, v->dest_qpn, "%s", v->name);
		cr_expect_eq(p.psn, v->psn, "%s: %#x", v->name, p.psn);
		cr_expect_eq(p.pkey, 0xffff, "%s", v->name);
		cr_expect_arr_eq(frame + n - 4, v->icrc, 4, "%s", v->name);
	}
}

Test(vectors, have_the_extended_headers_that_were_sent)
{
	uint8_t frame[FRAME_MAX];
	struct packet p;
	size_t n;

	p = decode_vector(&vectors[2], frame, &n);
	cr_expect(p.va == 0x00007f0011223344 && p.rkey == 0x1c42 && p.dma_length == 32);
	cr_expect(p.ack_req && p.payload[31] == 0x1f);
	p = decode_vector(&vectors[3], frame, &n);
	cr_expect(p.syndrome == 0x1f && p.msn == 5 && p.mig_req);
	p = decode_vector(&vectors[4], frame, &n);
	cr_expect(p.qkey == 0x11111111 && p.src_qpn == 0x77);
	p = decode_vector(&vectors[6], frame, &n);
	cr_expect(p.syndrome == SYNDROME_NAK_SEQUENCE && p.msn == 5);
	p = decode_vector(&vectors[7], frame, &n);
	cr_expect(p.syndrome == (SYNDROME_RNR | 12) && p.msn == 5);
	p = decode_vector(&vectors[8], frame, &n);
	cr_expect(p.va == 0x00007f0011223340 && p.rkey == 0x1c42 && p.swap_add == 1);
	p = decode_vector(&vectors[9], frame, &n);
	cr_expect(p.becn && !p.fecn && p.src_port == 0 && p.traffic_class == 0xc2);
}

/* A frame that was decoded and encoded again must have the same octets. */
static void expect_encoded_again(const struct vector *v)
{
	uint8_t frame[FRAME_MAX], again[FRAME_MAX];
	struct address_vector av;
	struct flow flow;
	size_t n, m;
	struct packet p = decode_vector(v, frame, &n);

	av = (struct address_vector){ .src_gid = p.src_gid,
				      .dst_gid = p.dst_gid,
				      .vlan = v->vlan,
				      .priority = v->vlan ? frame[14] >> 5 : 0,
				      .traffic_class = p.traffic_class,
				      .hop_limit = p.hop_limit,
				      .src_port = p.src_port,
				      .flow_label = load_be32(frame + p.ip_header) & 0xfffff };
	memcpy(av.dst_mac.octet, frame, 6);
	memcpy(av.src_mac.octet, frame + 6, 6);
	flow_init(&flow, &av);
	m = packet_encode(again, &flow, &p, v->identification);
	memcpy(again + m, p.payload, p.payload_length);
	m = packet_seal(again, &flow, m, p.payload_length);
	/*
	 * The published UC frames have a UDP checksum. We send 0, and the ICRC does not cover it.
	 */
	if (strncmp(v->name, "kat_uc", 6) == 0)
		memcpy(again + flow.length - 2, frame + flow.length - 2, 2);
	cr_assert_eq(m, n, "%s: %zu octets, not %zu", v->name, m, n);
	for (size_t i = 0; i < n; i++)
		cr_expect_eq(again[i], frame[i], "%s: octet %zu is %#x, not %#x", v->name, i,
			     again[i], frame[i]);
}

Test(vectors, encode_again_to_the_same_octets)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(vectors); i++)
		expect_encoded_again(&vectors[i]);
}

static FILE *open_or_fail(FILE *f, const char *what)
{
	cr_assert(f != NULL, "cannot read %s", what);
	return f;
}

static void compare_line(const struct packet *p, char *line)
{
	char *cell, *rest = line;
	unsigned int number = (unsigned int)atoi(strsep(&rest, "\t"));

	for (unsigned int i = 0; i < field_count; i++) {
		bool octets = strcmp(fields[i].name, "infiniband.immdt") == 0 ||
			      strcmp(fields[i].name, "infiniband.ieth") == 0;

		cell = strsep(&rest, "\t\n");
		cr_assert(cell != NULL, "frame %u has too few columns", number);
		cr_expect_eq(cell[0] != 0, field_present(&fields[i], opcode_table[p->opcode].flags),
			     "frame %u: %s", number, fields[i].name);
		if (cell[0] != 0)
			cr_expect_eq(fields[i].value(p), strtoull(cell, NULL, octets ? 16 : 0),
				     "frame %u: %s is %" PRIu64 ", tshark: %s", number,
				     fields[i].name, fields[i].value(p), cell);
	}
}

/* For every RoCE frame of rdma_rxe the ICRC is right and each field is as tshark reads it. */
Test(vectors, a_capture_of_rxe_is_decoded_as_tshark_reads_it)
{
	FILE *capture = open_or_fail(pcap_open(VECTORS "/rxe_sample.pcap"), "rxe_sample.pcap");
	FILE *list = open_or_fail(fopen(VECTORS "/rxe_sample.tsv", "r"), "rxe_sample.tsv");
	unsigned int number = 0, compared = 0;
	uint8_t frame[FRAME_MAX];
	char line[512];
	struct packet p;
	size_t n;

	cr_assert(fgets(line, sizeof(line), list) != NULL, "no column names");
	while ((n = pcap_next(capture, frame, sizeof(frame))) != 0) {
		enum reason r = packet_decode(&p, frame, n, &untagged);

		number++;
		if (r == REASON_NOT_ROCE)
			continue;
		cr_assert_eq(r, REASON_NONE, "frame %u: %s", number, reason_sentence(r));
		cr_assert(fgets(line, sizeof(line), list) != NULL, "the list ends at %u", number);
		cr_assert_eq((unsigned int)atoi(line), number, "tshark calls another frame RoCE");
		compare_line(&p, line);
		compared++;
	}
	cr_expect_eq(number, 189);
	cr_expect_eq(compared, 189);
	cr_expect(fgets(line, sizeof(line), list) == NULL, "the list goes on");
	fclose(capture);
	fclose(list);
}
