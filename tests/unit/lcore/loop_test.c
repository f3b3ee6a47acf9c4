/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path alone: requests posted on one side arrive on the other and complete once. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "lcore/window.h"
#include "loop_rig.h"
#include "queue/pointers.h"
#include "queue/ring_client.h"

#define POLLS 100000

static void run_until(struct rig *r, uint32_t side, uint32_t completions)
{
	for (int i = 0; i < POLLS && r->side[side].completions < completions; i++)
		rig_poll(r);
	cr_assert_eq(r->side[side].completions, completions,
		     "%u of %u completions came, the last with status %u, reason %s",
		     r->side[side].completions, completions, r->side[side].last.status,
		     reason_sentence(r->side[side].last.vendor_err));
}

static void fill(struct rig *r)
{
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		r->side[0].buffer[i] = (uint8_t)(i * 7 + 3);
}

Test(loop, write_arrives_whole)
{
	static const uint32_t sizes[] = { 1, 8, 255, 4096, 4097, 65536 };
	struct rig *r = rig_open();

	fill(r);
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(r->side[1].buffer, 0, RIG_BUFFER);
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, sizes[i], WORK_SIGNALED));
		run_until(r, 0, i + 1);
		cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
		cr_assert_arr_eq(r->side[0].buffer, r->side[1].buffer, sizes[i]);
	}
	rig_close(r);
}

Test(loop, read_fetches_whole)
{
	struct rig *r = rig_open();

	fill(r);
	cr_assert(rig_post(r, 1, WORK_RDMA_READ, RIG_BUFFER, WORK_SIGNALED));
	run_until(r, 1, 1);
	cr_assert_arr_eq(r->side[0].buffer, r->side[1].buffer, RIG_BUFFER);
	rig_close(r);
}

/* The frame again, its octets in two pieces: a port may receive so. */
static struct rte_mbuf *in_two(struct rte_mbuf *m, uint16_t at)
{
	struct rte_mbuf *head = rte_pktmbuf_alloc(m->pool), *rest = rte_pktmbuf_alloc(m->pool);
	const uint8_t *octets = rte_pktmbuf_mtod(m, const uint8_t *);

	cr_assert(head != NULL && rest != NULL);
	memcpy(rte_pktmbuf_append(head, at), octets, at);
	memcpy(rte_pktmbuf_append(rest, (uint16_t)(m->data_len - at)), octets + at,
	       (size_t)m->data_len - at);
	cr_assert_eq(rte_pktmbuf_chain(head, rest), 0);
	head->hash.usr = m->hash.usr;
	rte_pktmbuf_free(m);
	return head;
}

/*
 * Cut at the beginning and after the end of each header. hostile H-8: a header across two buffers.
 */
Test(loop, frames_in_pieces_are_as_good_as_whole_ones)
{
	struct rig *r = rig_open();
	struct lcore *l = r->engine.lcore;
	uint32_t cuts = 0;

	fill(r);
	for (uint16_t at = 1; at < 80; at++) {
		memset(r->side[1].buffer, 0, RIG_BUFFER);
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 3000, WORK_SIGNALED));
		for (int i = 0; i < POLLS && r->side[0].completions < at; i++) {
			rig_poll(r);
			for (uint32_t k = l->loop_tail; k != l->loop_head; k++, cuts++) {
				struct rte_mbuf **m = &l->loop[k % LIMIT_LOOP];

				if ((*m)->nb_segs == 1 && (*m)->data_len > at)
					*m = in_two(*m, at);
			}
		}
		cr_assert_eq(r->side[0].completions, at, "cut at %u: nothing completes", at);
		cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS, "cut at %u", at);
		cr_assert_arr_eq(r->side[0].buffer, r->side[1].buffer, 3000);
	}
	cr_expect_gt(cuts, 80);
	rig_close(r);
}

/* The frame at hand arrives once more. */
static void repeat_frame(struct lcore *l)
{
	struct rte_mbuf *m = l->loop[l->loop_tail % LIMIT_LOOP], *again;

	again = rte_pktmbuf_copy(m, m->pool, 0, UINT32_MAX);
	cr_assert_not_null(again);
	again->hash.usr = m->hash.usr;
	l->loop[l->loop_head++ % LIMIT_LOOP] = again;
}

/* The counters of requests are of messages: a repetition has its reason, and is not one more. */
Test(loop, a_message_that_is_repeated_counts_once)
{
	static const struct {
		enum work_opcode opcode;
		uint32_t length;
		enum packet_kind kind;
	} rows[] = {
		{ WORK_RDMA_WRITE, 8, KIND_WRITE },
		{ WORK_RDMA_READ, 8, KIND_READ_REQUEST },
		{ WORK_ATOMIC_FETCH_AND_ADD, 8, KIND_FETCH_ADD },
	};
	struct rig *r = rig_open();
	struct lcore *l = r->engine.lcore;
	const struct lcore_statistics *s = &l->stats;

	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++) {
		cr_assert(rig_post(r, 0, rows[i].opcode, rows[i].length, WORK_SIGNALED));
		for (int k = 0; k < POLLS && l->loop_head == l->loop_tail; k++)
			rig_poll(r);
		repeat_frame(l);
		run_until(r, 0, i + 1);
		for (int k = 0; k < POLLS && s->by_reason[REASON_DUPLICATE] <= i; k++)
			rig_poll(r);
		cr_expect_eq(s->by_reason[REASON_DUPLICATE], i + 1, "row %u", i);
		cr_expect_eq(s->begun[rows[i].kind], 1, "row %u", i);
	}
	rig_close(r);
}

Test(loop, send_waits_for_its_receive)
{
	struct rig *r = rig_open();

	fill(r);
	cr_assert(rig_post(r, 0, WORK_SEND, 5000, WORK_SIGNALED));
	for (int i = 0; i < 100; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, 0, "a SEND completed without a receive");
	cr_assert(rig_receive(r, 1));
	run_until(r, 1, 1);
	run_until(r, 0, 1);
	cr_assert_eq(r->side[1].last.byte_len, 5000);
	cr_assert_arr_eq(r->side[0].buffer, r->side[1].buffer, 5000);
	rig_close(r);
}

#define PAGE 4096u

/* ... which it takes even if nothing is placed there. */
Test(loop, an_empty_send_takes_its_receive)
{
	struct rig *r = rig_open();

	fill(r);
	cr_assert(rig_receive_at(r, 1, 0, 0) && rig_receive_at(r, 1, PAGE, 8));
	cr_assert(rig_post(r, 0, WORK_SEND, 0, WORK_SIGNALED));
	cr_assert(rig_post(r, 0, WORK_SEND, 8, WORK_SIGNALED));
	run_until(r, 1, 2);
	run_until(r, 0, 2);
	cr_expect_arr_eq(r->side[0].buffer, r->side[1].buffer + PAGE, 8);
	rig_close(r);
}

/* More messages in a burst than completions that a queue pair keeps: it is settled when it has no room. */
Test(loop, a_burst_of_sends_finds_room)
{
	const uint32_t messages = 2 * LIMIT_TICKETS;
	struct rig *r = rig_open();

	for (uint32_t turn = 1; turn <= 8; turn++) { /* the window grows meanwhile */
		for (uint32_t i = 0; i < messages; i++) {
			cr_assert(rig_receive(r, 1));
			cr_assert(rig_post(r, 0, WORK_SEND, 8, WORK_SIGNALED));
		}
		run_until(r, 1, turn * messages);
		run_until(r, 0, turn * messages);
	}
	cr_expect_eq(r->engine.lcore->stats.by_reason[REASON_BUSY], 0, "one was dropped");
	cr_expect_eq(r->engine.lcore->stats.retransmitted, 0);
	rig_close(r);
}

/* So many messages arrive in one burst. Returns how many queue pairs ask for room. */
static uint32_t asking(struct rig *r, uint32_t messages, uint32_t before)
{
	for (uint32_t i = 0; i < messages; i++) {
		cr_assert(rig_receive(r, 1));
		cr_assert(rig_post(r, 0, WORK_SEND, 8, WORK_SIGNALED));
	}
	run_until(r, 1, before + messages);
	run_until(r, 0, before + messages);
	return rte_ring_count(r->engine.crowded);
}

static struct rig *rig_with_little_room(void)
{
	struct rig *r;

	rig_tickets = LIMIT_TICKETS_NEW;
	r = rig_open();
	r->engine.crowded = rte_ring_create("crowded", 8, SOCKET_ID_ANY, 0);
	r->engine.control_fd = eventfd(0, EFD_NONBLOCK);
	cr_assert(r->engine.crowded != NULL && r->engine.control_fd >= 0);
	return r;
}

static void rig_with_little_room_close(struct rig *r)
{
	rte_ring_free(r->engine.crowded);
	close(r->engine.control_fd);
	rig_close(r);
}

/* Otherwise it is settled within each burst, again and again. */
Test(loop, a_queue_pair_that_receives_bursts_asks_for_room_once)
{
	struct rig *r = rig_with_little_room();
	void *qpn;

	cr_expect_eq(asking(r, 1, 0), 0, "one has room");
	cr_expect_eq(asking(r, LIMIT_TURN, 1), 1);
	cr_expect_eq(asking(r, LIMIT_TURN, 1 + LIMIT_TURN), 1, "it asked again");
	cr_assert(pointer_take(r->engine.crowded, &qpn));
	cr_expect_eq((uintptr_t)qpn, r->side[1].qp.qpn);
	rig_with_little_room_close(r);
}

/* Their rooms would not stay in the cache. */
Test(loop, among_many_queue_pairs_none_asks_for_room)
{
	struct rig *r = rig_with_little_room();

	r->engine.lcore->qps = LIMIT_QPS_NEAR + 1;
	cr_expect_eq(asking(r, LIMIT_TURN, 0), 0);
	rig_with_little_room_close(r);
}

/*
 * An acknowledgement and the peer's next message in one burst: who polls for the message may post at once, so
 * the request that was acknowledged has completed by then, and its slot is free.
 */
Test(loop, what_was_acknowledged_completes_before_a_later_receive)
{
	struct rig *r = rig_open();
	struct rig_side *s = &r->side[0];

	s->qp.recv_cq = &s->send_cq;
	for (uint32_t turn = 1; turn <= 8; turn++) {
		cr_assert(rig_receive(r, 0) && rig_receive(r, 1));
		cr_assert(rig_post(r, 0, WORK_SEND, 8, WORK_SIGNALED));
		rig_poll(
			r); /* it leaves; the peer receives it while it has a message of its own to send */
		cr_assert(rig_post(r, 1, WORK_SEND, 8, WORK_SIGNALED));
		for (int i = 0; i < POLLS && s->completions < 2 * turn - 1; i++)
			rig_poll(r);
		cr_assert_eq(s->completions, 2 * turn, "turn %u: both came in one burst", turn);
		cr_assert_eq(s->last.opcode, COMPLETION_RECV,
			     "turn %u: the receive is the later one", turn);
		run_until(r, 1, 2 * turn);
	}
	rig_close(r);
}

Test(loop, atomic_adds_once)
{
	struct rig *r = rig_open();
	uint64_t before = 41, seen;

	memcpy(r->side[1].buffer, &before, 8);
	cr_assert(rig_post(r, 0, WORK_ATOMIC_FETCH_AND_ADD, 8, WORK_SIGNALED));
	run_until(r, 0, 1);
	memcpy(&seen, r->side[0].buffer, 8);
	cr_assert_eq(seen, before, "the original value comes back");
	rig_close(r);
}

/* hostile H-52: a frame has one owner. */
Test(loop, every_buffer_comes_back)
{
	struct rig *r = rig_open();
	uint32_t free_before = rte_mempool_avail_count(r->engine.pool);
	uint32_t posted = 0;

	while (posted < 10000) {
		for (uint32_t i = 0; i < 32 && rig_post(r, 0, WORK_RDMA_WRITE, 64, WORK_SIGNALED);
		     i++)
			posted++;
		for (int i = 0; i < POLLS && r->side[0].completions < posted; i++)
			rig_poll(r);
	}
	run_until(r, 0, posted);
	for (int i = 0; i < 100; i++)
		rig_poll(r);
	cr_assert_eq(rte_mempool_avail_count(r->engine.pool), free_before, "packet buffers leaked");
	rig_close(r);
}

/* hostile H-90: forged positions in a ring; H-146: rings without end. */
Test(loop, forged_tail_ends_only_its_queue_pair)
{
	struct rig *r = rig_open();
	uint32_t *tail = (uint32_t *)(r->side[0].qp.sq.shared + 128 + 4);

	*tail = 0x7fffffff;
	r->side[0].qp.page->doorbell = 0;
	cr_assert(rig_post(r, 1, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	run_until(r, 1, 1);
	lcore_qp_touch(r->engine.lcore, &r->side[0].qp, clock_now());
	cr_assert_eq(qp_state(r->side[0].qp.core), QP_STATE_ERR);
	cr_assert_eq(qp_state(r->side[1].qp.core), QP_STATE_RTS);
	rig_close(r);
}

/*
 * A bell that names objects that do not exist, also the slot after the table of handles. Programs
 * that ring correctly are served.
 */
Test(loop, handles_that_name_nothing_ring_for_nobody)
{
	static const uint32_t handles[] = { 0, RIG_SIDES + 1, LIMIT_QPS, LIMIT_QPS + 1,
					    0x7fffffff };
	struct rig *r = rig_open();
	struct engine_qp **table = calloc(LIMIT_QPS + 2, sizeof(*table)), *behind = &r->side[2].qp;

	memcpy(table, r->client.qp, (LIMIT_QPS + 1) * sizeof(*table));
	free(r->client.qp);
	r->client.qp = table;
	table[LIMIT_QPS + 1] = behind;
	behind->page->doorbell = 1;
	for (uint32_t i = 0; i < ARRAY_SIZE(handles); i++)
		bell_enqueue((struct rte_ring *)r->client.bell[0].shared, handles[i]);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	run_until(r, 0, 1);
	cr_expect_eq(r->side[0].last.status, STATUS_SUCCESS);
	cr_expect_eq(behind->page->doorbell, 1, "what stands behind the table was used");
	rig_close(r);
}

/* The lcore's own marks of a request are not for a program to write. */
Test(loop, what_a_program_writes_into_marks_is_not_believed)
{
	struct rig *r = rig_open();
	struct recv_work *w;

	fill(r);
	cr_assert(rig_receive(r, 1));
	cr_assert_eq(ring_readable(&r->side[1].qp.rq), 1);
	w = (struct recv_work *)(uintptr_t)ring_read_slot(&r->side[1].qp.rq, 0);
	w->mark = 77;
	w->strip = 16;
	cr_assert(rig_post(r, 0, WORK_SEND, 100, 0));
	run_until(r, 1, 1);
	cr_expect_eq(r->side[1].last.byte_len, 100);
	cr_expect_neq(r->side[1].last.work_index, 77);
	cr_expect_arr_eq(r->side[0].buffer, r->side[1].buffer, 100);
	rig_close(r);
}

/* It fails while its packet is made, when the queue pair has nothing to send any more. */
Test(loop, a_request_with_a_wrong_key_of_its_own_fails)
{
	struct rig *r = rig_open();
	uint32_t key = r->side[0].key;

	r->side[0].key = key ^ 1;
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	r->side[0].key = key;
	run_until(r, 0, 1);
	cr_expect_eq(r->side[0].last.status, STATUS_LOC_PROT_ERR);
	cr_expect_eq(qp_state(r->side[0].qp.core), QP_STATE_ERR);
	rig_close(r);
}

static void to_reset(struct rig *r, struct engine_qp *q)
{
	struct qp_attributes a = { .state = QP_STATE_RESET };

	cr_assert_eq(qp_modify(q->core, &a, QP_ATTR_STATE, NULL), 0);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
}

/* A receive that the lcore looked at, and the wish to flush others, were of the last connection. */
Test(loop, reset_forgets_what_the_lcore_had_begun)
{
	struct rig *r = rig_open();
	struct lcore *l = r->engine.lcore;
	struct engine_qp *q = &r->side[1].qp;
	const struct recv_work *w;
	const struct work_sge *sge;

	cr_assert(rig_receive_at(r, 1, 0, 64));
	l->srq = NULL;
	cr_assert_not_null(receive_peek(l, q, clock_now()));
	to_reset(r, q);
	cr_expect_null(receive_peek(l, q, clock_now()), "it was forgotten");
	cr_assert(rig_receive_at(r, 1, 4096, 64));
	w = receive_peek(l, q, clock_now());
	cr_assert_not_null(w);
	sge = (const struct work_sge *)(const void *)((const uint8_t *)w + sizeof(*w));
	cr_expect_eq(sge->addr, (uintptr_t)r->side[1].buffer + 4096);
	q = &r->side[3].qp;
	qp_fail(q->core, REASON_CLIENT_GONE);
	lcore_qp_touch(l, q, clock_now());
	cr_expect(q->flushing);
	cr_expect_eq(q->page->flush_receives, 1);
	to_reset(r, q);
	cr_expect_not(q->flushing);
	cr_expect_eq(q->page->flush_receives, 0, "programs would ring for each receive");
	rig_close(r);
}

/* More than the window holds, by one bell: the rest comes when there is room, without another one. */
Test(loop, what_finds_no_room_in_the_window_comes_later)
{
	struct rig *r = rig_open();
	uint32_t posted = 0;

	while (rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED))
		posted++;
	cr_assert_gt(posted, rig_depth);
	run_until(r, 0, posted);
	cr_expect_eq(r->side[0].last.status, STATUS_SUCCESS);
	rig_close(r);
}

/* A bell of this lcore that names a queue pair of another one, which that one alone may touch. */
Test(loop, a_handle_of_another_lcore_is_not_served)
{
	struct rig *r = rig_open();
	struct lcore other = { .index = 1 };
	struct engine_qp *q = &r->side[2].qp;

	q->lcore = &other;
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	run_until(r, 0, 1);
	cr_expect_eq(ring_readable(&q->sq), 1, "its ring was read");
	cr_expect_eq(q->page->doorbell, 1);
	q->lcore = r->engine.lcore;
	rig_close(r);
}

/* What the program does while it is told of a completion. */
static struct rig *posts_meanwhile;

ssize_t __real_send(int fd, const void *octets, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *octets, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *octets, size_t n, int flags)
{
	struct rig *r = posts_meanwhile;

	posts_meanwhile = NULL;
	if (r != NULL)
		cr_expect(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	return __real_send(fd, octets, n, flags);
}

/* In ERR a request completes at once, while its bell is served: the next bell is one of its own. */
Test(loop, what_is_posted_while_a_bell_is_served_is_seen)
{
	struct rig *r = rig_open();
	struct engine_cq *cq = &r->side[0].send_cq;
	struct engine_channel channel = { .client = &r->client };
	int fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	channel.fd = fd[0];
	cq->channel = &channel;
	qp_fail(r->side[0].qp.core, REASON_CLIENT_GONE);
	lcore_qp_touch(r->engine.lcore, &r->side[0].qp, clock_now());
	cq_ring_arm(cq->rings.now->page, CQ_ARMED_NEXT);
	posts_meanwhile = r;
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	run_until(r, 0, 2);
	cr_expect_null(posts_meanwhile, "there was no event");
	close(fd[0]);
	close(fd[1]);
	rig_close(r);
}

/* Other queue pairs' binds fill the ring to the control thread. */
Test(loop, a_bind_that_finds_the_ring_full_is_passed_on_later)
{
	struct rig *r = rig_open();
	struct engine *e = &r->engine;
	void *other = r, *p = NULL;

	e->control_fd = eventfd(0, EFD_NONBLOCK);
	r->client.shares = true; /* so this lcore may not bind by itself */
	cr_assert_eq(windows_prepare(e), 0);
	while (pointer_put(e->operations[0], other))
		;
	cr_assert(rig_post(r, 0, WORK_BIND_MW, 64, 0));
	rig_poll(r);
	rig_poll(r);
	while (pointer_take(e->operations[0], &p))
		cr_assert_eq(p, other);
	rig_poll(r);
	cr_assert(pointer_take(e->operations[0], &p), "the bind is lost");
	cr_expect_eq(p, &r->side[0].qp);
	windows_destroy(e);
	close(e->control_fd);
	rig_close(r);
}
