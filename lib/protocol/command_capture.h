/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of frames, for `uroce capture`. The rules of protocol/command.h apply, which includes this
 * file. Only root and the engine's own user may ask, because frames hold everybody's payload.
 */
#ifndef PROTOCOL_COMMAND_CAPTURE_H
#define PROTOCOL_COMMAND_CAPTURE_H

#include "protocol/command.h"

/*
 * The engine copies frames into a file of its own (queue/capture_ring.h) until the connection ends.
 * The descriptor of the file comes with the reply. EBUSY: another connection has a capture.
 */
struct request_capture {
	struct command_request h;
	uint32_t snap; /* octets to keep of a frame, 64 .. LIMIT_CAPTURE_SNAP */
	uint32_t ring; /* octets of each ring: a power of two, LIMIT_CAPTURE_RING_MIN .. _MAX */
};

struct reply_capture {
	struct command_reply h;
	uint32_t rings; /* one for each lcore */
	uint32_t reserved;
	char port[64]; /* "": none */
};

#endif
