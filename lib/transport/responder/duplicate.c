/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repeated READs and atomics (IBTA 9.4.4, 9.4.5, C9-105). A READ is executed again from where the
 * repetition begins; its key is checked anew when the data is gathered. An atomic is not executed
 * again: its first result is returned. Without a record nothing is answered.
 */
#include <assert.h>

#include "base/bits.h"
#include "transport/responder/duplicate.h"
#include "transport/requester/kind.h"
#include "transport/psn.h"

/* The index of the youngest remembered record whose PSNs include this one. */
static bool record_with(const struct responder *r, uint32_t psn, uint32_t *index)
{
	for (uint32_t i = 1; i <= r->remembered; i++) {
		const struct record *rec = record_at(r, r->record_head - i);

		*index = r->record_head - i;
		if (psn_within(psn, rec->psn, rec->packets)) /* one never written has no packets */
			return true;
	}
	return false;
}

/* The same range or the end of it, at its PSN; computed without a sum that could wrap. */
static bool read_matches(const struct qp *qp, const struct record *rec, const struct packet *p)
{
	uint32_t skipped = (p->psn - rec->psn) & PSN_MASK;
	uint64_t offset = p->va - rec->va; /* wraps to something huge below rec->va */

	assert(skipped < rec->packets && "record_with");
	if (p->dma_length == 0 || rec->length == 0)
		return p->dma_length == rec->length;
	return p->rkey == rec->rkey && range_inside(offset, p->dma_length, rec->length) &&
	       packets_of(qp, p->dma_length) <= rec->packets - skipped;
}

enum reason duplicate_check(struct arrival *a)
{
	struct responder *r = &a->qp->resp;
	struct record *rec;

	assert(kind_is_fetching(a->op->kind) && "others leave no record");
	if (!record_with(r, a->p->psn, &a->record_index))
		return REASON_DUPLICATE_UNKNOWN;
	rec = record_at(r, a->record_index);
	if (rec->kind != a->op->kind ||
	    (rec->kind == KIND_READ_REQUEST && !read_matches(a->qp, rec, a->p)))
		return REASON_DUPLICATE_UNKNOWN;
	a->record = rec;
	return REASON_DUPLICATE;
}

/*
 * A peer that asks for what is missing asks for several parts of a READ, which are owed one after
 * the other. A part that is still to be sent needs nothing. A part without room will be asked for
 * again. Other peers begin anew.
 */
static bool part_waits(const struct arrival *a)
{
	struct record *rec = a->record;
	uint32_t asked = packets_of(a->qp, a->p->dma_length),
		 at = psn_add(rec->reply_psn, rec->replied),
		 left = packets_of(a->qp, rec->reply_length) - rec->replied;

	if (!a->qp->selective || !rec->owed || rec->kind != KIND_READ_REQUEST)
		return false;
	if (psn_within(a->p->psn, at, left) && asked <= left - ((a->p->psn - at) & PSN_MASK))
		return true;
	if (rec->parts < RECORD_PARTS)
		rec->part[rec->parts++] = (struct record_part){ a->p->psn, a->p->dma_length };
	return true;
}

void duplicate_next_part(const struct qp *qp, struct record *rec)
{
	uint32_t psn = rec->part[0].psn;

	assert(rec->parts > 0 && "there is one");
	rec->owed = true;
	rec->repeated = true; /* all of the READ was sent once */
	rec->replied = 0;
	rec->reply_psn = psn;
	rec->reply_va = rec->va + ((uint64_t)((psn - rec->psn) & PSN_MASK) << qp->mtu_shift);
	rec->reply_length = rec->part[0].octets;
	rec->parts--;
	memmove(rec->part, rec->part + 1, rec->parts * sizeof(rec->part[0]));
}

void duplicate_owe(const struct arrival *a)
{
	struct responder *r = &a->qp->resp;
	struct record *rec = a->record;

	assert(psn_within(a->p->psn, rec->psn, rec->packets) && rec->kind == a->op->kind);
	if (part_waits(a))
		return;
	rec->parts = 0;
	rec->repeated = !rec->owed || rec->repeated;
	rec->owed = true;
	rec->replied = 0;
	rec->reply_psn = a->p->psn;
	rec->reply_va = a->p->va;
	rec->reply_length = rec->kind == KIND_READ_REQUEST ? a->p->dma_length : 0;
	if ((int32_t)(a->record_index - r->record_owed) < 0)
		r->record_owed = a->record_index;
}
