/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/capture.h"

#include "base/bits.h"

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

	for (uint32_t i = 0; i < n; i++) {
		record.whole = m[i]->pkt_len;
		record.length = MIN_OF(record.whole, c->snap);
		copy_one(&c->ring[l->index], m[i], &record);
	}
}
