/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies that a mover makes, with a mover that is held up. Nothing that arrives meanwhile is lost. */
#include <criterion/criterion.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "lcore/moving/moving.h"
#include "moving_rig.h"
#include "wire/opcode.h"

static void begin(void)
{
	moving_rig_open(0);
}

/* No packet is sent again, however long a mover has no processor: a lost packet stays lost. */
TestSuite(moving, .init = begin, .fini = moving_rig_close, .timeout = 60);

#define WRITES 16u /* of 16 packets each: more than unsettled copies of a queue pair */

Test(moving, packets_wait_for_a_mover_that_is_held_up)
{
	close_gate(&r->client);
	for (uint32_t i = 0; i < WRITES; i++)
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER,
				   i + 1 == WRITES ? WORK_SIGNALED : 0));
	poll_some();
	cr_expect_eq(r->side[0].completions, 0, "nothing was copied yet");
	open_gate();
	run_until(0, 1);
	cr_assert_eq(memcmp(r->side[0].buffer, r->side[1].buffer, RIG_BUFFER), 0);
	cr_expect_eq(dropped(), 0, "%lu packets were dropped", dropped());
	cr_expect_eq(r->engine.lcore->stats.by_reason[REASON_NAK_SEQUENCE], 0);
}

/* Small ones that come alone, so that each is a job of its own. */
Test(moving, a_client_that_is_held_up_leaves_movers_to_others)
{
	close_gate(&r->client);
	for (uint32_t i = 0; i < 100; i++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, i == 99 ? WORK_SIGNALED : 0));
		rig_poll(r);
	}
	for (uint32_t i = 0; i < WRITES; i++) {
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
		run_until(2, i + 1);
	}
	cr_assert_eq(memcmp(r->side[2].buffer, r->side[3].buffer, RIG_BUFFER), 0);
	cr_expect_eq(r->side[0].completions, 0);
	open_gate();
	run_until(0, 1);
	cr_expect_eq(dropped(), 0, "%lu packets were dropped", dropped());
}

/* An atomic sees all writes before it. */
Test(moving, an_atomic_waits_for_the_writes_before_it)
{
	uint64_t written, seen;

	memcpy(&written, r->side[0].buffer, 8);
	close_gate(&r->client);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, 0));
	cr_assert(rig_post(r, 0, WORK_ATOMIC_FETCH_AND_ADD, 8, WORK_SIGNALED));
	for (uint32_t i = 0; i < 100; i++)
		rig_poll(r);
	memset(r->side[0].buffer, 0, 8);
	poll_some();
	open_gate();
	run_until(0, 1);
	memcpy(&seen, r->side[0].buffer, 8);
	cr_assert_eq(seen, written, "%lx instead of %lx", seen, written);
}

/* Frames that are read by a mover go out when it comes to them, and their queue pair waits. */
Test(moving, a_sender_waits_for_its_mover)
{
	make_peer(2, &r->client);
	close_gate(&r->client);
	for (uint32_t i = 0; i < WRITES; i++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, 0));
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
		rig_poll(r);
	}
	poll_some();
	cr_expect_eq(r->side[2].completions, 0);
	open_gate();
	run_until(2, WRITES);
	cr_assert_eq(memcmp(r->side[2].buffer, r->side[3].buffer, RIG_BUFFER), 0);
	cr_expect_eq(dropped(), 0, "%lu packets were dropped", dropped());
}

/* ... and only those of its peer: packets of strangers take no place there. */
Test(moving, packets_of_strangers_do_not_wait)
{
	struct engine_qp *q = &r->side[1].qp;
	const struct gid own = { { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };
	const struct packet p = { .opcode = OPB_WRITE_ONLY,
				  .src_gid = own,
				  .dst_gid = own,
				  .dest_qpn = q->qpn,
				  .sender = r->side[3].qp.qpn };
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->engine.pool);

	close_gate(&r->client);
	for (uint32_t i = 0; i < WRITES; i++)
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	poll_some();
	cr_assert_not(STAILQ_EMPTY(&q->held), "the mover still takes packets");
	cr_expect_not(packet_input(r->engine.lcore, q, &p, m, clock_now()), "it is held");
	cr_expect_eq(r->engine.lcore->stats.by_reason[REASON_SENDER_FOREIGN], 1);
	rte_pktmbuf_free(m);
	open_gate();
	run_until(0, WRITES);
}

/* In ERR a completion gives memory back (protocol-map 137): not before the mover has read it. */
Test(moving, what_is_flushed_waits_for_the_mover_that_reads_it)
{
	make_peer(2, &r->client);
	close_gate(&r->client);
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	poll_some();
	qp_fail(r->side[2].qp.core, REASON_CLIENT_GONE);
	lcore_qp_touch(r->engine.lcore, &r->side[2].qp, clock_now());
	poll_some();
	cr_expect_eq(r->side[2].completions, 0, "the mover is to read its memory yet");
	open_gate();
	wait_for(2, 1);
	cr_expect_neq(r->side[2].last.status, STATUS_SUCCESS);
}

/* The side's first page is peer memory, the rest of it is direct. */
static void make_half_peer(uint32_t side, struct client *c)
{
	struct region *old =
		(struct region *)(uintptr_t)key_withdraw(&r->engine.keys, r->side[side].key);
	struct region *m = calloc(1, sizeof(*m) + 2 * sizeof(m->piece[0]));

	*m = *old;
	free(old);
	m->client = c->number;
	m->pieces = 2;
	m->piece[0].peer_address = (uintptr_t)r->side[side].buffer;
	m->piece[1].offset = PAGE;
	m->piece[1].direct = r->side[side].buffer + PAGE;
	key_publish(&r->engine.keys, r->side[side].key, m);
	r->side[side].qp.client = c;
}

/* A WRITE to the one half, one to the other, and an atomic there: `words` of it at the second page. */
static void post_to_both_halves(void)
{
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 0, 0, 2 * PAGE, 0));
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 64, PAGE + 64, 8, 0));
	cr_assert(rig_post_at(r, 0, WORK_ATOMIC_FETCH_AND_ADD, 0, PAGE + 128, 8, WORK_SIGNALED));
}

/* Nothing in memory that the engine maps is seen before what the mover has not copied yet. */
Test(moving, direct_memory_waits_for_peer_memory_before_it)
{
	static const uint8_t nothing[PAGE];

	make_half_peer(1, &r->client);
	close_gate(&r->client);
	post_to_both_halves();
	poll_some();
	cr_expect_arr_eq(r->side[1].buffer + PAGE, nothing, PAGE, "it overtook the mover");
	cr_expect_eq(r->side[0].completions, 0);
	open_gate();
	run_until(0, 1);
	cr_expect_arr_eq(r->side[1].buffer + 8, r->side[0].buffer + 8, PAGE - 8);
	cr_expect_arr_eq(r->side[1].buffer + PAGE + 64, r->side[0].buffer + 64, 8);
	cr_expect_eq(r->engine.direct_moves[r->client.number], 0);
}

/* ... and it may go meanwhile. */
Test(moving, direct_memory_that_goes_is_not_written)
{
	static const uint8_t nothing[PAGE];
	const struct region *m;

	make_half_peer(1, &r->client);
	close_gate(&r->client);
	post_to_both_halves();
	poll_some();
	cr_expect_gt(r->engine.direct_moves[r->client.number], 0);
	m = key_withdraw(&r->engine.keys, r->side[1].key);
	moving_revoke(r->engine.lcore, &other, NULL);
	cr_expect_gt(r->engine.direct_moves[r->client.number], 0, "it is not the other one's");
	moving_revoke(r->engine.lcore, &r->client, m);
	cr_expect_eq(r->engine.direct_moves[r->client.number], 0);
	mover_leaves_direct(r->client.mover);
	open_gate();
	for (nanotime until = clock_now() + PATIENCE; r->side[0].completions == 0;) {
		rig_poll(r);
		cr_assert_lt(clock_now(), until, "nothing came back");
	}
	cr_expect_neq(r->side[0].last.status, STATUS_SUCCESS);
	cr_expect_arr_eq(r->side[1].buffer + PAGE, nothing, PAGE);
	key_publish(&r->engine.keys, r->side[1].key, m);
}

#define TIMEOUT	    18u
#define RETRY_TIMER (UINT64_C(4096) << TIMEOUT)

static void begin_timed(void)
{
	moving_rig_open(TIMEOUT);
}

TestSuite(moving_timed, .init = begin_timed, .fini = moving_rig_close, .timeout = 60);

static void expect_no_retry(const char *when)
{
	cr_expect_eq(r->engine.lcore->stats.timeouts, 0, "%s", when);
	cr_expect_eq(r->engine.lcore->stats.retransmitted, 0, "%s", when);
}

/* The peer has nothing to answer to as long as the frames are at the mover. */
Test(moving_timed, no_retry_is_spent_on_frames_that_did_not_leave)
{
	nanotime until, left_after;

	make_peer(2, &other);
	close_gate(&other);
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	for (until = clock_now() + 2 * RETRY_TIMER; clock_now() < until;)
		rig_poll(r);
	cr_expect_eq(r->side[2].completions, 0);
	expect_no_retry("while they waited");
	left_after = clock_now();
	open_gate();
	run_until(2, 1);
	cr_assert_eq(memcmp(r->side[2].buffer, r->side[3].buffer, RIG_BUFFER), 0);
	/* later, the mover may have had no processor for so long */
	if (clock_now() - left_after < RETRY_TIMER)
		expect_no_retry("when they had left");
}

static void reset(struct engine_qp *q)
{
	struct qp_attributes a = { .state = QP_STATE_RESET };

	cr_assert_eq(qp_modify(q->core, &a, QP_ATTR_STATE, NULL), 0);
	lcore_qp_touch(r->engine.lcore, q, clock_now());
}

/*
 * ... and the queue pair that they came for goes: nothing of them is left. hostile H-127: waiting
 * packets go with their queue pair.
 */
Test(moving, what_waits_goes_with_its_queue_pair)
{
	nanotime until = clock_now() + PATIENCE;

	close_gate(&r->client);
	for (uint32_t i = 0; i < WRITES; i++)
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, 0));
	poll_some();
	cr_assert_gt(rte_mempool_in_use_count(r->engine.pool), 0, "something waits");
	reset(&r->side[0].qp);
	reset(&r->side[1].qp);
	open_gate();
	while (rte_mempool_in_use_count(r->engine.pool) > 0 && clock_now() < until)
		rig_poll(r);
	cr_assert_eq(rte_mempool_in_use_count(r->engine.pool), 0, "%u buffers are lost",
		     rte_mempool_in_use_count(r->engine.pool));
}

/* ... also one that is destroyed. */
Test(moving, what_is_held_goes_with_a_queue_pair_that_is_destroyed)
{
	struct engine_qp *q = &r->side[1].qp;

	close_gate(&r->client);
	for (uint32_t i = 0; i < WRITES; i++)
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, 0));
	poll_some();
	cr_assert_not(STAILQ_EMPTY(&q->held), "the mover still takes packets");
	lcore_qp_detach(r->engine.lcore, q, clock_now());
	cr_expect(STAILQ_EMPTY(&q->held));
	directory_publish(&r->engine, q); /* rig_close detaches it again */
	open_gate();
}

#define PART	 64u /* octets of a region in one piece: a packet of 4096 is as many copies */
#define LAST_JOB 39u /* with so many under way a client may have one more */

/* The side's memory, all of it peer memory in small parts. */
static void make_peer_parts(uint32_t side, struct client *c)
{
	struct region *old =
		(struct region *)(uintptr_t)key_withdraw(&r->engine.keys, r->side[side].key);
	uint32_t parts = RIG_BUFFER / PART;
	struct region *m = calloc(1, sizeof(*m) + parts * sizeof(m->piece[0]));

	*m = *old;
	free(old);
	m->client = c->number;
	m->pieces = parts;
	for (uint32_t i = 0; i < parts; i++)
		m->piece[i] = (struct region_piece){
			.offset = i * PART,
			.peer_address = (uintptr_t)r->side[side].buffer + i * PART,
		};
	key_publish(&r->engine.keys, r->side[side].key, m);
	r->side[side].qp.client = c;
}

/* A type 2 window of that side's queue pair. */
static void make_window(uint32_t side, struct region *w)
{
	*w = (struct region){ .key = key_allocate(&r->engine.keys, 2),
			      .pd = qp_capabilities(r->side[side].qp.core)->pd,
			      .access = ACCESS_REMOTE_WRITE,
			      .length = RIG_BUFFER,
			      .kind = REGION_WINDOW,
			      .window_qpn = r->side[side].qp.qpn,
			      .parent = key_find(&r->engine.keys, r->side[side].key) };
	key_publish(&r->engine.keys, w->key, w);
}

/* The key that a SEND invalidates has no copies, and goes with those of its SEND. */
Test(moving, a_key_is_taken_back_with_the_last_room_of_a_job)
{
	struct region window;

	make_peer_parts(1, &r->client);
	make_window(1, &window);
	r->side[0].qp.client = &other; /* its own sending waits for no job of theirs */
	cr_assert(rig_receive(r, 1));
	close_gate(&r->client);
	for (uint32_t i = 0; i < LAST_JOB; i++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, 0));
		for (int polls = 0; polls < 4; polls++)
			rig_poll(r);
	}
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, PAGE, 0));
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, PAGE, 0));
	cr_assert(rig_post_invalidate(r, 0, PAGE, window.key));
	poll_some();
	cr_expect_eq(r->side[1].completions, 0);
	open_gate();
	run_until(1, 1);
	run_until(0, 1);
	cr_expect_eq(r->side[1].last.imm, window.key);
	cr_expect_null(key_find(&r->engine.keys, window.key));
	cr_assert_eq(memcmp(r->side[0].buffer, r->side[1].buffer, PAGE), 0);
	cr_expect_eq(dropped(), 0, "%lu packets were dropped", dropped());
}

static void leave(struct lcore *l, void *arg, nanotime at)
{
	doorbells_poll(l, at);
	cr_expect_not(lcore_let_leave(l, l->client[l->clients - 1], at));
}

/*
 * The control path serves all programs, so it must not be in a copy when it runs a message for an
 * lcore that no thread polls.
 */
Test(moving, a_stand_in_for_an_lcore_makes_no_copies)
{
	struct uffdio_zeropage fill = { .range.len = PAGE };
	struct client slow = other;
	struct region *m;

	gate.page = blocking_page(&gate.fd);
	slow.number = 2;
	slow.memory = rig_own_memory();
	slow.mover = NULL;
	r->engine.client[2] = &slow;
	lcore_client_attach(r->engine.lcore, &slow);
	make_peer(2, &slow);
	m = (struct region *)(uintptr_t)key_find(&r->engine.keys, r->side[2].key);
	m->piece[0].peer_address = (uintptr_t)gate.page;
	for (uint32_t i = 0; i < READS; i++)
		cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 8, i + 1 == READS ? WORK_SIGNALED : 0));
	lcore_call(r->engine.lcore, leave, NULL);
	fill.range.start = (uintptr_t)gate.page;
	cr_assert_eq(ioctl(gate.fd, UFFDIO_ZEROPAGE, &fill), 0);
	run_until(2, 1);
	lcore_client_detach(r->engine.lcore, &slow);
	peer_memory_close(slow.memory);
	free(slow.memory);
	r->side[2].qp.client = &other;
	close(gate.fd);
}

/* ---- how many jobs a user may have ---- */

#define PROGRAMS   8u /* of one user */
#define USERS	   16u /* with one program each */
#define HALF	   64u /* of the jobs of an lcore */
#define WORTH_MUCH 16u

/* Jobs with nothing to copy, as many as the program is given: its mover is held up. */
static uint32_t take_jobs(const struct client *like, uint32_t number, uint32_t user,
			  struct client *c)
{
	struct lcore *l = r->engine.lcore;
	struct copy_batch *b;
	uint32_t n = 0;

	*c = *like;
	c->number = number;
	c->user = user;
	while ((b = moving_open(l, c, 0)) != NULL) {
		b->pending[b->tickets++] = (struct pending_ticket){ 0 };
		moving_flush(l, 0);
		n++;
	}
	return n;
}

/* hostile H-122: one user's programs, however many, leave half of the jobs, and each user has one. */
Test(moving, jobs_are_shared_by_users)
{
	static struct client c[PROGRAMS + USERS];
	uint32_t taken = 0, of[USERS];
	nanotime until;

	close_gate(&r->client);
	for (uint32_t i = 0; i < PROGRAMS; i++)
		taken += take_jobs(&r->client, 2 + i, 1, &c[i]);
	cr_expect_geq(taken, WORTH_MUCH);
	cr_expect_leq(taken, HALF, "one user has %u jobs", taken);
	for (uint32_t i = 0; i < USERS; i++)
		of[i] = take_jobs(&r->client, 2 + PROGRAMS + i, 2 + i, &c[PROGRAMS + i]);
	cr_expect_geq(of[0], WORTH_MUCH, "the next user has %u", of[0]);
	for (uint32_t i = 0; i < USERS; i++)
		cr_expect_geq(of[i], 1, "user %u of %u has none", i, USERS);
	open_gate();
	until = clock_now() + PATIENCE;
	while (moving_under_way(r->engine.lcore) && clock_now() < until)
		rig_poll(r);
	cr_assert_not(moving_under_way(r->engine.lcore));
}

/* All jobs of the lcore, of users who have some each. */
static void take_all_jobs(struct client *c, uint32_t clients)
{
	for (uint32_t i = 0; i < clients && take_jobs(&r->client, 2 + i, 1 + i, &c[i]) > 0; i++)
		;
	cr_assert_null(moving_open(r->engine.lcore, &r->client, 0), "there are jobs left");
}

/* The mover has made all copies that it has now, and the lcore has taken back none of its own. */
static void open_gate_and_wait(void)
{
	struct mover_batch last = { .lcore = gate.batch.lcore }, *b;
	nanotime until = clock_now() + PATIENCE;

	cr_assert(mover_submit(r->client.mover, &last));
	open_gate();
	do {
		b = mover_poll(r->client.mover, last.lcore);
		cr_assert_lt(clock_now(), until, "the mover does not end");
	} while (b != &last);
}

/* A job of packets that were held needs nothing else that arrives. */
Test(moving, the_last_that_is_held_goes_to_its_mover)
{
	static struct client c[HALF];

	close_gate(&r->client);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	rig_poll(r); /* it leaves: a sender of this client would wait for a job, too */
	take_all_jobs(c, HALF);
	poll_some();
	cr_assert_not(STAILQ_EMPTY(&r->side[1].qp.held), "it is not held");
	open_gate_and_wait();
	run_until(0, 1);
}
