/* SPDX-License-Identifier: BSD-3-Clause */
/* Tag matching SRQs. Runs with an engine at $UROCE_SOCKET. */
#include <criterion/criterion.h>
#include <errno.h>
#include <infiniband/tm_types.h>
#include <endian.h>
#include <string.h>
#include <time.h>

#include "base/bits.h"
#include "endpoint.h"
#include "queue/doorbell.h"
#include "queue/ring_client.h"
#include "verbs/srq.h"

#define TAGS	64u
#define SENDS	64u
#define SOURCE	(BUFFER / 2) /* offset of what the peer sends */
#define FETCHED (SOURCE + 16384) /* ... and of what a rendezvous names */
#define FINS	(BUFFER - 4096)
#define APP	0xabcd1234u

static struct endpoint e;
static struct ibv_cq_ex *cq;
static struct ibv_srq *srq;
static struct ibv_qp *peer, *tagged;

struct seen {
	uint64_t wr_id, tag;
	uint32_t status, opcode, flags, byte_len, qp_num, priv;
};

static struct ibv_srq_init_attr_ex usual(void)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = DEPTH, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = e.pd,
		.cq = ibv_cq_ex_to_cq(cq),
		.tm_cap = { .max_num_tags = TAGS, .max_ops = TAGS },
	};
}

static struct ibv_qp *create_qp(struct ibv_srq *on, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e.cq,
		.recv_cq = on != NULL ? ibv_cq_ex_to_cq(cq) : e.cq,
		.srq = on,
		.cap = { SENDS, SENDS, 1, 1, 0 },
		.qp_type = type,
	};

	return ibv_create_qp(e.pd, &init);
}

static void setup(void)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = 1024, .wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO
	};
	struct ibv_srq_init_attr_ex of_srq;

	endpoint_open(&e);
	cq = ibv_create_cq_ex(e.context, &init);
	cr_assert_not_null(cq, "ibv_create_cq_ex: %m");
	of_srq = usual();
	srq = ibv_create_srq_ex(e.context, &of_srq);
	cr_assert_not_null(srq, "ibv_create_srq_ex: %m");
	peer = create_qp(NULL, IBV_QPT_RC);
	tagged = create_qp(srq, IBV_QPT_RC);
	cr_assert(peer != NULL && tagged != NULL, "ibv_create_qp: %m");
	cr_assert_eq(endpoint_connect(&e, peer, tagged->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, tagged, peer->qp_num), 0);
	for (size_t i = 0; i < BUFFER; i++)
		e.buffer[i] = i < SOURCE ? 0xee : (uint8_t)(i * 7 + i / 256);
}

static void teardown(void)
{
	cr_expect_eq(ibv_destroy_qp(peer), 0);
	cr_expect_eq(ibv_destroy_qp(tagged), 0);
	cr_expect_eq(ibv_destroy_srq(srq), 0);
	cr_expect_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	endpoint_close(&e);
}

TestSuite(tag, .init = setup, .fini = teardown, .timeout = 60);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool poll_tagged(struct seen *s)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc_tm_info info;

	if (ibv_start_poll(cq, &attr) != 0)
		return false;
	ibv_wc_read_tm_info(cq, &info);
	*s = (struct seen){ .wr_id = cq->wr_id,
			    .status = cq->status,
			    .opcode = ibv_wc_read_opcode(cq),
			    .flags = ibv_wc_read_wc_flags(cq),
			    .byte_len = ibv_wc_read_byte_len(cq),
			    .qp_num = ibv_wc_read_qp_num(cq),
			    .tag = info.tag,
			    .priv = info.priv };
	ibv_end_poll(cq);
	return true;
}

static struct seen next(const char *what)
{
	double end = now() + WAIT_SECONDS;
	struct seen s = { 0 };

	while (!poll_tagged(&s))
		cr_assert(now() < end, "%s does not come", what);
	return s;
}

static void expect_seen(struct seen s, uint64_t wr_id, uint32_t opcode, uint32_t flags)
{
	cr_expect_eq(s.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(s.status));
	cr_expect_eq(s.wr_id, wr_id, "wr_id %d instead of %d", (int)s.wr_id, (int)wr_id);
	cr_expect_eq(s.opcode, opcode, "opcode %u", s.opcode);
	cr_expect_eq(s.flags, flags, "flags %#x", s.flags);
}

static struct ibv_ops_wr operation(enum ibv_ops_wr_opcode opcode, uint64_t wr_id)
{
	return (struct ibv_ops_wr){ .wr_id = wr_id, .opcode = opcode, .flags = IBV_OPS_SIGNALED };
}

static int post_operation(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int error = ibv_post_srq_ops(srq, wr, &bad);

	cr_expect_eq(bad, error == 0 ? NULL : wr);
	return error;
}

/* An entry of one element at the start of the buffer; its completion, and its handle. */
static struct seen add(uint64_t tag, uint64_t mask, uint32_t length, uint32_t *handle)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, tag);

	wr.tm.add.recv_wr_id = tag + 1000;
	wr.tm.add.sg_list = &sge;
	wr.tm.add.num_sge = 1;
	wr.tm.add.tag = tag;
	wr.tm.add.mask = mask;
	cr_assert_eq(post_operation(&wr), 0);
	if (handle != NULL)
		*handle = wr.tm.handle;
	return next("IBV_WC_TM_ADD");
}

static void added(uint64_t tag, uint32_t length)
{
	expect_seen(add(tag, UINT64_MAX, length, NULL), tag, IBV_WC_TM_ADD, 0);
}

static struct seen delete (uint32_t handle)
{
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_DEL, 77);

	wr.tm.handle = handle;
	cr_assert_eq(post_operation(&wr), 0);
	return next("IBV_WC_TM_DEL");
}

static struct seen sync_to(uint32_t handled)
{
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_SYNC, 78);

	wr.flags |= IBV_OPS_TM_SYNC;
	wr.tm.unexpected_cnt = handled;
	cr_assert_eq(post_operation(&wr), 0);
	return next("IBV_WC_TM_SYNC");
}

static void receive(uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + 8192, 8192, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void send_from(struct ibv_qp *qp, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + offset, length, e.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 500,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

static void header(uint32_t offset, uint8_t opcode, uint64_t tag)
{
	struct ibv_tmh h = { .opcode = opcode, .app_ctx = htobe32(APP), .tag = htobe64(tag) };

	memcpy(e.buffer + offset, &h, sizeof(h));
}

static void send_tagged(uint8_t opcode, uint64_t tag, uint32_t length)
{
	header(SOURCE, opcode, tag);
	send_from(peer, SOURCE, length);
}

static void send_rendezvous_with(uint32_t slot, uint64_t tag, uint32_t length, uint32_t rkey)
{
	uint32_t offset = SOURCE + slot * 64;
	struct ibv_rvh h = { .va = htobe64((uintptr_t)e.buffer + FETCHED),
			     .rkey = htobe32(rkey),
			     .len = htobe32(length) };

	header(offset, IBV_TMH_RNDV, tag);
	memcpy(e.buffer + offset + sizeof(struct ibv_tmh), &h, sizeof(h));
	send_from(peer, offset, 32);
}

static void send_rendezvous(uint64_t tag, uint32_t length)
{
	send_rendezvous_with(0, tag, length, e.mr->rkey);
}

/* The peer's completion of a message. */
static void sent(enum ibv_wc_status status)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, "the sender's completion");
	cr_expect_eq(wc.status, status, "%s", ibv_wc_status_str(wc.status));
}

static void expect_fin(uint64_t tag)
{
	const struct ibv_tmh *h = (const void *)(e.buffer + FINS);

	cr_expect_eq(h->opcode, IBV_TMH_FIN);
	cr_expect_eq(h->tag, htobe64(tag));
	cr_expect_eq(h->app_ctx, htobe32(APP));
}

static void receive_fin(void)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer + FINS, 64, e.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 600, .sg_list = &sge, .num_sge = 1 }, *bad;

	cr_assert_eq(ibv_post_recv(peer, &wr, &bad), 0);
}

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

Test(tag, what_has_no_tag_is_an_ordinary_receive)
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

Test(tag, the_list_holds_what_was_asked_for)
{
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, 1);

	for (uint32_t round = 0; round < 3; round++) { /* each leaves one behind */
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

Test(tag, one_of_no_octets_is_done_at_once)
{
	struct ibv_wc wc[2];

	added(4, 10);
	receive_fin();
	send_rendezvous(4, 0);
	expect_seen(next("the rendezvous"), 1004, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	expect_seen(next("its data"), 1004, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	poll_completions(e.cq, wc, 2, "the peer's SEND and FIN");
}

Test(tag, one_that_has_no_room_is_incomplete_and_the_next_is_served)
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

Test(tag, one_whose_key_is_nonsense_is_incomplete)
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

/* More than are served at once, and the program's own requests between them. */
Test(tag, a_storm_of_rendezvous_beside_requests_of_the_program)
{
	uint32_t matched = 0, valid = 0, done = 0, fins = 0, posted = 0;
	double end = now() + WAIT_SECONDS;

	for (uint64_t i = 0; i < 48; i++)
		added(i, 2000);
	for (int i = 0; i < (int)SENDS; i++)
		receive_fin(); /* and for the program's */
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
	struct ibv_qp *second = create_qp(srq, IBV_QPT_RC), *its = create_qp(NULL, IBV_QPT_RC);
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

Test(tag, operations_with_wrong_arguments)
{
	struct ibv_sge sge = { 0 };
	struct ibv_ops_wr good = operation(IBV_WR_TAG_ADD, 1), wr, *bad = NULL;
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *other = ibv_create_srq(e.pd, &basic);

	good.tm.add.sg_list = &sge;
	wr = good;
	wr.opcode = 3;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr = good;
	wr.flags = 4;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr = good;
	wr.tm.add.num_sge = -1;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr.tm.add.num_sge = LIMIT_TAG_SGE + 1;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr = operation(IBV_WR_TAG_SYNC, 7);
	wr.next = &good;
	good.opcode = 9;
	cr_expect_eq(ibv_post_srq_ops(srq, &wr, &bad), EINVAL);
	cr_expect_eq(bad, &good);
	expect_seen(next("what stood before the wrong one"), 7, IBV_WC_TM_SYNC, 0);
	cr_expect_eq(ibv_post_srq_ops(other, &wr, &bad), EINVAL, "not a list");
	cr_expect_eq(ibv_destroy_srq(other), 0);
}

Test(tag, creation_with_wrong_arguments)
{
	struct ibv_device_attr_ex d;
	struct ibv_pd *pd = ibv_alloc_pd(e.context), *mine = e.pd;
	struct ibv_srq_init_attr_ex init;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &d), 0);
	for (int i = 0; i < 7; i++) {
		init = usual();
		switch (i) {
		case 0:
			init.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_TM;
			break;
		case 1:
			init.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
			break;
		case 2:
			init.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_PD;
			break;
		case 3:
			init.tm_cap.max_num_tags = 0;
			break;
		case 4:
			init.tm_cap.max_num_tags = d.tm_caps.max_num_tags + 1;
			break;
		case 5:
			init.tm_cap.max_ops = 0;
			break;
		default:
			init.tm_cap.max_ops = d.tm_caps.max_ops + 1;
		}
		errno = 0;
		cr_expect_null(ibv_create_srq_ex(e.context, &init), "%d", i);
		cr_expect_eq(errno, EINVAL, "%d: %m", i);
	}
	cr_expect_null(create_qp(srq, IBV_QPT_UD));
	cr_expect_null(create_qp(srq, IBV_QPT_UC));
	cr_expect_eq(errno, EINVAL);
	e.pd = pd;
	cr_expect_null(create_qp(srq, IBV_QPT_RC), "of another protection domain");
	cr_expect_eq(errno, EINVAL);
	e.pd = mine;
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

Test(tag, what_is_announced_can_be_had)
{
	struct ibv_srq_init_attr_ex init = usual();
	struct ibv_device_attr_ex d;
	struct ibv_sge sge[LIMIT_TAG_SGE] = { 0 };
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, 1), *bad;
	struct ibv_srq *s;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &d), 0);
	cr_expect_eq(d.tm_caps.flags, IBV_TM_CAP_RC);
	cr_expect_geq(d.tm_caps.max_rndv_hdr_size, sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh));
	init.tm_cap.max_num_tags = d.tm_caps.max_num_tags;
	init.tm_cap.max_ops = d.tm_caps.max_ops;
	s = ibv_create_srq_ex(e.context, &init);
	cr_assert_not_null(s, "%m");
	wr.tm.add.sg_list = sge;
	wr.tm.add.num_sge = (int)d.tm_caps.max_sge;
	for (uint32_t i = 0; i < d.tm_caps.max_num_tags; i++) {
		cr_assert_eq(ibv_post_srq_ops(s, &wr, &bad), 0, "entry %u", i);
		expect_seen(next("the entry"), 1, IBV_WC_TM_ADD, 0);
	}
	cr_expect_eq(ibv_post_srq_ops(s, &wr, &bad), ENOMEM);
	cr_expect_eq(ibv_destroy_srq(s), 0, "with its entries");
}

/* What the library would not post. */
Test(tag, forged_operations_fail)
{
	struct srq *s = (struct srq *)srq;
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_SYNC, 1);
	struct tag_work *slot;
	static const struct {
		uint8_t opcode, num_sge;
	} forged[] = { { TAG_ADD, LIMIT_TAG_SGE + 1 }, { TAG_ADD, 255 }, { 3, 0 }, { 255, 255 } };

	for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
		slot = ring_client_reserve(s->ops, s->ops_stride);
		cr_assert_not_null(slot);
		*slot = (struct tag_work){ .wr_id = 40 + i,
					   .opcode = forged[i].opcode,
					   .num_sge = forged[i].num_sge };
		ring_client_publish(s->ops);
		cr_assert_eq(post_operation(&wr), 0);
		cr_expect_eq(next("the forged one").status, IBV_WC_TM_ERR);
		expect_seen(next("the one behind it"), 1, IBV_WC_TM_SYNC, 0);
	}
	for (uint64_t i = 0; i < 2 * TAGS; i++) { /* more entries than the list has */
		slot = ring_client_reserve(s->ops, s->ops_stride);
		cr_assert_not_null(slot);
		*slot = (struct tag_work){ .wr_id = i, .opcode = TAG_ADD, .flags = TAG_SIGNALED };
		ring_client_publish(s->ops);
		cr_assert_eq(post_operation(&wr), 0);
		cr_expect_eq(next("the entry").status, i < TAGS ? IBV_WC_SUCCESS : IBV_WC_TM_ERR,
			     "%u", (unsigned)i);
		next("the one behind it");
	}
}

Test(tag, a_ring_of_operations_full_of_nonsense_ends_the_srq)
{
	struct srq *s = (struct srq *)srq;
	struct ibv_async_event event;

	__atomic_store_n(&s->ops->prod.tail, 0x12345678, __ATOMIC_RELEASE);
	s->ops->prod.head = 0x12345678;
	doorbell_ring(s->bell, &s->page->doorbell, DOORBELL_SRQ | s->number, s->sleeping,
		      s->wake_fd);
	cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_SRQ_ERR);
	cr_expect_eq(event.element.srq, srq);
	ibv_ack_async_event(&event);
}
