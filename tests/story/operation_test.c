/* SPDX-License-Identifier: BSD-3-Clause */
#include "story/story.h"

/* A window of this side, bound to its queue pair. */
static uint32_t own_window(struct side *s)
{
	return node_window(&s->node, s->key, LANDS, 0x1000, ACCESS_REMOTE_WRITE, s->q->caps.qpn);
}

/* protocol-map 156, 157: the operation that a bind hands out */
Test(operation, a_bind_hands_out_everything_that_was_posted)
{
	story();
	uint32_t key = key_allocate(&a->node.keys, 1), next = (key & ~0xffu) | 2;

	post(a, .wr_id = 7, .opcode = WORK_BIND_MW, .rkey = key, .imm = next, .to = 0x800,
	     .bind_length = 0x100, .bind_access = ACCESS_REMOTE_READ);
	const struct key_operation *o = expect_operation(a);

	cr_assert(o->bind && o->key == key && o->new_key == next && o->region_key == a->key);
	cr_assert(o->address == BASE + 0x800 && o->length == 0x100);
	cr_assert(o->access == ACCESS_REMOTE_READ && o->user.pd == PD && o->user.qpn == A_QPN);
	expect_no_completion(a);
	operate(a, STATUS_SUCCESS);
	struct completion c = expect_completion(a, 7, STATUS_SUCCESS);

	cr_assert_eq(c.opcode, COMPLETION_BIND_MW);
	const struct region *r = node_region(&a->node, next);

	cr_assert(r != NULL && r->kind == REGION_WINDOW && r->window_qpn == A_QPN);
	cr_assert_null(node_region(&a->node, key));
}

/* protocol-map 161 */
Test(operation, a_local_invalidate_names_the_key)
{
	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 7, .opcode = WORK_LOCAL_INV, .imm = key);
	const struct key_operation *o = expect_operation(a);

	cr_assert(!o->bind && o->key == key && o->user.pd == PD && o->user.qpn == A_QPN);
	operate(a, STATUS_SUCCESS);
	cr_assert_eq(expect_completion(a, 7, STATUS_SUCCESS).opcode, COMPLETION_LOCAL_INV);
	cr_assert_null(node_region(&a->node, key));
	cr_assert_null(qp_operation(a->q->core));
}

/* protocol-map 120 */
Test(operation, it_waits_for_everything_before_it)
{
	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 600);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 300, .from = 0x1000);
	post(a, .wr_id = 3, .opcode = WORK_LOCAL_INV, .imm = key);
	pass(a, "RC WRITE FIRST", A_PSN);
	pass(a, "RC WRITE MIDDLE", A_PSN + 1);
	cr_assert(pass(a, "RC WRITE LAST", A_PSN + 2)->ack_req);
	pass(a, "RC READ REQUEST", A_PSN + 3);
	expect_silence(a);
	pass(b, "RC READ RESPONSE FIRST", A_PSN + 3);
	expect_silence(a);
	pass(b, "RC READ RESPONSE LAST", A_PSN + 4);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_assert_eq(expect_operation(a)->key, key);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 3, STATUS_SUCCESS);
}

/* protocol-map 120: data of earlier READs is in memory first */
Test(operation, it_waits_for_the_copies_before_it)
{
	story(.delay_copies = true);
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_RDMA_READ, .length = 10, .from = 0x1000);
	post(a, .wr_id = 2, .opcode = WORK_LOCAL_INV, .imm = key);
	pass(a, "RC READ REQUEST", A_PSN);
	pass(b, "RC READ RESPONSE ONLY", A_PSN);
	expect_silence(a);
	cr_assert_null(qp_operation(a->q->core));
	settle(a, true);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_operation(a);
}

/* The last packet before it asks for an acknowledgement, so that no timer is needed. */
Test(operation, the_packet_before_it_asks_to_be_acknowledged)
{
	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 3, .opcode = WORK_LOCAL_INV, .imm = key);
	pass(a, "RC WRITE ONLY", A_PSN);
	cr_assert(pass(a, "RC WRITE ONLY", A_PSN + 1)->ack_req);
}

/* protocol-map 120: later requests wait for it */
Test(operation, nothing_behind_it_begins_before_its_end)
{
	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_LOCAL_INV, .imm = key);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	expect_operation(a);
	expect_silence(a);
	cr_assert_not(qp_has_packet(a->q->core));
	at(ms(1000)); /* no timer runs */
	expect_silence(a);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 1, STATUS_SUCCESS);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* Replies to the peer continue. */
Test(operation, the_peer_is_answered_meanwhile)
{
	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_LOCAL_INV, .imm = key);
	expect_operation(a);
	post(b, .wr_id = 2, .opcode = WORK_RDMA_READ, .length = 8);
	pass(b, "RC READ REQUEST", B_PSN);
	pass(a, "RC READ RESPONSE ONLY", B_PSN);
	expect_completion(b, 2, STATUS_SUCCESS);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 1, STATUS_SUCCESS);
}

/* protocol-map 54, 57: operations use no PSN, whatever the PSN */
Test(operation, an_operation_takes_no_psn_even_at_the_wrap)
{
	for (uint32_t psn = 0xfffffe; psn <= 0x1000001; psn++) {
		story(.sq_psn = psn); /* its low 24 bits */
		uint32_t key = own_window(a);

		post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
		post(a, .wr_id = 2, .opcode = WORK_BIND_MW, .rkey = key, .imm = key, .to = 0,
		     .bind_length = 64, .bind_access = ACCESS_REMOTE_READ);
		post(a, .wr_id = 3, .opcode = WORK_LOCAL_INV, .imm = key);
		post(a, .wr_id = 4, .opcode = WORK_RDMA_WRITE, .length = 300);
		pass(a, "RC WRITE ONLY", psn);
		pass_ack(b, psn, 1);
		expect_operation(a);
		inject(a, OPB_ACK, psn, .msn = 1); /* an old acknowledgement has no effect */
		operate(a, STATUS_SUCCESS);
		expect_operation(a);
		operate(a, STATUS_SUCCESS);
		lose(a, "RC WRITE FIRST", psn + 1);
		lose(a, "RC WRITE LAST", psn + 2);
		at(ms(5));
		pass(a, "RC WRITE FIRST", psn + 1);
		pass(a, "RC WRITE LAST", psn + 2);
		pass_ack(b, psn + 2, 2);
		for (uint64_t i = 1; i <= 4; i++)
			expect_completion(a, i, STATUS_SUCCESS);
	}
}

/* protocol-map 121 */
Test(operation, an_unsignaled_one_is_silent)
{
	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_LOCAL_INV, .imm = key, .unsignaled = true);
	expect_operation(a);
	operate(a, STATUS_SUCCESS);
	expect_no_completion(a);
	cr_assert_eq(qp_retired(a->q->core), 1);
}

/* protocol-map 158 */
Test(operation, a_bind_that_fails_ends_the_connection)
{
	story();
	post(a, .wr_id = 1, .opcode = WORK_BIND_MW, .rkey = 5, .imm = 6, .bind_length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	expect_operation(a);
	operate(a, STATUS_MW_BIND_ERR);
	struct completion c = expect_completion(a, 1, STATUS_MW_BIND_ERR);

	cr_assert_eq(c.vendor_err, REASON_KEY_ACCESS);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_ERR);
	expect_silence(a);
}

/* protocol-map 161: a failure is reported even if unsignaled */
Test(operation, other_keys_cannot_be_invalidated)
{
	story();
	uint32_t keys[] = {
		a->key,
		node_window(&a->node, a->key, 0, 64, ACCESS_REMOTE_WRITE, 0),
		node_window(&a->node, a->key, 0, 64, ACCESS_REMOTE_WRITE, 0x99),
		node_register(&a->node, 0, 64, BASE, PD_2, ACCESS_ALL, 1),
		0,
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(keys); i++) {
		bool there = node_region(&a->node, keys[i]) != NULL;

		connect_again(a);
		post(a, .wr_id = i, .opcode = WORK_LOCAL_INV, .imm = keys[i], .unsignaled = true);
		expect_silence(a);
		cr_assert_null(qp_operation(a->q->core));
		cr_assert_eq(expect_completion(a, i, STATUS_MW_BIND_ERR).vendor_err,
			     REASON_INVALIDATE_KEY);
		expect_state(a, QP_STATE_ERR);
		cr_assert_eq(node_region(&a->node, keys[i]) != NULL, there, "row %u", i);
	}
}

/* protocol-map 147 */
Test(operation, sqd_waits_for_its_end_and_begins_none)
{
	struct qp_attributes notify = { .en_sqd_async_notify = 1 }, none = { 0 };

	story();
	uint32_t key = own_window(a), other = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_LOCAL_INV, .imm = key);
	post(a, .wr_id = 2, .opcode = WORK_LOCAL_INV, .imm = other);
	expect_operation(a);
	cr_assert_eq(modify(a, QP_STATE_SQD, QP_ATTR_EN_SQD_ASYNC_NOTIFY, &notify), 0);
	expect_events(a, 0);
	cr_assert_neq(modify(a, QP_STATE_RTS, 0, &none), 0, "still draining");
	operate(a, STATUS_SUCCESS);
	expect_events(a, QP_EVENT_SQ_DRAINED);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_silence(a);
	cr_assert_null(qp_operation(a->q->core));
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	expect_operation(a);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* protocol-map 131, 136: it is flushed with the others, and its report comes too late */
Test(operation, an_error_does_not_wait_for_it)
{
	struct qp_attributes none = { 0 };

	story();
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_LOCAL_INV, .imm = key);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	expect_operation(a);
	cr_assert_eq(modify(a, QP_STATE_ERR, 0, &none), 0);
	cr_assert_null(qp_operation(a->q->core));
	expect_completion(a, 1, STATUS_WR_FLUSH_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	qp_operation_done(a->q->core, STATUS_SUCCESS, REASON_NONE);
	node_collect(a->q, 0);
	expect_no_completion(a);
	expect_state(a, QP_STATE_ERR);
}

/* protocol-map 135: a report from before the reset does not count for an operation after it */
Test(operation, after_a_reset_none_begins_before_the_old_one_is_reported)
{
	story();
	uint32_t key = own_window(a), other = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_LOCAL_INV, .imm = key);
	expect_operation(a);
	connect_again(a);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 3, .opcode = WORK_LOCAL_INV, .imm = other);
	pass(a, "RC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_silence(a);
	cr_assert_null(qp_operation(a->q->core));
	qp_operation_done(a->q->core, STATUS_MW_BIND_ERR, REASON_KEY_ACCESS);
	expect_state(a, QP_STATE_RTS);
	expect_completion(a, 2, STATUS_SUCCESS);
	cr_assert_eq(expect_operation(a)->key, other);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 3, STATUS_SUCCESS);
}

/* A report without an operation has no effect. */
Test(operation, a_report_without_an_operation_is_ignored)
{
	story();
	qp_operation_done(a->q->core, STATUS_MW_BIND_ERR, REASON_KEY_ACCESS);
	expect_state(a, QP_STATE_RTS);
	expect_no_completion(a);
}

/* Operations work where no READ is allowed, and without a fence. */
Test(operation, an_xrc_initiator_has_operations_too)
{
	story(.xrc = true, .max_rd_atomic = -1);
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 8);
	post(a, .wr_id = 2, .opcode = WORK_LOCAL_INV, .imm = key, .flags = WORK_FENCE);
	pass(a, "XRC WRITE ONLY", A_PSN);
	pass_ack(b, A_PSN, 1);
	expect_completion(a, 1, STATUS_SUCCESS);
	expect_operation(a);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
}

/* Without acknowledgements it waits until all earlier packets have left. */
Test(operation, an_unreliable_connection_has_operations_too)
{
	story(.type = QP_TYPE_UC, .hold_sent = true);
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_RDMA_WRITE, .length = 300);
	post(a, .wr_id = 2, .opcode = WORK_LOCAL_INV, .imm = key);
	post(a, .wr_id = 3, .opcode = WORK_RDMA_WRITE, .length = 8);
	struct packet first = *pass(a, "UC WRITE FIRST", A_PSN);
	struct packet last = *pass(a, "UC WRITE LAST", A_PSN + 1);

	sent(a, &first);
	expect_silence(a);
	cr_assert_null(qp_operation(a->q->core));
	sent(a, &last);
	expect_completion(a, 1, STATUS_SUCCESS);
	cr_assert_eq(expect_operation(a)->key, key);
	sent(a, &last); /* reported twice: no effect */
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 2, STATUS_SUCCESS);
	sent(a, pass(a, "UC WRITE ONLY", A_PSN + 2));
	expect_completion(a, 3, STATUS_SUCCESS);
}

/* protocol-map 134: on UC a failure stops only the send queue */
Test(operation, a_failure_on_an_unreliable_connection_stops_its_send_queue)
{
	struct qp_attributes none = { 0 };

	story(.type = QP_TYPE_UC);
	uint32_t key = own_window(a);

	post(a, .wr_id = 1, .opcode = WORK_BIND_MW, .rkey = 5, .imm = 6, .bind_length = 8);
	post(a, .wr_id = 2, .opcode = WORK_RDMA_WRITE, .length = 8);
	expect_operation(a);
	operate(a, STATUS_MW_BIND_ERR);
	expect_completion(a, 1, STATUS_MW_BIND_ERR);
	expect_completion(a, 2, STATUS_WR_FLUSH_ERR);
	expect_state(a, QP_STATE_SQE);
	cr_assert_eq(modify(a, QP_STATE_RTS, 0, &none), 0);
	post(a, .wr_id = 3, .opcode = WORK_LOCAL_INV, .imm = key);
	expect_operation(a);
	operate(a, STATUS_SUCCESS);
	expect_completion(a, 3, STATUS_SUCCESS);
}
