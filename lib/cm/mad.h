/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connection manager's messages (IBTA volume 1, chapter 12): management datagrams of 256 octets
 * in UD SENDs to queue pair 1. Callers see plain structs in host order. The octets on the wire are:
 *
 *	 0 base version, class, class version, method
 *	 4 status, class specific
 *	 8 transaction id
 *	16 attribute id, reserved, attribute modifier (of a REQ, REP or SIDR_REP: ECE options)
 *	24 the message: fields, then private data to the end
 */
#ifndef CM_MAD_H
#define CM_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/packet.h"

#define MAD_OCTETS	  256u
#define MAD_PRIVATE_MAX	  224u
#define MAD_ARI_MAX	  72u
#define GSI_QPN		  1u
#define GSI_QKEY	  0x80010000u
#define MAD_CLASS_CM	  0x07u
#define MAD_CLASS_VERSION 2u

enum cm_attribute {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a,
};

/* The message that an MRA or REJ refers to. */
enum cm_about {
	CM_ABOUT_REQ = 0,
	CM_ABOUT_REP = 1,
	CM_ABOUT_OTHER = 2, /* MRA: a LAP; REJ: none of these */
};

enum cm_transport {
	CM_TRANSPORT_RC = 0,
	CM_TRANSPORT_UC = 1,
	CM_TRANSPORT_RD = 2,
	CM_TRANSPORT_EXTENDED = 3, /* the extended type says which transport: 1 is XRC */
};

enum cm_reject_reason {
	CM_REJECT_NO_QP = 1,
	CM_REJECT_NO_RESOURCES = 3,
	CM_REJECT_TIMEOUT = 4,
	CM_REJECT_UNSUPPORTED = 5,
	CM_REJECT_INVALID_COMM_ID = 6,
	CM_REJECT_INVALID_SERVICE_ID = 8,
	CM_REJECT_INVALID_TRANSPORT = 9,
	CM_REJECT_STALE = 10,
	CM_REJECT_INVALID_GID = 12,
	CM_REJECT_INVALID_MTU = 26,
	CM_REJECT_RESPONDER_RESOURCES = 27,
	CM_REJECT_CONSUMER = 28,
	CM_REJECT_INVALID_RNR_RETRY = 29,
	CM_REJECT_DUPLICATE_COMM_ID = 30,
	CM_REJECT_CLASS_VERSION = 31,
	CM_REJECT_VENDOR_OPTION = 35,
};

/* A path of a REQ or LAP. LIDs are stored as received: RoCE does not use them. */
struct cm_path {
	struct gid local_gid; /* of the sender */
	struct gid remote_gid;
	uint32_t flow_label;
	uint16_t local_lid, remote_lid;
	uint8_t packet_rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
	uint8_t subnet_local;
	uint8_t ack_timeout; /* 4.096 us * 2^n */
};

/*
 * One message. Which members are valid depends on the attribute. Decoding only guarantees that
 * numbers fit their fields.
 */
struct cm_message {
	uint8_t attribute; /* enum cm_attribute */
	uint64_t transaction;
	uint32_t local_id; /* the sender's; SIDR: the request id */
	uint32_t remote_id; /* the receiver's; 0: not known yet */

	/* REQ, REP */
	uint64_t service_id; /* REQ, SIDR_REQ, SIDR_REP */
	uint64_t ca_guid;
	uint32_t qkey; /* SIDR_REP, too */
	uint32_t qpn; /* REQ, REP, SIDR_REP; DREQ and LAP: the receiver's queue pair */
	uint32_t starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t remote_response_timeout; /* REQ, LAP: 4.096 us * 2^n, granted by the sender */
	uint8_t local_response_timeout; /* REQ: how fast the sender answers */
	uint8_t transport; /* enum cm_transport */
	uint8_t extended_transport;
	uint8_t flow_control;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t max_cm_retries;
	uint8_t path_mtu; /* ibv_mtu */
	uint8_t srq;
	uint16_t pkey; /* SIDR_REQ, too */
	uint8_t target_ack_delay; /* REP */
	uint8_t failover_accepted; /* REP */
	uint32_t eecn; /* REP of XRC: the queue pair number; qpn is 0 then */
	/* REQ, REP, SIDR_REP: enhanced connection establishment; 0: none */
	uint8_t ece_vendor[3]; /* in network order */
	uint32_t ece_options;
	struct cm_path primary; /* REQ */
	struct cm_path alternate; /* REQ, LAP */

	/* MRA, REJ, APR, SIDR_REP */
	uint8_t about; /* enum cm_about */
	uint8_t service_timeout; /* MRA */
	uint16_t reason; /* REJ */
	uint8_t status; /* APR, SIDR_REP */
	uint8_t information_length; /* REJ, APR, SIDR_REP: octets of `information` */
	uint8_t information[MAD_ARI_MAX];

	uint8_t private_data
		[MAD_PRIVATE_MAX]; /* the attribute says how many octets are valid, see below */
};

enum cm_decode {
	CM_DECODED,
	CM_NOT_CM, /* another class, method or base version, an unknown attribute, or a status */
	CM_WRONG_VERSION, /* of the class: *m has only attribute, transaction and local_id */
	CM_MALFORMED, /* too short, or contains a length that does not fit */
};

/* Decodes any bytes. */
enum cm_decode cm_message_decode(struct cm_message *m, const uint8_t *mad, size_t length);
/* Writes MAD_OCTETS octets. */
void cm_message_encode(const struct cm_message *m, uint8_t *mad);
/* The sender's queue pair, of a REQ or REP. */
static inline uint32_t cm_sender_qpn(const struct cm_message *m)
{
	return m->qpn != 0 ? m->qpn : m->eecn;
}

/* Octets of private data in messages of this attribute; 0: unknown attribute. */
size_t cm_private_size(uint8_t attribute);
/* "REQ"; "?" if unknown. */
const char *cm_attribute_name(uint8_t attribute);

/*
 * The header that the RDMA CM puts before the private data of a REQ or SIDR_REQ (IBTA annex A11):
 * IP addresses of both ends and the sender's port. The receiver's port is in the service id.
 */
#define CM_IP_HEADER 36u

struct cm_ip_header {
	uint8_t ip_version; /* 4 or 6 */
	uint16_t source_port;
	struct gid source; /* an IPv4 address as ::ffff:a.b.c.d */
	struct gid destination;
};

/* False: the IP version is neither 4 nor 6, or the header's own version is not 0. */
bool cm_ip_header_decode(struct cm_ip_header *h, const uint8_t *private_data);
void cm_ip_header_encode(const struct cm_ip_header *h, uint8_t *private_data);

/* Service ids of the RDMA CM: a port space and a port (IBTA annex A11, protocol-map 189). */
enum cm_port_space {
	CM_SPACE_IPOIB = 0x0002,
	CM_SPACE_TCP = 0x0106,
	CM_SPACE_UDP = 0x0111,
	CM_SPACE_IB = 0x013f,
};

static inline uint64_t cm_service_id(uint16_t space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

#endif
