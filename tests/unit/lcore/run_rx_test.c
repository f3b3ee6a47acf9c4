/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames in the middle of a message are taken in runs from the port. What is wrong with one frame ends a run, and every octet
 * gets to its place however the wire treats the frames.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <rte_mbuf.h>

#include "lcore/raw/flow_table.h"
#include "lcore/srq.h"
#include "loop_rig.h"
#include "loop_wire.h"
#include "wire/encode.h"
#include "wire/header.h"
#include "wire/opcode.h"

static struct rig *rig;
static uint32_t in_runs; /* packets */
static uint32_t asked_in_runs; /* runs with a packet that asks for an acknowledgement */
static void (*tampering)(struct rte_mbuf **m, uint16_t n); /* with frames that have been sent */
static uint32_t tampered;

void __real_qp_received_alike(struct qp *qp, const struct packet *p, uint32_t n, uint32_t asked,
			      nanotime now);
void __wrap_qp_received_alike(struct qp *qp, const struct packet *p, uint32_t n, uint32_t asked,
			      nanotime now);

void __wrap_qp_received_alike(struct qp *qp, const struct packet *p, uint32_t n, uint32_t asked,
			      nanotime now)
{
	in_runs += n;
	asked_in_runs += asked > 0;
	__real_qp_received_alike(qp, p, n, asked, now);
}

static uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	if (tampering != NULL)
		tampering(m, n);
	for (uint16_t i = 0; i < n; i++)
		wire[wire_head++ % WIRE] = m[i];
	return n;
}

static const struct port_ops ops = { .rx_burst = wire_rx, .tx_burst = port_tx };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };

static void open_rig(void)
{
	rig_timeout = 10; /* 4 ms */
	rig = rig_open();
	rig_use_port(rig, &port);
	for (uint32_t i = 0; i < RIG_SIDES; i++)
		lcore_qp_touch(rig->engine.lcore, &rig->side[i].qp, clock_now());
	for (uint32_t i = 0; i < RIG_BUFFER; i++) {
		rig->side[0].buffer[i] = (uint8_t)(i * 7 + i / 256 + 1);
		rig->side[2].buffer[i] = (uint8_t)(i * 5 + i / 512 + 3);
	}
	in_runs = asked_in_runs = tampered = 0;
	tampering = NULL;
	wire_head = wire_tail = 0;
}

static void close_rig(void)
{
	rig->engine.port = NULL;
	rig_close(rig);
}

TestSuite(run_rx, .init = open_rig, .fini = close_rig, .timeout = 60);

static void until(uint32_t side, uint32_t completions)
{
	nanotime end = clock_now() + 20 * TIME_S;

	while (rig->side[side].completions < completions && clock_now() < end)
		rig_poll(rig);
	cr_assert_eq(rig->side[side].completions, completions, "side %u: %u", side,
		     rig->side[side].completions);
	cr_assert_eq(rig->side[side].last.status, STATUS_SUCCESS);
}

static void expect_arrived(uint32_t from)
{
	for (uint32_t i = 0; i < 1000 && rte_mempool_in_use_count(rig->engine.pool) > 0; i++)
		rig_poll(rig); /* the last acknowledgement is on its way */
	cr_expect_arr_eq(rig->side[from + 1].buffer, rig->side[from].buffer, RIG_BUFFER);
	cr_expect_eq(rte_mempool_in_use_count(rig->engine.pool), 0);
}

static void write_all(void)
{
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	until(0, 1);
	expect_arrived(0);
}

static uint64_t again(void)
{
	return rig->engine.lcore->stats.retransmitted;
}

/* Before it is known how long a round trip takes, the path lets few packets go at once. */
static void warm_up(void)
{
	for (uint32_t i = 1; i <= 4; i++) {
		cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
		until(0, i);
	}
	memset(rig->side[1].buffer, 0, RIG_BUFFER);
	rig->side[0].completions = 0;
	in_runs = 0;
}

Test(run_rx, of_a_write)
{
	warm_up();
	write_all();
	cr_expect_geq(in_runs, 8, "%u of 16 packets", in_runs);
	cr_expect_eq(again(), 0);
	cr_expect_eq(rig->side[0].qp.received + rig->side[1].qp.received,
		     rig->engine.lcore->stats.rx_packets);
	cr_expect_eq(rig->engine.lcore->stats.rx_octets, rig->engine.lcore->stats.tx_octets);
}

Test(run_rx, of_a_send)
{
	warm_up();
	cr_assert(rig_receive(rig, 1));
	cr_assert(rig_post(rig, 0, WORK_SEND, RIG_BUFFER, 0));
	until(1, 1);
	expect_arrived(0);
	cr_expect_geq(in_runs, 8, "%u of 16 packets", in_runs);
}

Test(run_rx, of_the_responses_of_a_read)
{
	warm_up();
	cr_assert(rig_post(rig, 1, WORK_RDMA_READ, RIG_BUFFER, WORK_SIGNALED));
	until(1, 1);
	expect_arrived(0);
	cr_expect_geq(in_runs, 8, "%u of 16 packets", in_runs);
}

/* Frames of two connections, one after the other: no run, and nobody gets the other's octets. */
static void interleave(struct rte_mbuf **m, uint16_t n)
{
	struct rte_mbuf *sorted[LIMIT_BURST];
	uint16_t half = n / 2;

	for (uint16_t i = 0; i < half; i++) {
		sorted[2 * i] = m[i];
		sorted[2 * i + 1] = m[half + i];
	}
	memcpy(m, sorted, 2u * half * sizeof(*m));
	tampered++;
}

Test(run_rx, two_connections_at_once)
{
	warm_up();
	tampering = interleave;
	for (uint32_t i = 0; i < 4; i++) {
		cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
		cr_assert(rig_post(rig, 2, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	}
	until(0, 4);
	until(2, 4);
	expect_arrived(0);
	expect_arrived(2);
	cr_expect_gt(tampered, 0);
}

/* One octet in the middle of a run changes: that frame has no effect, and its packet is sent again. */
static void damage(struct rte_mbuf **m, uint16_t n)
{
	if (n < 6 || tampered > 0)
		return;
	rte_pktmbuf_mtod(m[5], uint8_t *)[m[5]->data_len - 900] ^= 0x10;
	tampered++;
}

Test(run_rx, a_damaged_frame_ends_a_run)
{
	warm_up();
	tampering = damage;
	cr_assert(rig_post(rig, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	for (uint32_t i = 0; i < 1000 && rig->engine.lcore->stats.by_reason[REASON_ICRC] == 0; i++)
		rig_poll(rig);
	cr_expect_eq(rig->engine.lcore->stats.by_reason[REASON_ICRC], 1);
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		cr_assert(rig->side[1].buffer[i] == 0 ||
				  rig->side[1].buffer[i] == rig->side[0].buffer[i],
			  "octet %u", i);
	until(0, 1);
	expect_arrived(0);
	cr_expect_eq(tampered, 1);
	cr_expect_gt(again(), 0);
}

static void drop(struct rte_mbuf **m, uint16_t n)
{
	if (n < 6 || tampered > 0)
		return;
	m[5]->data_len = 20; /* shorter than any frame of ours */
	m[5]->pkt_len = 20;
	tampered++;
}

Test(run_rx, a_lost_frame_is_waited_for)
{
	warm_up();
	tampering = drop;
	write_all();
	cr_expect_eq(tampered, 1);
	cr_expect_gt(again(), 0);
}

Test(run_rx, of_responses_behind_a_lost_one)
{
	warm_up();
	tampering = drop;
	cr_assert(rig_post(rig, 1, WORK_RDMA_READ, RIG_BUFFER, WORK_SIGNALED));
	until(1, 1);
	expect_arrived(0);
	cr_expect_eq(tampered, 1);
	cr_expect_geq(in_runs, 8, "%u of 16 packets", in_runs);
	cr_expect_gt(again(), 0);
}

static void swap(struct rte_mbuf **m, uint16_t n)
{
	for (uint16_t i = 1; i + 1 < n; i += 3) {
		struct rte_mbuf *first = m[i];

		m[i] = m[i + 1];
		m[i + 1] = first;
		tampered++;
	}
}

Test(run_rx, frames_that_change_places)
{
	warm_up();
	tampering = swap;
	write_all();
	cr_expect_gt(tampered, 0);
}

/* The network marks each frame: the sender is told, as without runs. */
static void mark(struct rte_mbuf **m, uint16_t n)
{
	const struct flow *flow = &rig->side[0].qp.flow;

	for (uint16_t i = 0; i < n; i++) {
		uint8_t *header = rte_pktmbuf_mtod(m[i], uint8_t *) + flow->l3;
		uint32_t sum = (uint32_t)(header[10] << 8 | header[11]),
			 more = ECN_CE - (header[1] & ECN_BITS);

		/* The ICRC does not cover it, but the header's checksum does. */
		header[1] |= ECN_CE;
		sum = sum > more ? sum - more : sum + 0xffff - more;
		header[10] = (uint8_t)(sum >> 8);
		header[11] = (uint8_t)sum;
		tampered++;
	}
}

Test(run_rx, marked_frames_are_taken_one_by_one)
{
	warm_up();
	tampering = mark;
	write_all();
	cr_expect_gt(tampered, 10);
	cr_expect_eq(rig->engine.lcore->stats.ecn_marked, tampered);
	cr_expect_eq(in_runs, 0);
	cr_expect_gt(rig->engine.lcore->stats.cnps_sent, 0);
}

/* Steering rules look at each frame, even if there are none for it. */
Test(run_rx, not_while_rules_look_at_frames)
{
	static struct flow_table rules;

	warm_up();
	rig->engine.flows = &rules;
	write_all();
	rig->engine.flows = NULL;
	cr_expect_eq(in_runs, 0);
}

/* WRITEs take none of its receives. */
Test(run_rx, not_while_tags_are_matched)
{
	static uint64_t no_list;
	static struct engine_srq srq = { .tags = (void *)&no_list };

	warm_up();
	rig->side[1].qp.srq = &srq;
	write_all();
	rig->side[1].qp.srq = NULL;
	cr_expect_eq(in_runs, 0);
}

/* Another sender may ask for an acknowledgement in each packet. */
static void ask(struct rte_mbuf **m, uint16_t n)
{
	const struct flow *flow = &rig->side[0].qp.flow;

	for (uint16_t i = 0; i < n; i++) {
		uint8_t *frame = rte_pktmbuf_mtod(m[i], uint8_t *), *bth = frame + flow->length;

		if (!opcode_is_middle(bth[0]))
			continue;
		bth[8] |= BTH_ACK_REQ;
		packet_seal(frame, flow, flow->length + BTH_LENGTH,
			    (uint32_t)(m[i]->data_len - flow->length - BTH_LENGTH - 4));
		tampered++;
	}
}

Test(run_rx, a_packet_of_a_run_may_ask)
{
	warm_up();
	tampering = ask;
	write_all();
	cr_expect_gt(tampered, 8);
	cr_expect_gt(asked_in_runs, 0);
}

/* Nothing beside a message changes. */
Test(run_rx, all_lengths)
{
	warm_up();
	for (uint32_t i = 0; i < 300; i++) {
		uint32_t length = (i * 8191) % (RIG_BUFFER - 64) + 1, from = i % 61;

		memset(rig->side[1].buffer, 0, RIG_BUFFER);
		rig->side[0].completions = 0;
		cr_assert(rig_post_at(rig, 0, WORK_RDMA_WRITE, from, from, length, WORK_SIGNALED));
		until(0, 1);
		cr_assert_arr_eq(rig->side[1].buffer + from, rig->side[0].buffer + from, length);
		for (uint32_t at = 0; at < RIG_BUFFER; at++)
			if (at < from || at >= from + length)
				cr_assert_eq(rig->side[1].buffer[at], 0, "octet %u of %u", at,
					     length);
	}
	cr_expect_gt(in_runs, 500);
}
