/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

static void add(struct rates *sum, const struct rates *r)
{
	sum->sends += r->sends;
	sum->receives += r->receives;
}

/* ---- orders ---- */

static int by_pid(const void *a_, const void *b_)
{
	const struct ranked_program *a = a_, *b = b_;

	return a->program.pid < b->program.pid ? -1 : a->program.pid > b->program.pid;
}

static int by_peer(const void *a_, const void *b_)
{
	const struct ranked_qp *a = a_, *b = b_;

	return memcmp(&a->qp.peer, &b->qp.peer, sizeof(a->qp.peer));
}

/* The busiest first. */
static int compare_rates(const struct rates *a, const struct rates *b)
{
	double x = a->sends + a->receives, y = b->sends + b->receives;

	return x > y ? -1 : x < y;
}

/* Equal rows, above all those without traffic, keep their places from look to look. */
static int by_rate_of_qp(const void *a_, const void *b_)
{
	const struct ranked_qp *a = a_, *b = b_;
	int order = compare_rates(&a->rates, &b->rates);

	return order != 0 ? order : a->qp.qpn < b->qp.qpn ? -1 : a->qp.qpn > b->qp.qpn;
}

static int by_rate_of_program(const void *a_, const void *b_)
{
	const struct ranked_program *a = a_, *b = b_;
	int order = compare_rates(&a->rates, &b->rates);

	return order != 0 ? order : by_pid(a, b);
}

static int by_rate_of_peer(const void *a_, const void *b_)
{
	const struct ranked_peer *a = a_, *b = b_;
	int order = compare_rates(&a->rates, &b->rates);

	return order != 0 ? order : memcmp(&a->gid, &b->gid, sizeof(a->gid));
}

/* qsort() must not get a null pointer, which an empty table may be. */
static void sort(void *table, uint32_t n, size_t size, int (*order)(const void *, const void *))
{
	if (n > 1)
		qsort(table, n, size, order);
}

/* ---- tables ---- */

static void fill_qps(struct ranks *r, const struct look *l, double seconds)
{
	for (uint32_t i = 0; i < l->qps; i++) {
		struct ranked_qp *q = &r->qp[r->qps++];

		q->qp = l->qp[i].qp;
		if (seconds > 0) {
			q->rates.sends = (double)l->qp[i].sent / seconds;
			q->rates.receives = (double)l->qp[i].received / seconds;
		}
		add(&r->all, &q->rates);
	}
}

static void fill_programs(struct ranks *r, const struct listed_program *program, uint32_t programs)
{
	for (uint32_t i = 0; i < programs; i++)
		r->program[r->programs++].program = program[i];
	sort(r->program, r->programs, sizeof(*r->program), by_pid);
	for (uint32_t i = 0; i < r->qps && r->programs > 0; i++) {
		struct ranked_program key = { .program.pid = r->qp[i].qp.pid }, *p;

		p = bsearch(&key, r->program, r->programs, sizeof(key), by_pid);
		if (p != NULL)
			add(&p->rates, &r->qp[i].rates);
	}
}

static void fill_peers(struct ranks *r)
{
	static const struct gid none;

	sort(r->qp, r->qps, sizeof(*r->qp), by_peer);
	for (uint32_t i = 0; i < r->qps; i++) {
		const struct ranked_qp *q = &r->qp[i];
		struct ranked_peer *last = r->peers > 0 ? &r->peer[r->peers - 1] : NULL;

		if (memcmp(&q->qp.peer, &none, sizeof(none)) == 0)
			continue;
		if (last == NULL || memcmp(&last->gid, &q->qp.peer, sizeof(none)) != 0) {
			last = &r->peer[r->peers++];
			*last = (struct ranked_peer){ .gid = q->qp.peer, .way = q->qp.way };
		}
		last->qps++;
		add(&last->rates, &q->rates);
	}
}

bool ranks_make(struct ranks *r, const struct look *l, double seconds,
		const struct listed_program *program, uint32_t programs)
{
	memset(r, 0, sizeof(*r));
	r->qp = calloc(MAX_OF(l->qps, 1u), sizeof(*r->qp));
	r->peer = calloc(MAX_OF(l->qps, 1u), sizeof(*r->peer));
	r->program = calloc(MAX_OF(programs, 1u), sizeof(*r->program));
	if (r->qp == NULL || r->peer == NULL || r->program == NULL) {
		ranks_free(r);
		return false;
	}
	fill_qps(r, l, seconds);
	fill_programs(r, program, programs);
	fill_peers(r);
	sort(r->qp, r->qps, sizeof(*r->qp), by_rate_of_qp);
	sort(r->program, r->programs, sizeof(*r->program), by_rate_of_program);
	sort(r->peer, r->peers, sizeof(*r->peer), by_rate_of_peer);
	return true;
}

void ranks_free(struct ranks *r)
{
	free(r->qp);
	free(r->peer);
	free(r->program);
	memset(r, 0, sizeof(*r));
}
