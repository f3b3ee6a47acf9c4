/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/capture/capture.h"

#include "base/bits.h"
#include "lcore/capture/trace.h"

static void copy_one(struct capture_ring *r, const struct rte_mbuf *m,
		     struct capture_record *record)
{
	uint32_t left = record->length;

	if (!capture_ring_begin(r, record))
		return;
	for (; m != NULL && left > 0; m = m->next) {
		uint32_t n = MIN_OF(left, (uint32_t)m->data_len);

		capture_ring_append(r, rte_pktmbuf_mtod(m, const void *), n);
		left -= n;
	}
	capture_ring_end(r);
}

void capture_copy(struct capture *c, struct lcore *l, struct rte_mbuf *const *m, uint32_t n,
		  enum capture_way way)
{
	struct capture_record record = { .at = clock_now(), .way = way };
	/*
	 * These acquires pair with the releases in cmd_capture.c and cmd_trace.c. The rings are
	 * complete before snap and trace are set.
	 */
	uint32_t snap = __atomic_load_n(&c->snap, __ATOMIC_ACQUIRE);
	struct trace *trace = __atomic_load_n(&c->trace, __ATOMIC_ACQUIRE);

	if (trace != NULL)
		trace_frames(trace, l->index, m, n, way, record.at);
	for (uint32_t i = 0; snap > 0 && i < n; i++) {
		record.whole = m[i]->pkt_len;
		record.length = MIN_OF(record.whole, snap);
		copy_one(&c->ring[l->index], m[i], &record);
	}
}
