/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the middle of a message goes on in a run, and what ends the run. That its packets are those of the general case
 * is compared in plain_test.c and plain_reply_test.c.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "pair.h"

#define LENGTH 9000u /* octets: nine packets of 1024 */

static struct pair pair;
static struct packet before;
static struct span_list gather;

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(alike, .fini = close_pair, .timeout = 60);

static void next_packet(void)
{
	nanotime not_before;

	memset(&before, 0, sizeof(before));
	cr_assert_eq(qp_next_packet(pair.a.qp, &pair.keys, pair.now, &before, &gather, &not_before),
		     NEXT_PACKET);
}

/* The second packet of a SEND has been made. */
static void begin(void)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
	pair_post(&pair, &pair.a, WORK_SEND, 0, 0, LENGTH, 0);
	next_packet();
	next_packet();
}

static uint32_t goes_on(uint32_t most)
{
	uint32_t n = qp_next_alike(pair.a.qp, &before, &pair.keys, most, pair.now, &gather);

	cr_expect_eq(gather.length, n * 1024);
	before.psn = psn_add(before.psn, n);
	return n;
}

Test(alike, as_many_as_are_asked_for_up_to_the_last_but_one)
{
	begin();
	cr_expect_eq(goes_on(4), 4);
	cr_expect_eq(goes_on(9), 2);
	cr_expect_eq(goes_on(9), 0, "the last packet is next");
	next_packet();
	cr_expect_eq(goes_on(9), 0, "the message is over");
}

Test(alike, not_behind_the_first_packet)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
	pair_post(&pair, &pair.a, WORK_SEND, 0, 0, LENGTH, 0);
	next_packet();
	cr_expect_eq(goes_on(9), 0);
}

Test(alike, not_behind_a_packet_that_was_sent_again)
{
	begin();
	before.again = true;
	cr_expect_eq(goes_on(9), 0, "those that follow are new");
	before.again = false;
	cr_expect_eq(goes_on(9), 6);
}

Test(alike, what_is_owed_to_the_peer_goes_first)
{
	begin();
	pair.a.qp->resp.ack_due = true;
	cr_expect_eq(goes_on(9), 0);
	pair.a.qp->resp.ack_due = false;
	cr_expect_eq(goes_on(9), 6);
}

Test(alike, memory_of_another_process_is_not_one_direct_span)
{
	void *direct;

	begin();
	direct = pair.a.region->piece[0].direct;
	pair.a.region->piece[0].direct = NULL;
	cr_expect_eq(goes_on(9), 0);
	pair.a.region->piece[0].direct = direct;
	cr_expect_eq(goes_on(9), 6);
}

Test(alike, a_key_that_is_gone_ends_it)
{
	begin();
	key_withdraw(&pair.keys, pair.a.key);
	cr_expect_eq(goes_on(9), 0);
	key_publish(&pair.keys, pair.a.key, pair.a.region);
	cr_expect_eq(goes_on(9), 6);
}

static uint32_t rest(void)
{
	return qp_message_rest(pair.a.qp, &before);
}

Test(alike, the_rest_of_a_request)
{
	struct pair_options o = pair_options();

	pair_init(&pair, &o);
	pair_post(&pair, &pair.a, WORK_SEND, 0, 0, LENGTH, 0);
	pair_post(&pair, &pair.a, WORK_SEND, 0, 0, LENGTH, 0);
	next_packet();
	cr_expect_eq(rest(), 8);
	next_packet();
	cr_expect_eq(rest(), 7);
	cr_expect_eq(goes_on(4), 4);
	cr_expect_eq(rest(), 3);
	before.again = true;
	cr_expect_eq(rest(), 0, "what follows is another packet");
	before.again = false;
	for (uint32_t i = 3; i-- > 0;) {
		next_packet();
		cr_expect_eq(rest(), i);
	}
	next_packet();
	cr_expect_eq(rest(), 8, "of the next message");
	before.psn = psn_add(before.psn, 1);
	cr_expect_eq(rest(), 0, "it was not made last");
}

Test(alike, the_rest_of_the_responses_to_a_read)
{
	struct pair_options o = pair_options();
	struct packet p;

	pair_init(&pair, &o);
	p = pair_packet(&pair, &pair.a, OPB_READ_REQUEST, o.psn);
	p.va = PAIR_IOVA;
	p.rkey = pair.a.key;
	p.dma_length = LENGTH;
	cr_expect_eq(qp_message_rest(pair.a.qp, &p), 0, "one packet asks for all");
	cr_assert_eq(pair_inject(&pair, &pair.a, &p), REASON_NONE);
	next_packet();
	cr_expect_eq(rest(), 8);
	next_packet();
	cr_expect_eq(goes_on(4), 4);
	cr_expect_eq(rest(), 3);
	for (uint32_t i = 3; i-- > 0;) {
		next_packet();
		cr_expect_eq(rest(), i);
	}
}

Test(alike, an_acknowledgement_is_a_whole_message)
{
	struct packet p;

	begin();
	p = pair_packet(&pair, &pair.a, OPB_SEND_ONLY, before.psn);
	cr_assert_eq(qp_message_rest(pair.a.qp, &p), 0);
	p = pair_packet(&pair, &pair.a, OPB_ACK, before.psn);
	cr_assert_eq(qp_message_rest(pair.a.qp, &p), 0);
}
