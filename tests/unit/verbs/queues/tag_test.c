/* SPDX-License-Identifier: BSD-3-Clause */
/* Tag matching SRQs. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "tag_rig.h"

TestSuite(tag, .init = tag_setup, .fini = tag_teardown, .timeout = 60);

Test(tag, a_message_of_many_packets_goes_into_the_entry_without_its_header)
{
	struct ibv_sge sge[3] = { { (uintptr_t)e.buffer, 1000, e.mr->lkey },
				  { (uintptr_t)e.buffer + 1000, 1, e.mr->lkey },
				  { (uintptr_t)e.buffer + 1001, 5000, e.mr->lkey } };
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, 1);
	struct seen s;

	wr.flags = 0;
	wr.tm.add.recv_wr_id = 2;
	wr.tm.add.sg_list = sge;
	wr.tm.add.num_sge = 3;
	wr.tm.add.tag = UINT64_C(0x1122334455667788);
	wr.tm.add.mask = UINT64_MAX;
	cr_assert_eq(post_operation(&wr), 0);
	send_tagged(IBV_TMH_EAGER, wr.tm.add.tag, 5016);
	sent(IBV_WC_SUCCESS);
	s = next("the message: nothing was signalled before");
	expect_seen(s, 2, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	cr_expect_eq(s.tag, wr.tm.add.tag);
	cr_expect_eq(s.priv, APP);
	cr_expect_eq(s.byte_len, 5000);
	cr_expect_eq(s.qp_num, tagged->qp_num);
	cr_expect_arr_eq(e.buffer, e.buffer + SOURCE + 16, 5000);
	cr_expect_eq(e.buffer[5000], 0xee);
}

Test(tag, the_oldest_entry_that_matches_takes_it)
{
	expect_seen(add(0x10, 0xf0, 100, NULL), 0x10, IBV_WC_TM_ADD, 0);
	expect_seen(add(0x12, 0xff, 100, NULL), 0x12, IBV_WC_TM_ADD, 0);
	expect_seen(add(0, 0, 100, NULL), 0, IBV_WC_TM_ADD, 0);
	for (int i = 0; i < 3; i++) {
		static const uint64_t takes[] = { 0x10, 0x12, 0 };

		send_tagged(IBV_TMH_EAGER, 0x12, 20);
		expect_seen(next("the message"), 1000 + takes[i], IBV_WC_TM_RECV,
			    IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
		sent(IBV_WC_SUCCESS);
	}
}

Test(tag, an_unexpected_message_keeps_its_header_and_makes_new_entries_wait)
{
	struct seen s;

	receive(1);
	receive(2);
	added(5, 100);
	send_tagged(IBV_TMH_EAGER, 6, 40);
	s = next("the unexpected message");
	expect_seen(s, 1, IBV_WC_TM_RECV, 0);
	cr_expect_eq(s.byte_len, 40);
	cr_expect_arr_eq(e.buffer + 8192, e.buffer + SOURCE, 40);
	expect_seen(add(7, UINT64_MAX, 100, NULL), 7, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	send_tagged(IBV_TMH_EAGER, 7, 40);
	expect_seen(next("a message for an entry that waits"), 2, IBV_WC_TM_RECV, 0);
	send_tagged(IBV_TMH_EAGER, 5, 40);
	expect_seen(next("a message for an older entry"), 1005, IBV_WC_TM_RECV,
		    IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	expect_seen(sync_to(1), 78, IBV_WC_TM_SYNC, IBV_WC_TM_SYNC_REQ);
	expect_seen(sync_to(2), 78, IBV_WC_TM_SYNC, 0);
	send_tagged(IBV_TMH_EAGER, 7, 40);
	expect_seen(next("a message for the entry, now"), 1007, IBV_WC_TM_RECV,
		    IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	for (int i = 0; i < 4; i++)
		sent(IBV_WC_SUCCESS);
}

Test(tag, a_message_without_tag_is_an_ordinary_receive)
{
	static const struct {
		uint8_t opcode;
		uint32_t length;
	} message[] = { { IBV_TMH_NO_TAG, 40 }, { IBV_TMH_FIN, 16 },  { 99, 16 },
			{ IBV_TMH_EAGER, 15 },	{ IBV_TMH_EAGER, 1 }, { IBV_TMH_EAGER, 0 } };

	added(3, 100);
	for (uint64_t i = 0; i < ARRAY_SIZE(message); i++) {
		struct seen s;

		receive(i);
		send_tagged(message[i].opcode, 3, message[i].length);
		s = next("a message without a tag");
		expect_seen(s, i, IBV_WC_TM_NO_TAG, 0);
		cr_expect_eq(s.byte_len, message[i].length);
		sent(IBV_WC_SUCCESS);
	}
	send_tagged(IBV_TMH_EAGER, 3, 16);
	expect_seen(next("a message of nothing but its header"), 1003, IBV_WC_TM_RECV,
		    IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	sent(IBV_WC_SUCCESS);
}

Test(tag, an_entry_is_deleted_once)
{
	uint32_t handle, taken;
	struct seen s;

	add(1, UINT64_MAX, 100, &handle);
	add(2, UINT64_MAX, 100, &taken);
	expect_seen(delete (handle), 77, IBV_WC_TM_DEL, 0);
	s = delete (handle);
	cr_expect_eq(s.status, IBV_WC_TM_ERR);
	cr_expect_eq(s.opcode, IBV_WC_TM_DEL);
	send_tagged(IBV_TMH_EAGER, 2, 40);
	next("the message");
	sent(IBV_WC_SUCCESS);
	cr_expect_eq(delete (taken).status, IBV_WC_TM_ERR);
	receive(9);
	send_tagged(IBV_TMH_EAGER, 1, 40);
	expect_seen(next("a message for the deleted one"), 9, IBV_WC_TM_RECV, 0);
	sent(IBV_WC_SUCCESS);
}

Test(tag, the_list_has_the_requested_size)
{
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, 1);

	for (uint32_t round = 0; round < 3; round++) { /* each leaves one entry */
		uint32_t handle = 0;

		for (uint64_t i = 0; i < TAGS - round; i++)
			add(i, UINT64_MAX, 64, &handle);
		cr_expect_eq(post_operation(&wr), ENOMEM);
		expect_seen(delete (handle), 77, IBV_WC_TM_DEL, 0);
		add(9999, UINT64_MAX, 64, NULL);
		cr_expect_eq(post_operation(&wr), ENOMEM);
		for (uint64_t i = 0; i < TAGS - 1 - round; i++) {
			send_tagged(IBV_TMH_EAGER, i, 16);
			expect_seen(next("a message"), 1000 + i, IBV_WC_TM_RECV,
				    IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
			sent(IBV_WC_SUCCESS);
		}
	}
}

Test(tag, a_rendezvous_is_fetched_and_answered)
{
	struct ibv_wc wc[2];
	struct seen s;

	added(4, 6000);
	receive_fin();
	send_rendezvous(4, 5000);
	s = next("the rendezvous");
	expect_seen(s, 1004, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	cr_expect_eq(s.tag, 4);
	cr_expect_eq(s.priv, APP);
	s = next("its data");
	expect_seen(s, 1004, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	cr_expect_eq(s.byte_len, 5000);
	cr_expect_arr_eq(e.buffer, e.buffer + FETCHED, 5000);
	cr_expect_eq(e.buffer[5000], 0xee);
	poll_completions(e.cq, wc, 2, "the peer's SEND and FIN");
	expect_fin(4);
}

Test(tag, a_rendezvous_of_no_octets_is_done_at_once)
{
	struct ibv_wc wc[2];

	added(4, 10);
	receive_fin();
	send_rendezvous(4, 0);
	expect_seen(next("the rendezvous"), 1004, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	expect_seen(next("its data"), 1004, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	poll_completions(e.cq, wc, 2, "the peer's SEND and FIN");
}

Test(tag, a_rendezvous_without_room_is_incomplete)
{
	static const uint32_t lengths[] = { 101, UINT32_MAX };
	struct ibv_wc wc[2];

	for (int i = 0; i < 2; i++) {
		struct seen s;

		added(4, 100);
		send_rendezvous(4, lengths[i]);
		s = next("the rendezvous");
		cr_expect_eq(s.status, IBV_WC_TM_RNDV_INCOMPLETE);
		cr_expect_eq(s.wr_id, 1004);
		sent(IBV_WC_SUCCESS);
	}
	added(5, 100);
	receive_fin();
	send_rendezvous(5, 100);
	expect_seen(next("the rendezvous"), 1005, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	expect_seen(next("its data"), 1005, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	poll_completions(e.cq, wc, 2, "the peer's SEND and FIN");
}

Test(tag, a_rendezvous_with_a_wrong_key_is_incomplete)
{
	uint32_t handle;
	struct seen s;

	added(4, 100);
	add(5, UINT64_MAX, 100, &handle);
	send_rendezvous_with(0, 4, 100, 0xdeadbeef);
	expect_seen(next("the rendezvous"), 1004, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	s = next("its end");
	cr_expect_eq(s.status, IBV_WC_TM_RNDV_INCOMPLETE, "%s", ibv_wc_status_str(s.status));
	cr_expect_eq(s.wr_id, 1004);
	cr_expect_not(poll_tagged(&s), "nothing else: the FIN is not the program's");
	expect_seen(delete (handle), 77, IBV_WC_TM_DEL, 0);
}

Test(tag, headers_that_the_engine_does_not_answer_are_unexpected)
{
	static const uint32_t lengths[] = { 16, 31, 65, 2000 };

	added(4, 8000);
	for (uint64_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		receive(i);
		send_tagged(IBV_TMH_RNDV, 4, lengths[i]);
		expect_seen(next("the message"), i, IBV_WC_TM_RECV, 0);
		sent(IBV_WC_SUCCESS);
	}
}

/* More than are served at once, with the program's own requests between them. */
Test(tag, many_rendezvous_among_requests_of_the_program)
{
	uint32_t matched = 0, valid = 0, done = 0, fins = 0, posted = 0;
	double end = now() + WAIT_SECONDS;

	for (uint64_t i = 0; i < 48; i++)
		added(i, 2000);
	for (int i = 0; i < (int)SENDS; i++)
		receive_fin(); /* and for that of the program */
	for (uint32_t i = 0; i < 48; i++) {
		send_rendezvous_with(i, i, 2000, e.mr->rkey);
		if (posted < 16) {
			send_from(tagged, SOURCE, 64);
			posted++;
		}
	}
	while (valid < 48 || done < 48 + posted || fins < 48 + posted) {
		struct ibv_wc wc;
		struct seen s;

		cr_assert(now() < end, "%u matched, %u valid, %u sent, %u answered", matched, valid,
			  done, fins);
		if (poll_tagged(&s)) {
			cr_assert_eq(s.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(s.status));
			matched += s.flags == IBV_WC_TM_MATCH;
			valid += s.flags == IBV_WC_TM_DATA_VALID;
		}
		if (ibv_poll_cq(e.cq, 1, &wc) == 1) {
			cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
			done += wc.opcode == IBV_WC_SEND;
			fins += wc.opcode == IBV_WC_RECV;
		}
	}
	cr_expect_eq(matched, 48);
}

Test(tag, a_message_longer_than_its_entry_is_an_error_of_that_queue_pair_only)
{
	struct ibv_qp *second = create_qp(tag_srq, IBV_QPT_RC), *its = create_qp(NULL, IBV_QPT_RC);
	struct seen s;

	cr_assert_eq(endpoint_connect(&e, second, its->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, its, second->qp_num), 0);
	added(1, 50);
	added(2, 50);
	send_tagged(IBV_TMH_EAGER, 1, 67);
	s = next("its failure");
	cr_expect_eq(s.status, IBV_WC_LOC_LEN_ERR, "%s", ibv_wc_status_str(s.status));
	cr_expect_eq(s.wr_id, 1001);
	sent(IBV_WC_REM_INV_REQ_ERR);
	header(SOURCE, IBV_TMH_EAGER, 2);
	send_from(its, SOURCE, 66);
	expect_seen(next("a message of the other"), 1002, IBV_WC_TM_RECV,
		    IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	sent(IBV_WC_SUCCESS);
	cr_expect_eq(ibv_destroy_qp(second), 0);
	cr_expect_eq(ibv_destroy_qp(its), 0);
}

/* The peer is gone: the READ gets no answer. */
Test(tag, entries_of_a_queue_pair_that_ends_are_free_again)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, 1);
	int n = 0;

	for (uint64_t i = 0; i < TAGS; i++)
		added(i, 100);
	cr_expect_eq(post_operation(&wr), ENOMEM);
	send_rendezvous(0, 100);
	expect_seen(next("the rendezvous"), 1000, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	cr_assert_eq(ibv_modify_qp(peer, &attr, IBV_QP_STATE), 0);
	cr_assert_eq(ibv_modify_qp(tagged, &attr, IBV_QP_STATE), 0);
	wr.flags = 0;
	while (n < (int)TAGS && post_operation(&wr) == 0)
		n++;
	cr_expect_eq(n, 1);
}
