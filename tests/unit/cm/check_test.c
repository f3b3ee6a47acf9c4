/* SPDX-License-Identifier: BSD-3-Clause */
/* hostile H-66, H-67: the checks of a request's contents. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "cm/cm.h"
#include "linux_mads.h"

static const struct cm_port_view port = {
	.own_gid = true, .own_pkey = true, .xrc = true, .mtu = 5
};

static struct cm_message decoded(const uint8_t *mad)
{
	struct cm_message m;

	cr_assert_eq(cm_message_decode(&m, mad, MAD_OCTETS), CM_DECODED);
	return m;
}

Test(check, requests_of_linux_are_accepted)
{
	struct cm_message ipv4 = decoded(linux_req_ipv4), ipv6 = decoded(linux_req_ipv6);
	struct cm_message sidr = decoded(linux_sidr_req), rep = decoded(linux_rep);
	struct cm_ip_header ip;

	cr_expect_eq(cm_check_request(&ipv4, &port), 0);
	cr_expect_eq(cm_check_request(&ipv6, &port), 0);
	cr_expect_eq(cm_check_request(&sidr, &port), 0);
	cr_expect_eq(cm_check_reply(&rep), 0);
	cr_expect_eq(cm_check_ip_header(&ipv4, &ip), 0);
	cr_expect_eq(ip.source_port, 0x8da9);
	cr_expect_eq(cm_check_ip_header(&ipv6, &ip), 0);
	cr_expect_eq(cm_check_ip_header(&sidr, &ip), 0);
}

/* hostile H-66: an illegal REQ. */
Test(check, queue_pairs)
{
	static const struct {
		uint32_t qpn;
		uint16_t reason;
	} row[] = {
		{ 0, CM_REJECT_UNSUPPORTED },
		{ 1, CM_REJECT_UNSUPPORTED },
		{ 2, 0 },
		{ 0xfffffe, 0 },
		{ 0xffffff, CM_REJECT_UNSUPPORTED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message req = decoded(linux_req_ipv4), rep = decoded(linux_rep);

		req.qpn = rep.qpn = row[i].qpn;
		cr_expect_eq(cm_check_request(&req, &port), row[i].reason, "row %zu", i);
		cr_expect_eq(cm_check_reply(&rep), row[i].reason, "row %zu", i);
	}
}

/*
 * The codes are those of ibv_mtu. 0 and 6 upwards are undefined, and an MTU above the port's is too
 * large. hostile H-66: an illegal REQ.
 */
Test(check, path_mtus)
{
	for (uint8_t own = 1; own <= 5; own++) {
		struct cm_port_view view = port;

		view.mtu = own;
		for (uint8_t code = 0; code < 16; code++) {
			struct cm_message m = decoded(linux_req_ipv4);

			m.path_mtu = code;
			cr_expect_eq(cm_check_request(&m, &view),
				     code >= 1 && code <= own ? 0 : CM_REJECT_INVALID_MTU);
		}
	}
}

/* hostile H-66: an illegal REQ. */
Test(check, transports)
{
	static const struct {
		uint8_t transport, extended;
		bool xrc;
		uint16_t reason;
	} row[] = {
		{ CM_TRANSPORT_RC, 0, false, 0 },
		{ CM_TRANSPORT_UC, 0, false, 0 },
		{ CM_TRANSPORT_RD, 0, true, CM_REJECT_INVALID_TRANSPORT },
		{ CM_TRANSPORT_EXTENDED, 1, true, 0 },
		{ CM_TRANSPORT_EXTENDED, 1, false, CM_REJECT_INVALID_TRANSPORT },
		{ CM_TRANSPORT_EXTENDED, 0, true, CM_REJECT_INVALID_TRANSPORT },
		{ CM_TRANSPORT_EXTENDED, 2, true, CM_REJECT_INVALID_TRANSPORT },
		{ CM_TRANSPORT_EXTENDED, 7, true, CM_REJECT_INVALID_TRANSPORT },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message m = decoded(linux_req_ipv4);
		struct cm_port_view view = port;

		view.xrc = row[i].xrc;
		m.transport = row[i].transport;
		m.extended_transport = row[i].extended;
		cr_expect_eq(cm_check_request(&m, &view), row[i].reason, "row %zu", i);
	}
}

/* hostile H-66: an illegal REQ. */
Test(check, addresses)
{
	static const struct {
		struct gid from;
		bool own;
		uint16_t reason;
	} row[] = {
		{ { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } }, true, 0 },
		{ { { 0xfd, [15] = 1 } }, true, 0 },
		{ { { 0xfe, 0x80, [15] = 1 } }, true, 0 },
		{ { { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } }, false, CM_REJECT_INVALID_GID },
		{ { { 0 } }, true, CM_REJECT_INVALID_GID },
		{ { { [10] = 0xff, [11] = 0xff } }, true, CM_REJECT_INVALID_GID },
		{ { { [10] = 0xff, [11] = 0xff, 224, 0, 0, 1 } }, true, CM_REJECT_INVALID_GID },
		{ { { 0xff, 0x02, [15] = 1 } }, true, CM_REJECT_INVALID_GID },
	};

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_message m = decoded(linux_req_ipv4);
		struct cm_port_view view = port;

		view.own_gid = row[i].own;
		m.primary.local_gid = row[i].from;
		cr_expect_eq(cm_check_request(&m, &view), row[i].reason, "row %zu", i);
	}
}

/* Retry counts of 7, depths of 0 and 255, and every PSN are legal (hostile H-66, H-80). */
Test(check, extremes_that_are_legal)
{
	struct cm_message m = decoded(linux_req_ipv4);

	m.retry_count = m.rnr_retry_count = 7;
	m.initiator_depth = 0;
	m.responder_resources = 255;
	m.starting_psn = 0xffffff;
	m.local_response_timeout = m.remote_response_timeout = 31;
	cr_expect_eq(cm_check_request(&m, &port), 0);
	m.retry_count = m.rnr_retry_count = 0;
	m.initiator_depth = 255;
	m.responder_resources = 0;
	cr_expect_eq(cm_check_request(&m, &port), 0);
}

/* A message has 24 bits for a PSN or a queue pair number. hostile H-66: an illegal REQ. */
Test(check, no_psn_is_wider_than_24_bits)
{
	uint8_t mad[MAD_OCTETS];
	struct cm_message m;

	memset(mad, 0xff, sizeof(mad));
	memcpy(mad, linux_req_ipv4, 24);
	cr_assert_eq(cm_message_decode(&m, mad, sizeof(mad)), CM_DECODED);
	cr_expect_eq(m.starting_psn, 0xffffff);
	cr_expect_eq(m.qpn, 0xffffff);
	cr_expect_eq(cm_check_request(&m, &port), CM_REJECT_UNSUPPORTED);
}

Test(check, foreign_pkeys)
{
	struct cm_message req = decoded(linux_req_ipv4), sidr = decoded(linux_sidr_req), answer;
	struct cm_port_view view = port;

	view.own_pkey = false;
	cr_expect_eq(cm_check_request(&req, &view), CM_REJECT_UNSUPPORTED);
	cr_expect_eq(cm_check_request(&sidr, &view), CM_REJECT_UNSUPPORTED);
	cm_refuse(&sidr, CM_REJECT_UNSUPPORTED, &answer);
	cr_expect_eq(answer.attribute, CM_SIDR_REP);
	cr_expect_eq(answer.status, CM_SIDR_REJECTED);
	cr_expect_eq(answer.local_id, sidr.local_id);
	cr_expect_eq(answer.service_id, sidr.service_id);
}

/* hostile H-67: the header is read from 92 octets that always exist */
Test(check, ip_headers)
{
	static const struct {
		uint8_t octet, value;
	} row[] = {
		{ 0, 0x10 }, /* the header's own version */
		{ 1, 0x50 }, { 1, 0x00 }, { 1, 0xf0 }, /* the IP version */
		{ 16, 224 }, /* from a group */
		{ 32, 239 }, /* to a group */
	};
	struct cm_ip_header ip;
	struct cm_message m = decoded(linux_req_ipv4);

	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		m = decoded(linux_req_ipv4);
		m.private_data[row[i].octet] = row[i].value;
		cr_expect_eq(cm_check_ip_header(&m, &ip), CM_REJECT_CONSUMER, "row %zu", i);
	}
	m = decoded(linux_req_ipv4);
	memset(&m.private_data[16], 0, 4);
	cr_expect_eq(cm_check_ip_header(&m, &ip), CM_REJECT_CONSUMER, "without a source address");
	m = decoded(linux_req_ipv6);
	memset(&m.private_data[20], 0, 16);
	cr_expect_eq(cm_check_ip_header(&m, &ip), CM_REJECT_CONSUMER,
		     "without a destination address");
	m = decoded(linux_req_ipv6); /* an IPv4-mapped IPv6 address at one end only */
	memset(&m.private_data[4], 0, 10);
	memset(&m.private_data[14], 0xff, 2);
	cr_expect_eq(cm_check_ip_header(&m, &ip), CM_REJECT_CONSUMER, "of two families");
}
