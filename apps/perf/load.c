/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The load: every queue pair keeps `depth` requests outstanding. Requests are posted `post` at a
 * time with the last one signalled, so one completion frees `post` of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "engine/uroce.h"
#include "load.h"
#include "perf.h"
#include "rounds.h"

#define POLL_BATCH 64
#define PATIENCE   (20 * TIME_S) /* for a completion, */
#define SLOWLY	   20u /* ... and so many ns more for each octet that is under way */

static const enum ibv_wr_opcode wr_opcode[PERF_OPERATIONS] = {
	[PERF_WRITE] = IBV_WR_RDMA_WRITE,
	[PERF_READ] = IBV_WR_RDMA_READ,
	[PERF_SEND] = IBV_WR_SEND,
	[PERF_ATOMIC] = IBV_WR_ATOMIC_FETCH_AND_ADD,
};

/* The list of requests for one call; all queue pairs post the same list. */
struct batch {
	struct ibv_send_wr *wr;
	struct ibv_sge *sge;
};

static int batch_make(struct batch *b, struct perf_pair *p, enum perf_operation op, uint32_t size)
{
	uint32_t n = p->options->post;

	b->wr = calloc(n, sizeof(*b->wr));
	b->sge = calloc(n, sizeof(*b->sge));
	if (b->wr == NULL || b->sge == NULL)
		return 1;
	for (uint32_t i = 0; i < n; i++) {
		struct ibv_send_wr *wr = &b->wr[i];

		b->sge[i] = (struct ibv_sge){ (uintptr_t)p->a.buffer, size, p->a.mr->lkey };
		wr->sg_list = &b->sge[i];
		wr->num_sge = 1;
		wr->opcode = wr_opcode[op];
		wr->next = i + 1 < n ? wr + 1 : NULL;
		wr->send_flags = i + 1 < n ? 0 : IBV_SEND_SIGNALED;
		if (op == PERF_ATOMIC) {
			wr->wr.atomic.remote_addr = p->a.far_address;
			wr->wr.atomic.rkey = p->a.far_key;
			wr->wr.atomic.compare_add = 1;
		} else {
			wr->wr.rdma.remote_addr = p->a.far_address;
			wr->wr.rdma.rkey = p->a.far_key;
		}
	}
	return 0;
}

static void batch_free(struct batch *b)
{
	free(b->wr);
	free(b->sge);
}

static int post(struct perf_pair *p, struct batch *b, uint32_t qp)
{
	struct ibv_send_wr *bad;
	int err;

	for (uint32_t i = 0; i < p->options->post; i++)
		b->wr[i].wr_id = qp;
	err = ibv_post_send(p->a.qp[qp], b->wr, &bad);
	if (err != 0)
		fprintf(stderr, "uroce perf: ibv_post_send: %s\n", strerror(err));
	return err;
}

int receives_post(struct perf_pair *p, uint32_t qp, uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)p->b.buffer, (uint32_t)p->b.mr->length, p->b.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = qp, .sg_list = &sge, .num_sge = 1 }, *bad;

	for (uint32_t i = 0; i < n; i++) {
		int err = ibv_post_recv(p->b.qp[qp], &wr, &bad);

		if (err != 0) {
			fprintf(stderr, "uroce perf: ibv_post_recv: %s\n", strerror(err));
			return err;
		}
	}
	return 0;
}

static int completion_bad(const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_SUCCESS)
		return 0;
	fprintf(stderr, "uroce perf: completion: %s (%u)\n", ibv_wc_status_str(wc->status),
		wc->vendor_err);
	return 1;
}

int receives_turn(struct perf_pair *p)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(p->b.recv_cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++)
		if (completion_bad(&wc[i]) || receives_post(p, (uint32_t)wc[i].wr_id, 1))
			return -1;
	return n;
}

/*
 * Takes completions and, while the run goes on, posts `post` more requests for each. Returns how
 * many, or -1.
 */
static int completions_turn(struct perf_pair *p, struct batch *b, struct rounds *r, bool again)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(p->a.send_cq, POLL_BATCH, wc);

	for (int i = 0; i < n; i++) {
		if (completion_bad(&wc[i]))
			return -1;
		rounds_completed(r, (uint32_t)wc[i].wr_id);
		if (again && post(p, b, (uint32_t)wc[i].wr_id) != 0)
			return -1;
	}
	return n;
}

static int start(struct perf_pair *p, struct batch *b, uint32_t qps, uint64_t *outstanding)
{
	const struct perf_options *o = p->options;

	for (uint32_t q = 0; q < qps; q++) {
		for (uint32_t k = 0; k < o->depth / o->post; k++) {
			if (post(p, b, q) != 0)
				return 1;
			(*outstanding)++;
		}
	}
	return 0;
}

static int missing(const char *what, uint64_t count)
{
	fprintf(stderr, "uroce perf: %lu %s\n", count, what);
	return 1;
}

/* One look at both engines and their completions. Returns how many there were, or -1. */
static int turn(struct perf_pair *p, struct batch *b, enum perf_operation op, struct rounds *r,
		bool again)
{
	pair_poll(p);
	if (op == PERF_SEND && !p->far && receives_turn(p) < 0)
		return -1;
	return completions_turn(p, b, r, again);
}

/*
 * Keeps them busy for that time. A round is over when all that was under way as it began has arrived, or before.
 */
static int keep(struct perf_pair *p, struct batch *b, enum perf_operation op, struct rounds *r,
		nanotime time)
{
	nanotime patience =
		PATIENCE + (nanotime)SLOWLY * b->sge->length * p->options->depth * r->qps;
	nanotime heard = time_now(), now;

	while (!rounds_enough(r, time)) {
		if (turn(p, b, op, r, true) < 0)
			return 1;
		now = time_now();
		if (rounds_at(r, now))
			heard = now;
		else if (now > heard + patience)
			return missing("queue pairs complete nothing", r->left);
	}
	return 0;
}

static int finish(struct perf_pair *p, struct batch *b, enum perf_operation op, struct rounds *r,
		  uint64_t outstanding)
{
	nanotime heard = time_now();

	while (outstanding > 0) {
		int n = turn(p, b, op, r, false);

		if (n < 0)
			return 1;
		outstanding -= (uint64_t)n;
		if (n > 0)
			heard = time_now();
		else if (time_now() > heard + PATIENCE)
			return missing("completions are missing", outstanding);
	}
	return 0;
}

static int run(struct perf_pair *p, struct batch *b, enum perf_operation op, struct rounds *r)
{
	nanotime time = (nanotime)(p->options->seconds * 1e9);
	uint64_t outstanding = 0;

	return start(p, b, r->qps, &outstanding) != 0 || keep(p, b, op, r, time) != 0 ||
	       finish(p, b, op, r, outstanding) != 0;
}

int load_run(struct perf_pair *p, enum perf_operation op, uint32_t size, uint32_t qps,
	     struct load_result *r)
{
	uint64_t sent, again, sent_by_then, again_by_then;
	struct rounds rounds;
	struct batch b = { NULL, NULL };
	int failed = 1;

	*r = (struct load_result){ .operation = op, .size = size, .qps = qps };
	pair_count(p, &sent, &again);
	if (rounds_begin(&rounds, qps) == 0 && batch_make(&b, p, op, size) == 0)
		failed = run(p, &b, op, &rounds);
	batch_free(&b);
	rounds_end(&rounds);
	r->messages = (rounds.last_done - rounds.first_done) * p->options->post;
	r->octets = r->messages * size;
	r->seconds = (double)(rounds.last_at - rounds.first_at) / 1e9;
	pair_count(p, &sent_by_then, &again_by_then);
	if (sent_by_then > sent)
		r->again = (double)(again_by_then - again) / (double)(sent_by_then - sent);
	return failed;
}

int write_once(struct perf_side *from, uint32_t at, uint32_t size)
{
	struct ibv_sge sge = { (uintptr_t)from->buffer + at, size, from->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags =
					  IBV_SEND_SIGNALED | (size <= 64 ? IBV_SEND_INLINE : 0) };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = from->far_address + at;
	wr.wr.rdma.rkey = from->far_key;
	return ibv_post_send(from->qp[0], &wr, &bad);
}

int completions_take(struct perf_side *s)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(s->send_cq, 1, &wc)) > 0)
		if (completion_bad(&wc))
			return 1;
	return n < 0;
}

/* Polls until the last octet of `to` is `mark`; takes the sender's completions meanwhile. */
static int await_octet(struct perf_pair *p, struct perf_side *from, const uint8_t *to, uint8_t mark)
{
	nanotime limit = time_now() + 10 * TIME_S;

	/* atomic: an engine's thread writes the octet */
	for (uint32_t spins = 0; __atomic_load_n(to, __ATOMIC_ACQUIRE) != mark; spins++) {
		pair_poll(p);
		/* an engine of another process may need this core: an empty poll tells it so */
		if (p->far && completions_take(from) != 0)
			return 1;
		if (spins % 4096 == 4095 && time_now() > limit) {
			fputs("uroce perf: a message of the ping-pong did not arrive\n", stderr);
			return 1;
		}
	}
	return completions_take(from);
}

/* One way and back. The other end answers by itself if it is another program's. */
static int round_trip(struct perf_pair *p, uint32_t size, uint8_t mark)
{
	const uint32_t there = 0, back = size;

	p->a.buffer[there + size - 1] = mark;
	if (!p->far)
		p->b.buffer[back + size - 1] = mark;
	if (write_once(&p->a, there, size) != 0)
		return 1;
	if (!p->far && (await_octet(p, &p->a, p->b.buffer + there + size - 1, mark) != 0 ||
			write_once(&p->b, back, size) != 0))
		return 1;
	return await_octet(p, p->far ? &p->a : &p->b, p->a.buffer + back + size - 1, mark);
}

int latency_run(struct perf_pair *p, uint32_t size, struct histogram *h)
{
	nanotime stop = time_now() + (nanotime)(p->options->seconds * 1e9);
	uint8_t mark = 0;

	histogram_init(h);
	p->a.buffer[2 * size - 1] = 0; /* not the first mark, which an earlier run may have left */
	for (uint32_t i = 0; time_now() < stop || h->count < PERF_TRIPS; i++) {
		nanotime begin = time_now();

		mark = (uint8_t)(mark + 1);
		if (round_trip(p, size, mark) != 0)
			return 1;
		if (i >= 100)
			histogram_add(h, (time_now() - begin) / 2);
	}
	return 0;
}
