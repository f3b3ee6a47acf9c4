/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread for what takes long to take apart: memory that a client filled, of which the engine has
 * the last mapping. Giving back 4 GiB takes most of a second, and the control path has no time for it.
 */
#ifndef CONTROL_DISPOSAL_H
#define CONTROL_DISPOSAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

struct disposal_job;

struct disposal {
	pthread_mutex_t lock;
	pthread_cond_t more;
	pthread_t thread;
	bool runs, stops;
	STAILQ_HEAD(, disposal_job) jobs;
};

void disposal_open(struct disposal *d);
/* Waits for what it has to do. */
void disposal_close(struct disposal *d);
/* Closes a descriptor that never blocks for ever: the last one of much memory in that thread. */
void dispose_descriptor(struct disposal *d, int fd);
/* run(arg) on the thread; at once, if there can be none. Nothing that `run` touches is anybody else's. */
void dispose(struct disposal *d, void (*run)(void *arg), void *arg);

#endif
