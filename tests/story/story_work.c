/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of the sides of a story, their completions and states. */
#include "story_sides.h"

/* The destination: an address handle for datagrams, a remote address for other services. */
static void address(struct side *s, const struct request *r, struct send_work *w)
{
	uint32_t qkey = r->remote_qkey != 0 ? r->remote_qkey : QKEY;

	if (story_type(s) != QP_TYPE_UD && story_type(s) != QP_TYPE_RAW_PACKET)
		return;
	w->ah = r->ah != 0 ? r->ah : 9;
	w->remote_qpn = r->remote_qpn != 0 ? r->remote_qpn : s->peer->q->caps.qpn;
	w->remote_qkey = qkey;
	w->mss = r->mss;
	w->tso_header = r->header != NULL ? (uint16_t)strlen(r->header) : 0;
}

void story_post(struct side *s, const struct request *r)
{
	bool word = r->opcode == WORK_ATOMIC_CMP_AND_SWP ||
		    r->opcode == WORK_ATOMIC_FETCH_AND_ADD || r->opcode == WORK_ATOMIC_WRITE;
	struct send_work w = {
		.wr_id = r->wr_id,
		.opcode = r->opcode,
		.flags = (uint8_t)(r->flags | (r->unsignaled ? 0 : WORK_SIGNALED)),
		.imm = r->imm,
		.rkey = r->rkey != 0 ? r->rkey : s->peer->key,
		.remote_addr =
			r->remote_addr != 0 ? r->remote_addr : BASE + (r->to != 0 ? r->to : LANDS),
		.compare_add = r->compare_add,
		.swap = r->swap,
	};
	uint32_t srqn = r->srqn != 0 ? r->srqn : SRQ;
	struct {
		struct work_sge sge;
		char header[64];
	} slot;
	struct work_sge sge = { .addr = BASE + r->from,
				.length = word ? 8 : r->length,
				.lkey = r->lkey != 0 ? r->lkey : s->key };
	const void *tail = &slot;

	send_work_set_srqn(&w, srqn);
	if (r->opcode == WORK_FLUSH) {
		w.flush_type = r->flush_type;
		w.flush_level = r->flush_level;
		w.flush_length = r->flush_length;
	} else if (r->opcode == WORK_BIND_MW) {
		w.bind_lkey = s->key;
		w.bind_access = r->bind_access;
		w.bind_length = r->bind_length;
	}
	if (r->flags & WORK_INLINE) {
		w.inline_length = (uint16_t)sge.length;
		tail = octets(s, r->from);
	} else {
		w.num_sge = !r->no_sge && sge.length > 0;
	}
	address(s, r, &w);
	slot.sge = sge;
	if (r->header != NULL)
		strcpy(slot.header, r->header);
	if (r->header != NULL && w.num_sge == 0)
		tail = slot.header;
	cr_assert(node_post_send(s->q, &w, tail, story_clock()), "the window is full");
}

void post_receive(struct side *s, uint64_t wr_id, uint32_t length)
{
	struct work_sge sge = { .addr = BASE + LANDS + wr_id * 0x1000,
				.length = length,
				.lkey = s->key };

	cr_assert(node_post_receive(s->q, wr_id, &sge, length > 0), "the receive queue is full");
}

void post_srq_receive(struct side *s, uint32_t srqn, uint64_t wr_id, uint32_t length)
{
	struct work_sge sge = { .addr = BASE + LANDS + wr_id * 0x1000,
				.length = length,
				.lkey = s->key };

	for (uint32_t i = 0; i < s->node.srqs; i++) {
		if (s->node.srq[i].srqn == srqn) {
			cr_assert(node_srq_post(&s->node.srq[i], wr_id, &sge, length > 0));
			return;
		}
	}
	cr_assert_fail("%s has no SRQ %x", s->node.name, srqn);
}
static struct completion take(struct side *s, bool from_receive, uint64_t wr_id,
			      enum work_status status)
{
	struct node_completion c;

	cr_assert(node_take(s->q, &c), "%s: no completion, wr_id %llu was expected", s->node.name,
		  (unsigned long long)wr_id);
	cr_assert(c.from_receive == from_receive && c.c.wr_id == wr_id && c.c.status == status,
		  "%s: completion of %s wr_id %llu status %u (%s); %s %llu status %u was expected",
		  s->node.name, c.from_receive ? "receive" : "send", (unsigned long long)c.c.wr_id,
		  c.c.status, reason_text(c.c.vendor_err), from_receive ? "receive" : "send",
		  (unsigned long long)wr_id, status);
	cr_assert_eq(c.c.qp_num, s->q->caps.qpn);
	cr_assert_eq(c.c.qp_handle, s->q->caps.handle);
	return c.c;
}

struct completion expect_completion(struct side *s, uint64_t wr_id, enum work_status status)
{
	return take(s, false, wr_id, status);
}

struct completion expect_receive(struct side *s, uint64_t wr_id, enum work_status status,
				 uint32_t byte_len)
{
	struct completion c = take(s, true, wr_id, status);

	if (status == STATUS_SUCCESS)
		cr_assert_eq(c.byte_len, byte_len, "byte_len %u, %u was expected", c.byte_len,
			     byte_len);
	return c;
}

void expect_no_completion(struct side *s)
{
	struct node_completion c;

	if (node_take(s->q, &c))
		cr_assert_fail("%s: completion of wr_id %llu status %u, none was expected",
			       s->node.name, (unsigned long long)c.c.wr_id, c.c.status);
}

void expect_tso(const struct tso_row *row, uint32_t count)
{
	struct qp_attributes none = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		post(a, .wr_id = i, .opcode = WORK_TSO, .length = row[i].length,
		     .header = row[i].header, .mss = row[i].mss, .flags = row[i].flags);
		if (row[i].status == STATUS_SUCCESS) {
			expect_frame(a);
			expect_completion(a, i, STATUS_SUCCESS);
			continue;
		}
		expect_silence(a);
		expect_completion(a, i, row[i].status);
		cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	}
}

void post_writes(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		post(a, .wr_id = 1 + i, .opcode = WORK_RDMA_WRITE, .length = 8, .from = 8 * i,
		     .to = LANDS + 8 * i);
}

void expect_written(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		expect_completion(a, 1 + i, STATUS_SUCCESS);
	expect_no_completion(a);
	expect_same(b, LANDS, a, 0, 8 * n);
}

void expect_state(struct side *s, enum qp_state state)
{
	cr_assert_eq(qp_state(s->q->core), state, "%s is in state %d, %d was expected",
		     s->node.name, qp_state(s->q->core), state);
}

void expect_events(struct side *s, uint32_t events)
{
	uint32_t seen = node_events_take(s->q) & ~(uint32_t)QP_EVENT_ENTERED_ERR;

	cr_assert_eq(seen, events, "%s: events %x, %x were expected", s->node.name, seen, events);
}

const char *reason_text(enum reason r)
{
	return reason_name(r);
}
