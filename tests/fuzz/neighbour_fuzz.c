/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the neighbour table: ARP, ND, ICMP, ICMPv6, IGMP and MLD as any host of the
 * link sends them, between the table's own steps. The checksums that the protocols ask for are put
 * right in most frames, as nothing behind them would be reached otherwise.
 */
#include "base/bits.h"
#include "drivers/neighbour/table.h"
#include "input.h"

#define FRAME_MAX 400u
#define OURS	  4u
#define GROUPS	  4u

static const struct mac our_mac = { { 2, 0, 0, 0, 0, 1 } };
static struct neighbour_table *table;
static struct neighbour_frames out;
static nanotime now;

static struct gid gid_of(const char *text)
{
	struct gid g;

	memcpy(g.octet, text, sizeof(g.octet));
	return g;
}

#define V4 "\0\0\0\0\0\0\0\0\0\0\xff\xff"

/* Our addresses, those of hosts on the link, and one behind a gateway. */
static struct gid address(uint8_t which)
{
	static const char *const known[] = {
		V4 "\x0a\0\0\1",
		"\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
		"\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1",
		V4 "\x0a\0\0\2",
		V4 "\x0a\0\0\3",
		"\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\2",
		"\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\2",
		V4 "\xc0\xa8\1\1",
		V4 "\xe0\0\0\5",
		"\xff\2\0\0\0\0\0\0\0\0\0\1\xff\0\0\1",
	};

	return gid_of(known[which % ARRAY_SIZE(known)]);
}

static struct gid group(uint8_t which)
{
	static const char *const known[GROUPS] = {
		V4 "\xe1\0\0\1",
		V4 "\xe1\0\0\2",
		"\xff\2\0\0\0\0\0\0\0\0\0\0\0\0\1\2",
		"\xff\5\0\0\0\0\0\0\0\0\0\0\0\0\1\3",
	};

	return gid_of(known[which % GROUPS]);
}

/* The frames that the table sends are whole, from our address, and within the list. */
static void look_at_sent(void)
{
	demand(out.count <= LIMIT_NEIGHBOUR_FRAMES && out.used <= LIMIT_NEIGHBOUR_FRAME_BYTES);
	for (uint32_t i = 0; i < out.count; i++) {
		const uint8_t *f = out.octets + out.frame[i].offset;

		demand(out.frame[i].length >= 60);
		demand(out.frame[i].offset + out.frame[i].length <= out.used);
		demand(memcmp(f + 6, our_mac.octet, 6) == 0);
	}
	neighbour_frames_clear(&out);
}

static void right_ipv4(uint8_t *ip, uint32_t room)
{
	uint32_t header = (ip[0] & 15u) * 4, total = load_be16(ip + 2);

	if (header < 20 || header > room)
		return;
	store_be16(ip + 10, 0);
	store_be16(ip + 10, checksum_of(ip, header));
	if (total > room || total < header + 8 || (ip[9] != 1 && ip[9] != 2))
		return;
	store_be16(ip + header + 2, 0);
	store_be16(ip + header + 2, checksum_of(ip + header, total - header));
}

static void right_ipv6(uint8_t *ip, uint32_t room)
{
	uint32_t at = 40, end = 40u + load_be16(ip + 4);
	uint8_t next = ip[6];

	if (end > room)
		return;
	if (next == 0 && end >= at + 8) { /* MLD: behind a hop-by-hop option */
		next = ip[at];
		at += (ip[at + 1] + 1u) * 8;
	}
	if (next != 58 || end < at + 4)
		return;
	store_be16(ip + at + 2, 0);
	store_be16(ip + at + 2, icmp6_checksum(ip, ip + at, end - at));
}

static void make_right(uint8_t *frame, uint32_t length)
{
	uint32_t l3 = 14;

	if (length < 38)
		return;
	if (load_be16(frame + 12) == ETHERTYPE_VLAN_)
		l3 = 18;
	if (load_be16(frame + l3 - 2) == ETHERTYPE_IPV4_)
		right_ipv4(frame + l3, length - l3);
	else if (load_be16(frame + l3 - 2) == ETHERTYPE_IPV6_ && length >= l3 + 44)
		right_ipv6(frame + l3, length - l3);
}

/* The frame has memory of exactly its length. */
static void receive(struct input *in, uint8_t how)
{
	uint32_t length = input_16(in) % FRAME_MAX;
	uint8_t *frame = malloc(length + (length == 0));

	input_take(in, frame, length);
	if ((how & 0xc0) != 0xc0)
		make_right(frame, length);
	neighbour_input(table, frame, length, now, &out);
	free(frame);
}

static void set_addresses(uint8_t how)
{
	struct neighbour_address own[OURS];
	struct gid gateway = gid_of(V4 "\x0a\0\0\3");
	uint32_t n = how % (OURS + 1);

	for (uint32_t i = 0; i < n; i++)
		own[i] = (struct neighbour_address){ address((uint8_t)(i % 3)), i == 0 ? 24 : 64 };
	neighbour_set_addresses(table, own, n);
	neighbour_set_gateways(table, &gateway, how >> 7);
}

static void step(struct input *in)
{
	uint8_t what = input_8(in);
	struct gid g;
	struct mac mac;

	switch (what % 10) {
	case 0:
		g = address(input_8(in));
		neighbour_resolve(table, &g, now, &mac);
		break;
	case 1:
		now += TIME_MS << (what >> 4);
		break;
	case 2:
		demand(neighbour_tick(table, now, &out) >= now);
		break;
	case 3:
		g = group(what >> 4);
		neighbour_join(table, &g, now);
		break;
	case 4:
		g = group(what >> 4);
		neighbour_leave(table, &g, now, &out);
		break;
	case 5:
		if (what > 200)
			set_addresses(input_8(in));
		else
			neighbour_announce(table, &out);
		break;
	default:
		receive(in, what);
	}
	look_at_sent();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t vlan = input_8(&in);

	now = 1000 * TIME_S;
	table = neighbour_table_new(&our_mac, vlan & 1 ? 5 : 0, 0);
	demand(table != NULL);
	neighbour_frames_clear(&out);
	set_addresses(0x83);
	while (in.left > 0)
		step(&in);
	neighbour_table_free(table);
	return 0;
}
