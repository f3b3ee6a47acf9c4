/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The middle of a large message, several packets at once. What a packet costs is mostly questions (plain.h), and all
 * packets of such a run have the same answers. A run ends before the packet that would ask for an
 * acknowledgement, and before the last one of its message; qp_next_packet() makes those.
 *
 *	FIRST  MIDDLE | MIDDLE  MIDDLE  ...  MIDDLE | MIDDLE (asks)  MIDDLE | ...  | LAST
 *	       ordinary           a run               ordinary                       ordinary
 */
#include "transport/requester/plain.h"
#include "transport/responder/plain_reply.h"

/* So many more packets of `octets` each leave the path room for one behind them, and none asks on its account. */
static uint32_t path_takes(const struct qp *qp, uint32_t octets, nanotime now)
{
	const struct path *p = qp->path;
	const struct requester *r = &qp->req;
	uint64_t unasked = r->unasked > 0 ? r->unasked_octets : 0, room, quarter = p->window / 4;

	if (p->held > 0 || p->slowly || octets > p->packet || octets > p->window ||
	    now < p->next_at || p->flying + octets > p->window || unasked > quarter)
		return 0;
	room = MIN_OF((p->window - p->flying - octets) / octets, (quarter - unasked) / octets);
	return (uint32_t)MIN_OF(room, LIMIT_WINDOW);
}

static bool data_is_alike(const struct qp *qp, const struct send_work *w, uint32_t offset,
			  uint32_t length, const struct key_table *keys, struct span_list *gather)
{
	return (w->flags & WORK_INLINE) == 0 &&
	       key_one_span_of_list(keys, send_work_sge(w), w->num_sge, qp->user, 0, offset, length,
				    gather) &&
	       !gather->has_peer;
}

/* The counters count them. The packet before has started the timers. */
static void requests_made(struct qp *qp, uint32_t n, nanotime now)
{
	struct requester *r = &qp->req;

	r->nxt_psn = r->top_psn = psn_add(r->nxt_psn, n);
	for (uint32_t i = 0; i < n; i++) {
		flight_sent(qp, 1, flight_octets(1, qp->mtu), 0, now);
		r->unasked++;
	}
}

static uint32_t requests_alike(struct qp *qp, uint32_t psn, const struct key_table *keys,
			       uint32_t most, nanotime now, struct span_list *gather)
{
	const struct requester *r = &qp->req;
	const struct message *m = message_at(r, r->nxt);
	uint32_t done = (psn - m->first_psn) & PSN_MASK, used = in_flight(r), n;

	if (reply_is_owed(&qp->resp) || !plain_is_undisturbed(qp) || r->nxt == r->begun ||
	    !m->plain || m->kind == KIND_READ_REQUEST || psn != r->nxt_psn ||
	    done + 1 >= m->packets || r->unasked + 1 >= LIMIT_ACK_EVERY || used + 1 >= LIMIT_WINDOW)
		return 0;
	n = MIN_OF(most, m->packets - 1 - done);
	n = MIN_OF(n, LIMIT_ACK_EVERY - 1 - r->unasked);
	n = MIN_OF(n, LIMIT_WINDOW - 1 - used);
	if (qp->path != NULL)
		n = MIN_OF(n, path_takes(qp, flight_octets(1, qp->mtu), now));
	if (n == 0 || !data_is_alike(qp, request_at(r, r->nxt), done << qp->mtu_shift,
				     n << qp->mtu_shift, keys, gather))
		return 0;
	requests_made(qp, n, now);
	return n;
}

/* The READ whose responses go on with this PSN. NULL: none does. */
static struct record *read_that_goes_on(const struct responder *r, uint32_t psn)
{
	struct record *rec;

	if (!reply_has_records(r))
		return NULL;
	rec = record_at(r, r->record_owed);
	if (!rec->owed || rec->kind != KIND_READ_REQUEST || rec->replied == 0 ||
	    psn_add(rec->reply_psn, rec->replied) != psn)
		return NULL;
	return rec;
}

static uint32_t replies_alike(struct qp *qp, uint32_t psn, const struct key_table *keys,
			      uint32_t most, struct span_list *gather)
{
	struct responder *r = &qp->resp;
	struct record *rec = read_that_goes_on(r, psn);
	struct key_user user;
	uint32_t n;

	if (r->cnp_due || rec == NULL)
		return 0;
	n = MIN_OF(most, packets_of(qp, rec->reply_length) - 1 - rec->replied);
	user = (struct key_user){ .pd = rec->pd, .qpn = qp->qpn };
	if (n == 0 ||
	    !key_one_span(keys, rec->rkey, user, ACCESS_REMOTE_READ,
			  rec->reply_va + (rec->replied << qp->mtu_shift), n << qp->mtu_shift,
			  gather) ||
	    gather->has_peer)
		return 0;
	rec->replied += n;
	plain_reply_acknowledges(r, psn_add(psn, n - 1));
	return n;
}

uint32_t qp_next_alike(struct qp *qp, const struct packet *before, const struct key_table *keys,
		       uint32_t most, nanotime now, struct span_list *gather)
{
	uint32_t psn = psn_add(before->psn, 1), n;

	span_list_clear(gather);
	if (!opcode_is_middle(before->opcode) || before->again)
		return 0;
	n = opcode_is(before->opcode, OP_RESPONSE)
		    ? replies_alike(qp, psn, keys, most, gather)
		    : requests_alike(qp, psn, keys, most, now, gather);
	if (n == 0)
		span_list_clear(gather);
	return n;
}

static uint32_t request_rest(const struct requester *r, uint32_t psn)
{
	const struct message *m = message_at(r, r->nxt);

	if (r->nxt == r->begun || psn != r->nxt_psn || !psn_within(psn, m->first_psn, m->packets))
		return 0;
	return m->packets - ((psn - m->first_psn) & PSN_MASK);
}

uint32_t qp_message_rest(const struct qp *qp, const struct packet *before)
{
	uint32_t psn = psn_add(before->psn, 1);
	const struct record *rec;

	if (opcode_is(before->opcode, OP_LAST) || !opcode_is(before->opcode, OP_PAYLOAD) ||
	    before->again)
		return 0;
	if (!opcode_is(before->opcode, OP_RESPONSE))
		return request_rest(&qp->req, psn);
	rec = read_that_goes_on(&qp->resp, psn);
	return rec == NULL ? 0 : packets_of(qp, rec->reply_length) - rec->replied;
}
