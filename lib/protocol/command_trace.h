/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last packets of a queue pair, which the engine keeps. The rules of protocol/command.h apply,
 * which includes this file. Only root and the engine's own user may ask, as for captures.
 */
#ifndef PROTOCOL_COMMAND_TRACE_H
#define PROTOCOL_COMMAND_TRACE_H

#include "protocol/command.h"

enum trace_action {
	/*
	 * Keeps the last `packets` packets of `qpn` from now on. EBUSY: another trace is kept
	 * already. ENOENT: no queue pair has this number.
	 */
	TRACE_START = 1,
	/*
	 * Returns the kept packets: a file of struct traced_packet comes with the reply. ENOENT:
	 * there is no trace.
	 */
	TRACE_READ = 2,
	/* Ends the trace and forgets its packets. ENOENT: there is no trace. */
	TRACE_STOP = 3,
};

struct request_trace {
	struct command_request h;
	uint32_t action;
	uint32_t qpn; /* TRACE_START */
	uint32_t packets; /* TRACE_START: 1 .. LIMIT_TRACE_PACKETS */
	uint32_t reserved;
};

struct reply_trace {
	struct command_reply h;
	uint32_t qpn; /* the queue pair that is, or was, traced */
	uint32_t peer_qpn; /* the one to which it was connected last; 0: none */
	uint32_t packets; /* how many are kept */
	uint32_t count; /* in the file: one lcore after another, the packets of each in order */
	uint64_t seen; /* packets since TRACE_START */
	struct gid peer; /* all zero: none */
};

/* A packet as it passed. */
struct traced_packet {
	uint64_t at; /* ns of CLOCK_MONOTONIC */
	uint32_t way; /* enum capture_way */
	uint32_t whole; /* octets of the frame */
	uint32_t length; /* how many of those follow */
	uint32_t reserved;
	uint8_t octets[LIMIT_TRACE_SNAP];
};

#endif
