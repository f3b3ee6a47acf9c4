/* SPDX-License-Identifier: BSD-3-Clause */
/* UD: one packet per message, a Q_Key, 40 octets before the payload. */
#include "story/story.h"

#define ud(...) story(.type = QP_TYPE_UD, ##__VA_ARGS__)

/* protocol-map 123, 125, 175, 178 */
Test(datagram, arrives_with_its_sender_and_its_header)
{
	uint8_t grh[GRH];

	ud(.hold_sent = true);
	post_receive(b, 1, 140);
	post(a, .wr_id = 7, .opcode = WORK_SEND, .length = 100, .ah = 77, .flags = WORK_SOLICITED);
	const struct packet *p = pass(a, "UD SEND ONLY", A_PSN);

	cr_assert(p->ah == 77 && p->qkey == QKEY && p->src_qpn == A_QPN && !p->ack_req &&
		  p->solicited && !p->checksum);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 140);

	cr_assert(c.src_qp == A_QPN && c.wc_flags == COMPLETION_GRH && c.solicited);
	cr_assert_eq(c.opcode, COMPLETION_RECV);
	grh_of(a, grh);
	cr_assert_arr_eq(octets(b, LANDS + 0x1000), grh, GRH);
	expect_same(b, LANDS + 0x1000 + GRH, a, 0, 100);
	expect_untouched(b, LANDS + 0x1000 + 140, 100);
	expect_no_completion(a);
	sent(a, p);
	expect_completion(a, 7, STATUS_SUCCESS);
	expect_silence(b);
	cr_assert_eq(a->q->deadline, TIME_NEVER);
}

/* protocol-map 125 */
Test(datagram, immediate_data_arrives_as_it_was_given)
{
	ud();
	post_receive(b, 1, 40);
	post(a, .wr_id = 1, .opcode = WORK_SEND_WITH_IMM, .length = 0, .imm = 0x44332211);
	pass(a, "UD SEND ONLY+IMM", A_PSN);
	struct completion c = expect_receive(b, 1, STATUS_SUCCESS, 40);

	cr_assert_eq(c.wc_flags, COMPLETION_GRH | COMPLETION_WITH_IMM);
	cr_assert_eq(c.imm, 0x44332211);
}

/* protocol-map 53, 175: the sender counts PSNs, the receiver ignores them */
Test(datagram, psns_are_counted_and_ignored)
{
	ud(.sq_psn = 0xffffff);
	for (uint32_t i = 1; i <= 4; i++)
		post_receive(b, i, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 1);
	pass(a, "UD SEND ONLY", 0xffffff);
	lose(a, "UD SEND ONLY", 0);
	post(a, .wr_id = 3, .opcode = WORK_SEND, .length = 1);
	pass(a, "UD SEND ONLY", 1);
	expect_reason(inject(b, OPB_SEND_ONLY, 0x800000), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 41);
	expect_receive(b, 2, STATUS_SUCCESS, 41);
	expect_receive(b, 3, STATUS_SUCCESS, 40);
}

/* protocol-map 177 */
Test(datagram, the_high_bit_of_a_request_means_the_queue_pairs_own_key)
{
	ud();
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .remote_qkey = 0x80000000, .length = 1);
	cr_assert_eq(pass(a, "UD SEND ONLY", A_PSN)->qkey, QKEY);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .remote_qkey = 0x7fffffff, .length = 1);
	cr_assert_eq(pass(a, "UD SEND ONLY", A_PSN + 1)->qkey, 0x7fffffff);
	expect_reason(b->q->reason, REASON_QKEY);
	expect_receive(b, 1, STATUS_SUCCESS, 41);
	expect_no_completion(b);
}

/* protocol-map 176 */
Test(datagram, another_key_is_dropped)
{
	struct qp_attributes other = { .qkey = 0x5555 };

	ud();
	post_receive(b, 1, 100);
	expect_reason(inject(b, OPB_SEND_ONLY, 0, .qkey = QKEY ^ 0x80000000), REASON_QKEY);
	expect_reason(inject(b, OPB_SEND_ONLY, 0, .qkey = QKEY + 1), REASON_QKEY);
	expect_no_completion(b);
	expect_state(b, QP_STATE_RTS);
	cr_assert_eq(modify(b, QP_STATE_RTS, QP_ATTR_QKEY, &other), 0);
	expect_reason(inject(b, OPB_SEND_ONLY, 0), REASON_QKEY);
	expect_reason(inject(b, OPB_SEND_ONLY, 0, .qkey = 0x5555), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 40);
}

/*
 * protocol-map 50
 * hostile H-22: a datagram that does not fit.
 */
Test(datagram, a_datagram_that_does_not_fit_is_dropped_and_the_request_stays)
{
	ud();
	post_receive(b, 1, 49);
	expect_reason(inject(b, OPB_SEND_ONLY, 0, .payload_length = 10), REASON_LENGTH_RECEIVE);
	expect_no_completion(b);
	expect_untouched(b, LANDS + 0x1000, 49);
	expect_reason(inject(b, OPB_SEND_ONLY, 0, .payload_length = 9), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 49);
	expect_state(b, QP_STATE_RTS);
}

/* protocol-map 166 */
Test(datagram, without_a_receive_request_it_is_dropped)
{
	ud();
	expect_reason(inject(b, OPB_SEND_ONLY, 0, .payload_length = 10), REASON_RECEIVE_NOT_READY);
	expect_silence(b);
	expect_events(b, 0);
	expect_state(b, QP_STATE_RTS);
}

/* protocol-map 10, 33, 34: any sender is accepted, also by a group, but only datagrams */
Test(datagram, any_sender_is_accepted)
{
	struct packet p = { .opcode = OPCODE(SERVICE_UD, OPB_SEND_ONLY),
			    .pkey = 0xffff,
			    .dest_qpn = B_QPN,
			    .src_qpn = 0x777 };

	ud();
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	story_inject(b, &p);
	cr_assert_eq(expect_receive(b, 1, STATUS_SUCCESS, 40).src_qp, 0x777);
	memset(&p.src_gid, 0x20, sizeof(p.src_gid));
	memset(&p.dst_gid, 0xff, sizeof(p.dst_gid));
	p.multicast = true;
	p.dest_qpn = QPN_MULTICAST;
	story_inject(b, &p);
	expect_receive(b, 2, STATUS_SUCCESS, 40);
	p.opcode = OPCODE(SERVICE_UC, OPB_SEND_ONLY);
	expect_reason(story_inject(b, &p), REASON_SERVICE_MISMATCH);
	p.opcode = OPCODE(SERVICE_UD, OPB_SEND_ONLY);
	p.pkey = 0x7ffe;
	expect_reason(story_inject(b, &p), REASON_PKEY);
}

/* protocol-map 49 */
Test(datagram, a_message_longer_than_the_ports_mtu_is_a_local_error)
{
	ud(.port_mtu = 2);
	post_receive(b, 1, 1000);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 512);
	post(a, .wr_id = 2, .opcode = WORK_SEND, .length = 513);
	exchange();
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_LOC_LEN_ERR);
	expect_state(a, QP_STATE_SQE);
	expect_receive(b, 1, STATUS_SUCCESS, 552);
	expect_no_completion(b);
}

/* Only SEND, with and without immediate data. */
Test(datagram, other_operations_are_not_carried)
{
	static const uint8_t others[] = { WORK_RDMA_WRITE,
					  WORK_RDMA_WRITE_WITH_IMM,
					  WORK_RDMA_READ,
					  WORK_ATOMIC_CMP_AND_SWP,
					  WORK_ATOMIC_FETCH_AND_ADD,
					  WORK_LOCAL_INV,
					  WORK_BIND_MW,
					  WORK_SEND_WITH_INV,
					  WORK_TSO,
					  WORK_FLUSH,
					  WORK_ATOMIC_WRITE };

	ud();
	for (uint32_t i = 0; i < ARRAY_SIZE(others); i++) {
		struct qp_attributes none = { 0 };

		post(a, .wr_id = i, .opcode = others[i], .length = 8);
		expect_silence(a);
		expect_completion(a, i, STATUS_LOC_QP_OP_ERR);
		expect_state(a, QP_STATE_SQE);
		expect_events(a, QP_EVENT_SQ_ERROR);
		cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	}
}

/* protocol-map 155 */
Test(datagram, a_receive_request_for_unregistered_memory_is_a_local_error)
{
	struct work_sge sge = { .addr = BASE, .length = 100, .lkey = 0xbad };

	ud();
	node_post_receive(b->q, 1, &sge, 1);
	post_receive(b, 2, 100);
	expect_reason(inject(b, OPB_SEND_ONLY, 0), REASON_RECEIVE_MEMORY);
	expect_receive(b, 1, STATUS_LOC_PROT_ERR, 0);
	expect_receive(b, 2, STATUS_WR_FLUSH_ERR, 0);
	expect_state(b, QP_STATE_ERR);
}

Test(datagram, a_receive_completes_after_its_copy)
{
	ud(.delay_copies = true);
	for (uint32_t i = 1; i <= 3; i++) {
		post_receive(b, i, 100);
		inject(b, OPB_SEND_ONLY, i, .payload_length = 10);
	}
	expect_no_completion(b);
	settle(b, true);
	expect_receive(b, 1, STATUS_SUCCESS, 50);
	expect_no_completion(b);
	settle(b, false);
	expect_receive(b, 2, STATUS_LOC_PROT_ERR, 0);
	expect_receive(b, 3, STATUS_WR_FLUSH_ERR, 0);
	expect_state(b, QP_STATE_ERR);
}

/* The sender asks for checksums, and the receiver is told of them. */
Test(datagram, checksums_are_carried)
{
	ud();
	post_receive(b, 1, 100);
	post_receive(b, 2, 100);
	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 1, .flags = WORK_IP_CSUM);
	cr_assert(expect_packet(a, "UD SEND ONLY", A_PSN)->checksum);
	inject(b, OPB_SEND_ONLY, 0, .checksum = true);
	cr_assert_eq(expect_receive(b, 1, STATUS_SUCCESS, 40).wc_flags,
		     COMPLETION_GRH | COMPLETION_IP_CSUM_OK);
	inject(b, OPB_SEND_ONLY, 0);
	cr_assert_eq(expect_receive(b, 2, STATUS_SUCCESS, 40).wc_flags, COMPLETION_GRH);
}

/* protocol-map 35 */
Test(datagram, received_from_rtr_on)
{
	ud(.b_in_rtr = true);
	post_receive(b, 1, 100);
	expect_reason(inject(b, OPB_SEND_ONLY, 0), REASON_NONE);
	expect_receive(b, 1, STATUS_SUCCESS, 40);
}

Test(datagram, inline_octets_are_copied_by_the_post)
{
	ud();
	post_receive(b, 1, 100);
	post(a, .opcode = WORK_SEND, .length = 60, .flags = WORK_INLINE, .lkey = 0xbad);
	memset(octets(a, 0), 0x55, 60);
	pass(a, "UD SEND ONLY", A_PSN);
	expect_receive(b, 1, STATUS_SUCCESS, 100);
	cr_assert_eq(*octets(b, LANDS + 0x1000 + GRH), 1);
}
