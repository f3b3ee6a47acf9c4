/* SPDX-License-Identifier: BSD-3-Clause */
/* One command over a control socket: a request with descriptors out, its reply with others in. */
#ifndef CLIENT_MESSAGE_H
#define CLIENT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/carrier.h"

/* A new connection, or -1 with errno. Close-on-exec. */
int message_connect(const char *path);

/*
 * Fills request->h and waits for the reply, at most `timeout_ms`. Returns 0, the engine's errno,
 * ENODEV when the connection has ended, ETIMEDOUT, or EPROTO for another version (said once on
 * stderr). One exchange at a time on a socket; replies to earlier, given-up requests are skipped.
 */
int message_exchange(int fd, enum command what, uint32_t sequence, int timeout_ms,
		     struct command_request *request, size_t request_bytes,
		     struct command_reply *reply, size_t reply_bytes,
		     const struct carrier_descriptors *in, struct carrier_descriptors *out);

/* What HELLO proves with that this program says it: the octets that the kernel gave it at its start. */
void message_prove(uint8_t proof[16]);
/* The address of those octets. */
uint64_t message_proof_at(void);

const char *command_name(enum command what);

#endif
