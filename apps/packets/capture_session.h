/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of an engine as they pass: what `uroce capture` and `uroce trace` have in common. */
#ifndef APPS_CAPTURE_SESSION_H
#define APPS_CAPTURE_SESSION_H

#include <signal.h>
#include <stdbool.h>

#include "locate.h"
#include "queue/capture_ring.h"

struct capture_frame {
	struct capture_record record; /* length: octets that are here */
	uint64_t time; /* ns since 1970 */
	uint8_t octets[LIMIT_CAPTURE_SNAP];
};

struct capture_session {
	int fd; /* the connection: the capture lasts as long */
	void *memory;
	size_t octets;
	uint32_t rings;
	struct capture_reader ring[LIMIT_LCORES];
	uint64_t offset; /* ns between CLOCK_MONOTONIC and CLOCK_REALTIME */
	char port[64]; /* "": none */
	bool gone; /* the engine has ended */
	/* Later frames do not belong to the capture, ns of CLOCK_MONOTONIC; 0: all do. */
	uint64_t until;
};

/*
 * Begins a capture at the engine of this socket. `ring`: octets for each lcore. 0, or an errno and
 * `why`.
 */
int capture_session_open(struct capture_session *s, const char *path, uint32_t snap, uint32_t ring,
			 char *why, size_t why_size);
/* The oldest frame of all lcores that is there. False: there is none. */
bool capture_session_next(struct capture_session *s, struct capture_frame *frame);
/*
 * The end is wanted. The frames from before it belong to the capture, and no others: a busy engine
 * adds more all the time.
 */
void capture_session_end(struct capture_session *s);
/* Waits a moment for more, at most `wait` ms. */
void capture_session_wait(struct capture_session *s, int wait);
/* Frames that found no room. */
uint64_t capture_session_lost(const struct capture_session *s);
void capture_session_close(struct capture_session *s);

/* SIGINT and SIGTERM set this from now on: the command is to end. The second one ends the process. */
extern volatile sig_atomic_t capture_interrupted;
void capture_catch_signals(void);

#endif
