/* SPDX-License-Identifier: BSD-3-Clause */
/* A posted request: its form on the wire, and whether it can be sent. */
#ifndef TRANSPORT_REQUEST_CHECK_H
#define TRANSPORT_REQUEST_CHECK_H

#include <stdint.h>

#include "base/bits.h"
#include "base/reason.h"
#include "base/work.h"
#include "config/limits.h"
#include "transport/qp.h"

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

/* Derives the properties of a posted request, and whether it can be sent. */
void request_check_any(const struct qp *qp, const struct send_work *w, struct message *m);

/*
 * Nearly every request: a SEND, WRITE or READ of one element, without a fence, on a reliable connection, which
 * carries them all.
 */
static inline bool request_is_plain(const struct qp *qp, const struct send_work *w)
{
	return qp->type == QP_TYPE_RC && w->num_sge == 1 && qp->caps.max_send_sge > 0 &&
	       (w->flags & (WORK_INLINE | WORK_FENCE)) == 0 && w->opcode < ARRAY_SIZE(work_kinds) &&
	       work_kinds[w->opcode].only != 0 && send_work_sge(w)->length <= LIMIT_MESSAGE;
}

/* The same as request_check_any(), inline for nearly every request. */
static inline void request_check(const struct qp *qp, const struct send_work *w, struct message *m)
{
	if (!request_is_plain(qp, w)) {
		request_check_any(qp, w, m);
		return;
	}
	m->kind = work_kinds[w->opcode].kind;
	m->fault = REASON_NONE;
	m->length = send_work_sge(w)->length;
	m->plain = true;
}

/* The request cannot be sent, and fails in its turn. */
void request_set_fault(struct message *m, enum work_status status, enum reason why);

#endif
