/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"

/* One pair at a time: large memory is not allocated again and again. */
static struct carried queues[2][PAIR_QUEUE];
static struct completion completions[2][PAIR_DONE];

static void *must_allocate(size_t octets)
{
	void *p = aligned_alloc(64, (octets + 63) & ~(size_t)63);

	if (p == NULL)
		abort();
	memset(p, 0, octets);
	return p;
}

struct pair_options pair_options(void)
{
	return (struct pair_options){ .mtu = 3,
				      .octets = PAIR_MEMORY,
				      .psn = 0xfffff0,
				      .max_send_wr = 256,
				      .timeout = 14,
				      .retry_cnt = 7,
				      .rnr_retry = 7,
				      .min_rnr_timer = 12,
				      .max_rd_atomic = 4,
				      .max_dest_rd_atomic = 4,
				      .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
						ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL };
}

void pair_attributes(const struct pair_options *o, struct qp_attributes *a)
{
	*a = (struct qp_attributes){ .port_num = 1,
				     .path_mtu = o->mtu,
				     .rq_psn = o->psn,
				     .sq_psn = o->psn,
				     .access_flags = o->access,
				     .timeout = o->timeout,
				     .retry_cnt = o->retry_cnt,
				     .rnr_retry = o->rnr_retry,
				     .min_rnr_timer = o->min_rnr_timer,
				     .max_rd_atomic = o->max_rd_atomic,
				     .max_dest_rd_atomic = o->max_dest_rd_atomic,
				     .path = { .port_num = 1, .is_global = 1, .hop_limit = 64 } };
}

static void must_modify(struct qp *qp, struct qp_attributes *a, uint32_t state, uint32_t mask)
{
	const char *why = "";

	a->state = state;
	if (qp_modify(qp, a, mask | QP_ATTR_STATE, &why) != 0) {
		fprintf(stderr, "modify to %u: %s\n", state, why);
		abort();
	}
}

static void connect_end(struct qp *qp, const struct pair_options *o, uint8_t me, uint8_t other,
			uint32_t dest_qpn)
{
	struct qp_attributes a;

	pair_attributes(o, &a);
	a.path.sgid.octet[15] = me;
	a.path.dgid.octet[15] = other;
	a.dest_qpn = dest_qpn;
	must_modify(qp, &a, QP_STATE_INIT,
		    QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	must_modify(qp, &a, QP_STATE_RTR,
		    QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			    (qp->type == QP_TYPE_XRC_SEND
				     ? 0
				     : QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER));
	must_modify(qp, &a, QP_STATE_RTS,
		    QP_ATTR_TIMEOUT | QP_ATTR_SQ_PSN |
			    (qp->type == QP_TYPE_XRC_RECV ? 0
							  : QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
								    QP_ATTR_MAX_RD_ATOMIC));
}

static void end_init(struct pair *pair, struct end *e, const struct pair_options *o, uint32_t qpn)
{
	struct qp_caps caps = { .type = !o->xrc		? QP_TYPE_RC
					: e == &pair->a ? QP_TYPE_XRC_SEND
							: QP_TYPE_XRC_RECV,
				.qpn = qpn,
				.pd = PAIR_PD,
				.handle = qpn,
				.max_send_wr = o->xrc && e == &pair->b ? 0 : o->max_send_wr,
				.own_wr = o->own_wr,
				.tickets = o->tickets,
				.max_send_sge = PAIR_SGE,
				.max_recv_sge = PAIR_SGE,
				.max_inline = 64,
				.max_rd_atomic = 16,
				.port_mtu = 5,
				.sq_sig_all = o->sig_all,
				.has_srq = o->has_srq || (o->xrc && e == &pair->b) };

	memset(e, 0, sizeof(*e));
	e->qp = qp_init(must_allocate(qp_memory_size(&caps)), &caps);
	e->memory = calloc(1, o->octets); /* 4 MiB that few tests write to: no page before */
	if (e->memory == NULL)
		abort();
	e->receive = must_allocate((size_t)PAIR_RECEIVES * recv_work_stride(PAIR_SGE));
	e->queue = queues[e == &pair->b];
	e->done = completions[e == &pair->b];
	e->region = must_allocate(sizeof(struct region) + sizeof(struct region_piece));
	e->window = must_allocate(sizeof(struct region));
	e->key = key_allocate(&pair->keys, (uint8_t)qpn);
	*e->region = (struct region){ .key = e->key,
				      .pd = PAIR_PD,
				      .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
						ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC |
						ACCESS_FLUSH_GLOBAL,
				      .iova = PAIR_IOVA,
				      .length = o->octets,
				      .pieces = 1 };
	e->region->piece[0] = (struct region_piece){ .direct = e->memory };
	key_publish(&pair->keys, e->key, e->region);
}

void pair_init(struct pair *pair, const struct pair_options *o)
{
	static const uint8_t random[16] = "uroce unit tests";

	memset(pair, 0, sizeof(*pair));
	pair->key_memory = must_allocate(key_table_size(64));
	key_table_init(&pair->keys, pair->key_memory, 64, random);
	end_init(pair, &pair->a, o, 0x11);
	end_init(pair, &pair->b, o, 0x12);
	connect_end(pair->a.qp, o, 1, 2, 0x12);
	connect_end(pair->b.qp, o, 2, 1, 0x11);
}

static void end_close(struct end *e)
{
	free(e->qp);
	free(e->memory);
	free(e->receive);
	free(e->region);
	free(e->window);
}

void pair_close(struct pair *pair)
{
	end_close(&pair->a);
	end_close(&pair->b);
	free(pair->key_memory);
}

static struct recv_work *posted_receive(const struct end *e, uint32_t index)
{
	return (void *)((uint8_t *)e->receive +
			(size_t)(index % PAIR_RECEIVES) * recv_work_stride(PAIR_SGE));
}

static void collect(struct end *e)
{
	bool from_receive;

	while (e->done_count < PAIR_DONE &&
	       qp_take_completion(e->qp, &e->done[e->done_count], &from_receive))
		e->done_receive[e->done_count++] = from_receive;
	e->events |= qp_take_events(e->qp);
}

static void copy_out(const struct outcome *o)
{
	const uint8_t *from = o->source;

	for (uint32_t i = 0; i < o->place.count; i++) {
		memcpy(o->place.span[i].direct, from, o->place.span[i].length);
		from += o->place.span[i].length;
	}
}

static uint64_t execute(const struct atomic_request *a)
{
	uint64_t old;

	memcpy(&old, a->target.direct, 8);
	if (!a->compare_swap || old == a->compare) {
		uint64_t new = a->compare_swap ? a->swap_add : old + a->swap_add;

		memcpy(a->target.direct, &new, 8);
	}
	return old;
}

static void settled(struct pair *pair, struct end *e, uint64_t ticket)
{
	if (!e->hold) {
		qp_copied(e->qp, ticket, true);
		return;
	}
	if (e->first_held == 0)
		e->first_held = ticket;
	e->held_ticket = ticket;
}

uint32_t pair_window(struct pair *pair, struct end *e)
{
	uint32_t key = key_allocate(&pair->keys, 9);

	*e->window = (struct region){ .key = key,
				      .pd = PAIR_PD,
				      .access = ACCESS_REMOTE_WRITE,
				      .iova = e->region->iova,
				      .length = 4096,
				      .kind = REGION_WINDOW,
				      .window_qpn = e->qp->qpn,
				      .parent = e->region };
	key_publish(&pair->keys, key, e->window);
	return key;
}

static void settle(struct pair *pair, struct end *e, const struct outcome *o)
{
	if (o->flags & OUTCOME_ATOMIC)
		qp_atomic_done(e->qp, o->ticket, execute(&o->atomic), true);
	if (o->flags & OUTCOME_PLACE) {
		copy_out(o);
		settled(pair, e, o->ticket);
	}
	if (o->flags & OUTCOME_INVALIDATE) {
		key_withdraw(&pair->keys, o->invalidate);
		settled(pair, e, o->invalidate_ticket);
	}
}

void pair_settle(struct pair *pair, struct end *e, bool ok)
{
	uint64_t first = e->first_held;

	e->first_held = 0;
	for (uint64_t t = first; t != 0 && t <= e->held_ticket; t++)
		qp_copied(e->qp, t, ok);
	collect(e);
}

enum reason pair_inject(struct pair *pair, struct end *to, struct packet *p)
{
	struct outcome out;
	const struct recv_work *offer = NULL;

	if (to->qp->type == QP_TYPE_XRC_RECV && opcode_is(p->opcode, OP_XRCETH))
		qp_target(to->qp, PAIR_PD, p->srqn & 1 ? p->srqn : 0);
	if (qp_wants_receive(to->qp, p) && to->receive_head != to->receive_tail)
		offer = posted_receive(to, to->receive_head);
	qp_received(to->qp, p, offer, &pair->keys, pair->now, &out);
	if (out.reason != REASON_NONE)
		to->reason = out.reason;
	if (out.flags & OUTCOME_RECEIVE_USED)
		to->receive_head++;
	settle(pair, to, &out);
	collect(to);
	return out.reason;
}

/* Executes an operation without a packet: an invalidation. */
static void operate(struct pair *pair, struct end *e)
{
	const struct key_operation *o = qp_operation(e->qp);

	if (o == NULL)
		return;
	if (!o->bind)
		key_withdraw(&pair->keys, o->key);
	qp_operation_done(e->qp, o->bind ? STATUS_MW_BIND_ERR : STATUS_SUCCESS,
			  o->bind ? REASON_KEY_ACCESS : REASON_NONE);
}

bool pair_next(struct pair *pair, struct end *from, struct packet *p)
{
	struct span_list gather;
	nanotime not_before;
	bool some;

	memset(p, 0x5a, sizeof(*p)); /* fields that the core does not write are garbage */
	some = qp_has_packet(from->qp) && qp_next_packet(from->qp, &pair->keys, pair->now, p,
							 &gather, &not_before) == NEXT_PACKET;
	operate(pair, from);
	collect(from);
	return some;
}

static void send_one(struct pair *pair, struct end *from, struct end *to)
{
	struct carried *c = &to->queue[to->queue_tail % PAIR_QUEUE];
	struct span_list gather;
	nanotime not_before;
	uint32_t at = 0;

	if (!qp_has_packet(from->qp) || qp_next_packet(from->qp, &pair->keys, pair->now, &c->p,
						       &gather, &not_before) != NEXT_PACKET) {
		operate(pair, from);
		collect(from);
		return;
	}
	if (c->p.payload != NULL)
		memcpy(c->payload, c->p.payload, c->p.payload_length);
	for (uint32_t i = 0; i < gather.count; i++) {
		memcpy(c->payload + at, gather.span[i].direct, gather.span[i].length);
		at += gather.span[i].length;
	}
	c->p.payload = c->payload;
	c->p.src_gid = from->qp->attr.path.sgid;
	c->p.dst_gid = from->qp->attr.path.dgid;
	to->queue_tail++;
	collect(from);
}

static void deliver_one(struct pair *pair, struct end *to)
{
	struct carried *c = &to->queue[to->queue_head++ % PAIR_QUEUE];

	pair->packets++;
	if (pair->pass == NULL || pair->pass(pair, to, &c->p))
		pair_inject(pair, to, &c->p);
}

static bool room(const struct end *e)
{
	return e->queue_tail - e->queue_head < PAIR_QUEUE;
}

void pair_run(struct pair *pair)
{
	struct end *a = &pair->a, *b = &pair->b;

	collect(a);
	collect(b);
	for (uint32_t i = 0; i < 10000000; i++) {
		bool moved = false;

		/* Bursts both ways, so that more than one packet is under way. */
		for (uint32_t n = 0; n < 8; n++) {
			if (qp_has_packet(a->qp) && room(b))
				send_one(pair, a, b), moved = true;
			if (qp_has_packet(b->qp) && room(a))
				send_one(pair, b, a), moved = true;
		}
		for (uint32_t n = 0; n < 8; n++) {
			if (a->queue_head != a->queue_tail)
				deliver_one(pair, a), moved = true;
			if (b->queue_head != b->queue_tail)
				deliver_one(pair, b), moved = true;
		}
		if (!moved)
			return;
	}
	fprintf(stderr, "the pair never comes to rest\n");
	abort();
}

bool pair_wait(struct pair *pair)
{
	nanotime at = time_earlier(qp_deadline(pair->a.qp), qp_deadline(pair->b.qp));

	if (at == TIME_NEVER)
		return false;
	if (at > pair->now)
		pair->now = at;
	qp_expired(pair->a.qp, pair->now);
	qp_expired(pair->b.qp, pair->now);
	pair_run(pair);
	return true;
}

void pair_until(struct pair *pair, struct end *e, uint32_t count, uint32_t waits)
{
	pair_run(pair);
	while (e->done_count < count && waits-- > 0 && pair_wait(pair))
		;
}

struct packet pair_packet(const struct pair *pair, const struct end *to, uint8_t base, uint32_t psn)
{
	(void)pair;
	return (struct packet){ .opcode = OPCODE(to->qp->service, base),
				.pkey = 0xffff,
				.dest_qpn = to->qp->qpn,
				.psn = psn & PSN_MASK,
				.src_gid = to->qp->attr.path.dgid,
				.dst_gid = to->qp->attr.path.sgid,
				.syndrome = SYNDROME_ACK_NO_CREDITS };
}

void pair_post_work(struct pair *pair, struct end *e, const struct send_work *w,
		    const struct work_sge *sge)
{
	struct send_work *slot = qp_window_slot(e->qp);

	if (slot == NULL) {
		fprintf(stderr, "the window is full\n");
		abort();
	}
	*slot = *w;
	send_work_set_srqn(slot, 1);
	for (uint32_t i = 0; i < w->num_sge && i < PAIR_SGE; i++)
		send_work_sge(slot)[i] = sge[i];
	qp_posted(e->qp);
}

void pair_post(struct pair *pair, struct end *e, enum work_opcode opcode, uint8_t flags,
	       uint32_t local_offset, uint32_t length, uint32_t remote_offset)
{
	struct end *other = e == &pair->a ? &pair->b : &pair->a;
	struct work_sge sge = { PAIR_IOVA + local_offset, length, e->key };
	struct send_work w = { .wr_id = qp_retired(e->qp) + 1000,
			       .opcode = (uint8_t)opcode,
			       .flags = flags,
			       .num_sge = 1,
			       .imm = 0x12345678,
			       .rkey = other->key,
			       .remote_addr = PAIR_IOVA + remote_offset };

	w.wr_id = e->qp->req.tail;
	pair_post_work(pair, e, &w, &sge);
}

void pair_post_receive(struct end *e, uint32_t offset, uint32_t length)
{
	struct recv_work *w = posted_receive(e, e->receive_tail);

	*w = (struct recv_work){ .wr_id = e->receive_tail, .num_sge = 1 };
	recv_work_sge(w)[0] = (struct work_sge){ PAIR_IOVA + offset, length, e->key };
	e->receive_tail++;
}

void pair_fill(uint8_t *at, uint32_t length, uint32_t seed)
{
	for (uint32_t i = 0; i < length; i++) {
		seed = seed * 1664525 + 1013904223;
		at[i] = (uint8_t)(seed >> 24);
	}
}
