/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stories about the connection manager, with times. a connects, b listens. Every message crosses as
 * the octets of its MAD. cm_stray() answers messages without a connection.
 *
 * \task();
 * \tlose(a, "REQ");
 * \tat(INTERVAL);
 * \tpass(a, "REQ");
 * \texpect_events(b, CM_EVENT_REQUEST);
 */
#ifndef TESTS_STORY_CM_PARTIES_H
#define TESTS_STORY_CM_PARTIES_H

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "cm/cm.h"

#define RESPONSE  20u /* 4.294967296 s */
#define ACK	  14u /* 67.108864 ms */
#define RETRIES	  3u
#define FLIGHT	  (UINT64_C(4096) << ACK)
#define INTERVAL  ((UINT64_C(4096) << RESPONSE) + FLIGHT) /* between repetitions */
#define ACK_DELAY 12u /* target_ack_delay: 16.777216 ms */
#define TIMEWAIT  (FLIGHT + (UINT64_C(4096) << ACK_DELAY))
#define PATIENCE  (UINT64_C(4096) << LIMIT_CM_MRA_TIMEOUT) /* 68.7 s */
#define SERVICE	  cm_service_id(CM_SPACE_TCP, 7174)

struct party {
	struct cm_connection c;
	struct party *peer;
	uint64_t guid;
	uint32_t id, qpn, psn;
	bool has_stray;
	struct cm_message stray; /* the answer to a message without a connection */
	struct cm_message message; /* the latest message sent */
};

extern struct party *const a, *const b;
extern nanotime now;

/* Neither side has a connection. */
void begin(void);
/*
 * Both sides are connected as far as this state requires; earlier messages and events are already
 * taken.
 */
void begin_in(struct party *p, enum cm_state state);

struct cm_message req_of(const struct party *p);
struct cm_message rep_of(const struct party *p);

/* The programs. */
void ask(void);
void accept_it(void);
void ready(void);
void reject(struct party *p, uint16_t reason);
void disconnect(struct party *p);
void establish_both(void);

/* Moves the time to this instant; deadlines on the way are handled in time. */
void at(nanotime t);

/* The next message of this party; false: there is none. */
bool take(struct party *p, struct cm_message *m);
/* The next message of this party is this one; it is delivered, lost, or delivered twice. */
const struct cm_message *pass(struct party *p, const char *name);
const struct cm_message *lose(struct party *p, const char *name);
const struct cm_message *pass_twice(struct party *p, const char *name);
/* A message arrives at this party that was taken before or is made up. */
enum cm_verdict deliver(struct party *p, const struct cm_message *m);
/* A message about this connection as its peer would send it. */
struct cm_message from_peer_of(const struct party *p, uint8_t attribute);

void expect_silence(struct party *p);
void expect_state(struct party *p, enum cm_state state);
void expect_events(struct party *p, uint32_t events);
/* Both sides leave TIMEWAIT, with its event, and their connections end. */
void expect_rest(void);

#endif
