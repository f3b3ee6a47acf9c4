/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer answers later packets and never the oldest one: it has fewer resources than it was said to
 * have, or it is hostile. Each answer asks for the oldest once more. After LIMIT_ROUNDS of that
 * without progress only probes and the timer repeat it. A round trip is 20 us.
 */
#include "story/story.h"
#include "transport/path.h"
#include "transport/qp.h"

#define PROBES	16u /* at most, before the timer */
#define PACKETS (LIMIT_ROUNDS + 20u)

/*
 * Hands everything that a has to send to a port. The port keeps it for a while, which restarts the
 * timer, and the network loses it. Returns how often the oldest was among it.
 */
static uint32_t send_in_vain(void)
{
	nanotime clock = now + ms(1000); /* stories begin at 1 s */
	uint32_t oldest = 0;

	while (node_next(a->q, clock, &a->packet, a->payload)) {
		node_sent(a->q, &a->packet, clock);
		qp_left(a->q->core, &a->packet, clock);
		oldest += a->packet.psn == a->q->core->req.una_psn;
	}
	return oldest;
}

static void send_atomics(uint32_t count, int retry_cnt)
{
	story(.recovery = true, .retry_cnt = retry_cnt);
	for (uint32_t i = 0; i < count; i++)
		post(a, .wr_id = 1 + i, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .compare_add = 1,
		     .from = 64 + 8 * i, .to = LANDS + 0x100);
	send_in_vain();
}

/* Once in each round trip, until the oldest was repeated so often or a has given up. */
static uint32_t answer_only(uint32_t psn, uint32_t most)
{
	uint32_t repeated = 0;

	while (repeated < most && now < ms(1000) && qp_state(a->q->core) != QP_STATE_ERR) {
		at(now + ROUND_TRIP);
		inject(a, OPB_ATOMIC_ACK, psn, .syndrome = 31, .msn = psn - A_PSN + 1);
		repeated += send_in_vain();
	}
	return repeated;
}

/* Each retry may begin the rounds again. */
Test(rounds, answers_to_later_requests_do_not_delay_the_timer_for_ever)
{
	for (int retries = 0; retries < 2; retries++) {
		uint32_t repeated, times = (uint32_t)retries + 1;

		send_atomics(2, retries > 0 ? retries : -1);
		repeated = answer_only(A_PSN + 1, UINT32_MAX);
		expect_completion(a, 1, STATUS_RETRY_EXC_ERR);
		cr_expect_geq(repeated, times * LIMIT_ROUNDS, "%u repetitions", repeated);
		cr_expect_leq(repeated, times * (LIMIT_ROUNDS + PROBES), "%u repetitions",
			      repeated);
		cr_expect_eq(qp_timeouts(a->q->core), times);
		node_free(&a->node);
		node_free(&b->node);
	}
}

/* The first is answered after all. Then the second is the oldest, and has rounds of its own. */
Test(rounds, progress_begins_them_again)
{
	uint32_t repeated;

	send_atomics(3, -1);
	answer_only(A_PSN + 2, LIMIT_ROUNDS + 2);
	inject(a, OPB_ATOMIC_ACK, A_PSN, .syndrome = 31, .msn = 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	repeated = answer_only(A_PSN + 2, UINT32_MAX);
	expect_completion(a, 2, STATUS_RETRY_EXC_ERR);
	cr_expect_geq(repeated, LIMIT_ROUNDS, "%u repetitions", repeated);
}

static void select_one(uint32_t psn)
{
	struct packet p = { .opcode = OPCODE_SELECTIVE_ACK,
			    .pkey = 0xffff,
			    .dest_qpn = A_QPN,
			    .psn = A_PSN - 1,
			    .syndrome = 31 };
	uint32_t n = psn - A_PSN;

	p.selection[n / 64] = UINT64_C(1) << (n % 64);
	expect_reason(story_inject(a, &p), REASON_NONE);
}

/* The peer holds one more of the repetitions each time, the last one first, within one round trip. */
Test(rounds, repetitions_that_arrive_repeat_the_oldest_so_often_and_no_more)
{
	uint32_t repeated = 0;

	story(.recovery = true, .selective = true);
	a->q->core->path->window = PACKETS * 2 * MTU;
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = PACKETS * MTU);
	send_in_vain();
	inject(a, OPB_ACK, A_PSN, .syndrome = SYNDROME_NAK_SEQUENCE);
	cr_assert_eq(send_in_vain(), 1, "the NAK asks for all");
	for (uint32_t n = PACKETS - 1; n > 0; n--) {
		select_one(A_PSN + n);
		repeated += send_in_vain();
	}
	cr_expect_eq(repeated, LIMIT_ROUNDS, "%u repetitions", repeated);
}
