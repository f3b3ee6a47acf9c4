/* SPDX-License-Identifier: BSD-3-Clause */
/* What the port says of a frame beside it, and when it is believed. */
#include <criterion/criterion.h>
#include <string.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/port.h"
#include "loop_rig.h"
#include "wire/encode.h"
#include "wire/opcode.h"

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

/* A packet for nobody, in which all but the header's checksum is right; returns how often `why` was counted. */
static uint64_t arrive(uint64_t said, bool spoilt, enum reason why)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig->engine.pool);
	const struct flow *flow = &rig->side[0].qp.flow;
	struct packet p = { .opcode = SERVICE_RC << 5 | OPB_ACK, .dest_qpn = 0xfffffe };
	const uint64_t *count = &rig->engine.lcore->stats.by_reason[why];
	uint64_t before = *count;
	uint8_t *frame;
	size_t n;

	cr_assert_not_null(m);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	n = packet_encode(frame, flow, &p, 0);
	m->data_len = (uint16_t)packet_seal(frame, flow, n, 0);
	m->pkt_len = m->data_len;
	frame[flow->l3 + 10] ^= spoilt;
	m->ol_flags |= said;
	arriving = m;
	rig_poll(rig);
	return *count - before;
}

static const struct {
	const char *what;
	uint64_t said;
	bool asked, spoilt;
	enum reason why; /* QPN_UNKNOWN: it was decoded */
} rows[] = {
	{ "software, right", 0, false, false, REASON_QPN_UNKNOWN },
	{ "software, wrong", 0, false, true, REASON_IP_CHECKSUM },
	{ "nobody asked, bad", RTE_MBUF_F_RX_IP_CKSUM_BAD, false, false, REASON_QPN_UNKNOWN },
	{ "nobody asked, good", RTE_MBUF_F_RX_IP_CKSUM_GOOD, false, true, REASON_IP_CHECKSUM },
	{ "good", RTE_MBUF_F_RX_IP_CKSUM_GOOD, true, true, REASON_QPN_UNKNOWN },
	{ "bad", RTE_MBUF_F_RX_IP_CKSUM_BAD, true, false, REASON_IP_CHECKSUM },
	{ "unknown, right", RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN, true, false, REASON_QPN_UNKNOWN },
	{ "unknown, wrong", RTE_MBUF_F_RX_IP_CKSUM_UNKNOWN, true, true, REASON_IP_CHECKSUM },
	{ "none, right", RTE_MBUF_F_RX_IP_CKSUM_NONE, true, false, REASON_QPN_UNKNOWN },
	{ "none, wrong", RTE_MBUF_F_RX_IP_CKSUM_NONE, true, true, REASON_IP_CHECKSUM },
};

Test(rx, what_the_port_says_of_the_header_checksum)
{
	rig = rig_open();
	rig->engine.port = &port;
	rig->engine.lcore->queue = 0;
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		rig->engine.asks_port_for_sums = rows[i].asked;
		cr_expect_eq(arrive(rows[i].said, rows[i].spoilt, rows[i].why), 1, "%s is not %s",
			     rows[i].what, reason_name(rows[i].why));
	}
	rig->engine.port = NULL;
	rig_close(rig);
}
