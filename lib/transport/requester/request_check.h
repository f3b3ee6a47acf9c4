/* SPDX-License-Identifier: BSD-3-Clause */
/* A posted request: its form on the wire, and whether it can be sent. */
#ifndef TRANSPORT_REQUEST_CHECK_H
#define TRANSPORT_REQUEST_CHECK_H

#include <stdint.h>

#include "base/reason.h"
#include "base/work.h"

struct message;
struct qp;

/* What the last packet of a message carries beside its payload. */
enum ending {
	ENDING_PLAIN,
	ENDING_IMM,
	ENDING_INV,
};

/* The wire kind of a work opcode; KIND_UNDEFINED: not carried. */
struct work_kind {
	uint8_t kind; /* enum packet_kind, enum local_kind */
	uint8_t base; /* enum opcode_base of its FIRST, or of its only packet */
	uint8_t ending; /* enum ending */
	uint8_t only; /* enum opcode_base of a message of one packet; 0: not SEND, WRITE, READ */
};

extern const struct work_kind work_kinds[16];

/* The request at this index was written: derives its properties, and whether it can be sent. */
void request_check(struct qp *qp, uint32_t index);
/* The request cannot be sent, and fails in its turn. */
void request_set_fault(struct message *m, enum work_status status, enum reason why);

#endif
