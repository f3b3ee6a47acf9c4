/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer that goes back, as Linux's rxe is meant to: after a loss, an RNR NAK or its timer it begins
 * again at the first packet that was not acknowledged, often in the middle of a message. Packets and
 * answers are lost, repeated and overtake each other, and receive requests come late. No request is
 * invalid whatever happens: each message arrives once, in its order, as it was sent.
 */
#include "sim/seeds.h"
#include "story/story.h"
#include "transport/qp.h"

#define MESSAGES 24u
#define MOST	 40u /* packets of a message */
#define ROOM	 0x4000u /* where a message lands */
#define PLACES	 8u
#define WAY	 96u /* packets on their way */
#define UNACKED	 64u /* ... and that nobody acknowledged, at most */

struct sending {
	uint8_t opb[3]; /* of its FIRST, LAST, ONLY */
	bool write, consumes;
	uint32_t length, psn, packets, receive;
};

struct peer {
	struct prng dice;
	struct sending message[MESSAGES];
	uint32_t end, una, nxt; /* PSNs counted from A_PSN */
	uint32_t way[WAY], on_way;
	uint32_t posted, received, consuming; /* receive requests, completions, messages with one */
	uint32_t checked; /* messages that b took */
	nanotime retry_at;
	double loss, overtake, twice, spurious;
	bool repeats; /* goes on behind its last packet, although later ones are acknowledged */
	uint64_t seed;
};

static uint8_t octet_of(uint32_t message, uint32_t offset)
{
	return (uint8_t)(message * 37 + offset * 7 + (offset >> 8) * 31);
}

static uint32_t length_of(struct prng *dice)
{
	uint32_t n = prng_between(dice, 1, 4);

	switch (prng_below(dice, 6)) {
	case 0:
		return prng_below(dice, 2);
	case 1:
		return n * MTU;
	case 2:
		return n * MTU + 1;
	case 3:
		return n * MTU - 1;
	default:
		return prng_between(dice, 1, MOST * MTU);
	}
}

static void plan(struct peer *p)
{
	static const struct sending kind[] = {
		{ { OPB_SEND_FIRST, OPB_SEND_LAST, OPB_SEND_ONLY }, .consumes = true },
		{ { OPB_SEND_FIRST, OPB_SEND_LAST_IMM, OPB_SEND_ONLY_IMM }, .consumes = true },
		{ { OPB_WRITE_FIRST, OPB_WRITE_LAST, OPB_WRITE_ONLY }, .write = true },
		{ { OPB_WRITE_FIRST, OPB_WRITE_LAST_IMM, OPB_WRITE_ONLY_IMM },
		  .write = true,
		  .consumes = true },
	};

	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct sending *m = &p->message[i];

		*m = kind[prng_below(&p->dice, ARRAY_SIZE(kind))];
		m->length = length_of(&p->dice);
		m->packets = MAX_OF(1u, (m->length + MTU - 1) / MTU);
		m->psn = p->end;
		m->receive = p->consuming;
		p->consuming += m->consumes;
		p->end += m->packets;
	}
}

static const struct sending *sending_at(const struct peer *p, uint32_t n)
{
	const struct sending *m = p->message;

	while (n >= m->psn + m->packets)
		m++;
	return m;
}

static const struct sending *receiver(const struct peer *p, uint32_t receive)
{
	const struct sending *m = p->message;

	while (!m->consumes || m->receive != receive)
		m++;
	return m;
}

static struct packet packet_of(const struct peer *p, uint32_t n, uint8_t *payload)
{
	static const uint8_t middle[] = { OPB_SEND_MIDDLE, OPB_WRITE_MIDDLE };
	const struct sending *m = sending_at(p, n);
	uint32_t at = n - m->psn, left = m->length - at * MTU;
	bool first = at == 0, last = at + 1 == m->packets;
	uint8_t opb = first && last ? m->opb[2]
		      : first	    ? m->opb[0]
		      : last	    ? m->opb[1]
				    : middle[m->write];
	struct packet packet = { .opcode = OPCODE(SERVICE_RC, opb),
				 .psn = psn_add(A_PSN, n),
				 .pkey = 0xffff,
				 .dest_qpn = B_QPN,
				 .ack_req = last || n % 16 == 15,
				 .va = BASE + (uint32_t)(m - p->message) % PLACES * ROOM,
				 .rkey = b->key,
				 .dma_length = m->length,
				 .payload = payload,
				 .payload_length = last ? left : MTU };

	packet.pad = (uint8_t)(-packet.payload_length & 3);
	packet.src_gid = attributes_of(b).path.dgid;
	packet.dst_gid = attributes_of(b).path.sgid;
	for (uint32_t i = 0; i < packet.payload_length; i++)
		payload[i] = octet_of((uint32_t)(m - p->message), at * MTU + i);
	return packet;
}

static void send(const struct peer *p, uint32_t n)
{
	uint8_t payload[MTU];
	struct packet packet = packet_of(p, n, payload);
	enum reason why = node_received(b->q, &packet, now + ms(1000));

	cr_assert_eq(b->node.fault[0], '\0', "seed %lu: %s", p->seed, b->node.fault);
	cr_assert_eq(qp_state(b->q->core), QP_STATE_RTS, "seed %lu: packet %u (%s): %s", p->seed, n,
		     opcode_table[packet.opcode].name, reason_text(why));
}

static void expect_octets(const struct peer *p, const struct sending *m, uint32_t offset)
{
	for (uint32_t i = 0; i < m->length; i++)
		cr_assert_eq(*octets(b, offset + i), octet_of((uint32_t)(m - p->message), i),
			     "seed %lu: message %u: octet %u", p->seed, (uint32_t)(m - p->message),
			     i);
}

/* What b has taken is there. */
static void look(struct peer *p)
{
	uint32_t expected = (b->q->core->resp.expected_psn - A_PSN) & PSN_MASK;
	struct node_completion c;

	for (; p->checked < MESSAGES; p->checked++) {
		const struct sending *m = &p->message[p->checked];

		if (m->psn + m->packets > expected)
			break;
		/* A kept packet may let several messages go on, also one that writes there again. */
		if (m->write && (p->checked + PLACES >= MESSAGES || m[PLACES].psn >= expected))
			expect_octets(p, m, p->checked % PLACES * ROOM);
	}
	while (node_take(b->q, &c)) {
		const struct sending *m = receiver(p, p->received);

		cr_assert_eq(c.c.status, STATUS_SUCCESS, "seed %lu: %s", p->seed,
			     reason_text(c.c.vendor_err));
		cr_assert_eq(c.c.wr_id, p->received, "seed %lu", p->seed);
		cr_assert_eq(c.c.byte_len, m->length, "seed %lu", p->seed);
		if (!m->write)
			expect_octets(p, m, LANDS + p->received % PLACES * ROOM);
		p->received++;
	}
}

static void post_late(struct peer *p)
{
	const struct sending *m;
	struct work_sge sge = { .lkey = b->key };

	if (p->posted == p->consuming || p->posted - p->received >= 3)
		return;
	m = receiver(p, p->posted);
	sge.addr = BASE + LANDS + p->posted % PLACES * ROOM;
	sge.length = (m->write ? 0 : m->length) +
		     (prng_below(&p->dice, 2) ? 0 : prng_below(&p->dice, MTU));
	cr_assert(node_post_receive(b->q, p->posted++, &sge, sge.length > 0));
}

static void go_back(struct peer *p)
{
	p->nxt = p->una;
	p->retry_at = now + ms(1);
}

/* All before packet n is acknowledged: b has it. */
static void acknowledged(struct peer *p, uint32_t n)
{
	uint32_t expected = (b->q->core->resp.expected_psn - A_PSN) & PSN_MASK;

	cr_assert_leq(n, expected, "seed %lu: %u packets are acknowledged, %u have come", p->seed,
		      n, expected);
	p->una = MAX_OF(p->una, n);
}

static void answer(struct peer *p)
{
	struct packet r;
	uint32_t n;

	if (!node_next(b->q, now + ms(1000), &r, b->payload))
		return;
	node_sent(b->q, &r, now + ms(1000));
	if (prng_chance(&p->dice, p->loss))
		return;
	n = (r.psn - A_PSN) & PSN_MASK;
	if (r.syndrome == SYNDROME_NAK_SEQUENCE) {
		acknowledged(p, n);
		if (prng_below(&p->dice, 4)) /* not twice, says rxe */
			go_back(p);
	} else if ((r.syndrome & SYNDROME_CLASS) == SYNDROME_RNR) {
		acknowledged(p, n);
		p->nxt = prng_below(&p->dice, 2) ? p->una : p->nxt; /* rxe sends on meanwhile */
		p->retry_at = now + us(prng_below(&p->dice, 300));
	} else {
		cr_assert_eq(r.syndrome & SYNDROME_CLASS, SYNDROME_ACK, "seed %lu: syndrome %x",
			     p->seed, r.syndrome);
		acknowledged(
			p, (n + 1) & PSN_MASK); /* the PSN before the first one is 0xffffff away */
		p->retry_at = now + ms(1);
	}
	if (!p->repeats)
		p->nxt = MAX_OF(p->nxt, p->una);
}

static void deliver_one(struct peer *p)
{
	uint32_t i, n;

	if (p->on_way == 0)
		return;
	i = prng_chance(&p->dice, p->overtake) ? prng_below(&p->dice, MIN_OF(p->on_way, 6u)) : 0;
	n = p->way[i];
	if (!prng_chance(&p->dice, p->twice)) {
		memmove(p->way + i, p->way + i + 1, (p->on_way - i - 1) * sizeof(p->way[0]));
		p->on_way--;
	}
	send(p, n);
	look(p);
}

static void step(struct peer *p)
{
	switch (prng_below(&p->dice, 8)) {
	case 0:
	case 1:
	case 2:
		if (p->nxt == p->end || (int32_t)(p->nxt - p->una) >= (int32_t)UNACKED ||
		    p->on_way == WAY)
			break;
		if (!prng_chance(&p->dice, p->loss))
			p->way[p->on_way++] = p->nxt;
		p->nxt++;
		break;
	case 3:
	case 4:
	case 5:
		deliver_one(p);
		break;
	case 6:
		answer(p);
		break;
	default:
		if (prng_below(&p->dice, 6) == 0)
			post_late(p);
	}
	at(now + us(prng_below(&p->dice, 8)));
	if (now >= p->retry_at || prng_chance(&p->dice, p->spurious))
		go_back(p);
}

static void converse(uint64_t seed)
{
	struct peer *p = &(struct peer){ .seed = seed, .retry_at = ms(1) };
	uint32_t steps = 0;

	if (seed > 1) {
		node_free(&a->node);
		node_free(&b->node);
	}
	story(.recovery = seed % 4 != 0, .min_rnr_timer = 1);
	prng_seed(&p->dice, seed);
	p->loss = 0.01 * prng_below(&p->dice, 6);
	p->overtake = 0.1 * prng_below(&p->dice, 3);
	p->twice = 0.02 * prng_below(&p->dice, 3);
	p->repeats = prng_below(&p->dice, 2);
	p->spurious = 0.002 * prng_below(&p->dice, 2);
	plan(p);
	while (p->una < p->end || p->received < p->consuming) {
		step(p);
		cr_assert_lt(++steps, 200000, "seed %lu: %u of %u packets, %u of %u receives", seed,
			     p->una, p->end, p->received, p->consuming);
	}
	cr_assert_eq(p->checked, MESSAGES);
}

Test(restart, a_peer_that_goes_back_in_the_middle_of_messages, .timeout = 300)
{
	for (uint64_t i = 1; i <= SEEDS(400); i++)
		converse(i);
}
