/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repeated READs and atomics (IBTA 9.4.4, 9.4.5, C9-105). A READ is executed again from where the
 * repetition begins, its key checked anew when the data is gathered; an atomic is not: what it
 * returned is returned again. Without its record nothing is known, and nothing is answered.
 */
#include "base/bits.h"
#include "transport/kind.h"
#include "transport/respond.h"

/* The youngest record whose PSNs hold this one, among those that are remembered. */
static struct record *record_of(const struct qp *qp, uint32_t psn, uint32_t *index)
{
	const struct responder *r = &qp->resp;

	/* One that was never written has no packets. */
	for (uint32_t i = 1; i <= qp->max_dest_rd_atomic; i++) {
		struct record *rec = record_at(r, r->record_head - i);

		*index = r->record_head - i;
		if (psn_within(psn, rec->psn, rec->packets))
			return rec;
	}
	return NULL;
}

/* The same range or the end of it, at the PSN where it lies; no sum that could wrap. */
static bool read_matches(const struct qp *qp, const struct record *rec, const struct packet *p)
{
	uint32_t skipped = (p->psn - rec->psn) & PSN_MASK;
	uint64_t offset = p->va - rec->va; /* wraps to something huge below rec->va */

	if (p->dma_length == 0 || rec->length == 0)
		return p->dma_length == rec->length;
	return p->rkey == rec->rkey && range_inside(offset, p->dma_length, rec->length) &&
	       packets_of(qp, p->dma_length) <= rec->packets - skipped;
}

enum reason duplicate_received(struct qp *qp, const struct packet *p)
{
	struct responder *r = &qp->resp;
	uint8_t kind = opcode_table[p->opcode].kind;
	uint32_t index = 0;
	struct record *rec = record_of(qp, p->psn, &index);

	if (rec == NULL || rec->kind != kind ||
	    (kind == KIND_READ_REQUEST && !read_matches(qp, rec, p)))
		return REASON_DUPLICATE_UNKNOWN;
	rec->repeated = !rec->owed || rec->repeated;
	rec->owed = true;
	rec->replied = 0;
	rec->reply_psn = p->psn;
	rec->reply_va = p->va;
	rec->reply_length = kind == KIND_READ_REQUEST ? p->dma_length : 0;
	if ((int32_t)(index - r->record_owed) < 0)
		r->record_owed = index;
	return REASON_DUPLICATE;
}
