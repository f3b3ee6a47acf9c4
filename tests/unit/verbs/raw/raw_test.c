/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw queue pairs: frames are sent, looped back inside the engine, and received by steering rules.
 * Runs, privileged, with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/engine_objects.h"
#include "raw_rig.h"

static struct raw_rig r;

static void open_all(void)
{
	raw_rig_open(&r);
}

static void close_all(void)
{
	raw_rig_close(&r);
}

TestSuite(raw, .init = open_all, .fini = close_all, .timeout = 60);

static struct built_frame make(const struct frame_recipe *recipe)
{
	struct built_frame f;

	build_frame(&f, recipe);
	return f;
}

#define FRAME(...) make(&(struct frame_recipe){ __VA_ARGS__ })
#define V4	   .src = "10.0.0.1", .dst = "10.0.0.2"
#define V6	   .src = "fd00::1", .dst = "fd00::2"
#define UDP	   .protocol = 17
#define TCP	   .protocol = 6
#define GROUP	   .dst_mac = GROUP_MAC

static const uint8_t *slot(uint32_t i)
{
	return r.buffer + i * RAW_SLOT;
}

static void expect_frame(uint32_t at, const struct built_frame *f, const struct ibv_wc *wc)
{
	cr_assert_eq(wc->wr_id, at);
	cr_assert_eq(wc->byte_len, f->length);
	cr_assert_arr_eq(slot(at), f->octet, f->length);
	cr_assert_eq(slot(at)[f->length], 0xee, "nothing behind it");
}

Test(raw, a_frame_to_a_group_is_looped_back)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame f = FRAME(GROUP, .payload = 1000);
	struct ibv_wc wc;

	cr_assert_not_null(flow, "%m");
	raw_post_recv(&r, r.rx, 3, RAW_SLOT);
	raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
	wc = raw_receive(&r, "the frame");
	expect_frame(3, &f, &wc);
	cr_assert_eq(wc.qp_num, r.rx->qp_num);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw, only_our_own_address_is_local)
{
	struct ibv_flow *flow =
		raw_rule(r.rx, &(struct raw_rule){ .type = IBV_FLOW_ATTR_ALL_DEFAULT });
	struct built_frame away = FRAME(.dst_mac = "02aabbccddee", .payload = 60);
	struct built_frame here = FRAME(.dst_mac = r.mac_text, .payload = 80);
	struct ibv_wc wc;

	cr_assert_not_null(flow, "%m");
	raw_post_recv(&r, r.rx, 0, RAW_SLOT);
	raw_send(&r, r.tx, &away, 0, IBV_WC_SUCCESS);
	raw_send(&r, r.tx, &here, 0, IBV_WC_SUCCESS);
	wc = raw_receive(&r, "the frame for us");
	expect_frame(0, &here, &wc);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw, inline_frames_and_several_elements)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame f = FRAME(GROUP, .payload = 200);
	struct ibv_sge sge[2] = { { (uintptr_t)f.octet, 14, 0 },
				  { (uintptr_t)f.octet + 14, (uint32_t)f.length - 14, 0 } };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	struct ibv_wc wc[2];

	for (int is_inline = 0; is_inline < 2; is_inline++) {
		raw_post_recv(&r, r.rx, 5, RAW_SLOT);
		memcpy(r.buffer + RAW_SEND, f.octet, f.length);
		wr.send_flags = is_inline ? IBV_SEND_INLINE : 0;
		for (int i = 0; i < 2 && !is_inline; i++) {
			sge[i].addr = (uintptr_t)r.buffer + RAW_SEND + (i == 0 ? 0 : 14);
			sge[i].lkey = r.mr->lkey;
		}
		if (is_inline) {
			sge[0].addr = (uintptr_t)f.octet;
			sge[1].addr = (uintptr_t)f.octet + 14;
		}
		cr_assert_eq(ibv_post_send(r.tx, &wr, &bad), 0);
		poll_completions(r.cq, wc, 2, "sent and received");
		expect_frame(5, &f, wc[0].opcode == IBV_WC_RECV ? &wc[0] : &wc[1]);
	}
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw, the_tag_of_a_rule_and_the_tag_of_a_vlan)
{
	struct ibv_qp *strip = raw_create_qp(&r, IBV_QP_CREATE_CVLAN_STRIPPING, 0);
	struct ibv_flow *flow =
		raw_rule(strip, &(struct raw_rule){ .dst_mac = GROUP_MAC, .tag = 0xcafe01 });
	struct built_frame tagged = FRAME(GROUP, .tags = 1, .payload = 100);
	struct built_frame plain = FRAME(GROUP, .payload = 100);
	struct ibv_poll_cq_attr none = { 0 };

	cr_assert_not_null(flow, "%m");
	for (uint32_t i = 0; i < 2; i++) {
		const struct built_frame *sent = i == 0 ? &tagged : &plain;

		raw_post_recv(&r, strip, i, RAW_SLOT);
		raw_send(&r, r.tx, sent, 0, IBV_WC_SUCCESS);
		for (int error = ENOENT; error != 0;)
			error = ibv_start_poll(r.cq_ex, &none);
		cr_assert_eq(r.cq_ex->status, IBV_WC_SUCCESS);
		cr_assert_eq(ibv_wc_read_flow_tag(r.cq_ex), 0xcafe01);
		cr_assert_eq(ibv_wc_read_cvlan(r.cq_ex), i == 0 ? 0xa064 : 0);
		cr_assert_eq(ibv_wc_read_byte_len(r.cq_ex), plain.length);
		ibv_end_poll(r.cq_ex);
		cr_assert_arr_eq(slot(i), plain.octet, plain.length, "the tag is cut out");
	}
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_qp(strip), 0);
}

/* hostile H-128: a queue pair with frames under way. */
Test(raw, posted_frames_leave_before_their_queue_pair_is_destroyed)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame f = FRAME(GROUP, .payload = 46);
	struct ibv_sge sge = { (uintptr_t)f.octet, (uint32_t)f.length, 0 };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE
	};

	cr_assert_not_null(flow, "%m");
	for (int round = 0; round < 30; round++) {
		struct ibv_qp *tx = raw_create_qp(&r, 0, 0);

		for (uint32_t i = 0; i < 50; i++)
			raw_post_recv(&r, r.rx, i, RAW_SLOT);
		for (uint32_t i = 0; i < 50; i++)
			cr_assert_eq(ibv_post_send(tx, &wr, &bad), 0, "%m");
		cr_assert_eq(ibv_destroy_qp(tx), 0);
		for (uint32_t i = 0; i < 50; i++)
			cr_assert_eq(raw_receive(&r, "a last frame").wr_id, i);
	}
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

static void attach_point(struct ibv_counters *k, enum ibv_counter_description what, uint32_t index)
{
	struct ibv_counter_attach_attr attr = { .counter_desc = what, .index = index };

	cr_assert_eq(ibv_attach_counters_point_flow(k, &attr, NULL), 0);
}

Test(raw, a_drop_rule_counts)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *k = ibv_create_counters(r.context, &init);
	struct built_frame dropped = FRAME(GROUP, .payload = 500),
			   kept = FRAME(.dst_mac = "ffffffffffff", .payload = 46);
	struct ibv_flow *drop, *all;
	uint64_t value[4];
	struct ibv_wc wc;

	cr_assert_not_null(k, "%m");
	attach_point(k, IBV_COUNTER_PACKETS, 0);
	attach_point(k, IBV_COUNTER_BYTES, 2);
	attach_point(k, IBV_COUNTER_PACKETS, 2);
	drop = raw_rule(r.rx,
			&(struct raw_rule){ .dst_mac = GROUP_MAC, .drop = true, .counters = k });
	all = raw_rule(r.rx, &(struct raw_rule){ .priority = 1 });
	cr_assert(drop != NULL && all != NULL, "%m");
	raw_post_recv(&r, r.rx, 1, RAW_SLOT);
	for (int i = 0; i < 3; i++)
		raw_send(&r, r.tx, &dropped, 0, IBV_WC_SUCCESS);
	raw_send(&r, r.tx, &kept, 0, IBV_WC_SUCCESS);
	wc = raw_receive(&r, "what is not dropped");
	expect_frame(1, &kept, &wc);
	memset(value, 0x77, sizeof(value));
	cr_assert_eq(ibv_read_counters(k, value, 3, 0), 0);
	cr_assert_eq(value[0], 3);
	cr_assert_eq(value[1], 0);
	cr_assert_eq(value[2], 3 * dropped.length + 3, "two counters in one place add up");
	cr_assert_eq(value[3], UINT64_C(0x7777777777777777));
	cr_assert_eq(ibv_destroy_flow(drop), 0);
	cr_assert_eq(ibv_destroy_flow(all), 0);
	cr_assert_eq(ibv_destroy_counters(k), 0);
}

Test(raw, counters_are_bound_to_an_existing_rule)
{
	struct ibv_counters_init_attr init = { 0 };
	struct ibv_counters *k = ibv_create_counters(r.context, &init);
	struct ibv_counter_attach_attr packets = { .counter_desc = IBV_COUNTER_PACKETS };
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame f = FRAME(GROUP, .payload = 46);
	uint64_t value = 9;

	for (int round = 0; round < 2; round++) {
		raw_post_recv(&r, r.rx, 0, RAW_SLOT);
		raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
		raw_receive(&r, "the frame");
		if (round == 0)
			cr_assert_eq(ibv_attach_counters_point_flow(k, &packets, flow), 0);
		cr_assert_eq(ibv_read_counters(k, &value, 1, IBV_READ_COUNTERS_ATTR_PREFER_CACHED),
			     0);
		cr_assert_eq(value, (uint64_t)round, "counted from then on");
	}
	cr_assert_eq(ibv_destroy_counters(k), EBUSY);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
	cr_assert_eq(ibv_destroy_counters(k), 0);
}

Test(raw, a_sniffer_and_a_default_rule)
{
	struct ibv_qp *third = raw_create_qp(&r, 0, 0);
	struct ibv_flow *sniffer =
		raw_rule(r.rx, &(struct raw_rule){ .type = IBV_FLOW_ATTR_SNIFFER });
	struct ibv_flow *rest =
		raw_rule(third, &(struct raw_rule){ .type = IBV_FLOW_ATTR_MC_DEFAULT });
	struct built_frame f = FRAME(GROUP, .payload = 46);
	struct ibv_wc wc[2];

	cr_assert(sniffer != NULL && rest != NULL, "%m");
	raw_post_recv(&r, r.rx, 1, RAW_SLOT);
	raw_post_recv(&r, third, 2, RAW_SLOT);
	raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
	wc[0] = raw_receive(&r, "the first copy");
	wc[1] = raw_receive(&r, "the second copy");
	cr_assert_eq(wc[0].wr_id + wc[1].wr_id, 3, "each has one");
	for (uint32_t i = 1; i <= 2; i++)
		cr_assert_arr_eq(slot(i), f.octet, f.length);
	cr_assert_eq(ibv_destroy_flow(sniffer), 0);
	cr_assert_eq(ibv_destroy_flow(rest), 0);
	cr_assert_eq(ibv_destroy_qp(third), 0);
}

static uint64_t counted(enum reason why)
{
	struct reply_statistics s;

	engine_statistics(&s);
	return s.by_reason[why];
}

/* Its queue pair may live on another lcore, which counts dropped frames some time later. */
static void expect_counted(enum reason why, uint64_t n, const char *what)
{
	for (int i = 0; i < WAIT_SECONDS * 100 && counted(why) < n; i++)
		usleep(10000);
	cr_assert_geq(counted(why), n, "%s", what);
}

Test(raw, a_frame_that_does_not_fit_is_lost_and_takes_no_request)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame big = FRAME(GROUP, .payload = 200), small = FRAME(GROUP, .payload = 46);
	uint64_t before = counted(REASON_RECEIVE_NOT_READY);
	struct ibv_wc wc;

	raw_send(&r, r.tx, &small, 0, IBV_WC_SUCCESS);
	expect_counted(REASON_RECEIVE_NOT_READY, before + 1, "a frame that finds no request");
	raw_post_recv(&r, r.rx, 0, 100);
	raw_send(&r, r.tx, &big, 0, IBV_WC_SUCCESS);
	raw_send(&r, r.tx, &small, 0, IBV_WC_SUCCESS);
	wc = raw_receive(&r, "the one that fits");
	expect_frame(0, &small, &wc);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw, own_multicast_is_looped_back_unless_blocked)
{
	struct ibv_qp *quiet = raw_create_qp(&r, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB, 0);
	struct ibv_flow *flow[2] = { raw_rule(r.tx, &(struct raw_rule){ .dst_mac = GROUP_MAC }),
				     raw_rule(quiet, &(struct raw_rule){ .dst_mac = GROUP_MAC }) };
	struct built_frame f = FRAME(GROUP, .payload = 46);
	struct ibv_wc wc;

	raw_post_recv(&r, quiet, 0, RAW_SLOT);
	raw_post_recv(&r, r.tx, 1, RAW_SLOT);
	raw_send(&r, quiet, &f, 0, IBV_WC_SUCCESS);
	wc = raw_receive(&r, "the other one hears it");
	cr_assert_eq(wc.wr_id, 1);
	raw_post_recv(&r, r.tx, 2, RAW_SLOT);
	raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
	cr_assert_eq(raw_receive(&r, "both hear it").wr_id + raw_receive(&r, "the second").wr_id,
		     2);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(ibv_destroy_flow(flow[i]), 0);
	cr_assert_eq(ibv_destroy_qp(quiet), 0);
}

/* ---- checksums and segments ---- */

Test(raw, checksums_are_filled_in_and_reported)
{
	static const struct frame_recipe recipe[] = {
		{ GROUP, V4, UDP, .payload = 101, .dst_port = 7 },
		{ GROUP, V4, TCP, .payload = 300, .tags = 1 },
	};
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });

	for (size_t i = 0; i < ARRAY_SIZE(recipe); i++) {
		struct built_frame f = make(&recipe[i]);
		struct raw_frame parsed;
		struct ibv_wc wc;

		store_be16(f.octet + f.length - recipe[i].payload - 2, 0xdead);
		raw_post_recv(&r, r.rx, 0, RAW_SLOT);
		raw_send(&r, r.tx, &f, IBV_SEND_IP_CSUM, IBV_WC_SUCCESS);
		wc = raw_receive(&r, "a frame with checksums");
		cr_expect(wc.wc_flags & IBV_WC_IP_CSUM_OK, "row %zu", i);
		raw_frame_parse(&parsed, slot(0), wc.byte_len);
		cr_expect(raw_frame_checksums_right(&parsed, slot(0)), "row %zu", i);
		raw_post_recv(&r, r.rx, 0, RAW_SLOT);
		raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
		wc = raw_receive(&r, "a frame as it is");
		cr_expect_not(wc.wc_flags & IBV_WC_IP_CSUM_OK, "row %zu", i);
		expect_frame(0, &f, &wc);
	}
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

#define MSS	 1000u
#define SEGMENTS 4u
#define STREAM	 (3 * MSS + 137)

/* With the segment's header and payload in slot i. */
static void expect_segment(uint32_t i, const struct built_frame *header, const struct ibv_wc *wc)
{
	uint32_t payload = i + 1 < SEGMENTS ? MSS : STREAM - 3 * MSS;
	const uint8_t *frame = slot(i);
	struct raw_frame f;

	cr_assert_eq(wc->wr_id, i);
	cr_assert_eq(wc->byte_len, header->length + payload);
	raw_frame_parse(&f, frame, wc->byte_len);
	cr_assert_eq(f.end, wc->byte_len, "segment %u: the IP length is its own", i);
	cr_assert_eq(load_be32(frame + f.l4 + 4), 1000000u + i * MSS, "segment %u: sequence", i);
	cr_assert_eq(frame[f.l4 + 13], i + 1 < SEGMENTS ? (i == 0 ? 0x90 : 0x10) : 0x19,
		     "segment %u: flags %#x", i, frame[f.l4 + 13]);
	for (uint32_t k = 0; k < payload; k++)
		cr_assert_eq(frame[header->length + k], (uint8_t)((i * MSS + k) * 13), "octet %u",
			     k);
	if (f.layers & FLOW_LAYER_IPV4) {
		cr_assert(wc->wc_flags & IBV_WC_IP_CSUM_OK, "segment %u", i);
		cr_assert_eq(load_be16(frame + f.l3 + 4), 77 + i, "segment %u: identification", i);
	} else {
		uint8_t copy[RAW_SLOT];

		memcpy(copy, frame, wc->byte_len);
		raw_frame_fill_checksums(&f, copy);
		cr_assert_arr_eq(copy, frame, wc->byte_len, "segment %u: checksum", i);
	}
}

static void send_stream(const struct built_frame *header, bool extended)
{
	uint8_t *data = r.buffer + RAW_SEND;
	struct ibv_sge sge[2] = { { (uintptr_t)data, 700, r.mr->lkey },
				  { (uintptr_t)data + 700, STREAM - 700, r.mr->lkey } };
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_TSO }, *bad;
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(r.tx);

	for (uint32_t i = 0; i < STREAM; i++)
		data[i] = (uint8_t)(i * 13);
	if (!extended) {
		wr.tso.hdr = (void *)(uintptr_t)header->octet;
		wr.tso.hdr_sz = (uint16_t)header->length;
		wr.tso.mss = MSS;
		cr_assert_eq(ibv_post_send(r.tx, &wr, &bad), 0);
		return;
	}
	ibv_wr_start(ex);
	ex->wr_id = 0;
	ex->wr_flags = 0;
	ibv_wr_send_tso(ex, (void *)(uintptr_t)header->octet, (uint16_t)header->length, MSS);
	ibv_wr_set_sge_list(ex, 2, sge);
	cr_assert_eq(ibv_wr_complete(ex), 0);
}

static void segment(const struct frame_recipe *recipe, bool extended)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame header = make(recipe);
	struct ibv_wc wc[SEGMENTS + 1];
	struct raw_frame f;
	uint32_t received = 0;

	raw_frame_parse(&f, header.octet, header.length);
	store_be32(header.octet + f.l4 + 4, 1000000u);
	header.octet[f.l4 + 13] = 0x99; /* CWR, ACK, PSH, FIN */
	if (f.layers & FLOW_LAYER_IPV4)
		store_be16(header.octet + f.l3 + 4, 77);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		raw_post_recv(&r, r.rx, i, RAW_SLOT);
	send_stream(&header, extended);
	poll_completions(r.cq, wc, SEGMENTS + 1, "segments");
	for (uint32_t i = 0; i < SEGMENTS + 1; i++) {
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS);
		if (wc[i].opcode == IBV_WC_RECV)
			expect_segment(received++, &header, &wc[i]);
		else
			cr_assert_eq(wc[i].opcode, IBV_WC_TSO);
	}
	cr_assert_eq(received, SEGMENTS);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}

Test(raw, tso_ipv4)
{
	segment(&(struct frame_recipe){ GROUP, V4, TCP, .src_port = 80, .dst_port = 4791 }, false);
}

Test(raw, tso_ipv6_with_a_tag)
{
	segment(&(struct frame_recipe){ GROUP, V6, TCP, .tags = 1, .src_port = 80 }, true);
}

/* ---- what must not be sent ---- */

/* The send queue stops at the failed request; the program restarts it. */
static void resume(struct ibv_qp *qp)
{
	cr_assert_eq(raw_to(qp, IBV_QPS_RTS), 0, "SQE to RTS");
}

/* hostile H-55: RoCE from a raw queue pair. */
Test(raw, udp_to_the_roce_port_never_leaves)
{
	static const struct frame_recipe recipe[] = {
		{ GROUP, V4, UDP, .dst_port = 4791, .payload = 32 },
		{ GROUP, V6, UDP, .dst_port = 4791, .payload = 32 },
		{ GROUP, V4, UDP, .dst_port = 4791, .payload = 32, .tags = 1 },
		{ GROUP, V6, UDP, .dst_port = 4791, .payload = 32, .tags = 5, .tag_type = 0x88a8 },
		{ GROUP, V4, UDP, .dst_port = 4791, .payload = 32, .options = 2 },
		{ GROUP, V6, UDP, .dst_port = 4791, .payload = 32, .options = 3 },
		{ GROUP, V4, UDP, .dst_port = 4791, .payload = 32, .fragment = 0x2000 },
		{ GROUP, V6, UDP, .dst_port = 4791, .payload = 32, .fragment_header = true,
		  .fragment = 1 },
	};
	struct ibv_flow *sniffer =
		raw_rule(r.rx, &(struct raw_rule){ .type = IBV_FLOW_ATTR_SNIFFER });
	struct built_frame fine = FRAME(GROUP, V4, UDP, .dst_port = 4790, .payload = 32);
	uint64_t before = counted(REASON_RAW_ROCE);
	struct ibv_wc wc;

	raw_post_recv(&r, r.rx, 0, RAW_SLOT);
	for (size_t i = 0; i < ARRAY_SIZE(recipe); i++) {
		struct built_frame f = make(&recipe[i]);

		raw_send(&r, r.tx, &f, 0, IBV_WC_LOC_QP_OP_ERR);
		resume(r.tx);
	}
	cr_assert_eq(counted(REASON_RAW_ROCE), before + ARRAY_SIZE(recipe));
	raw_send(&r, r.tx, &fine, 0, IBV_WC_SUCCESS);
	wc = raw_receive(&r, "only the last one");
	expect_frame(0, &fine, &wc);
	cr_assert_eq(ibv_destroy_flow(sniffer), 0);
}

Test(raw, the_reason_is_reported_and_later_requests_are_flushed)
{
	struct built_frame bad = FRAME(GROUP, V4, UDP, .dst_port = 4791, .payload = 32);
	struct ibv_sge sge = { (uintptr_t)r.buffer + RAW_SEND, (uint32_t)bad.length, r.mr->lkey };
	struct ibv_send_wr second = {
		.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr first = {
		.wr_id = 1, .next = &second, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr *rest;
	struct ibv_wc wc[2];

	memcpy(r.buffer + RAW_SEND, bad.octet, bad.length);
	cr_assert_eq(ibv_post_send(r.tx, &first, &rest), 0);
	poll_completions(r.cq, wc, 2, "both requests");
	cr_assert_eq(wc[0].wr_id, 1);
	cr_assert_eq(wc[0].status, IBV_WC_LOC_QP_OP_ERR);
	cr_assert_eq(wc[0].vendor_err, REASON_RAW_ROCE);
	cr_assert_eq(wc[1].wr_id, 2);
	cr_assert_eq(wc[1].status, IBV_WC_WR_FLUSH_ERR);
}

/* It is a good one, and was made at once with the other. */
Test(raw, nothing_behind_a_refused_frame_leaves)
{
	struct built_frame bad = FRAME(GROUP, V4, UDP, .dst_port = 4791, .payload = 32);
	struct built_frame good = FRAME(GROUP, V4, UDP, .dst_port = 4790, .payload = 40);
	struct built_frame last = FRAME(GROUP, V4, UDP, .dst_port = 4790, .payload = 50);
	struct ibv_flow *sniffer =
		raw_rule(r.rx, &(struct raw_rule){ .type = IBV_FLOW_ATTR_SNIFFER });
	struct ibv_sge sge[2] = {
		{ (uintptr_t)r.buffer + RAW_SEND, (uint32_t)bad.length, r.mr->lkey },
		{ (uintptr_t)r.buffer + RAW_SEND + 1024, (uint32_t)good.length, r.mr->lkey }
	};
	struct ibv_send_wr second = {
		.wr_id = 2, .sg_list = &sge[1], .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr first = {
		.wr_id = 1, .next = &second, .sg_list = &sge[0], .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr *rest;
	struct ibv_wc wc[2];

	raw_post_recv(&r, r.rx, 0, RAW_SLOT);
	raw_post_recv(&r, r.rx, 1, RAW_SLOT);
	memcpy(r.buffer + RAW_SEND, bad.octet, bad.length);
	memcpy(r.buffer + RAW_SEND + 1024, good.octet, good.length);
	cr_assert_eq(ibv_post_send(r.tx, &first, &rest), 0);
	poll_completions(r.cq, wc, 2, "both requests");
	cr_expect_eq(wc[0].status, IBV_WC_LOC_QP_OP_ERR);
	cr_expect_eq(wc[1].status, IBV_WC_WR_FLUSH_ERR);
	resume(r.tx);
	raw_send(&r, r.tx, &last, 0, IBV_WC_SUCCESS);
	wc[0] = raw_receive(&r, "only the last one");
	expect_frame(0, &last, &wc[0]);
	cr_assert_eq(ibv_destroy_flow(sniffer), 0);
}

Test(raw, lengths_of_no_frame_are_refused)
{
	struct built_frame runt = { .length = 13 }, giant = { .length = 0 };
	struct ibv_sge sge = { (uintptr_t)r.buffer, 5000, r.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;
	struct ibv_wc wc;

	raw_send(&r, r.tx, &runt, 0, IBV_WC_LOC_LEN_ERR);
	resume(r.tx);
	cr_assert_eq(ibv_post_send(r.tx, &wr, &bad), 0);
	poll_completions(r.cq, &wc, 1, "a frame that no port carries");
	cr_assert_eq(wc.status, IBV_WC_LOC_LEN_ERR);
	(void)giant;
}

/* ---- all at once ---- */

static uint32_t stop;

static void *flap(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		struct ibv_flow *f = raw_rule(
			r.rx, &(struct raw_rule){ .priority = 7, .dst_mac = "020000000099" });

		cr_assert_not_null(f, "%m");
		cr_assert_eq(ibv_destroy_flow(f), 0);
	}
	return NULL;
}

Test(raw, rules_change_while_frames_pass)
{
	struct ibv_flow *flow = raw_rule(r.rx, &(struct raw_rule){ .dst_mac = GROUP_MAC });
	struct built_frame f = FRAME(GROUP, .payload = 300);
	pthread_t thread;

	cr_assert_eq(pthread_create(&thread, NULL, flap, NULL), 0);
	for (uint32_t i = 0; i < 500; i++) {
		struct ibv_wc wc;

		raw_post_recv(&r, r.rx, i % 60, RAW_SLOT);
		raw_send(&r, r.tx, &f, 0, IBV_WC_SUCCESS);
		wc = raw_receive(&r, "every frame comes");
		expect_frame(i % 60, &f, &wc);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	cr_assert_eq(ibv_destroy_flow(flow), 0);
}
