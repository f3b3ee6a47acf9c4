/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>

#include "base/bits.h"
#include "frames.h"

const struct decode_options untagged = { .check_icrc = true };

size_t frame_load(const char *name, uint8_t *frame)
{
	char path[512];
	unsigned int octet;
	size_t n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s.hex", VECTORS, name);
	f = fopen(path, "r");
	cr_assert(f != NULL, "cannot read %s", path);
	while (n < FRAME_MAX && fscanf(f, "%2x", &octet) == 1)
		frame[n++] = (uint8_t)octet;
	fclose(f);
	return n;
}

struct address_vector address_of(int ipv6, uint16_t vlan)
{
	struct address_vector av = {
		.src_mac = { { 2, 0, 0, 0, 0, 1 } },
		.dst_mac = { { 2, 0, 0, 0, 0, 2 } },
		.vlan = vlan,
		.priority = 3,
		.traffic_class = 2,
		.hop_limit = 64,
		.src_port = 0xc123,
		.flow_label = 0x12345,
	};

	if (ipv6) {
		av.src_gid = (struct gid){ { 0x20, 0x01, 0x0d, 0xb8, [15] = 1 } };
		av.dst_gid = (struct gid){ { 0x20, 0x01, 0x0d, 0xb8, [15] = 2 } };
	} else {
		av.src_gid = (struct gid){ { [10] = 0xff, 0xff, 192, 0, 2, 1 } };
		av.dst_gid = (struct gid){ { [10] = 0xff, 0xff, 192, 0, 2, 2 } };
	}
	return av;
}

struct packet packet_of(uint8_t opcode, const uint8_t *payload, uint32_t payload_length)
{
	return (struct packet){
		.opcode = opcode,
		.solicited = true,
		.ack_req = true,
		.pkey = 0xffff,
		.dest_qpn = 0x123456,
		.psn = 0xfedcba,
		.qkey = 0x80010000,
		.src_qpn = 0x654321,
		.va = 0x1122334455667788,
		.rkey = 0xa1b2c3d4,
		.dma_length = 0x76543210,
		.swap_add = 0x0102030405060708,
		.compare = 0x1112131415161718,
		.syndrome = 0x6a,
		.msn = 0xabcdef,
		.original = 0x2122232425262728,
		.imm = 0x31323334,
		.invalidate_rkey = 0x41424344,
		.srqn = 0x515253,
		.feth = 0x21,
		.payload = payload,
		.payload_length = payload_length,
	};
}

size_t frame_of(uint8_t *frame, const struct address_vector *av, const struct packet *p)
{
	struct flow flow;
	size_t n;

	flow_init(&flow, av);
	n = packet_encode(frame, &flow, p, 0x1234);
	if (p->payload_length != 0)
		memcpy(frame + n, p->payload, p->payload_length);
	return packet_seal(frame, &flow, n, p->payload_length);
}

void frame_fix_lengths(uint8_t *frame, size_t l3, size_t length)
{
	size_t ip = frame[l3] >> 4 == 4 ? 20 : 40;

	store_be16(frame + l3 + ip + 4, (uint16_t)(length - l3 - ip));
	store_be16(frame + l3 + (ip == 20 ? 2 : 4), (uint16_t)(length - l3 - (ip == 20 ? 0 : ip)));
	if (ip == 20)
		frame_fix_checksum(frame, l3);
}

/* Written from RFC 1071, deliberately not the way the library does it. */
void frame_fix_checksum(uint8_t *frame, size_t l3)
{
	uint8_t *ip = frame + l3;
	uint32_t sum = 0;
	size_t i;

	store_be16(ip + 10, 0);
	for (i = 0; i < (ip[0] & 15u) * 4; i += 2)
		sum += load_be16(ip + i);
	while (sum > 0xffff)
		sum = (sum & 0xffff) + (sum >> 16);
	store_be16(ip + 10, (uint16_t)~sum);
}

void frame_fix_icrc(uint8_t *frame, size_t l3, size_t length)
{
	icrc_store(frame + length - 4, icrc_begin(frame + l3, length - 4 - l3));
}
