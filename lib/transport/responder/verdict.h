/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meaning of a reason for a responder: the reply, the state of the queue pair, the event that
 * its program sees, and how a receive request that the message already holds completes. One table,
 * as the IBTA lays out its error classes (9.9.3).
 */
#ifndef TRANSPORT_VERDICT_H
#define TRANSPORT_VERDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"

enum verdict_reply {
	VERDICT_SILENT, /* drop, no reply */
	VERDICT_AGAIN, /* a repetition: the request's answer is sent again */
	VERDICT_NAK, /* the syndrome below, with the expected PSN */
	VERDICT_RNR, /* RNR NAK with the queue pair's timer code */
};

struct verdict {
	uint8_t reply; /* enum verdict_reply */
	uint8_t syndrome; /* of a NAK */
	bool fatal; /* the queue pair goes to ERR */
	uint8_t receive_status; /* enum work_status of the receive request at hand; with fatal */
	uint32_t event; /* enum qp_event; with fatal */
};

/* Of a reliable connection's responder. Reasons without a row are dropped in silence. */
const struct verdict *verdict_of(enum reason why);

/*
 * Of an unreliable service's responder, which never replies. Reasons that are not fatal drop the
 * message; a nonzero receive_status is then that of an SRQ's request.
 */
const struct verdict *verdict_of_unreliable(enum reason why);

#endif
