/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests and replies on a control socket, with the descriptors that accompany them. */
#ifndef CLIENT_MESSAGE_H
#define CLIENT_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/carrier.h"

/*
 * A new connection, or -1 with errno; ETIMEDOUT: the engine does not accept it in that time.
 * Close-on-exec.
 */
int message_connect_within(const char *path, int timeout_ms);
/* ... within LIMIT_COMMAND_WAIT. */
int message_connect(const char *path);

/*
 * Fills in request->h, sends the request and waits at most `timeout_ms` for the reply. Returns 0,
 * the engine's errno, ENODEV when the connection has ended, ETIMEDOUT, or EPROTO for another
 * version of the protocol (which is also reported on stderr). Replies to earlier requests that
 * timed out are skipped. The caller keeps `in` and becomes the owner of `out` (NULL: received
 * descriptors are closed). The caller sees to it that a socket has one exchange at a time.
 */
int message_exchange(int fd, enum command what, uint32_t sequence, int timeout_ms,
		     struct command_request *request, size_t request_bytes,
		     struct command_reply *reply, size_t reply_bytes,
		     const struct carrier_descriptors *in, struct carrier_descriptors *out);

/* Fills in request->h. */
void message_address(struct command_request *request, enum command what, size_t octets,
		     uint32_t sequence);
/* The second half of message_exchange: waits for the reply with this number. */
int message_receive(int fd, enum command what, uint32_t sequence, int timeout_ms,
		    struct command_reply *reply, size_t reply_bytes,
		    struct carrier_descriptors *out);
/*
 * Takes a reply that waits, unless it has this number, and closes its descriptors: its command timed
 * out. Does not wait. The engine serves a connection only while no reply with descriptors waits there.
 */
void message_skip_late(int fd, uint32_t sequence);
/*
 * What a reply of `received` octets says: 0, the engine's errno, or EPROTO for one that is too
 * short or of another version of the protocol.
 */
int message_judge(const struct command_reply *reply, size_t received, size_t expected,
		  enum command what);

/*
 * The proof in HELLO that this program sent it: the random octets that the kernel gave it
 * (AT_RANDOM).
 */
void message_prove(uint8_t proof[16]);
/* The address of those octets. */
uint64_t message_proof_at(void);

const char *command_name(enum command what);

#endif
