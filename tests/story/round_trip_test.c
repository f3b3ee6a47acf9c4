/* SPDX-License-Identifier: BSD-3-Clause */
/* What a queue pair tells its path about round trips. */
#include "story/story.h"
#include "transport/path.h"

static struct path path;

static void begin(void)
{
	path_init(&path);
	path_looked(&path);
	story();
	qp_give_path(a->q->core, &path);
	for (uint32_t i = 1; i < 8; i++)
		post_receive(b, i, 10);
}

Test(round_trip, from_the_packet_to_its_acknowledgement)
{
	begin();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	at(us(30));
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(path.samples, 1);
	cr_assert_eq(path_srtt(&path), us(30));
}

Test(round_trip, of_one_packet_at_a_time_that_asks)
{
	begin();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 700);
	pass(a, "RC WRITE FIRST", A_PSN);
	at(us(10));
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	at(us(20));
	pass(a, "RC WRITE LAST", A_PSN + 2); /* the first packet that requests an acknowledgement */
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	at(us(25));
	pass(a, "RC SEND ONLY", A_PSN + 3);
	at(us(60));
	pass_ack(b, A_PSN + 3, 2);
	cr_assert_eq(path.samples, 1);
	cr_assert_eq(path_srtt(&path), us(40));
}

Test(round_trip, of_a_read_ends_with_its_first_response)
{
	begin();
	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 700);
	pass(a, "RC READ REQUEST", A_PSN);
	at(us(15));
	pass(b, "RC READ RESPONSE FIRST", A_PSN);
	at(us(90));
	pass(b, "RC READ RESPONSE MIDDLE", A_PSN + 1);
	cr_assert_eq(path.samples, 1);
	cr_assert_eq(path_srtt(&path), us(15));
}

/* Karn: it is not known which of the two was acknowledged. */
Test(round_trip, is_not_taken_from_a_packet_that_was_sent_again)
{
	begin();
	path_rtt(&path, us(20), ms(1000));
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	at(ms(5));
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_assert_eq(path.samples, 1);
}

/*
 * ... but before the first sample, a round trip that is longer than the wait for a probe is
 * measured from the first transmission. Otherwise each packet would be probed for, and none
 * measured.
 */
Test(round_trip, is_learned_though_it_is_longer_than_the_first_wait)
{
	begin();
	for (uint32_t i = 0; i < 3; i++) {
		post(a, .wr_id = i, .opcode = WORK_SEND, .length = 10);
		pass(a, "RC SEND ONLY", A_PSN + i);
		expect_ack(b, A_PSN + i, 1 + i);
		if (i == 0) {
			at(us(LIMIT_PROBE_START_US));
			lose(a, "RC SEND ONLY", A_PSN);
		}
		at(us(LIMIT_PROBE_START_US) + ms(1 + 3 * i));
		deliver(b);
		expect_completion(a, i, STATUS_SUCCESS);
	}
	cr_expect_eq(path.samples, 3);
	cr_expect_eq(path.events[PATH_PROBE], 1, "patience is known");
}

/* ... and the acknowledgement of a later packet waited for the packet that was lost. */
Test(round_trip, is_not_taken_behind_a_loss)
{
	begin();
	path_rtt(&path, us(20), ms(1000));
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 700);
	pass(a, "RC WRITE FIRST", A_PSN);
	lose(a, "RC WRITE MIDDLE", A_PSN + 1);
	pass(a, "RC WRITE LAST", A_PSN + 2);
	at(us(30));
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_assert_eq(path.samples, 1);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN + 3);
	at(us(50));
	pass_ack(b, A_PSN + 3, 2);
	cr_assert_eq(path.samples, 2, "the next one is measured again");
}

/* A frame that the port took late was not under way before. */
Test(round_trip, begins_when_the_packet_leaves)
{
	struct packet p;

	begin();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	p = *pass(a, "RC SEND ONLY", A_PSN);
	at(us(500));
	qp_left(a->q->core, &p, ms(1000) + now); /* stories begin at 1 s */
	at(us(520));
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(path_srtt(&path), us(20));
}

Test(round_trip, of_one_path_is_not_told_to_the_next)
{
	struct path other;

	path_init(&other);
	begin();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	qp_give_path(a->q->core, &other);
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(path.samples + other.samples, 0);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN + 1);
	at(us(20));
	pass_ack(b, A_PSN + 1, 2);
	cr_assert_eq(other.samples, 1);
}

/*
 * An lcore reads the clock once a poll. If a packet left and was answered within one poll, its
 * round trip is not known.
 */
Test(round_trip, is_not_known_if_the_answer_came_within_the_same_poll)
{
	begin();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(path.samples, 0);
	cr_assert_eq(path_min_rtt(&path), 0);
}

/*
 * The first packets of a long message wait for the next ones, which the port does not take yet.
 * None of them requests an acknowledgement, so the lack of answers means nothing.
 */
Test(round_trip, has_no_probe_for_what_nobody_asked_for)
{
	begin();
	path_rtt(&path, us(20), ms(1000));
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 1100);
	pass(a, "RC WRITE FIRST", A_PSN);
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	at(us(600));
	cr_assert_eq(path.events[PATH_PROBE], 0);
	pass(a, "RC WRITE MIDDLE", A_PSN + 2);
	pass(a, "RC WRITE MIDDLE", A_PSN + 3);
	lose(a, "RC WRITE LAST", A_PSN + 4);
	at(us(1500));
	cr_assert_eq(path.events[PATH_PROBE], 1, "the last one asked");
}

/* While frames wait for the port, neither the retransmission timer nor the timer of probes runs. */
Test(round_trip, does_not_go_on_while_packets_wait_for_the_port)
{
	nanotime before;

	begin();
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	before = qp_deadline(a->q->core);
	qp_delayed(a->q->core, ms(7));
	cr_assert_eq(qp_deadline(a->q->core), before + ms(7));
	qp_give_path(a->q->core, NULL); /* no probes without one */
	connect_again(a);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN);
	before = qp_deadline(a->q->core);
	qp_delayed(a->q->core, ms(7));
	cr_assert_eq(qp_deadline(a->q->core), before + ms(7));
}

/* A path counts each kind of loss where it is found. */
Test(round_trip, losses_are_counted_by_how_they_are_found)
{
	begin();
	path_rtt(&path, us(20), ms(1000));
	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 700);
	pass(a, "RC WRITE FIRST", A_PSN);
	lose(a, "RC WRITE MIDDLE", A_PSN + 1);
	pass(a, "RC WRITE LAST", A_PSN + 2);
	pass_nak(b, SYNDROME_NAK_SEQUENCE, A_PSN + 1, 0);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_expect_eq(path.events[PATH_REPORTED], 1);
	cr_expect_eq(path.events[PATH_AGAIN], 2);
	cr_expect_eq(path.events[PATH_PROBE], 0);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 10);
	lose(a, "RC SEND ONLY", A_PSN + 3);
	at(ms(1));
	pass(a, "RC SEND ONLY", A_PSN + 3);
	pass_ack(b, A_PSN + 3, 2);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_expect_eq(path.events[PATH_PROBE], 1);
	cr_expect_eq(path.events[PATH_AGAIN], 3);
	cr_expect_eq(path.events[PATH_TIMEOUT], 0);
	cr_expect_eq(path.events[PATH_OVERTAKEN], 0);
}

/*
 * docs/wire-extensions.md: each packet tells how late its sender's lcore is, and so does an
 * acknowledgement.
 */
Test(round_trip, a_peer_says_how_late_it_is)
{
	static struct late late;
	static struct path other;

	path_init(&path);
	path_init(&other);
	story(.selective = true);
	qp_give_path(a->q->core, &path);
	post_receive(b, 1, 10);
	other.late = &late;
	qp_give_path(b->q->core, &other);
	late_polled(&late, us(100), true, now);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
	pass(a, "RC SEND ONLY", A_PSN);
	cr_assert_eq(path.peer_late, 0, "it has said nothing yet");
	pass_ack(b, A_PSN, 1);
	cr_assert_eq(path.peer_late, late_time(late.step));
	cr_assert_geq(path.peer_late, us(100));
	cr_assert_eq(other.peer_late, 0, "we are never late");
}
