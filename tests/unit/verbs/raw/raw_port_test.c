/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw frames through a port. Runs in the network namespace of with_netdev.sh, with an engine on
 * wire0; wire1 is the wire's other end.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "raw_rig.h"

#define OURS 0x88b5 /* IEEE: local experimental */

static struct raw_rig r;
static int wire;

static void open_all(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	wire = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	at.sll_ifindex = (int)if_nametoindex("wire1");
	cr_assert_eq(bind(wire, (struct sockaddr *)&at, sizeof(at)), 0, "%m");
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
	close(wire);
}

TestSuite(raw_port, .init = open_all, .fini = close_all, .timeout = 60);

/* The next frame of that type that comes out of the wire. */
static size_t from_wire(uint8_t *octets, size_t size, uint16_t type)
{
	struct pollfd p = { .fd = wire, .events = POLLIN };
	struct sockaddr_ll from;

	for (;;) {
		socklen_t length = sizeof(from);
		ssize_t n;

		cr_assert_eq(poll(&p, 1, WAIT_SECONDS * 1000), 1, "no frame on the wire");
		n = recvfrom(wire, octets, size, 0, (struct sockaddr *)&from, &length);
		if (n >= 14 && from.sll_pkttype != PACKET_OUTGOING &&
		    load_be16(octets + 12) == type)
			return (size_t)n;
	}
}

static struct built_frame make(const char *to, uint16_t type, uint32_t payload)
{
	struct built_frame f;

	build_frame(&f, &(struct frame_recipe){ .dst_mac = to, .type = type, .payload = payload });
	for (uint32_t i = 14; i < f.length; i++)
		f.octet[i] = (uint8_t)(i * 3);
	return f;
}

Test(raw_port, frames_leave)
{
	struct built_frame f = make("02aabbccddee", OURS, 300);
	uint8_t got[4096];

	for (int i = 0; i < 20; i++) {
		raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
		cr_assert_eq(from_wire(got, sizeof(got), OURS), f.length);
		cr_assert_arr_eq(got, f.octet, f.length);
	}
}

Test(raw_port, frames_to_a_group_leave_and_are_looped_back)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame f = make(GROUP_MAC, OURS, 300);
	uint8_t got[4096];

	raw_post_recv(&r, r.rx, 0, RAW_SLOT);
	raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
	cr_assert_eq(raw_receive(&r, "our own copy").byte_len, f.length);
	cr_assert_eq(from_wire(got, sizeof(got), OURS), f.length);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw_port, frames_come_in_by_rules)
{
	struct ibv_flow *flow =
		raw_rule(r.rx, &(struct raw_rule){ .dst_mac = r.mac_text, .tag = 5 });
	struct built_frame f = make(r.mac_text, OURS, 500);

	cr_assert_not_null(flow);
	for (uint32_t i = 0; i < 20; i++) {
		raw_post_recv(&r, r.rx, i, RAW_SLOT);
		cr_assert_eq(send(wire, f.octet, f.length, 0), (ssize_t)f.length, "%m");
		cr_assert_eq(raw_receive(&r, "a frame from the wire").byte_len, f.length);
		cr_assert_arr_eq(r.buffer + i * RAW_SLOT, f.octet, f.length);
	}
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw_port, segments_leave)
{
	struct built_frame f;
	struct ibv_sge sge = { (uintptr_t)r.buffer, 5000, r.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_TSO }, *bad;
	uint8_t got[4096];
	struct ibv_wc wc;

	build_frame(&f, &(struct frame_recipe){ .dst_mac = "02aabbccddee",
						.src = "10.9.0.1",
						.dst = "10.9.0.2",
						.protocol = 6 });
	wr.tso.hdr = f.octet;
	wr.tso.hdr_sz = (uint16_t)f.length;
	wr.tso.mss = 1000;
	cr_assert_eq(ibv_post_send(r.tx, &wr, &bad), 0);
	for (uint32_t i = 0; i < 5; i++) {
		cr_assert_eq(from_wire(got, sizeof(got), 0x0800), f.length + 1000);
		cr_assert_eq(load_be32(got + 38), i * 1000);
	}
	poll_completions(r.cq, &wc, 1, "the stream");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
}

/* Frames for raw queue pairs do not keep the engine from answering neighbours. */
Test(raw_port, neighbours_are_still_answered)
{
	struct ibv_flow *flow =
		raw_rule(r.rx, &(struct raw_rule){ .type = IBV_FLOW_ATTR_ALL_DEFAULT });
	struct built_frame f = make("ffffffffffff", ETHERTYPE_ARP, 46);
	static const uint8_t who_has[] = { 0, 1, 8, 0, 6, 4, 0, 1 };
	uint8_t got[4096];
	uint64_t slot;

	cr_assert_not_null(flow);
	memset(f.octet + 14, 0, 46);
	memcpy(f.octet + 14, who_has, sizeof(who_has));
	memcpy(f.octet + 22, f.octet + 6, 6);
	inet_pton(AF_INET, "10.77.0.9", f.octet + 28);
	inet_pton(AF_INET, "10.77.0.1", f.octet + 38);
	for (uint32_t i = 0; i < RAW_DEPTH; i++)
		raw_post_recv(&r, r.rx, i, RAW_SLOT);
	cr_assert_eq(send(wire, f.octet, f.length, 0), (ssize_t)f.length, "%m");
	/*
	 * Linux at the other end may join IPv6 groups at any time; the queue pair gets those
	 * frames, too
	 */
	do {
		slot = raw_receive(&r, "the question").wr_id;
	} while (load_be16(r.buffer + slot * RAW_SLOT + 12) != ETHERTYPE_ARP);
	cr_assert_arr_eq(r.buffer + slot * RAW_SLOT, f.octet, f.length);
	from_wire(got, sizeof(got), ETHERTYPE_ARP);
	cr_assert_eq(got[21], 2, "the answer");
	cr_assert_arr_eq(got + 22, r.mac, 6);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}
