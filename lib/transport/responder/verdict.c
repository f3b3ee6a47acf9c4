/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "base/work.h"
#include "transport/outcomes.h"
#include "transport/responder/verdict.h"
#include "wire/packet.h"

#define SILENT                          \
	{                               \
		.reply = VERDICT_SILENT \
	}
#define AGAIN                          \
	{                              \
		.reply = VERDICT_AGAIN \
	}
#define RNR                          \
	{                            \
		.reply = VERDICT_RNR \
	}
#define REPORTED(code)                                                \
	{                                                             \
		.reply = VERDICT_NAK, .syndrome = SYNDROME_NAK_##code \
	}
#define FATAL(code, status, raised)                                                   \
	{                                                                             \
		.reply = VERDICT_NAK, .syndrome = SYNDROME_NAK_##code, .fatal = true, \
		.receive_status = STATUS_##status, .event = (raised)                  \
	}

/*
 * IBTA 9.7.5.2 (NAK codes) and 9.9.3 (what the responder's own program learns). An event is raised
 * if no receive request can report the error.
 */
static const struct verdict rc_verdict[REASON_COUNT] = {
	[REASON_PSN_AHEAD] = REPORTED(SEQUENCE),
	[REASON_PSN_AHEAD_AGAIN] = SILENT,
	[REASON_DUPLICATE] = AGAIN,
	[REASON_DUPLICATE_UNKNOWN] = SILENT,
	[REASON_RECEIVE_NOT_READY] = RNR,

	[REASON_OPCODE_SEQUENCE] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),
	[REASON_OPCODE_UNSUPPORTED] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),
	[REASON_ACCESS_FLAGS] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),
	[REASON_RD_ATOMIC_LIMIT] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),
	[REASON_LENGTH_PAYLOAD] = FATAL(INVALID_REQUEST, LOC_LEN_ERR, QP_EVENT_REQ_ERR),
	[REASON_LENGTH_MESSAGE] = FATAL(INVALID_REQUEST, LOC_LEN_ERR, QP_EVENT_REQ_ERR),
	[REASON_LENGTH_RETH] = FATAL(INVALID_REQUEST, LOC_LEN_ERR, QP_EVENT_REQ_ERR),
	[REASON_LENGTH_RECEIVE] = FATAL(INVALID_REQUEST, LOC_LEN_ERR, 0),
	[REASON_ATOMIC_ALIGNMENT] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),

	[REASON_KEY_UNKNOWN] = FATAL(REMOTE_ACCESS, REM_ACCESS_ERR, QP_EVENT_ACCESS_ERR),
	[REASON_KEY_PD] = FATAL(REMOTE_ACCESS, REM_ACCESS_ERR, QP_EVENT_ACCESS_ERR),
	[REASON_KEY_ACCESS] = FATAL(REMOTE_ACCESS, REM_ACCESS_ERR, QP_EVENT_ACCESS_ERR),
	[REASON_KEY_RANGE] = FATAL(REMOTE_ACCESS, REM_ACCESS_ERR, QP_EVENT_ACCESS_ERR),
	[REASON_MEMORY_FAULT] = FATAL(REMOTE_ACCESS, REM_ACCESS_ERR, QP_EVENT_ACCESS_ERR),

	/* IBTA A14: an XRCETH that names no SRQ of the domain is invalid. */
	[REASON_SRQ_UNKNOWN] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),
	[REASON_FLUSH_TYPE] = FATAL(INVALID_REQUEST, REM_INV_REQ_ERR, QP_EVENT_REQ_ERR),
	/* A refused key like any other; the receive request reports it to the program. */
	[REASON_INVALIDATE_KEY] = FATAL(REMOTE_ACCESS, REM_ACCESS_ERR, 0),

	[REASON_RECEIVE_MEMORY] = FATAL(REMOTE_OPERATION, LOC_PROT_ERR, 0),
	[REASON_WORK_MALFORMED] = FATAL(REMOTE_OPERATION, LOC_QP_OP_ERR, 0),
};

const struct verdict *verdict_of(enum reason why)
{
	assert(why < REASON_COUNT);
	return &rc_verdict[why];
}

#define LOCAL(status)                                                                     \
	{                                                                                 \
		.reply = VERDICT_SILENT, .fatal = true, .receive_status = STATUS_##status \
	}
#define SPOILT(status)                                                     \
	{                                                                  \
		.reply = VERDICT_SILENT, .receive_status = STATUS_##status \
	}

/* IBTA 9.9.4: a peer's errors are dropped without an answer; local errors are fatal. */
static const struct verdict unreliable_verdict[REASON_COUNT] = {
	[REASON_LENGTH_PAYLOAD] = SPOILT(LOC_LEN_ERR),
	[REASON_LENGTH_RECEIVE] = SPOILT(LOC_LEN_ERR),
	[REASON_RECEIVE_MEMORY] = LOCAL(LOC_PROT_ERR),
	[REASON_WORK_MALFORMED] = LOCAL(LOC_QP_OP_ERR),
};

const struct verdict *verdict_of_unreliable(enum reason why)
{
	assert(why < REASON_COUNT);
	return &unreliable_verdict[why];
}
