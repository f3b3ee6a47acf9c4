/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stdlib.h>

#include "base/bits.h"
#include "must.h"
#include "node.h"
#include "transport/path.h"
#include "transport/psn.h"
#include "wire/opcode.h"

#define HELD_LOOK (2 * TIME_US) /* between two looks at a path without room */
#define KEY_SLOTS 4096u

void node_init(struct node *n, const char *name, size_t size, uint32_t qps, uint64_t seed)
{
	uint8_t random[16];

	*n = (struct node){ .name = name, .size = size };
	prng_seed(&n->prng, seed);
	for (size_t i = 0; i < sizeof(random); i++)
		random[i] = (uint8_t)prng_next(&n->prng);
	n->memory = must(aligned_alloc(4096, round_up(size, 4096)));
	n->key_memory = must(calloc(1, key_table_size(KEY_SLOTS)));
	key_table_init(&n->keys, n->key_memory, KEY_SLOTS, random);
	n->qp = must(calloc(qps, sizeof(*n->qp)));
}

static void kept_forget(struct node_qp *q)
{
	struct node_kept *k;

	for (uint32_t i = 0; i < 2; i++) {
		while ((k = TAILQ_FIRST(&q->kept[i])) != NULL) {
			TAILQ_REMOVE(&q->kept[i], k, place);
			q->node->kept--;
			free(k);
		}
	}
	free(qp_take_far(q->core));
}

static void node_qp_free(struct node_qp *q)
{
	kept_forget(q);
	free(q->core);
	free(q->receives.request);
	free(q->completion);
	free(q->copy);
	free(q->tickets);
	free(q);
}

void node_free(struct node *n)
{
	for (uint32_t i = 0; i < n->qps; i++)
		node_qp_free(n->qp[i]);
	for (uint32_t i = 0; i < n->regions; i++)
		free(n->region[i]);
	for (uint32_t i = 0; i < n->srqs; i++)
		free(n->srq[i].receives.request);
	free(n->qp);
	free(n->key_memory);
	free(n->memory);
}

static void receives_init(struct node_receives *r, uint32_t max_sge)
{
	r->stride = recv_work_stride(max_sge);
	r->request = must(aligned_alloc(64, (size_t)NODE_RECEIVES * r->stride));
}

struct node_qp *node_qp_add(struct node *n, const struct qp_caps *caps, bool delay_copies)
{
	struct node_qp *q = must(calloc(1, sizeof(*q)));

	q->node = n;
	q->caps = *caps;
	q->caps.tickets = LIMIT_TICKETS_NEW;
	q->index = n->qps;
	q->deadline = TIME_NEVER;
	q->core =
		qp_init(must(aligned_alloc(64, round_up(qp_memory_size(&q->caps), 64))), &q->caps);
	TAILQ_INIT(&q->kept[0]);
	TAILQ_INIT(&q->kept[1]);
	receives_init(&q->receives, caps->max_recv_sge);
	q->completion = must(calloc(NODE_COMPLETIONS, sizeof(*q->completion)));
	if (delay_copies)
		q->copy = must(malloc(LIMIT_TICKETS * sizeof(*q->copy)));
	q->next_ticket = 1;
	n->qp[n->qps++] = q;
	return q;
}

/* Receive queue. */

uint32_t node_receives_posted(const struct node_qp *q)
{
	return q->receives.tail - q->receives.head;
}

static struct recv_work *receive_at(const struct node_receives *r, uint32_t i)
{
	return (struct recv_work *)(void *)(r->request + (size_t)(i % NODE_RECEIVES) * r->stride);
}

static bool receives_post(struct node_receives *r, uint64_t wr_id, const struct work_sge *sge,
			  uint32_t num_sge)
{
	struct recv_work *w = receive_at(r, r->tail);

	if (r->tail - r->head == NODE_RECEIVES)
		return false;
	*w = (struct recv_work){ .wr_id = wr_id, .num_sge = num_sge };
	if (num_sge > 0)
		memcpy(recv_work_sge(w), sge, num_sge * sizeof(*sge));
	r->tail++;
	return true;
}

bool node_post_receive(struct node_qp *q, uint64_t wr_id, const struct work_sge *sge,
		       uint32_t num_sge)
{
	if (!receives_post(&q->receives, wr_id, sge, num_sge))
		return false;
	if (q->flushing)
		node_collect(q, 0);
	return true;
}

struct node_srq *node_srq_add(struct node *n, uint32_t srqn, uint32_t pd, uint32_t max_sge)
{
	struct node_srq *s = &n->srq[n->srqs++];

	assert(n->srqs <= NODE_SRQS);
	*s = (struct node_srq){ .srqn = srqn, .number = n->srqs, .pd = pd };
	receives_init(&s->receives, max_sge);
	return s;
}

bool node_srq_post(struct node_srq *s, uint64_t wr_id, const struct work_sge *sge, uint32_t num_sge)
{
	return receives_post(&s->receives, wr_id, sge, num_sge);
}

/* The queue that holds the receive request for a packet; NULL: none. */
static struct node_receives *receives_of(struct node_qp *q, const struct packet *p)
{
	struct node *n = q->node;

	if (q->caps.type != QP_TYPE_XRC_RECV || !opcode_is(p->opcode, OP_XRCETH))
		return &q->receives;
	for (uint32_t i = 0; i < n->srqs; i++) {
		if (n->srq[i].srqn == p->srqn) {
			qp_target(q->core, n->srq[i].pd, n->srq[i].number);
			return &n->srq[i].receives;
		}
	}
	qp_target(q->core, 0, 0);
	return NULL;
}

bool node_post_send(struct node_qp *q, const struct send_work *w, const void *tail, nanotime now)
{
	struct send_work *slot = qp_window_slot(q->core);

	if (slot == NULL)
		return false;
	*slot = *w;
	if (w->flags & WORK_INLINE && w->inline_length > 0)
		memcpy(send_work_inline(slot), tail, w->inline_length);
	else
		memcpy(send_work_sge(slot), tail,
		       w->num_sge * sizeof(struct work_sge) +
			       (w->opcode == WORK_TSO ? w->tso_header : 0));
	qp_posted(q->core);
	node_collect(q, now);
	return true;
}

/* Completions and events. */

static void completion_put(struct node_qp *q, const struct completion *c, bool from_receive)
{
	assert(q->completion_tail - q->completion_head < NODE_COMPLETIONS &&
	       "the node's owner must take completions");
	q->completion[q->completion_tail++ % NODE_COMPLETIONS] =
		(struct node_completion){ .c = *c, .from_receive = from_receive };
}

bool node_take(struct node_qp *q, struct node_completion *c)
{
	if (q->completion_head == q->completion_tail)
		return false;
	*c = q->completion[q->completion_head++ % NODE_COMPLETIONS];
	return true;
}

uint32_t node_events_take(struct node_qp *q)
{
	uint32_t events = q->events;

	q->events = 0;
	return events;
}

static void receives_flush(struct node_qp *q)
{
	struct completion c;

	for (; q->receives.head != q->receives.tail; q->receives.head++) {
		qp_flush_receive(q->core, receive_at(&q->receives, q->receives.head), &c);
		completion_put(q, &c, true);
	}
}

/*
 * A queue pair that its path holds back looks again from time to time, unless its node's owner
 * keeps a list of such queue pairs, as an engine does.
 */
static void wait_for_path(struct node_qp *q, nanotime now)
{
	q->not_before = 0;
	if (!qp_is_held(q->core) || q->node->parks)
		return;
	if (qp_may_resume(q->core, now))
		qp_resume(q->core);
	else
		q->not_before = time_earlier(qp_resumes_at(q->core, now), now + HELD_LOOK);
}

void node_collect(struct node_qp *q, nanotime now)
{
	struct completion c;
	bool from_receive;

	while (qp_take_completion(q->core, &c, &from_receive))
		completion_put(q, &c, from_receive);
	q->events |= qp_take_events(q->core);
	q->flushing |= (q->events & QP_EVENT_ENTERED_ERR) != 0;
	if (q->flushing && !q->caps.has_srq) /* an SRQ keeps its requests (protocol-map 133) */
		receives_flush(q);
	q->deadline = qp_deadline(q->core);
	wait_for_path(q, now);
}

int node_modify(struct node_qp *q, const struct qp_attributes *a, uint32_t mask, nanotime now)
{
	int ret = qp_modify(q->core, a, mask, NULL);

	if (ret == 0 && mask & QP_ATTR_STATE && a->state == QP_STATE_RESET) {
		q->receives.head = q->receives.tail;
		q->completion_head = q->completion_tail;
		q->copy_head = q->copy_tail;
		kept_forget(q);
		q->next_ticket = 0; /* the next ticket may have any number */
		q->events = 0;
		q->flushing = false;
	}
	node_collect(q, now);
	return ret;
}

void node_fail(struct node_qp *q, enum reason why, nanotime now)
{
	qp_fail(q->core, why);
	node_collect(q, now);
}

/* Copies. */

static void place(const struct node *n, const struct span_list *to, const uint8_t *from)
{
	for (uint32_t i = 0; i < to->count; i++) {
		memcpy(node_at(n, &to->span[i]), from, to->span[i].length);
		from += to->span[i].length;
	}
}

static uint64_t atomic_execute(const struct node *n, const struct atomic_request *a)
{
	uint8_t *at = node_at(n, &a->target);
	uint64_t original, value;

	memcpy(&original, at, sizeof(original));
	value = original;
	if (!a->compare_swap)
		value += a->swap_add;
	else if (original == a->compare)
		value = a->swap_add;
	memcpy(at, &value, sizeof(value));
	return original;
}

static bool copy_ok(struct node *n)
{
	if (!prng_chance(&n->prng, n->fail_copies))
		return true;
	n->failed_copies++;
	return false;
}

static void copy_now(struct node_qp *q, const struct outcome *o, nanotime now)
{
	bool ok = copy_ok(q->node);

	if (o->flags & OUTCOME_ATOMIC) {
		uint64_t original = ok ? atomic_execute(q->node, &o->atomic) : 0;

		qp_atomic_done(q->core, o->ticket, original, ok);
		return;
	}
	if (o->flags & OUTCOME_PLACE) {
		if (ok)
			place(q->node, &o->place, o->source);
		qp_copied(q->core, o->ticket, ok);
	}
	if (o->flags & OUTCOME_INVALIDATE) {
		if (ok)
			key_withdraw(&q->node->keys, o->invalidate);
		qp_copied(q->core, o->invalidate_ticket, ok);
	}
}

static struct node_copy *copy_add(struct node_qp *q, uint64_t ticket, nanotime now)
{
	struct node_copy *c = &q->copy[q->copy_tail++ % LIMIT_TICKETS];

	c->ticket = ticket;
	c->is_atomic = false;
	c->invalidate = 0;
	c->due = now + prng_below(&q->node->prng, q->node->copy_delay + 1);
	return c;
}

static void what_is_to_be_copied(struct node_copy *c, const struct outcome *o)
{
	c->is_atomic = o->flags & OUTCOME_ATOMIC;
	if (c->is_atomic) {
		c->atomic = o->atomic;
		return;
	}
	c->place.count = o->place.count;
	c->place.length = o->place.length;
	memcpy(c->place.span, o->place.span, o->place.count * sizeof(struct span));
	memcpy(c->octets, o->source, o->place.length);
}

static void copy_later(struct node_qp *q, const struct outcome *o, nanotime now)
{
	struct node_copy *c;

	if (o->flags & (OUTCOME_PLACE | OUTCOME_ATOMIC))
		what_is_to_be_copied(copy_add(q, o->ticket, now), o);
	if (o->flags & OUTCOME_INVALIDATE) {
		c = copy_add(q, o->invalidate_ticket, now);
		c->invalidate = o->invalidate;
	}
}

void node_settle_one(struct node_qp *q, bool ok, nanotime now)
{
	struct node_copy *c = &q->copy[q->copy_head++ % LIMIT_TICKETS];

	if (c->is_atomic) {
		uint64_t original = ok ? atomic_execute(q->node, &c->atomic) : 0;

		qp_atomic_done(q->core, c->ticket, original, ok);
	} else if (c->invalidate != 0) {
		if (ok)
			key_withdraw(&q->node->keys, c->invalidate);
		qp_copied(q->core, c->ticket, ok);
	} else {
		if (ok)
			place(q->node, &c->place, c->octets);
		qp_copied(q->core, c->ticket, ok);
	}
	node_collect(q, now);
}

nanotime node_copy_due(const struct node_qp *q)
{
	return q->copy_head == q->copy_tail ? TIME_NEVER
					    : q->copy[q->copy_head % LIMIT_TICKETS].due;
}

void node_settle(struct node_qp *q, nanotime due, nanotime now)
{
	while (q->copy_head != q->copy_tail && node_copy_due(q) <= due)
		node_settle_one(q, copy_ok(q->node), now);
}

static void ticket_check(struct node_qp *q, const struct packet *p, uint64_t ticket)
{
	if (q->next_ticket != 0 && ticket != q->next_ticket)
		snprintf(q->node->fault, sizeof(q->node->fault),
			 "psn %06x: ticket %llu where %llu is next", p->psn,
			 (unsigned long long)ticket, (unsigned long long)q->next_ticket);
	q->next_ticket = ticket + 1;
}

/* Checks an outcome against the core's contract. */
static void outcome_check(struct node_qp *q, const struct packet *p, bool offered)
{
	const struct outcome *o = &q->outcome;
	uint32_t octets = 0;

	if (o->flags & OUTCOME_RECEIVE_USED && !offered)
		snprintf(q->node->fault, sizeof(q->node->fault),
			 "psn %06x: a receive request was used that was not offered", p->psn);
	if (o->flags & (OUTCOME_PLACE | OUTCOME_ATOMIC))
		ticket_check(q, p, o->ticket);
	if (o->flags & OUTCOME_INVALIDATE)
		ticket_check(q, p, o->invalidate_ticket);
	if (!(o->flags & OUTCOME_PLACE))
		return;
	for (uint32_t i = 0; i < o->place.count; i++)
		octets += o->place.span[i].length;
	if (octets != o->place.length)
		snprintf(q->node->fault, sizeof(q->node->fault),
			 "psn %06x: spans of %u octets, length says %u", p->psn, octets,
			 o->place.length);
}

/*
 * Packets in the middle of a message may come in one step, as in a run of the engine (lcore/run_rx.c). Here each is a step of
 * its own; every fourth one goes the ordinary way. *to: where its octets go.
 */
static bool comes_alike(const struct node_qp *q, const struct packet *p, struct span_list *to)
{
	const struct packet *before = &q->middle;
	bool alike = q->is_middle && p->psn % 4 != 0 && p->psn == psn_add(before->psn, 1) &&
		     p->opcode == before->opcode && p->payload_length == before->payload_length &&
		     p->ecn == before->ecn && p->selective == before->selective &&
		     p->late == before->late && gid_equal(&p->src_gid, &before->src_gid) &&
		     gid_equal(&p->dst_gid, &before->dst_gid) && p->pkey == before->pkey;

	return alike && !q->node->delay_copies && q->node->fail_copies == 0 &&
	       qp_expects_alike(q->core, before, &q->node->keys, 1, to) == 1;
}

static void take_alike(struct node_qp *q, const struct packet *p, const struct span_list *to,
		       nanotime now)
{
	place(q->node, to, p->payload);
	qp_received_alike(q->core, &q->middle, 1, p->ack_req, now);
	q->middle = *p;
	q->next_ticket += q->next_ticket != 0;
	q->outcome.flags = 0;
	q->reason = REASON_NONE;
	q->node->alike++;
	node_collect(q, now);
}

static enum reason receive(struct node_qp *q, const struct packet *p, nanotime now)
{
	struct node_receives *from = receives_of(q, p);
	const struct recv_work *offer = NULL;
	struct outcome *o = &q->outcome;
	struct span_list to;

	if (comes_alike(q, p, &to)) {
		take_alike(q, p, &to, now);
		return REASON_NONE;
	}
	if (!qp_can_receive(q->core) && q->tickets == NULL) {
		q->tickets = must(aligned_alloc(64, qp_tickets_size()));
		qp_give_tickets(q->core, q->tickets);
	}
	while (!qp_can_receive(q->core) && q->copy_head != q->copy_tail)
		node_settle_one(q, true, now);
	if (qp_wants_receive(q->core, p) && from != NULL && from->head != from->tail)
		offer = receive_at(from, from->head);
	qp_received(q->core, p, offer, &q->node->keys, now, o);
	q->reason = o->reason;
	outcome_check(q, p, offer != NULL);
	q->is_middle = q->reason == REASON_NONE && o->flags == OUTCOME_PLACE &&
		       opcode_is_middle(p->opcode);
	if (q->is_middle)
		q->middle = *p;
	if (o->flags & OUTCOME_RECEIVE_USED && offer != NULL)
		from->head++;
	if (o->flags & (OUTCOME_PLACE | OUTCOME_ATOMIC | OUTCOME_INVALIDATE)) {
		if (q->node->delay_copies && q->copy != NULL)
			copy_later(q, o, now);
		else
			copy_now(q, o, now);
	}
	node_collect(q, now);
	return q->reason;
}

static void keep(struct node_qp *q, const struct packet *p, nanotime now)
{
	struct node_kept_list *list = &q->kept[opcode_is(p->opcode, OP_RESPONSE)];
	struct node_kept *k = must(malloc(sizeof(*k))), *before = TAILQ_LAST(list, node_kept_list);

	while (before != NULL && ((p->psn - before->packet.psn) & 0xffffff) >= 1u << 23)
		before = TAILQ_PREV(before, node_kept_list, place);
	k->packet = *p;
	if (p->payload_length > 0)
		memcpy(k->payload, p->payload, p->payload_length);
	k->packet.payload = k->payload;
	if (before != NULL)
		TAILQ_INSERT_AFTER(list, before, k, place);
	else
		TAILQ_INSERT_HEAD(list, k, place);
	if (qp_is_far(q->core, p))
		qp_give_far(q->core, must(malloc(qp_far_size())));
	q->node->kept++;
	qp_held(q->core, p, now);
	node_collect(q, now);
}

/* Takes out the first kept packet that may be passed in; NULL: there is none. */
static struct node_kept *kept_take(struct node_qp *q)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct node_kept *k = TAILQ_FIRST(&q->kept[i]);

		if (k != NULL && !qp_waits(q->core, &k->packet)) {
			TAILQ_REMOVE(&q->kept[i], k, place);
			q->node->kept--;
			return k;
		}
	}
	return NULL;
}

enum reason node_received(struct node_qp *q, const struct packet *p, nanotime now)
{
	enum reason why = receive(q, p, now);
	struct node_kept *k;

	if (q->outcome.flags & OUTCOME_HOLD && q->node->keeps && q->node->kept < NODE_KEPT) {
		keep(q, p, now);
		return why;
	}
	while ((k = kept_take(q)) != NULL) {
		receive(q, &k->packet, now);
		free(k);
	}
	if (TAILQ_EMPTY(&q->kept[0]))
		free(qp_take_far(q->core));
	q->reason = why;
	return why;
}

void node_sent(struct node_qp *q, const struct packet *p, nanotime now)
{
	if (!qp_type_unreliable(q->caps.type))
		return;
	qp_sent(q->core, p);
	node_collect(q, now);
}

void node_unsent(struct node_qp *q, const struct packet *p, nanotime now)
{
	qp_unsent(q->core, p, now);
	node_collect(q, now);
}

void node_gather_failed(struct node_qp *q, const struct packet *p, nanotime now)
{
	qp_gather_failed(q->core, p);
	node_collect(q, now);
}

void node_expire(struct node_qp *q, nanotime now)
{
	if (q->deadline > now) {
		if (qp_is_held(q->core))
			wait_for_path(q, now);
		return;
	}
	qp_expired(q->core, now);
	node_collect(q, now);
}
