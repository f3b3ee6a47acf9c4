/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection manager's messages, compared with those that Linux sends. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/bits.h"
#include "linux_mads.h"

static struct cm_message decoded(const uint8_t *mad)
{
	struct cm_message m;

	cr_assert_eq(cm_message_decode(&m, mad, MAD_OCTETS), CM_DECODED);
	return m;
}

static const struct gid guest_2 = { { [10] = 0xff, [11] = 0xff, 10, 9, 0, 2 } };
static const struct gid guest_3 = { { [10] = 0xff, [11] = 0xff, 10, 9, 0, 3 } };

Test(mad, request_of_linux)
{
	struct cm_message m = decoded(linux_req_ipv4);
	struct cm_ip_header ip;

	cr_expect_eq(m.attribute, CM_REQ);
	cr_expect_eq(m.transaction, 0x000000027ce45e9a);
	cr_expect_eq(m.local_id, 0x9a5ee47c);
	cr_expect_eq(m.service_id, cm_service_id(CM_SPACE_TCP, 7174));
	cr_expect_eq(m.ca_guid, 0x505400fffe123461);
	cr_expect_eq(m.qpn, 0x11);
	cr_expect_eq(m.responder_resources, 1);
	cr_expect_eq(m.initiator_depth, 1);
	cr_expect_eq(m.remote_response_timeout, 20);
	cr_expect_eq(m.local_response_timeout, 20);
	cr_expect_eq(m.transport, CM_TRANSPORT_RC);
	cr_expect_eq(m.starting_psn, 0x3a9400);
	cr_expect_eq(m.retry_count, 7);
	cr_expect_eq(m.rnr_retry_count, 7);
	cr_expect_eq(m.max_cm_retries, 15);
	cr_expect_eq(m.pkey, 0xffff);
	cr_expect_eq(m.path_mtu, 5);
	cr_expect_eq(m.primary.local_lid, 0xffff);
	cr_expect(gid_equal(&m.primary.local_gid, &guest_3));
	cr_expect(gid_equal(&m.primary.remote_gid, &guest_2));
	cr_expect_eq(m.primary.flow_label, 0x1437d);
	cr_expect_eq(m.primary.packet_rate, 0);
	cr_expect_eq(m.primary.hop_limit, 64);
	cr_expect_eq(m.primary.ack_timeout, 0x13);
	cr_assert(cm_ip_header_decode(&ip, m.private_data));
	cr_expect_eq(ip.ip_version, 4);
	cr_expect_eq(ip.source_port, 0x8da9);
	cr_expect(gid_equal(&ip.source, &guest_3));
	cr_expect(gid_equal(&ip.destination, &guest_2));
}

Test(mad, request_of_linux_over_ipv6)
{
	static const struct gid source = { { 0xfd, 0x09, [15] = 3 } };
	static const struct gid destination = { { 0xfd, 0x09, [15] = 2 } };
	struct cm_message m = decoded(linux_req_ipv6);
	struct cm_ip_header ip;

	cr_assert(cm_ip_header_decode(&ip, m.private_data));
	cr_expect_eq(ip.ip_version, 6);
	cr_expect(gid_equal(&ip.source, &source));
	cr_expect(gid_equal(&ip.destination, &destination));
	cr_expect(gid_equal(&m.primary.remote_gid, &destination));
}

Test(mad, reply_of_linux)
{
	struct cm_message m = decoded(linux_rep);

	cr_expect_eq(m.attribute, CM_REP);
	cr_expect_eq(m.local_id, 0xb181bf1e);
	cr_expect_eq(m.remote_id, 0x9a5ee47c);
	cr_expect_eq(m.qpn, 0x11);
	cr_expect_eq(m.starting_psn, 0x693e21);
	cr_expect_eq(m.responder_resources, 1);
	cr_expect_eq(m.initiator_depth, 1);
	cr_expect_eq(m.target_ack_delay, 15);
	cr_expect_eq(m.rnr_retry_count, 7);
	cr_expect_eq(m.srq, 0);
	cr_expect_eq(m.ca_guid, 0x505400fffe123460);
}

Test(mad, disconnection_of_linux)
{
	struct cm_message m = decoded(linux_rtu);

	cr_expect_eq(m.attribute, CM_RTU);
	cr_expect_eq(m.local_id, 0x9a5ee47c);
	cr_expect_eq(m.remote_id, 0xb181bf1e);
	m = decoded(linux_dreq);
	cr_expect_eq(m.attribute, CM_DREQ);
	cr_expect_eq(m.local_id, 0x9a5ee47c);
	cr_expect_eq(m.qpn, 0x11);
	m = decoded(linux_drep);
	cr_expect_eq(m.attribute, CM_DREP);
	cr_expect_eq(m.remote_id, 0x9a5ee47c);
}

Test(mad, rejection_of_linux)
{
	struct cm_message m = decoded(linux_rej);

	cr_expect_eq(m.attribute, CM_REJ);
	cr_expect_eq(m.local_id, 0);
	cr_expect_eq(m.remote_id, 0x9e5ee47c);
	cr_expect_eq(m.about, CM_ABOUT_REQ);
	cr_expect_eq(m.reason, CM_REJECT_INVALID_SERVICE_ID);
	cr_expect_eq(m.information_length, 0);
}

Test(mad, datagram_service_of_linux)
{
	struct cm_message m = decoded(linux_sidr_req);
	uint32_t request = m.local_id;

	cr_expect_eq(m.attribute, CM_SIDR_REQ);
	cr_expect_eq(m.pkey, 0xffff);
	cr_expect_eq(m.service_id >> 16, CM_SPACE_UDP);
	m = decoded(linux_sidr_rep);
	cr_expect_eq(m.attribute, CM_SIDR_REP);
	cr_expect_eq(m.local_id, request);
	cr_expect_eq(m.status, 0);
	cr_expect_eq(m.service_id >> 16, CM_SPACE_UDP);
	cr_expect_eq(m.qkey, 0x01234567);
	cr_expect_neq(m.qpn, 0);
}

/* Bit for bit: nothing of Linux's messages is lost or moved. */
Test(mad, encoding_reverses_decoding)
{
	const uint8_t *all[] = { linux_req_ipv4, linux_req_ipv6, linux_rep,
				 linux_rtu,	 linux_dreq,	 linux_drep,
				 linux_sidr_req, linux_sidr_rep, linux_rej };
	uint8_t again[MAD_OCTETS];

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct cm_message m = decoded(all[i]);

		cm_message_encode(&m, again);
		cr_expect_arr_eq(again, all[i], MAD_OCTETS, "%s", cm_attribute_name(m.attribute));
	}
}

/* As in Linux (ibta_vol1_c12.h since 5.8): after the header, and in its attribute modifier. */
Test(mad, enhanced_connection_establishment)
{
	static const struct {
		const uint8_t *mad;
		uint8_t at[3];
	} row[] = {
		{ linux_req_ipv4, { 5, 6, 7 } },
		{ linux_rep, { 15, 19, 23 } },
		{ linux_sidr_rep, { 6, 7, 11 } },
	};
	static const uint8_t vendor[3] = { 0x00, 0x15, 0xb3 };
	uint8_t mad[MAD_OCTETS], again[MAD_OCTETS];
	struct cm_message before, m;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		memcpy(mad, row[i].mad, sizeof(mad));
		before = decoded(mad);
		cr_expect_eq(before.ece_options, 0);
		for (size_t k = 0; k < 3; k++)
			mad[24 + row[i].at[k]] = vendor[k];
		memcpy(mad + 20, (uint8_t[]){ 0x80, 0x01, 0x02, 0x03 }, 4);
		m = decoded(mad);
		cr_expect_arr_eq(m.ece_vendor, vendor, 3, "row %zu", i);
		cr_expect_eq(m.ece_options, 0x80010203);
		cm_message_encode(&m, again);
		cr_expect_arr_eq(again, mad, MAD_OCTETS, "row %zu", i);
		memset(m.ece_vendor, 0, 3);
		m.ece_options = 0;
		cr_expect_arr_eq((uint8_t *)&m, (uint8_t *)&before, sizeof(m),
				 "the rest is unchanged");
	}
}

/* XRC uses the field for the end-to-end context for its queue pair number. */
Test(mad, the_queue_pair_of_an_xrc_target)
{
	uint8_t mad[MAD_OCTETS];
	struct cm_message m;

	memcpy(mad, linux_rep, sizeof(mad));
	memset(mad + 24 + 12, 0, 3);
	memcpy(mad + 24 + 16, (uint8_t[]){ 0x12, 0x34, 0x56 }, 3);
	m = decoded(mad);
	cr_expect_eq(m.qpn, 0);
	cr_expect_eq(cm_sender_qpn(&m), 0x123456);
	m = decoded(linux_rep);
	cr_expect_eq(cm_sender_qpn(&m), m.qpn);
}

/* IBTA 12.6.16: another place for some fields than in a REQ. */
Test(mad, the_path_of_a_lap)
{
	static const struct gid local = { { 0xfd, [15] = 3 } }, remote = { { 0xfd, [15] = 2 } };
	uint8_t mad[MAD_OCTETS] = { 0 }, again[MAD_OCTETS], *at = mad + 24;
	struct cm_message m;

	memcpy(mad, linux_dreq, 24);
	mad[17] = CM_LAP;
	memcpy(at, (uint8_t[]){ 0, 0, 0, 1, 0, 0, 0, 2 }, 8);
	memcpy(at + 12, (uint8_t[]){ 0x12, 0x34, 0x56, 19 << 3 }, 4);
	memcpy(at + 20, (uint8_t[]){ 0xc0, 0x01, 0xc0, 0x02 }, 4);
	memcpy(at + 24, &local, 16);
	memcpy(at + 40, &remote, 16);
	memcpy(at + 56, (uint8_t[]){ 0xab, 0xcd, 0xe0, 0x68, 0x40, 0x2a, 0x58, 17 << 3 }, 8);
	m = decoded(mad);
	cr_expect_eq(m.attribute, CM_LAP);
	cr_expect_eq(m.local_id, 1);
	cr_expect_eq(m.remote_id, 2);
	cr_expect_eq(m.qpn, 0x123456);
	cr_expect_eq(m.remote_response_timeout, 19);
	cr_expect_eq(m.alternate.local_lid, 0xc001);
	cr_expect_eq(m.alternate.remote_lid, 0xc002);
	cr_expect(gid_equal(&m.alternate.local_gid, &local));
	cr_expect(gid_equal(&m.alternate.remote_gid, &remote));
	cr_expect_eq(m.alternate.flow_label, 0xabcde);
	cr_expect_eq(m.alternate.traffic_class, 0x68);
	cr_expect_eq(m.alternate.hop_limit, 0x40);
	cr_expect_eq(m.alternate.packet_rate, 0x2a);
	cr_expect_eq(m.alternate.sl, 5);
	cr_expect_eq(m.alternate.subnet_local, 1);
	cr_expect_eq(m.alternate.ack_timeout, 17);
	cm_message_encode(&m, again);
	cr_expect_arr_eq(again, mad, MAD_OCTETS);
}

Test(mad, messages_that_are_not_decoded)
{
	static const struct {
		uint32_t octet;
		uint8_t value;
		enum cm_decode result;
	} row[] = {
		{ 0, 2, CM_NOT_CM }, /* base version */
		{ 1, 3, CM_NOT_CM }, /* class */
		{ 2, 1, CM_WRONG_VERSION },
		{ 2, 3, CM_WRONG_VERSION },
		{ 3, 1, CM_NOT_CM }, /* method */
		{ 4, 1, CM_NOT_CM }, /* status */
		{ 5, 1, CM_NOT_CM },
		{ 17, 0x0f, CM_NOT_CM }, /* attribute */
		{ 17, 0x1b, CM_NOT_CM },
		{ 16, 1, CM_NOT_CM },
		{ 24 + 9, 73 << 1, CM_MALFORMED }, /* more information than there is room for */
		{ 24 + 9, 72 << 1, CM_DECODED },
	};
	uint8_t mad[MAD_OCTETS];
	struct cm_message m;

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		memcpy(mad, linux_rej, sizeof(mad));
		mad[row[i].octet] = row[i].value;
		cr_expect_eq(cm_message_decode(&m, mad, sizeof(mad)), row[i].result, "row %zu", i);
	}
	for (size_t length = 0; length < MAD_OCTETS; length++)
		cr_expect_eq(cm_message_decode(&m, linux_rej, length), CM_MALFORMED);
}

Test(mad, ip_headers_of_other_versions)
{
	struct cm_message m = decoded(linux_req_ipv4);
	struct cm_ip_header ip;

	m.private_data[1] = 0x50;
	cr_expect_not(cm_ip_header_decode(&ip, m.private_data));
	m.private_data[1] = 0x40;
	m.private_data[0] = 0x10;
	cr_expect_not(cm_ip_header_decode(&ip, m.private_data));
}

Test(mad, decoding_reverses_encoding_of_ip_headers)
{
	const uint8_t *all[] = { linux_req_ipv4, linux_req_ipv6, linux_sidr_req };
	uint8_t again[CM_IP_HEADER];
	struct cm_ip_header ip;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct cm_message m = decoded(all[i]);

		cr_assert(cm_ip_header_decode(&ip, m.private_data));
		cm_ip_header_encode(&ip, again);
		cr_expect_arr_eq(again, m.private_data, CM_IP_HEADER);
	}
}
