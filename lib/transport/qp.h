/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One queue pair: its peer, the requester, the responder, the copies under way. Private to
 * lib/transport; the contract is transport.h.
 */
#ifndef TRANSPORT_QP_H
#define TRANSPORT_QP_H

#include <stdbool.h>
#include <stdint.h>

#include "memory/check.h"
#include "transport/attributes.h"
#include "transport/path.h"
#include "transport/responder/receive.h"
#include "transport/requester/requester.h"
#include "transport/responder/responder.h"
#include "transport/ticket.h"
#include "wire/packet.h"

struct qp {
	uint8_t state; /* enum qp_state */
	uint8_t type; /* enum qp_type */
	uint8_t service; /* enum service of its packets; no meaning for RAW_PACKET */
	uint8_t min_rnr_timer;
	bool sig_all;
	bool established; /* COMM_EST was raised */
	bool selective; /* the peer knows selective acknowledgements */
	bool last_wqe_due; /* LAST_WQE_REACHED follows the last receive completion */
	uint32_t mtu; /* path MTU, octets */
	uint8_t mtu_shift;
	bool reliable; /* what qp_type_unreliable() says of its type */
	uint32_t qpn;
	uint32_t dest_qpn;
	struct key_user receiver; /* on whose behalf receive requests name memory */
	struct key_user user; /* XRC target: of the SRQ that the packet at hand names */
	uint32_t srq; /* of the packet at hand; 0: none */
	uint32_t events; /* enum qp_event, not taken yet */
	struct path *path; /* shared with others; NULL: none */
	struct qp_attributes attr; /* as set by the program */

	struct requester req;
	struct responder resp;
	struct tickets tickets;
	struct receives receives;

	struct qp_caps caps;
};

/* Packets of a message, and the PSNs of a READ (IBTA 9.7.2). */
static inline uint32_t packets_of(const struct qp *qp, uint32_t length)
{
	return length == 0 ? 1 : ((length - 1) >> qp->mtu_shift) + 1;
}

/* Goes to ERR. The receive request of an open message is flushed; owed replies are still sent. */
void enter_error(struct qp *qp);

#endif
