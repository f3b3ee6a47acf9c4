/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/bits.h"
#include "host.h"
#include "sim/extent.h"
#include "transfer.h"

size_t transfer_memory(uint32_t size, uint32_t depth)
{
	return (size_t)depth * round_up(size + 2 * GUARD_OCTETS, 64);
}

uint32_t transfer_slot(const struct transfer *t, uint32_t first, uint32_t message)
{
	return first + message % t->depth * t->stride + GUARD_OCTETS;
}

static struct host *sink(const struct transfer *t)
{
	return t->opcode == WORK_RDMA_READ ? t->from : t->to;
}

static uint8_t *source_of(const struct transfer *t, uint32_t message)
{
	const struct host *h = t->opcode == WORK_RDMA_READ ? t->to : t->from;

	return h->node.memory + transfer_slot(t, t->source_at, message);
}

static uint8_t *sink_of(const struct transfer *t, uint32_t message)
{
	return sink(t)->node.memory + transfer_slot(t, t->sink_at, message);
}

static void post_receive(struct transfer *t)
{
	const struct work_sge sge = { TRANSFER_BASE +
					      transfer_slot(t, t->sink_at, t->received + t->depth),
				      t->size, t->sink_key };

	node_post_receive(t->in->q, t->received + t->depth, &sge, 1);
}

static void post(struct transfer *t, struct fabric *f)
{
	bool read = t->opcode == WORK_RDMA_READ;
	uint32_t n = t->posted++;
	uint64_t source = TRANSFER_BASE + transfer_slot(t, t->source_at, n);
	uint64_t to = TRANSFER_BASE + transfer_slot(t, t->sink_at, n);
	struct work_sge sge = { read ? to : source, t->size, read ? t->sink_key : t->source_key };
	struct send_work w = { .wr_id = n,
			       .opcode = t->opcode,
			       .flags = WORK_SIGNALED,
			       .num_sge = 1,
			       .remote_addr = read ? source : to,
			       .rkey = read ? t->source_key : t->sink_key };

	pattern_make(source_of(t, n), t->size, (uint64_t)t->number << 32 | n);
	t->posted_at[n % t->depth] = f->now;
	if (t->out->q == NULL)
		goback_posted(t->out->goback);
	else if (!node_post_send(t->out->q, &w, &sge, f->now))
		fabric_wrong(f, "transfer %u: the send window was open and then full", t->number);
}

/*
 * The message is in its place, and the octets beside it are unchanged. Its slot is made empty
 * again.
 */
static void check(struct transfer *t, struct fabric *f, uint32_t n)
{
	uint8_t *at = sink_of(t, n);
	uint8_t edge[GUARD_OCTETS];

	memset(edge, GUARD, sizeof(edge));
	if (memcmp(at, source_of(t, n), t->size) != 0)
		fabric_wrong(f, "transfer %u message %u: %u octets are not at the target",
			     t->number, n, t->size);
	memset(at, GUARD, t->size);
	if (memcmp(at - GUARD_OCTETS, edge, GUARD_OCTETS) != 0 ||
	    memcmp(at + t->size, edge, GUARD_OCTETS) != 0)
		fabric_wrong(f, "transfer %u message %u: octets beside it were written", t->number,
			     n);
}

static void completed(struct transfer *t, struct fabric *f)
{
	uint32_t n = t->completed++;

	if (t->opcode != WORK_SEND)
		check(t, f, n);
	else if (t->received == n)
		fabric_wrong(f, "transfer %u message %u: complete, but not received", t->number, n);
	if (measure_message(t->measure, t->posted_at[n % t->depth], f->now))
		t->octets += t->size;
	if (!t->stopped)
		post(t, f);
}

static void received(struct transfer *t, struct fabric *f, const struct completion *c)
{
	if (c->status != STATUS_SUCCESS)
		return; /* flushed: its queue pair failed, which is noticed elsewhere */
	if (c->wr_id != t->received || c->byte_len != t->size)
		fabric_wrong(f, "transfer %u: receive %llu of %u octets, but %u of %u was next",
			     t->number, (unsigned long long)c->wr_id, c->byte_len, t->received,
			     t->size);
	check(t, f, t->received);
	post_receive(t);
	t->received++;
}

/* The run goes on, to show what happens to the others. */
static void fail(struct transfer *t, const struct fabric *f, uint32_t status, const char *why)
{
	struct measure *m = t->measure;

	if (t->failed)
		return;
	t->failed = true;
	t->stopped = true;
	m->failed++;
	m->last_failure = f->now;
	if (t->out->q == NULL || m->first_failure[0] != '\0')
		return;
	snprintf(m->first_failure, sizeof(m->first_failure),
		 "transfer %u message %u at %.3f ms: status %u (%s)", t->number, t->completed,
		 (double)f->now / 1e6, status, why);
}

static void core_completions(struct transfer *t, struct fabric *f, struct endpoint *e)
{
	struct node_completion c;

	while (node_take(e->q, &c)) {
		if (c.from_receive)
			received(t, f, &c.c);
		else if (c.c.status != STATUS_SUCCESS)
			fail(t, f, c.c.status, reason_name(c.c.vendor_err));
		else if (c.c.wr_id != t->completed)
			fabric_wrong(f, "transfer %u: %llu completes, but %u was next", t->number,
				     (unsigned long long)c.c.wr_id, t->completed);
		else
			completed(t, f);
	}
}

void transfer_settle(struct transfer *t, struct fabric *f, struct endpoint *e)
{
	if (e->q != NULL) {
		core_completions(t, f, e);
	} else if (e == t->out) {
		while (t->completed != e->goback->completed)
			completed(t, f);
		if (e->goback->failed)
			fail(t, f, STATUS_RETRY_EXC_ERR, "go-back-N");
	}
}

void transfer_start(struct transfer *t, struct fabric *f)
{
	t->stride = (uint32_t)round_up(t->size + 2 * GUARD_OCTETS, 64);
	t->posted_at = calloc(t->depth, sizeof(*t->posted_at));
	if (t->posted_at == NULL)
		abort();
	t->out->transfer = t;
	t->in->transfer = t;
	for (uint32_t i = 0; t->opcode == WORK_SEND && i < t->depth; i++) {
		const struct work_sge sge = { TRANSFER_BASE + transfer_slot(t, t->sink_at, i),
					      t->size, t->sink_key };

		node_post_receive(t->in->q, i, &sge, 1);
	}
	for (uint32_t i = 0; i < t->depth; i++)
		post(t, f);
	host_touched(t->from, f, t->out);
}

void transfer_lose_peer(struct transfer *t)
{
	t->gone = t->stopped = t->in->gone = true;
}

bool transfer_done(const struct transfer *t)
{
	return t->failed || t->gone || (t->stopped && t->completed == t->posted);
}

void transfer_end(struct transfer *t, struct fabric *f)
{
	const uint8_t *first = sink(t)->node.memory + t->sink_at;
	size_t octets = (size_t)t->depth * t->stride;

	free(t->posted_at);
	if (t->failed || t->gone)
		return;
	if (!transfer_done(t))
		fabric_wrong(f, "transfer %u: %u of %u messages completed", t->number, t->completed,
			     t->posted);
	else if (first[0] != GUARD || memcmp(first, first + 1, octets - 1) != 0)
		fabric_wrong(f, "transfer %u: octets were written after its last message",
			     t->number);
}
