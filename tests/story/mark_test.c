/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks of the network (CE), and the notifications that they cause. protocol-map 181, 182, 183, 186 */
#include "story/story.h"
#include "transport/path.h"
#include "wire/header.h"

#define CNP_EVERY (LIMIT_CNP_US * TIME_US)

/* The packet that this side sent last arrives, marked by the network. */
static void deliver_marked(struct side *s)
{
	s->packet.ecn = ECN_CE;
	deliver(s);
}

static void expect_cnp(struct side *s)
{
	const struct packet *p = expect_packet(s, "CNP", 0);

	cr_expect(p->becn && !p->fecn && !p->ack_req && !p->solicited && !p->mig_req &&
		  !p->selective);
	cr_expect_eq(p->payload_length, 0);
}

static struct path paths[2];

static void story_on_paths(void)
{
	story();
	for (uint32_t i = 0; i < 2; i++) {
		path_init(&paths[i]);
		paths[i].window = 64 * MTU;
		path_looked(&paths[i]);
	}
	qp_give_path(a->q->core, &paths[0]);
	qp_give_path(b->q->core, &paths[1]);
}

Test(mark, a_marked_request_is_told_to_its_sender_before_it_is_acknowledged)
{
	story_on_paths();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	expect_packet(a, "RC WRITE ONLY", A_PSN);
	deliver_marked(a);
	expect_cnp(b);
	deliver(b);
	pass_ack(b, A_PSN, 1);
	expect_silence(b);
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_expect_eq(paths[0].events[PATH_CNP_RECEIVED], 1);
	cr_expect_eq(paths[0].events[PATH_CNP_SENT], 0);
	cr_expect_eq(paths[1].events[PATH_CNP_SENT], 1);
}

Test(mark, so_is_a_marked_response)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 8);
	pass(a, "RC READ REQUEST", A_PSN);
	expect_packet(b, "RC READ RESPONSE ONLY", A_PSN);
	deliver_marked(b);
	expect_cnp(a);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* It asked for what filled the queue. The peer, which only answers, has no window for that. hostile H-58: once in a
 * round trip, however many are marked.
 */
Test(mark, a_marked_response_slows_its_requester)
{
	story_on_paths();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 2 * MTU);
	pass(a, "RC READ REQUEST", A_PSN);
	expect_packet(b, "RC READ RESPONSE FIRST", A_PSN);
	deliver_marked(b);
	cr_expect_eq(paths[0].window, 32 * MTU);
	expect_packet(b, "RC READ RESPONSE LAST", A_PSN + 1);
	deliver_marked(b);
	cr_expect_eq(paths[0].window, 32 * MTU, "once in a round trip");
	cr_expect_eq(paths[1].window, 64 * MTU);
}

/* ... but an atomic's does not: what fills the queue is not its doing. */
Test(mark, a_marked_answer_of_an_atomic_does_not)
{
	story_on_paths();
	post(a, .wr_id = 1, .opcode = WORK_ATOMIC_FETCH_AND_ADD, .length = 8);
	pass(a, "RC FETCH ADD", A_PSN);
	expect_packet(b, "RC ATOMIC ACK", A_PSN);
	deliver_marked(b);
	expect_cnp(a);
	cr_expect_eq(paths[0].window, 64 * MTU);
}

/*
 * hostile H-58: a second notification may follow at the last nanosecond of the interval, not
 * before.
 */
Test(mark, one_notification_in_its_time)
{
	static const struct {
		nanotime at;
		bool cnp;
	} step[] = { { 0, true },
		     { CNP_EVERY - 1, false },
		     { CNP_EVERY, true },
		     { CNP_EVERY + 1, false },
		     { 3 * CNP_EVERY, true } };
	nanotime begin;

	story(.no_timeout = true);
	begin = now;
	for (uint32_t i = 0; i < ARRAY_SIZE(step); i++) {
		at(begin + step[i].at);
		inject(b, OPB_WRITE_ONLY, A_PSN + i, at_memory(b, 0, 8), .payload_length = 8,
		       .ecn = ECN_CE);
		if (step[i].cnp)
			expect_cnp(b);
		expect_silence(b);
	}
}

Test(mark, what_says_that_it_understands_marks_is_not_marked)
{
	story();
	for (uint32_t ecn = 0; ecn < ECN_CE; ecn++)
		inject(b, OPB_WRITE_ONLY, A_PSN + ecn, at_memory(b, 0, 8), .payload_length = 8,
		       .ecn = (uint8_t)ecn);
	expect_silence(b);
}

/* hostile H-58: marks that try to make the engine send notifications. */
Test(mark, a_notification_causes_none)
{
	struct packet cnp = {
		.opcode = OPCODE_CNP, .pkey = 0xffff, .dest_qpn = A_QPN, .becn = true, .ecn = ECN_CE
	};

	story();
	expect_reason(story_inject(a, &cnp), REASON_CNP_RECEIVED);
	expect_silence(a);
}

Test(mark, nor_does_an_acknowledgement)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	pass(a, "RC WRITE ONLY", A_PSN);
	expect_ack(b, A_PSN, 1);
	deliver_marked(b);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_silence(a);
}

/* hostile H-58: marks that try to make the engine send notifications. */
Test(mark, a_packet_that_is_not_the_connections_causes_none)
{
	struct packet p = { .opcode = OPCODE(SERVICE_RC, OPB_WRITE_ONLY),
			    .psn = A_PSN,
			    .pkey = 0x1234,
			    .dest_qpn = B_QPN,
			    .ecn = ECN_CE };

	story();
	expect_reason(story_inject(b, &p), REASON_PKEY);
	expect_silence(b);
}

Test(mark, one_that_did_not_leave_is_sent_later)
{
	struct packet p;

	story();
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8, .ecn = ECN_CE);
	expect_cnp(b);
	p = b->packet;
	qp_unsent(b->q->core, &p, now);
	expect_cnp(b);
	expect_silence(b);
}

Test(mark, unreliable_connections_send_none)
{
	story(.type = QP_TYPE_UC);
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8, .ecn = ECN_CE);
	expect_silence(b);
}

Test(mark, reset_forgets_what_is_due)
{
	struct qp_attributes reset = { .state = QP_STATE_RESET };

	story();
	inject(b, OPB_WRITE_ONLY, A_PSN, at_memory(b, 0, 8), .payload_length = 8, .ecn = ECN_CE);
	cr_assert_eq(node_modify(b->q, &reset, QP_ATTR_STATE, now), 0);
	expect_silence(b);
}
