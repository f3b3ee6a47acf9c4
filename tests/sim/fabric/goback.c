/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "goback.h"
#include "transport/psn.h"
#include "wire/header.h"
#include "wire/opcode.h"

#define RXE_UNACKNOWLEDGED 128u
#define RXE_ASKS	   64u
#define HARDWARE_WINDOW	   4096u
#define TRIES		   7u
#define CNP_EVERY	   (50 * TIME_US)

void goback_init(struct goback *g, const struct goback_config *is)
{
	*g = (struct goback){ .is = *is,
			      .una = is->psn,
			      .nxt = is->psn,
			      .top = is->psn,
			      .end = is->psn,
			      .expected = is->psn,
			      .packets = MAX_OF(1u, (is->size + is->mtu - 1) / is->mtu),
			      .window = is->dcqcn > 0 ? HARDWARE_WINDOW : RXE_UNACKNOWLEDGED,
			      .tries = TRIES,
			      .retry_at = TIME_NEVER };
	dcqcn_init(&g->law, is->dcqcn);
}

void goback_posted(struct goback *g)
{
	g->end += g->packets;
}

static bool has_answer(const struct goback *g)
{
	return g->answer_due || g->cnp_due;
}

static bool has_request(const struct goback *g)
{
	return !g->failed && g->nxt != g->end && g->nxt - g->una < g->window;
}

bool goback_has_packet(const struct goback *g, nanotime now)
{
	return has_answer(g) || (has_request(g) && g->paced_until <= now);
}

static void answer_next(struct goback *g, struct packet *p)
{
	if (g->cnp_due) {
		g->cnp_due = false;
		g->cnps++;
		p->opcode = OPCODE_CNP;
		p->becn = true;
		return;
	}
	g->answer_due = false;
	p->opcode = OPCODE(SERVICE_RC, OPB_ACK);
	p->psn = (g->syndrome == SYNDROME_NAK_SEQUENCE ? g->expected : g->expected - 1) & PSN_MASK;
	p->syndrome = g->syndrome;
	p->msn = g->messages & PSN_MASK;
}

uint32_t goback_message(const struct goback *g, const struct packet *p, uint32_t *done)
{
	uint32_t n = g->una + (uint32_t)psn_distance(p->psn, g->una) - g->is.psn;

	*done = n % g->packets * g->is.mtu;
	return n / g->packets;
}

static void request_next(struct goback *g, nanotime now, struct packet *p)
{
	static const uint8_t opcode[2][2] = { { OPB_WRITE_MIDDLE, OPB_WRITE_LAST },
					      { OPB_WRITE_FIRST, OPB_WRITE_ONLY } };
	uint32_t at = (g->nxt - g->is.psn) % g->packets;
	bool last = at + 1 == g->packets;
	double octets;

	p->opcode = OPCODE(SERVICE_RC, opcode[at == 0][last]);
	p->psn = g->nxt & PSN_MASK;
	p->again = g->nxt != g->top;
	p->dma_length = g->is.size;
	p->payload_length = last ? g->is.size - at * g->is.mtu : g->is.mtu;
	g->again += p->again;
	g->nxt++;
	if ((int32_t)(g->nxt - g->top) > 0)
		g->top = g->nxt;
	p->ack_req = last || ++g->unasked >= RXE_ASKS || !has_request(g);
	if (p->ack_req)
		g->unasked = 0;
	if (g->retry_at == TIME_NEVER)
		g->retry_at = now + g->is.timeout;
	if (g->is.dcqcn <= 0)
		return;
	octets = p->payload_length + 80.0; /* with its headers */
	dcqcn_sent(&g->law, octets, now);
	g->paced_until =
		MAX_OF(now, g->paced_until) + (nanotime)(octets * 8e9 / dcqcn_rate(&g->law, now));
}

bool goback_next(struct goback *g, nanotime now, struct packet *p)
{
	if (!goback_has_packet(g, now))
		return false;
	*p = (struct packet){ .pkey = 0xffff, .dest_qpn = g->is.dest_qpn };
	if (has_answer(g))
		answer_next(g, p);
	else
		request_next(g, now, p);
	return true;
}

static void acknowledged(struct goback *g, uint32_t until, nanotime now)
{
	if ((int32_t)(until - g->una) <= 0)
		return;
	g->una = until;
	if ((int32_t)(g->nxt - g->una) < 0)
		g->nxt = g->una;
	g->completed = (g->una - g->is.psn) / g->packets;
	g->tries = TRIES;
	g->retry_at = g->una == g->top ? TIME_NEVER : now + g->is.timeout;
}

static void go_back(struct goback *g, nanotime now)
{
	if (g->nxt == g->una)
		return;
	g->nxt = g->una;
	g->retry_at = now + g->is.timeout;
}

static void answered(struct goback *g, const struct packet *p, nanotime now)
{
	uint32_t n = g->una + (uint32_t)psn_distance(p->psn, g->una);

	if ((int32_t)(n - g->top) >= 0)
		return; /* never sent */
	if (p->syndrome == SYNDROME_NAK_SEQUENCE) {
		acknowledged(g, n, now);
		if (n == g->una)
			go_back(g, now);
	} else if ((p->syndrome & SYNDROME_CLASS) == SYNDROME_ACK) {
		acknowledged(g, n + 1, now);
	} else if ((p->syndrome & SYNDROME_CLASS) != SYNDROME_RNR) {
		g->failed = true;
	}
}

static bool requested(struct goback *g, const struct packet *p, uint64_t *va)
{
	uint16_t flags = opcode_table[p->opcode].flags;
	uint32_t ahead = (p->psn - g->expected) & PSN_MASK;

	if (ahead != 0) {
		if (ahead >= 0x800000) { /* a duplicate */
			g->answer_due = true;
			g->syndrome = SYNDROME_ACK_NO_CREDITS;
		} else if (!g->nak_sent) {
			g->answer_due = true;
			g->syndrome = SYNDROME_NAK_SEQUENCE;
			g->nak_sent = true;
		}
		return false;
	}
	g->nak_sent = false;
	g->expected++;
	if (flags & OP_RETH)
		g->va = p->va;
	*va = g->va;
	g->va += p->payload_length;
	g->messages += (flags & OP_LAST) != 0;
	if (p->ack_req) {
		g->answer_due = true;
		g->syndrome = SYNDROME_ACK_NO_CREDITS;
	}
	return true;
}

bool goback_received(struct goback *g, const struct packet *p, nanotime now, uint64_t *va)
{
	const struct opcode_info *op = &opcode_table[p->opcode];

	if (op->kind == KIND_CNP) {
		if (g->is.dcqcn > 0)
			dcqcn_notified(&g->law, now);
		return false;
	}
	if (op->kind == KIND_ACK) {
		answered(g, p, now);
		return false;
	}
	if (op->kind != KIND_WRITE)
		return false;
	if (p->ecn == ECN_CE && g->is.dcqcn > 0 && g->cnp_at <= now) {
		g->cnp_due = true;
		g->cnp_at = now + CNP_EVERY;
	}
	return requested(g, p, va);
}

void goback_expired(struct goback *g, nanotime now)
{
	if (g->retry_at > now || g->failed)
		return;
	g->timeouts++;
	if (g->tries-- == 0) {
		g->failed = true;
		g->retry_at = TIME_NEVER;
		return;
	}
	g->nxt = g->una;
	g->retry_at = now + g->is.timeout;
}

nanotime goback_deadline(const struct goback *g, nanotime now)
{
	bool waits = has_request(g) && g->paced_until > now;

	return waits ? time_earlier(g->retry_at, g->paced_until) : g->retry_at;
}
