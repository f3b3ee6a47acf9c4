/* SPDX-License-Identifier: BSD-3-Clause */
/* TSO and checksums of IP packets in datagrams, as for IPoIB. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "rig/inner_packet.h"
#include "rig/ud.h"

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

#define HEADER_MAX 128u /* what the queue pairs are asked for */
#define SLOT	   PACKET_MAX /* of a receive */
#define SOURCE	   40960u /* offset of streams in the endpoint's buffer */
#define SMALL	   8192u /* octets: too few to be promoted: the engine copies them as peer memory */

static struct endpoint e;
static struct ibv_qp *tx, *rx;
static struct ibv_ah *ah;
static uint8_t *small;
static struct ibv_mr *small_mr;

static struct ibv_qp *create(uint32_t header, uint64_t operations)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = e.cq,
		.recv_cq = e.cq,
		.cap = { UD_DEPTH, UD_DEPTH, 4, 4, 128 },
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = e.pd,
		.max_tso_header = (uint16_t)header,
		.send_ops_flags = operations,
	};

	return ibv_create_qp_ex(e.context, &init);
}

static void setup(void)
{
	endpoint_open(&e);
	tx = create(HEADER_MAX, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO);
	cr_assert_not_null(tx, "ibv_create_qp_ex: %m");
	cr_assert_eq(ud_ready(tx, UD_QKEY), 0);
	rx = ud_open(&e, UD_QKEY);
	ah = ud_self(&e, GID_INDEX);
	small = aligned_alloc(4096, SMALL);
	cr_assert_not_null(small);
	cr_assert_eq(madvise(small, SMALL, MADV_DONTFORK), 0); /* so it is not promoted */
	small_mr = ibv_reg_mr(e.pd, small, SMALL, 0);
	cr_assert_not_null(small_mr, "ibv_reg_mr: %m");
}

static void teardown(void)
{
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(tx), 0);
	cr_expect_eq(ibv_destroy_qp(rx), 0);
	cr_expect_eq(ibv_dereg_mr(small_mr), 0);
	free(small);
	endpoint_close(&e);
}

TestSuite(ud_offload, .init = setup, .fini = teardown, .timeout = 60);

/* ---- TSO ---- */

struct stream {
	struct kind kind;
	bool extended; /* posted by ibv_wr_send_tso */
	bool small; /* from memory that is not promoted */
};

static int post_tso(struct ibv_sge *sge, int elements, void *header, uint16_t length, uint16_t mss,
		    bool extended)
{
	struct ibv_send_wr wr = {
		.wr_id = 7,
		.sg_list = sge,
		.num_sge = elements,
		.opcode = IBV_WR_TSO,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	};
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(tx);
	struct ibv_send_wr *bad = NULL;
	int error;

	if (extended) {
		ibv_wr_start(ex);
		ex->wr_id = 7;
		ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
		ibv_wr_send_tso(ex, header, length, mss);
		ibv_wr_set_ud_addr(ex, ah, rx->qp_num, UD_QKEY);
		ibv_wr_set_sge_list(ex, (size_t)elements, sge);
		return ibv_wr_complete(ex);
	}
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = rx->qp_num;
	wr.wr.ud.remote_qkey = UD_QKEY;
	wr.tso.hdr = header;
	wr.tso.hdr_sz = length;
	wr.tso.mss = mss;
	error = ibv_post_send(tx, &wr, &bad);
	cr_expect(error == 0 ? bad == NULL : bad == &wr);
	return error;
}

static void expect_segment(const struct stream *s, const struct ibv_wc *wc, const uint8_t *data,
			   uint32_t i)
{
	const uint8_t *seen = e.buffer + wc->wr_id + GRH;
	struct octets wanted;

	stream_segment(&wanted, s->kind, data, i);
	cr_assert_eq(wc->wr_id, i * SLOT, "in order");
	cr_assert_eq(wc->byte_len, GRH + wanted.n, "segment %u: %u octets", i, wc->byte_len);
	for (size_t k = 0; k < wanted.n; k++)
		cr_assert_eq(seen[k], wanted.at[k], "segment %u octet %zu is %#x, not %#x", i, k,
			     seen[k], wanted.at[k]);
	cr_expect_eq(seen[wanted.n], 0xee, "and ends there");
	cr_expect_eq(wc->wc_flags, IBV_WC_GRH | (s->kind.v6 ? 0 : IBV_WC_IP_CSUM_OK));
	cr_expect_eq(wc->src_qp, tx->qp_num);
}

static void send_stream(const struct stream *s)
{
	uint8_t *data = s->small ? small + 100 : e.buffer + SOURCE;
	uint32_t lkey = s->small ? small_mr->lkey : e.mr->lkey, received = 0, sent = 0;
	struct ibv_sge sge[3] = { { (uintptr_t)data, 1, lkey },
				  { (uintptr_t)data + 1, 900, lkey },
				  { (uintptr_t)data + 901, STREAM - 901, lkey } };
	struct ibv_wc wc[SEGMENTS + 1];
	struct octets header;

	stream_header(&header, s->kind);
	memset(e.buffer, 0xee, SEGMENTS * SLOT);
	for (uint32_t i = 0; i < STREAM; i++)
		data[i] = (uint8_t)(i * 13 + i / 256);
	for (uint32_t i = 0; i < SEGMENTS; i++)
		ud_receive(&e, rx, i * SLOT, SLOT);
	cr_assert_eq(post_tso(sge, 3, header.at, (uint16_t)header.n, MSS, s->extended), 0);
	poll_completions(e.cq, wc, SEGMENTS + 1, "the segments of a stream");
	for (uint32_t i = 0; i < SEGMENTS + 1; i++) {
		cr_assert_eq(wc[i].status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode == IBV_WC_RECV) {
			expect_segment(s, &wc[i], data, received++);
			continue;
		}
		cr_assert_eq(wc[i].opcode, IBV_WC_TSO);
		cr_assert_eq(wc[i].wr_id, 7);
		sent++;
	}
	cr_assert(sent == 1 && received == SEGMENTS);
}

Test(ud_offload, streams_are_cut)
{
	for (uint32_t i = 0; i < 16; i++)
		send_stream(&(struct stream){
			.kind = { i & 1, i & 2, 6 }, .extended = i & 4, .small = i & 8 });
	ud_silent(e.cq, "nothing more");
}

/*
 * More segments than turns, windows and receives: those without a receive are lost, nothing else.
 */
Test(ud_offload, a_stream_of_the_greatest_length)
{
	struct stream s = { .kind = { .protocol = 6 } };
	struct ibv_device_attr_ex device;
	uint32_t received = 0;
	struct octets header;
	struct ibv_sge sge[2];
	struct ibv_wc wc;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &device), 0);
	cr_assert_leq(device.tso_caps.max_tso, BUFFER);
	sge[0] = (struct ibv_sge){ (uintptr_t)e.buffer, device.tso_caps.max_tso - 3, e.mr->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)small, 3, small_mr->lkey };
	stream_header(&header, s.kind);
	for (uint32_t i = 0; i < UD_DEPTH; i++)
		ud_receive(&e, rx, i * 128, 128);
	cr_assert_eq(post_tso(sge, 2, header.at, (uint16_t)header.n, 20, false), 0);
	do {
		poll_completions(e.cq, &wc, 1, "the end of a long stream");
		cr_assert_eq(wc.status, IBV_WC_SUCCESS);
		received += wc.opcode == IBV_WC_RECV;
	} while (wc.opcode != IBV_WC_TSO);
	while (received++ < UD_DEPTH)
		poll_completions(e.cq, &wc, 1, "the first segments");
	cr_expect_eq(ud_send(&e, tx, ah, 1, UD_QKEY, 0, 8), 0);
	ud_sent_alone(e.cq, "the queue pair goes on");
}

Test(ud_offload, a_header_alone_is_one_datagram)
{
	struct kind k = { .protocol = 6 };
	struct octets header, wanted;
	struct ibv_wc wc[2];

	packet_begin(&header, k);
	wanted = header;
	packet_finish(&wanted, k, true);
	ud_receive(&e, rx, 0, SLOT);
	cr_assert_eq(post_tso(NULL, 0, header.at, (uint16_t)header.n, 1, false), 0);
	poll_completions(e.cq, wc, 2, "one datagram");
	cr_expect(wc[0].byte_len == GRH + wanted.n || wc[1].byte_len == GRH + wanted.n);
	cr_expect_arr_eq(e.buffer + GRH, wanted.at, wanted.n);
}

/* A header that does not fit segmentation: no segment is sent. */
Test(ud_offload, a_header_other_than_tcp_stops_the_send_queue)
{
	static const struct kind kinds[] = { { .protocol = 17 }, { .v6 = true, .protocol = 17 } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS };
	struct octets header = { .n = 0 };
	struct ibv_wc wc[2];

	ud_receive(&e, rx, 0, SLOT);
	for (uint32_t i = 0; i < 8; i++) {
		struct ibv_sge sge =
			i & 4 ? (struct ibv_sge){ (uintptr_t)small, STREAM, small_mr->lkey }
			      : (struct ibv_sge){ (uintptr_t)e.buffer, STREAM, e.mr->lkey };

		if ((i & 3) < ROWS(kinds))
			packet_begin(&header, kinds[i & 3]);
		else
			memset(header.at, (i & 3) == 2 ? 0 : 0xff, header.n = 60);
		cr_assert_eq(post_tso(&sge, 1, header.at, (uint16_t)header.n, MSS, i % 2), 0);
		cr_assert_eq(ud_send(&e, tx, ah, rx->qp_num, UD_QKEY, 0, 8), 0);
		poll_completions(e.cq, wc, 2, "the failure and what is flushed");
		cr_expect_eq(wc[0].status, IBV_WC_LOC_QP_OP_ERR, "row %u: %s", i,
			     ibv_wc_status_str(wc[0].status));
		cr_expect_eq(wc[1].status, IBV_WC_WR_FLUSH_ERR, "row %u", i);
		cr_assert_eq(ibv_modify_qp(tx, &rts, IBV_QP_STATE), 0);
	}
	ud_silent(e.cq, "nothing has left");
	cr_assert_eq(ud_send(&e, tx, ah, rx->qp_num, UD_QKEY, 0, 8), 0);
	poll_completions(e.cq, wc, 2, "a datagram");
}

Test(ud_offload, tso_requests_that_are_refused)
{
	static uint8_t header[HEADER_MAX + 1] = { 0x45 };
	struct ibv_sge sge = { (uintptr_t)e.buffer, 1000, e.mr->lkey };
	struct ibv_port_attr port;
	uint32_t mtu;

	cr_assert_eq(ibv_query_port(e.context, 1, &port), 0);
	mtu = 128u << port.active_mtu;
	const struct {
		const char *what;
		void *header;
		uint32_t header_length, mss, length;
	} rows[] = {
		{ "no header", NULL, 40, 500, 1000 },
		{ "an empty header", header, 0, 500, 1000 },
		{ "more header than was asked for", header, HEADER_MAX + 1, 500, 1000 },
		{ "no segment size", header, 40, 0, 1000 },
		{ "segments longer than the MTU", header, 40, mtu - 39, 1000 },
		{ "the longest segments there are", header, 40, 65535, 10 },
		{ "longer than max_tso", header, 40, 500, 65025 },
		{ "much longer", header, 40, 500, UINT32_MAX },
	};

	for (size_t i = 0; i < 2 * ROWS(rows); i++) {
		size_t k = i / 2;

		sge.length = rows[k].length;
		cr_expect_eq(post_tso(&sge, 1, rows[k].header, (uint16_t)rows[k].header_length,
				      (uint16_t)rows[k].mss, i % 2),
			     EINVAL, "%s, %s", rows[k].what, i % 2 ? "extended" : "posted");
	}
	ud_silent(e.cq, "nothing was posted");
}

Test(ud_offload, tso_inline_or_without_address_is_refused)
{
	static uint8_t header[52] = { 0x45 };
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(tx);
	struct ibv_sge sge = { (uintptr_t)e.buffer, 100, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_TSO,
				  .send_flags = IBV_SEND_INLINE },
			   *bad;

	wr.tso.hdr = header;
	wr.tso.hdr_sz = sizeof(header);
	wr.tso.mss = 50;
	wr.wr.ud.ah = ah;
	cr_expect_eq(ibv_post_send(tx, &wr, &bad), EINVAL, "inline");
	wr.send_flags = 0;
	wr.wr.ud.ah = NULL;
	cr_expect_eq(ibv_post_send(tx, &wr, &bad), EINVAL, "no address handle");
	wr.wr.ud.ah = ah;
	cr_expect_eq(ibv_post_send(rx, &wr, &bad), EINVAL, "a queue pair without TSO");
	ibv_wr_start(ex);
	ibv_wr_send_tso(ex, header, sizeof(header), 50);
	ibv_wr_set_sge_list(ex, 1, &sge);
	cr_expect_eq(ibv_wr_complete(ex), EINVAL, "no address handle, extended");
	ibv_wr_start(ex);
	ibv_wr_send_tso(ex, header, sizeof(header), 50);
	ibv_wr_set_ud_addr(ex, ah, 1, UD_QKEY);
	ibv_wr_set_inline_data(ex, e.buffer, 100);
	cr_expect_eq(ibv_wr_complete(ex), EINVAL, "inline, extended");
}

Test(ud_offload, is_announced_and_bounded)
{
	struct ibv_device_attr_ex device;
	struct ibv_qp *qp;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &device), 0);
	cr_expect(device.tso_caps.supported_qpts >> IBV_QPT_UD & 1);
	cr_expect(device.orig_attr.device_cap_flags & IBV_DEVICE_UD_IP_CSUM);
	errno = 0;
	cr_expect_null(create(257, IBV_QP_EX_WITH_TSO));
	cr_expect_eq(errno, EINVAL);
	qp = create(256, IBV_QP_EX_WITH_TSO);
	cr_assert_not_null(qp, "%m");
	cr_expect_eq(ibv_destroy_qp(qp), 0);
}

/* ---- checksums ---- */

static const struct kind packets[] = {
	{ false, false, 17 }, { false, true, 17 }, { true, false, 17 }, { true, true, 17 },
	{ false, false, 6 },  { false, true, 6 },  { true, false, 6 },	{ true, true, 6 },
};

static void make_packet(struct octets *o, struct kind k, bool sums)
{
	static const uint8_t data[51] = "some octets, odd in number";

	packet_begin(o, k);
	packet_put(o, data, sizeof(data));
	packet_finish(o, k, sums);
}

enum from {
	FROM_BUFFER,
	FROM_SMALL,
	FROM_INLINE,
	EXTENDED, /* by the extended calls, from the buffer ... */
	EXTENDED_INLINE, /* ... or inline */
	FROMS
};

static int send_extended(struct ibv_sge *sge, bool is_inline, unsigned int flags, uint32_t qpn,
			 struct ibv_ah *to)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(tx);

	ibv_wr_start(ex);
	ex->wr_flags = flags;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, to, qpn, UD_QKEY);
	if (is_inline)
		ibv_wr_set_inline_data(ex, (void *)(uintptr_t)sge->addr, sge->length);
	else
		ibv_wr_set_sge(ex, sge->lkey, sge->addr, sge->length);
	return ibv_wr_complete(ex);
}

/* Sends those octets and returns what the receiver learns. */
static unsigned int send_packet(const struct octets *o, enum from from, unsigned int flags,
				uint32_t qpn, struct ibv_ah *to)
{
	uint8_t *data = from == FROM_SMALL ? small : e.buffer + SOURCE;
	struct ibv_sge sge = { (uintptr_t)data, (uint32_t)o->n,
			       from == FROM_SMALL ? small_mr->lkey : e.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = flags | (from == FROM_INLINE ? IBV_SEND_INLINE : 0),
		.wr.ud = { .ah = to, .remote_qpn = qpn, .remote_qkey = UD_QKEY },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	memcpy(data, o->at, o->n);
	memset(e.buffer, 0xee, SLOT);
	ud_receive(&e, rx, 0, SLOT);
	cr_assert_eq(from >= EXTENDED ? send_extended(&sge, from == EXTENDED_INLINE, flags, qpn, to)
				      : ibv_post_send(tx, &wr, &bad),
		     0);
	poll_completions(e.cq, &wc, 1, "a datagram");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(wc.byte_len, GRH + o->n);
	return wc.wc_flags;
}

Test(ud_offload, checksums_are_made)
{
	struct octets packet, wanted;

	for (uint32_t i = 0; i < FROMS * ROWS(packets); i++) {
		struct kind k = packets[i / FROMS];
		unsigned int told;

		make_packet(&packet, k, false);
		make_packet(&wanted, k, true);
		told = send_packet(&packet, i % FROMS, IBV_SEND_IP_CSUM, rx->qp_num, ah);
		cr_expect_arr_eq(e.buffer + GRH, wanted.at, wanted.n, "row %u", i);
		cr_expect_eq(told, IBV_WC_GRH | (k.v6 ? 0 : IBV_WC_IP_CSUM_OK), "row %u: %#x", i,
			     told);
	}
}

Test(ud_offload, received_checksums_are_checked)
{
	struct octets packet;

	for (uint32_t i = 0; i < ROWS(packets); i++) {
		make_packet(&packet, packets[i], true);
		cr_expect_eq(send_packet(&packet, FROM_BUFFER, 0, rx->qp_num, ah),
			     IBV_WC_GRH | (packets[i].v6 ? 0 : IBV_WC_IP_CSUM_OK), "row %u", i);
		packet.at[packet.n - 1] ^= 1;
		cr_expect_eq(send_packet(&packet, FROM_BUFFER, 0, rx->qp_num, ah), IBV_WC_GRH,
			     "row %u, not right", i);
		cr_expect_arr_eq(e.buffer + GRH, packet.at, packet.n, "as it was given");
	}
}

Test(ud_offload, other_payloads_are_not_changed)
{
	struct octets packet = { .n = 90 };

	for (uint32_t i = 0; i < 3 * FROMS; i++) {
		for (uint32_t k = 0; k < packet.n; k++)
			packet.at[k] = (uint8_t)(k * (i + 3));
		packet.at[0] = (uint8_t)(i % 3 * 0x77);
		cr_expect_eq(
			send_packet(&packet, (enum from)(i / 3), IBV_SEND_IP_CSUM, rx->qp_num, ah),
			IBV_WC_GRH);
		cr_expect_arr_eq(e.buffer + GRH, packet.at, packet.n, "row %u", i);
	}
}

Test(ud_offload, members_of_a_group_learn_of_checksums_too)
{
	union ibv_gid group = ipv4_gid(239, 7, 7, 8);
	struct ibv_ah_attr attr = ud_to_self(&e);
	struct octets packet;
	struct ibv_ah *to;

	attr.grh.dgid = group;
	to = ibv_create_ah(e.pd, &attr);
	cr_assert_not_null(to, "%m");
	cr_assert_eq(ibv_attach_mcast(rx, &group, 0), 0);
	make_packet(&packet, packets[1], false);
	cr_expect_eq(send_packet(&packet, FROM_BUFFER, IBV_SEND_IP_CSUM, 0xffffff, to),
		     IBV_WC_GRH | IBV_WC_IP_CSUM_OK);
	cr_expect_eq(send_packet(&packet, FROM_BUFFER, 0, 0xffffff, to), IBV_WC_GRH);
	cr_expect_eq(ibv_detach_mcast(rx, &group, 0), 0);
	cr_expect_eq(ibv_destroy_ah(to), 0);
}
