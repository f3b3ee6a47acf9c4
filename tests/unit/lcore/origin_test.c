/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that arrive by a port and have one of the engine's own addresses as their source, for
 * queue pairs that are connected to an own address. Nothing else is wrong with the frames.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <rte_mbuf.h>

#include "drivers/port.h"
#include "loop_rig.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define POLLS 1000

static struct rte_mbuf *arriving; /* at the port */

static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	if (arriving == NULL || n == 0)
		return 0;
	frames[0] = arriving;
	arriving = NULL;
	return 1;
}

static uint16_t tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	return 0;
}

static const struct port_ops ops = { .rx_burst = rx_burst, .tx_burst = tx_burst };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };
static struct rig *rig;

/* The frame that `from` would send to its peer, on a wire. */
static void arrive(uint32_t from, const struct packet *wanted)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig->engine.pool);
	const struct flow *flow = &rig->side[from].qp.flow;
	struct packet p = *wanted;
	uint8_t *frame;
	size_t n;

	cr_assert_not_null(m);
	p.dest_qpn = rig->side[from ^ 1].qp.qpn;
	p.pkey = 0xffff;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	n = packet_encode(frame, flow, &p, 0);
	memset(frame + n, 0xf0, p.payload_length);
	m->data_len = (uint16_t)packet_seal(frame, flow, n, p.payload_length);
	m->pkt_len = m->data_len;
	arriving = m;
	rig_poll(rig);
}

static uint64_t counted(enum reason why)
{
	return rig->engine.lcore->stats.by_reason[why];
}

static const struct {
	const char *name;
	struct packet packet;
} forged[] = {
	{ "SEND", { .opcode = SERVICE_RC << 5 | OPB_SEND_ONLY, .payload_length = 64 } },
	{ "WRITE",
	  { .opcode = SERVICE_RC << 5 | OPB_WRITE_ONLY, .payload_length = 64, .dma_length = 64 } },
	{ "ACK", { .opcode = SERVICE_RC << 5 | OPB_ACK, .syndrome = SYNDROME_ACK_NO_CREDITS } },
	{ "NAK", { .opcode = SERVICE_RC << 5 | OPB_ACK, .syndrome = SYNDROME_NAK_REMOTE_ACCESS } },
	{ "CNP", { .opcode = OPCODE_CNP, .payload_length = 16 } },
};

/*
 * hostile H-53, H-58, H-59: forged requests, answers and congestion notifications from outside.
 * hostile H-57: floods.
 */
Test(origin, frames_that_say_that_we_sent_them)
{
	rig = rig_open();
	rig->engine.port = &port;
	rig->engine.lcore->queue = 0;
	memset(rig->side[1].buffer, 0, RIG_BUFFER);
	cr_assert(rig_receive(rig, 1));
	for (uint32_t i = 0; i < sizeof(forged) / sizeof(forged[0]); i++) {
		struct packet p = forged[i].packet;

		p.va = (uintptr_t)rig->side[1].buffer;
		p.rkey = rig->side[1].key;
		arrive(0, &p);
		cr_assert_eq(counted(REASON_SOURCE_OWN), i + 1, "%s is not refused",
			     forged[i].name);
		cr_assert_eq(rig->side[1].completions, 0, "%s", forged[i].name);
		cr_assert_eq(rig->side[1].buffer[0], 0, "%s", forged[i].name);
		cr_assert_eq(qp_state(rig->side[1].qp.core), QP_STATE_RTS, "%s", forged[i].name);
	}
	cr_expect_eq(counted(REASON_CNP_RECEIVED), 0);
	/* Packets of the peer arrive. */
	rig->side[0].buffer[0] = 7;
	cr_assert(rig_post(rig, 0, WORK_SEND, 64, WORK_SIGNALED));
	for (int i = 0; i < POLLS && rig->side[1].completions == 0; i++)
		rig_poll(rig);
	cr_assert_eq(rig->side[1].completions, 1);
	cr_assert_eq(rig->side[1].last.status, STATUS_SUCCESS);
	cr_assert_eq(rig->side[1].buffer[0], 7);
	rig->engine.port = NULL;
	rig_close(rig);
}
