/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of a story: those that pass or are expected, and those made by hand. */
#include "story_sides.h"
#include "transport/qp.h"

static bool next(struct side *s)
{
	bool any = node_next(s->q, story_clock(), &s->packet, s->payload);

	cr_assert_eq(s->node.fault[0], '\0', "%s: %s", s->node.name, s->node.fault);
	if (!any)
		return false;
	s->packet.src_gid = story_gid(s);
	s->packet.dst_gid = story_gid(s->peer);
	if (story_type(s) != QP_TYPE_RAW_PACKET)
		cr_assert_eq(s->packet.dest_qpn, s->peer->q->caps.qpn, "%s: destination QP %x",
			     s->node.name, s->packet.dest_qpn);
	if (!story_chosen.hold_sent)
		node_sent(s->q, &s->packet, story_clock());
	return true;
}

const struct packet *expect_packet(struct side *s, const char *name, uint32_t psn)
{
	const struct packet *p = &s->packet;

	cr_assert(next(s), "%s sends nothing, %s %06x was expected", s->node.name, name, psn);
	cr_assert(strcmp(opcode_table[p->opcode].name, name) == 0 && p->psn == (psn & PSN_MASK),
		  "%s sends %s %06x (syndrome %02x), %s %06x was expected", s->node.name,
		  opcode_table[p->opcode].name, p->psn, p->syndrome, name, psn & PSN_MASK);
	return p;
}

void grh_of(struct side *s, uint8_t grh[GRH])
{
	for (uint32_t i = 0; i < GRH; i++)
		grh[i] = (uint8_t)(i * 3 + (s == a ? 1 : 128));
}

/* A datagram arrives with its network header before it. */
static enum reason arrive(struct side *s, const struct packet *packet)
{
	static uint8_t datagram[GRH + NODE_PAYLOAD];
	struct packet with_header = *packet;
	const struct packet *p = &with_header;
	enum reason r;

	with_header.selective =
		packet->selective && (story_chosen.selective || story_chosen.negotiates);
	if (story_type(s) == QP_TYPE_UD) {
		grh_of(s->peer, datagram);
		if (p->payload_length > 0)
			memcpy(datagram + GRH, p->payload, p->payload_length);
		with_header.payload = datagram + GRH;
	}
	r = node_received(s->q, p, story_clock());

	cr_assert_eq(s->node.fault[0], '\0', "%s: %s", s->node.name, s->node.fault);
	return r;
}

const struct packet *pass(struct side *s, const char *name, uint32_t psn)
{
	const struct packet *p = expect_packet(s, name, psn);

	arrive(s->peer, p);
	return p;
}

const struct packet *expect_frame(struct side *s)
{
	cr_assert(next(s), "%s sends no frame", s->node.name);
	return &s->packet;
}

const struct packet *pass_frame(struct side *s)
{
	arrive(s->peer, expect_frame(s));
	return &s->packet;
}

void sent(struct side *s, const struct packet *p)
{
	node_sent(s->q, p, story_clock());
}

void unsent(struct side *s, const struct packet *p)
{
	node_unsent(s->q, p, story_clock());
}

void gather_failed(struct side *s, const struct packet *p)
{
	node_gather_failed(s->q, p, story_clock());
}

static void expect_answer(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const struct packet *p = expect_packet(s, story_chosen.xrc ? "XRC ACK" : "RC ACK", psn);
	uint8_t class = p->syndrome & SYNDROME_CLASS;

	if (syndrome == SYNDROME_ACK)
		cr_assert_eq(class, SYNDROME_ACK, "syndrome %02x is not an ACK", p->syndrome);
	else
		cr_assert_eq(p->syndrome, syndrome, "syndrome %02x, %02x was expected", p->syndrome,
			     syndrome);
	cr_assert_eq(p->msn, msn, "MSN %u, %u was expected", p->msn, msn);
}

void expect_ack(struct side *s, uint32_t psn, uint32_t msn)
{
	expect_answer(s, SYNDROME_ACK, psn, msn);
}

void expect_nak(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	expect_answer(s, syndrome, psn, msn);
}

void pass_ack(struct side *s, uint32_t psn, uint32_t msn)
{
	expect_ack(s, psn, msn);
	arrive(s->peer, &s->packet);
}

const struct packet *expect_selection(struct side *s, uint32_t next, uint32_t count,
				      const uint32_t psn[])
{
	const struct packet *p = expect_packet(s, "SELECTIVE ACK", next - 1);
	uint64_t wanted[ARRAY_SIZE(p->selection)] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = (psn[i] - next) & PSN_MASK;

		wanted[n / 64] |= UINT64_C(1) << (n % 64);
	}
	cr_assert_arr_eq(p->selection, wanted, sizeof(wanted), "%lx ..., %lx ... was expected",
			 p->selection[0], wanted[0]);
	return p;
}

void deliver(struct side *s)
{
	arrive(s->peer, &s->packet);
}

void pass_nak(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	expect_nak(s, syndrome, psn, msn);
	arrive(s->peer, &s->packet);
}

const struct key_operation *expect_operation(struct side *s)
{
	cr_assert_null(qp_operation(s->q->core), "%s is still at the last operation", s->node.name);
	expect_silence(s);
	cr_assert_not_null(qp_operation(s->q->core), "%s has no operation", s->node.name);
	return qp_operation(s->q->core);
}

void operate(struct side *s, enum work_status status)
{
	cr_assert(node_operate(s->q, status, story_clock()), "%s has no operation", s->node.name);
}

void expect_silence(struct side *s)
{
	if (next(s))
		cr_assert_fail("%s sends %s %06x, silence was expected", s->node.name,
			       opcode_table[s->packet.opcode].name, s->packet.psn);
}

uint32_t exchange(void)
{
	uint32_t packets = 0, before;

	do {
		before = packets;
		for (; next(a); packets++)
			arrive(b, &a->packet);
		for (; next(b); packets++)
			arrive(a, &b->packet);
		cr_assert_lt(packets, 100000, "the exchange does not end");
	} while (packets != before);
	return packets;
}

enum reason story_inject(struct side *s, struct packet *p)
{
	static uint8_t payload[NODE_PAYLOAD];

	if (story_chosen.xrc && opcode_table[p->opcode].service == SERVICE_RC)
		p->opcode |= OPCODE(SERVICE_XRC, 0);
	p->src_gid = story_gid(s->peer);
	p->dst_gid = story_gid(s);
	if (p->qkey == 0)
		p->qkey = QKEY;
	if (p->payload == NULL)
		p->payload = payload;
	if (p->pad == 0)
		p->pad = (uint8_t)(-p->payload_length & 3);
	for (uint32_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(0xe0 + i);
	return arrive(s, p);
}

void settle(struct side *s, bool ok)
{
	cr_assert_neq(s->q->copy_head, s->q->copy_tail, "%s has no copy under way", s->node.name);
	node_settle_one(s->q, ok, story_clock());
}
