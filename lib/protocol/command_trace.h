/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last packets of a queue pair, which the engine keeps. The rules of protocol/command.h apply, which
 * includes this file. Root and the engine's own user only, as for captures.
 */
#ifndef PROTOCOL_COMMAND_TRACE_H
#define PROTOCOL_COMMAND_TRACE_H

#include "protocol/command.h"

enum trace_action {
	/*
	 * Keep the last `packets` packets of `qpn` from now on. EBUSY: a trace is kept already;
	 * ENOENT: there is no such queue pair.
	 */
	TRACE_START = 1,
	/*
	 * The kept packets: a file of struct traced_packet comes with the reply. ENOENT: no trace.
	 */
	TRACE_READ = 2,
	/* Keep no more, and forget what there is. ENOENT: no trace. */
	TRACE_STOP = 3,
};

struct request_trace {
	struct command_request h;
	uint32_t action;
	uint32_t qpn; /* TRACE_START */
	uint32_t packets; /* likewise: 1 .. LIMIT_TRACE_PACKETS */
	uint32_t reserved;
};

struct reply_trace {
	struct command_reply h;
	uint32_t qpn; /* that is, or was, traced */
	uint32_t peer_qpn; /* that it was connected to last; 0: to none */
	uint32_t packets; /* that are kept */
	uint32_t count; /* in the file: one lcore after another, each in the order of its packets */
	uint64_t seen; /* since TRACE_START */
	struct gid peer; /* all zero: none */
};

/* A packet as it passed. */
struct traced_packet {
	uint64_t at; /* ns of CLOCK_MONOTONIC */
	uint32_t way; /* enum capture_way */
	uint32_t whole; /* octets of the frame */
	uint32_t length; /* of them, those that follow */
	uint32_t reserved;
	uint8_t octets[LIMIT_TRACE_SNAP];
};

#endif
