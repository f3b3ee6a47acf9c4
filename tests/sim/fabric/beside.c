/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "beside.h"
#include "host.h"
#include "sim/extent.h"
#include "transfer.h"
#include "wire/decode.h"

#define SALT UINT64_C(0x6265736964650000)

size_t beside_memory(uint32_t size)
{
	return (size_t)BESIDE_DEPTH * round_up(size + GRH_LENGTH + 2 * GUARD_OCTETS, 64);
}

static uint32_t slot(const struct beside *b, uint32_t first, uint32_t n)
{
	return first + n % BESIDE_DEPTH * b->stride + GUARD_OCTETS;
}

static void post_receive(struct beside *b)
{
	uint32_t n = b->receives++;
	const struct work_sge sge = { TRANSFER_BASE + slot(b, b->sink_at, n), GRH_LENGTH + b->size,
				      b->sink_key };

	node_post_receive(b->in->q, n, &sge, 1);
}

static void tick(struct event *e, struct fabric *f)
{
	struct beside *b = container_of_type(e, struct beside, tick);
	uint32_t n = b->posted;
	const struct work_sge sge = { TRANSFER_BASE + slot(b, b->source_at, n), b->size,
				      b->source_key };
	struct send_work w = { .wr_id = n,
			       .opcode = WORK_SEND_WITH_IMM,
			       .flags = WORK_SIGNALED,
			       .num_sge = 1,
			       .imm = n };

	if (b->stopped)
		return;
	fabric_at(f, &b->tick, f->now + b->every);
	if (n - b->completed == BESIDE_DEPTH)
		return; /* its port is slower than its rate */
	if (b->type == QP_TYPE_UD) {
		w.remote_qpn = b->in->q->caps.qpn;
		w.remote_qkey = ENDPOINT_QKEY;
	}
	pattern_make(b->from->node.memory + slot(b, b->source_at, n), b->size, SALT + n);
	if (!node_post_send(b->out->q, &w, &sge, f->now))
		fabric_wrong(f, "beside: the send window was open and then full");
	b->posted++;
	host_touched(b->from, f, b->out);
}

/* True once for each message. */
static bool is_new(struct beside *b, uint32_t n)
{
	bool before;

	if (n >= b->room) {
		uint32_t room = (uint32_t)round_up(2 * n + 64, 8);

		b->seen = realloc(b->seen, room / 8);
		if (b->seen == NULL)
			abort();
		memset(b->seen + b->room / 8, 0, (room - b->room) / 8);
		b->room = room;
	}
	before = b->seen[n / 8] >> n % 8 & 1;
	b->seen[n / 8] |= (uint8_t)(1u << n % 8);
	return !before;
}

static void arrived(struct beside *b, struct fabric *f, const struct completion *c)
{
	uint32_t skip = b->type == QP_TYPE_UD ? GRH_LENGTH : 0, n = c->imm;
	uint8_t *at = b->to->node.memory + slot(b, b->sink_at, (uint32_t)c->wr_id);

	pattern_make(b->scratch, b->size, SALT + n);
	if (c->status != STATUS_SUCCESS || c->byte_len != b->size + skip || n >= b->posted)
		fabric_wrong(f, "beside: message %u of %u octets with status %u", n, c->byte_len,
			     c->status);
	else if (!is_new(b, n))
		fabric_wrong(f, "beside: message %u arrives twice", n);
	else if (b->ordered && b->arrived > 0 && n <= b->newest)
		fabric_wrong(f, "beside: message %u comes after %u", n, b->newest);
	else if (memcmp(at + skip, b->scratch, b->size) != 0)
		fabric_wrong(f, "beside: message %u arrives with wrong octets", n);
	b->newest = n;
	b->arrived++;
	post_receive(b);
}

void beside_settle(struct beside *b, struct fabric *f, struct endpoint *e)
{
	struct node_completion c;

	while (node_take(e->q, &c)) {
		if (c.from_receive)
			arrived(b, f, &c.c);
		else if (c.c.status != STATUS_SUCCESS || c.c.wr_id != b->completed)
			fabric_wrong(f,
				     "beside: request %llu completes with status %u, %u was next",
				     (unsigned long long)c.c.wr_id, c.c.status, b->completed);
		else
			b->completed++;
	}
}

void beside_start(struct beside *b, struct fabric *f)
{
	b->stride = (uint32_t)(beside_memory(b->size) / BESIDE_DEPTH);
	b->scratch = malloc(b->size + 8);
	if (b->scratch == NULL)
		abort();
	for (uint32_t i = 0; i < BESIDE_DEPTH; i++)
		post_receive(b);
	b->tick.happen = tick;
	fabric_at(f, &b->tick, f->now);
}

void beside_end(struct beside *b, struct fabric *f)
{
	free(b->scratch);
	free(b->seen);
	if (b->completed != b->posted)
		fabric_wrong(f, "beside: %u of %u requests completed", b->completed, b->posted);
}
