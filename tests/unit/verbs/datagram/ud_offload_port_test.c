/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments and checksums on a wire: the ICRC covers the corrected octets. Runs in the
 * network namespace of with_netdev.sh, with an engine on wire0; wire1 is the wire's other end.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig/inner_packet.h"
#include "rig/ud.h"
#include "wire/decode.h"

#define QPN   0x123456u /* of a peer at the wire's other end, 10.77.0.9 */
#define SMALL 8192u /* octets: too few to be promoted */

static struct endpoint e;
static struct ibv_qp *tx;
static struct ibv_ah *ah;
static uint8_t *small;
static struct ibv_mr *small_mr;
static int wire;

static void open_wire(void)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP) };

	wire = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	at.sll_ifindex = (int)if_nametoindex("wire1");
	cr_assert_eq(bind(wire, (struct sockaddr *)&at, sizeof(at)), 0, "%m");
	cr_assert_eq(system("ip neighbour replace 10.77.0.9 lladdr 02:00:00:00:00:09 dev wire0"),
		     0);
}

/* The index of 10.77.0.1, the address of wire0. */
static uint8_t find_gid(void)
{
	const union ibv_gid wanted = ipv4_gid(10, 77, 0, 1);
	union ibv_gid gid;
	uint8_t i = 0;

	do {
		cr_assert_eq(ibv_query_gid(e.context, 1, i, &gid), 0, "10.77.0.1 is not there");
	} while (memcmp(&gid, &wanted, sizeof(gid)) != 0 && ++i != 0);
	return i;
}

static void open_all(void)
{
	struct ibv_qp_init_attr_ex init = {
		.cap = { UD_DEPTH, UD_DEPTH, 4, 4, 128 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER,
		.max_tso_header = 128,
	};
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	open_wire();
	endpoint_open(&e);
	init.send_cq = init.recv_cq = e.cq;
	init.pd = e.pd;
	tx = ibv_create_qp_ex(e.context, &init);
	cr_assert_not_null(tx, "ibv_create_qp_ex: %m");
	cr_assert_eq(ud_ready(tx, UD_QKEY), 0);
	attr.grh.dgid = ipv4_gid(10, 77, 0, 9);
	attr.grh.sgid_index = find_gid();
	attr.grh.hop_limit = 9;
	ah = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(ah, "ibv_create_ah: %m");
	small = aligned_alloc(4096, SMALL);
	small_mr = ibv_reg_mr(e.pd, small, SMALL, 0);
	cr_assert_not_null(small_mr, "ibv_reg_mr: %m");
}

static void close_all(void)
{
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(tx), 0);
	cr_expect_eq(ibv_dereg_mr(small_mr), 0);
	free(small);
	endpoint_close(&e);
	close(wire);
}

TestSuite(ud_offload_port, .init = open_all, .fini = close_all, .timeout = 60);

/* The next datagram to QPN on the wire: correct, including its ICRC. */
static void from_wire(struct packet *p, uint8_t *frame, size_t size)
{
	struct pollfd ready = { .fd = wire, .events = POLLIN };
	struct decode_options options = { .check_icrc = true };

	do {
		struct sockaddr_ll from;
		socklen_t length = sizeof(from);
		enum reason why;
		ssize_t n;

		cr_assert_eq(poll(&ready, 1, WAIT_SECONDS * 1000), 1, "no frame on the wire");
		n = recvfrom(wire, frame, size, 0, (struct sockaddr *)&from, &length);
		cr_assert_gt(n, 0);
		why = packet_decode(p, frame, (size_t)n, &options);
		cr_assert(why == REASON_NONE || why == REASON_NOT_ROCE, "reason %d", (int)why);
		p->dest_qpn = why == REASON_NONE ? p->dest_qpn : 0;
	} while (p->dest_qpn != QPN);
}

static void expect_sent(enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, "what was sent");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	cr_assert_eq(wc.opcode, opcode);
}

static int post(struct ibv_send_wr *wr, uint32_t length, bool is_small)
{
	struct ibv_sge sge = { (uintptr_t)(is_small ? small : e.buffer), length,
			       is_small ? small_mr->lkey : e.mr->lkey };
	struct ibv_send_wr *bad;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IBV_SEND_SIGNALED;
	wr->wr.ud.ah = ah;
	wr->wr.ud.remote_qpn = QPN;
	wr->wr.ud.remote_qkey = UD_QKEY;
	return ibv_post_send(tx, wr, &bad);
}

static void send_stream(struct kind k, bool is_small)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_TSO };
	uint8_t *data = is_small ? small : e.buffer, frame[4096];
	struct octets header, wanted;
	struct packet p;

	stream_header(&header, k);
	for (uint32_t i = 0; i < STREAM; i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	wr.tso.hdr = header.at;
	wr.tso.hdr_sz = (uint16_t)header.n;
	wr.tso.mss = MSS;
	cr_assert_eq(post(&wr, STREAM, is_small), 0);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		from_wire(&p, frame, sizeof(frame));
		stream_segment(&wanted, k, data, i);
		cr_assert_eq(p.payload_length, wanted.n);
		cr_assert_arr_eq(p.payload, wanted.at, wanted.n, "segment %u", i);
		cr_assert(p.src_qpn == tx->qp_num && p.qkey == UD_QKEY);
	}
	expect_sent(IBV_WC_TSO);
}

Test(ud_offload_port, segments_are_right_on_the_wire)
{
	for (uint32_t i = 0; i < 8; i++)
		send_stream((struct kind){ i & 1, i & 2, 6 }, i & 4);
}

Test(ud_offload_port, checksums_are_right_on_the_wire)
{
	for (uint32_t i = 0; i < 8; i++) {
		struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_IP_CSUM };
		struct kind k = { i & 1, i & 2, 17 };
		struct octets packet, wanted;
		uint8_t frame[4096];
		struct packet p;

		packet_begin(&packet, k);
		packet_put(&packet, "odd", 3);
		packet_finish(&packet, k, false);
		wanted = packet;
		packet_finish(&wanted, k, true);
		memcpy(i & 4 ? small : e.buffer, packet.at, packet.n);
		cr_assert_eq(post(&wr, (uint32_t)packet.n, i & 4), 0);
		from_wire(&p, frame, sizeof(frame));
		cr_assert_eq(p.payload_length, wanted.n);
		cr_assert_arr_eq(p.payload, wanted.at, wanted.n, "row %u", i);
		expect_sent(IBV_WC_SEND);
	}
}
