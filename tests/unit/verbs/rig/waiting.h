/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that are blocked in a call of the library, and whether they return. */
#ifndef TESTS_VERBS_WAITING_H
#define TESTS_VERBS_WAITING_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

struct waiting {
	pthread_t thread;
	const char *what; /* the call, for messages */
	int (*call)(void *argument);
	void *argument;
	pid_t tid; /* atomic */
	int result; /* of the call */
	int error; /* errno after it */
};

/* Starts the call in a separate thread. */
void waiting_start(struct waiting *w, const char *what, int (*call)(void *argument),
		   void *argument);
/*
 * Returns when the thread sleeps in a recv(2), poll(2) or futex(2) from which it does not return. False:
 * the call has returned, and the thread is joined.
 */
bool waiting_sleeps(struct waiting *w);
/* Starts it, and fails the test unless it sleeps. */
void waiting_begin(struct waiting *w, const char *what, int (*call)(void *argument),
		   void *argument);
/* The call has returned; the test fails if it does not within WAIT_SECONDS. */
void waiting_end(struct waiting *w);

#endif
