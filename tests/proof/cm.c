/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of any octets and any length at the connection manager's parser, and what it writes. */
#include "cm/mad.c"

#include "proof.h"

static uint8_t mad[MAD_OCTETS];
static struct cm_message m;

/* A datagram of another length is not read at all. */
void any_length(void)
{
	enum cm_decode shorter = cm_message_decode(&m, mad + MAD_OCTETS, any_of(0, MAD_OCTETS - 1));
	enum cm_decode longer =
		cm_message_decode(&m, mad + MAD_OCTETS, any_of(MAD_OCTETS + 1, UINT32_MAX));

	//@ assert refused: shorter == CM_MALFORMED && longer == CM_MALFORMED;
	PROVED;
}

/* Every datagram: numbers that are decoded fit their fields, and can be encoded. */
void any_mad(void)
{
	for (uint32_t attribute = CM_REQ - 1; attribute <= CM_APR + 1; attribute++) {
		enum cm_decode r;

		any_octets(mad, sizeof(mad));
		mad[17] = (uint8_t)attribute;
		r = cm_message_decode(&m, mad, sizeof(mad));
		//@ assert room: m.information_length <= MAD_ARI_MAX || r == CM_MALFORMED;
		//@ assert qpn: m.qpn <= 0xffffff && m.starting_psn <= 0xffffff && m.eecn <= 0xffffff;
		//@ assert retries: m.retry_count <= 7 && m.rnr_retry_count <= 7;
		//@ assert times: m.remote_response_timeout <= 31 && m.service_timeout <= 31;
		if (r == CM_DECODED)
			cm_message_encode(&m, mad);
	}
	PROVED;
}

/* Every private data: the RDMA CM's header is read and written inside its 36 octets. */
void any_ip_header(void)
{
	static uint8_t p[CM_IP_HEADER];
	struct cm_ip_header h;

	any_octets(p, sizeof(p));
	if (cm_ip_header_decode(&h, p)) {
		//@ assert version: h.ip_version == 4 || h.ip_version == 6;
		cm_ip_header_encode(&h, p);
	}
	PROVED;
}
