/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages without a connection, and how a message's connection is found. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "cm/cm.h"
#include "linux_mads.h"

static struct cm_message message(uint8_t attribute)
{
	return (struct cm_message){ .attribute = attribute,
				    .transaction = 0x1234,
				    .local_id = 0xaaaa,
				    .remote_id = 0xbbbb,
				    .service_id = 0x55,
				    .ca_guid = 0xfeed };
}

/* protocol-map 193; IBTA 12.6: an answer is never answered, or two ends could do so for ever */
Test(stray, which_messages_are_answered)
{
	static const struct {
		uint8_t attribute;
		uint8_t answer; /* 0: none */
		uint16_t reason;
		uint8_t about, status;
	} row[] = {
		{ CM_REQ, CM_REJ, CM_REJECT_INVALID_SERVICE_ID, CM_ABOUT_REQ, 0 },
		{ CM_REP, CM_REJ, CM_REJECT_INVALID_COMM_ID, CM_ABOUT_REP, 0 },
		{ CM_DREQ, CM_DREP, 0, 0, 0 },
		{ CM_LAP, CM_APR, 0, 0, CM_APR_INVALID_COMM_ID },
		{ CM_SIDR_REQ, CM_SIDR_REP, 0, 0, CM_SIDR_UNSUPPORTED_SERVICE },
		{ CM_MRA, 0, 0, 0, 0 },
		{ CM_REJ, 0, 0, 0, 0 },
		{ CM_RTU, 0, 0, 0, 0 },
		{ CM_DREP, 0, 0, 0, 0 },
		{ CM_APR, 0, 0, 0, 0 },
		{ CM_SIDR_REP, 0, 0, 0, 0 },
		{ 0, 0, 0, 0, 0 },
		{ 0xff, 0, 0, 0, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message m = message(row[i].attribute), answer, never;

		cr_assert_eq(cm_stray(&m, &answer), row[i].answer != 0, "row %zu", i);
		if (row[i].answer == 0)
			continue;
		cr_expect_eq(answer.attribute, row[i].answer, "row %zu", i);
		cr_expect_eq(answer.reason, row[i].reason, "row %zu", i);
		cr_expect_eq(answer.about, row[i].about, "row %zu", i);
		cr_expect_eq(answer.status, row[i].status, "row %zu", i);
		cr_expect_eq(answer.transaction, 0x1234, "row %zu", i);
		cr_expect_not(cm_stray(&answer, &never), "row %zu", i);
		if (answer.attribute == CM_SIDR_REP) {
			cr_expect_eq(answer.local_id, 0xaaaa);
			cr_expect_eq(answer.service_id, 0x55);
			continue;
		}
		cr_expect_eq(answer.local_id, 0xbbbb, "row %zu", i);
		cr_expect_eq(answer.remote_id, 0xaaaa, "row %zu", i);
	}
}

/* Bit for bit Linux's answer to a REQ for a port without a listener. */
Test(stray, a_port_without_a_listener_is_refused_like_linux)
{
	struct cm_message theirs, req, answer;
	uint8_t mad[MAD_OCTETS];

	cr_assert_eq(cm_message_decode(&theirs, linux_rej, MAD_OCTETS), CM_DECODED);
	req = (struct cm_message){ .attribute = CM_REQ,
				   .transaction = theirs.transaction,
				   .local_id = theirs.remote_id };
	cr_assert(cm_stray(&req, &answer));
	cm_message_encode(&answer, mad);
	cr_expect_arr_eq(mad, linux_rej, MAD_OCTETS);
}

/* protocol-map 193, hostile H-65 */
Test(stray, another_class_version)
{
	static const struct {
		uint8_t attribute;
		bool answered;
	} row[] = {
		{ CM_REQ, true },  { CM_REP, true },  { CM_SIDR_REQ, true },  { CM_MRA, false },
		{ CM_REJ, false }, { CM_RTU, false }, { CM_DREQ, false },     { CM_DREP, false },
		{ CM_LAP, false }, { CM_APR, false }, { CM_SIDR_REP, false },
	};
	uint8_t mad[MAD_OCTETS];

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message m = message(row[i].attribute), answer;

		cm_message_encode(&m, mad);
		mad[2] = 3;
		cr_assert_eq(cm_message_decode(&m, mad, sizeof(mad)), CM_WRONG_VERSION);
		cr_assert_eq(cm_wrong_version(&m, &answer), row[i].answered, "row %zu", i);
		if (row[i].attribute == CM_SIDR_REQ) {
			cr_expect_eq(answer.status, CM_SIDR_UNSUPPORTED_VERSION);
			cr_expect_eq(answer.local_id, 0xaaaa);
		} else if (row[i].answered) {
			cr_expect_eq(answer.reason, CM_REJECT_CLASS_VERSION);
			cr_expect_eq(answer.remote_id, 0xaaaa);
		}
	}
}

Test(stray, how_a_connection_is_found)
{
	static const struct {
		uint8_t attribute;
		enum cm_key by;
		uint32_t id;
	} row[] = {
		{ CM_REQ, CM_KEY_REMOTE_ID, 0xaaaa },
		{ CM_MRA, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_REJ, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_REP, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_RTU, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_DREQ, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_DREP, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_LAP, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_APR, CM_KEY_LOCAL_ID, 0xbbbb },
		{ CM_SIDR_REQ, CM_KEY_SIDR_RESPONDER, 0xaaaa },
		{ CM_SIDR_REP, CM_KEY_SIDR_REQUESTER, 0xaaaa },
		{ 0, CM_KEY_NONE, 0 },
		{ 0xff, CM_KEY_NONE, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message m = message(row[i].attribute);
		struct cm_key_of key = cm_key(&m);

		cr_expect_eq(key.by, row[i].by, "row %zu", i);
		cr_expect_eq(key.id, row[i].id, "row %zu", i);
		cr_expect_eq(key.guid, row[i].attribute == CM_REQ ? 0xfeed : 0, "row %zu", i);
		m.remote_id = 0;
		if (row[i].by == CM_KEY_LOCAL_ID)
			cr_expect_eq(cm_key(&m).by, CM_KEY_NONE, "row %zu", i);
	}
}

/* A peer that gave up before it knew our id identifies itself instead. */
Test(stray, how_the_connection_of_a_late_rej_is_found)
{
	struct cm_message m = message(CM_REJ);

	m.remote_id = 0;
	m.reason = CM_REJECT_TIMEOUT;
	m.information_length = 8;
	store_be64(m.information, 0xfeed);
	cr_expect_eq(cm_key(&m).by, CM_KEY_REMOTE_ID);
	cr_expect_eq(cm_key(&m).id, 0xaaaa);
	cr_expect_eq(cm_key(&m).guid, 0xfeed);
	m.information_length = 7;
	cr_expect_eq(cm_key(&m).by, CM_KEY_NONE);
	m.information_length = 8;
	m.reason = CM_REJECT_CONSUMER;
	cr_expect_eq(cm_key(&m).by, CM_KEY_NONE);
}

/* protocol-map 191, hostile H-71 */
Test(stray, which_requests_are_stale)
{
	static const struct {
		uint64_t guid;
		uint32_t id, qpn, psn, service;
		enum cm_relation relation, after_rejection;
	} row[] = {
		{ 0xa0, 1, 0x10, 5, 7, CM_REPETITION, CM_REPETITION },
		{ 0xa0, 1, 0x10, 6, 7, CM_STALE, CM_UNRELATED }, /* the same id, begun anew */
		{ 0xa0, 1, 0x10, 5, 8, CM_STALE, CM_UNRELATED },
		{ 0xa0, 1, 0x11, 5, 7, CM_STALE, CM_UNRELATED },
		{ 0xa0, 2, 0x10, 5, 7, CM_STALE, CM_UNRELATED }, /* the same queue pair */
		{ 0xa0, 2, 0x10, 6, 8, CM_STALE, CM_UNRELATED },
		{ 0xa0, 2, 0x11, 5, 7, CM_UNRELATED, CM_UNRELATED },
		{ 0xa1, 1, 0x10, 5, 7, CM_UNRELATED, CM_UNRELATED }, /* of another CA */
		{ 0xa1, 2, 0x10, 5, 7, CM_UNRELATED, CM_UNRELATED },
		{ 0xa1, 1, 0x11, 6, 8, CM_UNRELATED, CM_UNRELATED },
	};
	struct cm_message req = { .attribute = CM_REQ, .ca_guid = 0xa0, .local_id = 1 };
	struct cm_connection c = { 0 };

	req.qpn = 0x10;
	req.starting_psn = 5;
	req.service_id = 7;
	cm_requested(&c, &req, 99);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_connection rejected = c;

		req.ca_guid = row[i].guid;
		req.local_id = row[i].id;
		req.qpn = row[i].qpn;
		req.starting_psn = row[i].psn;
		req.service_id = row[i].service;
		cr_expect_eq(cm_compare(&c, &req), row[i].relation, "row %zu", i);
		cm_reject(&rejected, &(struct cm_rejection){ .reason = 28 }, 1);
		cr_expect_eq(cm_compare(&rejected, &req), row[i].after_rejection, "row %zu", i);
	}
}

/*
 * A REP from a peer that this connection, or another one, already knows. hostile H-71: a peer that
 * restarted.
 */
Test(stray, which_replies_are_stale)
{
	struct cm_message req = { .attribute = CM_REQ, .local_id = 50, .qpn = 0x20 };
	struct cm_message rep = { .attribute = CM_REP, .local_id = 1, .remote_id = 50 };
	struct cm_connection c = { 0 }, nothing = { 0 };

	rep.ca_guid = 0xa0;
	rep.qpn = 0x10;
	cr_assert_eq(cm_connect(&c, &req, 1), 0);
	cr_expect_eq(cm_compare(&c, &rep), CM_UNRELATED, "it knows no peer yet");
	cr_expect_eq(cm_compare(&nothing, &rep), CM_UNRELATED);
	cr_assert_eq(cm_received(&c, &rep, 2), CM_ACCEPTED);
	cr_expect_eq(cm_compare(&c, &rep), CM_REPETITION);
	rep.remote_id = 51; /* to another connection, from a queue pair in use */
	cr_expect_eq(cm_compare(&c, &rep), CM_STALE);
	rep.local_id = 2;
	cr_expect_eq(cm_compare(&c, &rep), CM_STALE);
	rep.qpn = 0x11;
	cr_expect_eq(cm_compare(&c, &rep), CM_UNRELATED);
}

/* An idle connection or a SIDR exchange matches no messages of connections. */
Test(stray, idle_and_sidr_match_no_connection)
{
	static const uint8_t attributes[] = { CM_MRA,  CM_REJ,	CM_REP, CM_RTU,
					      CM_DREQ, CM_DREP, CM_LAP };
	struct cm_message sidr = { .attribute = CM_SIDR_REQ, .local_id = 7 };
	struct cm_connection nothing = { 0 }, asks = { 0 }, answers = { 0 };
	struct cm_message req = { .attribute = CM_REQ };

	cr_assert_eq(cm_sidr_connect(&asks, &sidr, 20, 3, 1), 0);
	cm_sidr_requested(&answers, &sidr);
	cr_expect_eq(cm_compare(&nothing, &req), CM_UNRELATED);
	cr_expect_eq(cm_compare(&asks, &req), CM_UNRELATED);
	cr_expect_eq(cm_compare(&answers, &req), CM_UNRELATED);
	for (size_t i = 0; i < ARRAY_SIZE(attributes); i++) {
		struct cm_message m = { .attribute = attributes[i] };

		cr_expect_not(cm_belongs(&nothing, &m));
		m.remote_id = 7;
		cr_expect_not(cm_belongs(&asks, &m));
		m.remote_id = 0;
		m.local_id = 7;
		cr_expect_not(cm_belongs(&answers, &m));
	}
}

Test(stray, refusals_of_datagram_services)
{
	static const struct {
		uint16_t reason;
		uint8_t status;
	} row[] = {
		{ CM_REJECT_INVALID_SERVICE_ID, CM_SIDR_UNSUPPORTED_SERVICE },
		{ CM_REJECT_NO_QP, CM_SIDR_NO_QP },
		{ CM_REJECT_CLASS_VERSION, CM_SIDR_UNSUPPORTED_VERSION },
		{ CM_REJECT_CONSUMER, CM_SIDR_REJECTED },
		{ CM_REJECT_NO_RESOURCES, CM_SIDR_REJECTED },
	};
	struct cm_message m = message(CM_SIDR_REQ), answer;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		cm_refuse(&m, row[i].reason, &answer);
		cr_expect_eq(answer.attribute, CM_SIDR_REP);
		cr_expect_eq(answer.status, row[i].status, "row %zu", i);
		cr_expect_eq(answer.transaction, 0x1234);
	}
}
