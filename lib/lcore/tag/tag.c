/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages for queue pairs of tag matching SRQs: see tag.h. */
#include "lcore/tag/tag.h"
#include "lcore/inside.h"

#include <string.h>

#include "base/bits.h"
#include "wire/opcode.h"

/* <infiniband/tm_types.h> */
#define TMH_OCTETS 16u
#define RVH_OCTETS 16u

enum tmh_opcode {
	TMH_RNDV = 1,
	TMH_FIN = 2,
	TMH_EAGER = 3,
};

/* recv_work.mark of ordinary requests. The mark of an entry is its index plus one. */
#define MARK_UNEXPECTED UINT16_C(0xffff)
#define MARK_NO_TAG	UINT16_C(0xfffe)

static_assert(LIMIT_TAGS < MARK_NO_TAG, "marks");
static_assert(TMH_OCTETS + RVH_OCTETS <= LIMIT_RNDV_HEADER && LIMIT_RNDV_HEADER <= 256,
	      "a rendezvous fits one packet of any path MTU");

struct tmh {
	uint8_t opcode; /* enum tmh_opcode */
	uint32_t app_context;
	uint64_t tag;
	/* RVH, of a rendezvous */
	uint64_t address;
	uint32_t rkey;
	uint32_t length;
};

static struct recv_work *scratch(struct lcore *l)
{
	return (struct recv_work *)(void *)l->srq_receive;
}

static bool has_tag(const struct packet *p)
{
	return opcode_table[p->opcode].kind == KIND_SEND && p->payload_length >= TMH_OCTETS &&
	       (p->payload[0] == TMH_EAGER || p->payload[0] == TMH_RNDV);
}

/*
 * Whether the engine can answer this rendezvous request: one packet with both headers, at most
 * max_rndv_hdr_size octets long.
 */
static bool is_rendezvous(const struct packet *p)
{
	return p->payload[0] == TMH_RNDV && opcode_is(p->opcode, OP_LAST) &&
	       p->payload_length >= TMH_OCTETS + RVH_OCTETS &&
	       p->payload_length <= LIMIT_RNDV_HEADER;
}

static void read_header(const struct packet *p, struct tmh *h)
{
	const uint8_t *o = p->payload;

	*h = (struct tmh){ .opcode = o[0],
			   .app_context = load_be32(o + 4),
			   .tag = load_be64(o + 8) };
	if (h->opcode != TMH_RNDV)
		return;
	o += TMH_OCTETS;
	h->address = load_be64(o);
	h->rkey = load_be32(o + 8);
	h->length = load_be32(o + 12);
}

static bool find(struct tag_list *list, uint64_t tag)
{
	for (uint32_t i = 0; i < list->listed; i++) {
		const struct tag_match *m = &list->match[i];

		if (m->waits)
			return false; /* and so do all entries behind it */
		if ((tag & m->mask) == m->tag) {
			list->offered = i;
			return true;
		}
	}
	return false;
}

/* Offers the entry as a receive request. The message of a rendezvous is not stored. */
static const struct recv_work *offer_entry(struct lcore *l, struct tag_list *list,
					   const struct tmh *h, const struct packet *p)
{
	uint32_t index = list->match[list->offered].entry;
	struct tag_entry *t = &list->entry[index];
	struct recv_work *w = scratch(l);

	t->rendezvous = h->opcode == TMH_RNDV;
	t->app_context = h->app_context;
	t->tag = h->tag;
	t->address = h->address;
	t->rkey = h->rkey;
	t->length = h->length;
	*w = (struct recv_work){ .wr_id = t->recv_wr_id, .mark = (uint16_t)(index + 1) };
	if (t->rendezvous) {
		w->strip = (uint16_t)p->payload_length;
		return w;
	}
	w->strip = TMH_OCTETS;
	w->num_sge = t->num_sge;
	memcpy(recv_work_sge(w), t->sge, t->num_sge * sizeof(*t->sge));
	return w;
}

static const struct recv_work *offer_ordinary(struct lcore *l, struct engine_qp *q, uint16_t mark,
					      nanotime now)
{
	if (receive_peek(l, q, now) == NULL)
		return NULL;
	scratch(l)->mark = mark;
	scratch(l)->strip = 0;
	return scratch(l);
}

const struct recv_work *tags_offer(struct lcore *l, struct engine_qp *q, const struct packet *p,
				   nanotime now)
{
	struct tag_list *list = q->srq->tags;
	struct tmh h;

	tags_drain(l, q->srq, now); /* takes in what was posted before this message came */
	if (opcode_table[p->opcode].kind != KIND_SEND)
		return offer_ordinary(l, q, 0, now);
	if (!has_tag(p))
		return offer_ordinary(l, q, MARK_NO_TAG, now);
	if (p->payload[0] == TMH_RNDV && !is_rendezvous(p))
		return offer_ordinary(l, q, MARK_UNEXPECTED, now);
	read_header(p, &h);
	if (!find(list, h.tag))
		return offer_ordinary(l, q, MARK_UNEXPECTED, now);
	/* A peer with more rendezvous under way than LIMIT_RENDEZVOUS gets an RNR NAK. */
	if (h.opcode == TMH_RNDV && q->rendezvous == LIMIT_RENDEZVOUS)
		return NULL;
	return offer_entry(l, list, &h, p);
}

static bool is_entry(const struct recv_work *offer)
{
	return offer->mark != 0 && offer->mark < MARK_NO_TAG;
}

void tags_kept(struct lcore *l, struct engine_qp *q, const struct recv_work *offer)
{
	if (!is_entry(offer))
		srq_put_back(l, q->srq, offer);
}

void tags_taken(struct lcore *l, struct engine_qp *q, const struct recv_work *offer)
{
	struct tag_list *list = q->srq->tags;
	struct tag_entry *t;

	if (!is_entry(offer)) {
		list->unexpected += offer->mark == MARK_UNEXPECTED;
		q->unexpected += offer->mark == MARK_UNEXPECTED;
		srq_used(l, q->srq);
		return;
	}
	t = tag_unlist(list, list->offered);
	t->qp = q;
	t->state = t->rendezvous ? TAG_FETCHING : TAG_RECEIVING;
	q->rendezvous += t->rendezvous;
}

/* The room of the entry, in octets. */
static uint64_t room(const struct tag_entry *t)
{
	uint64_t octets = 0;

	for (uint32_t i = 0; i < t->num_sge; i++)
		octets += t->sge[i].length;
	return octets;
}

/* ---- the engine's own requests: wr_id is the entry's index, and one bit for the FIN ---- */

static struct send_work *own_work(struct engine_qp *q, const struct tag_entry *t, bool fin)
{
	struct send_work *w = qp_own_slot(q->core);
	uint64_t index = (uint64_t)(t - q->srq->tags->entry);

	*w = (struct send_work){ .wr_id = index << 1 | fin, .flags = WORK_SIGNALED };
	return w;
}

static void post_read(struct engine_qp *q, const struct tag_entry *t, nanotime now)
{
	struct send_work *w = own_work(q, t, false);
	uint32_t left = t->length;

	w->opcode = WORK_RDMA_READ;
	w->remote_addr = t->address;
	w->rkey = t->rkey;
	for (uint32_t i = 0; i < t->num_sge && left > 0; i++) {
		struct work_sge *sge = &send_work_sge(w)[w->num_sge++];

		*sge = t->sge[i];
		sge->length = MIN_OF(sge->length, left);
		left -= sge->length;
	}
	qp_own_posted(q->core);
}

/* The FIN returns the peer's memory to the peer, so it follows the data (WORK_FENCE). */
static void post_fin(struct engine_qp *q, const struct tag_entry *t, nanotime now)
{
	struct send_work *w = own_work(q, t, true);
	uint8_t *o = send_work_inline(w);

	w->opcode = WORK_SEND;
	w->flags |= WORK_INLINE | WORK_FENCE;
	w->inline_length = TMH_OCTETS;
	memset(o, 0, TMH_OCTETS);
	o[0] = TMH_FIN;
	store_be32(o + 4, t->app_context);
	store_be64(o + 8, t->tag);
	qp_own_posted(q->core);
}

/* ---- completions ---- */

/* base/work.h says which member of a completion holds what. */
static void set_tag(struct completion *c, const struct tag_entry *t)
{
	c->vendor_err = (uint32_t)(t->tag >> 32);
	c->src_qp = (uint32_t)t->tag;
	c->slid = (uint16_t)(t->app_context >> 16);
	c->pkey_index = (uint16_t)t->app_context;
}

static void rendezvous_received(struct engine_qp *q, struct completion *c, struct tag_entry *t,
				nanotime now)
{
	if (c->status == STATUS_SUCCESS && t->length <= room(t) && t->length <= LIMIT_MESSAGE) {
		c->wc_flags |= COMPLETION_TM_MATCH;
		set_tag(c, t);
		post_read(q, t, now);
		post_fin(q, t, now);
		return;
	}
	if (c->status == STATUS_SUCCESS) {
		c->status = STATUS_TM_RNDV_INCOMPLETE;
		c->vendor_err = REASON_LENGTH_RECEIVE;
		c->solicited = 1;
	}
	q->rendezvous--;
	tag_release(q->srq, t);
}

static void entry_received(struct engine_qp *q, struct completion *c, struct tag_entry *t,
			   nanotime now)
{
	c->opcode = COMPLETION_TM_RECV;
	if (t->rendezvous) {
		rendezvous_received(q, c, t, now);
		return;
	}
	if (c->status == STATUS_SUCCESS) {
		c->wc_flags |= COMPLETION_TM_MATCH | COMPLETION_TM_DATA_VALID;
		set_tag(c, t);
	}
	tag_release(q->srq, t);
}

void tags_received(struct engine_qp *q, struct completion *c, nanotime now)
{
	struct tag_list *list = q->srq->tags;
	uint32_t mark = c->work_index;

	if (c->opcode != COMPLETION_RECV) /* a WRITE's immediate data */
		return;
	c->src_qp = 0;
	if (mark == MARK_UNEXPECTED) {
		c->opcode = COMPLETION_TM_RECV;
		q->unexpected--;
		if (c->status !=
		    STATUS_SUCCESS) { /* the program does not count a failed message as handled */
			list->unexpected--;
			tags_phase(list);
		}
	} else if (mark == MARK_NO_TAG) {
		c->opcode = COMPLETION_TM_NO_TAG;
	} else if (mark - 1 < list->max_tags) {
		entry_received(q, c, &list->entry[mark - 1], now);
	}
}

bool tags_own_done(struct engine_qp *q, struct completion *c)
{
	struct tag_entry *t = &q->srq->tags->entry[c->wr_id >> 1];
	bool ok = c->status == STATUS_SUCCESS;

	if (c->wr_id & 1) {
		q->rendezvous--;
		return false;
	}
	*c = (struct completion){
		.wr_id = t->recv_wr_id,
		.status = ok ? STATUS_SUCCESS : STATUS_TM_RNDV_INCOMPLETE,
		.opcode = COMPLETION_TM_RECV,
		.vendor_err = c->vendor_err,
		.byte_len = ok ? t->length : 0,
		.qp_num = c->qp_num,
		.wc_flags = ok ? COMPLETION_TM_DATA_VALID : 0u,
		.solicited = 1,
		.from_srq = 1,
		.qp_handle = c->qp_handle,
		.work_index = q->srq->handle,
	};
	tag_release(q->srq, t);
	return true;
}

void tags_forget(struct engine_qp *q)
{
	struct tag_list *list = q->srq->tags;

	for (uint32_t i = 0; i < list->max_tags; i++)
		if (list->entry[i].qp == q)
			tag_release(q->srq, &list->entry[i]);
	list->unexpected -= q->unexpected;
	tags_phase(list);
	q->unexpected = 0;
	q->rendezvous = 0;
}
