/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that frees what takes long: memory that a client filled and that only the engine still
 * maps. Freeing 4 GiB takes most of a second, for which the control path has no time.
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
/* Waits for the remaining jobs. */
void disposal_close(struct disposal *d);
/*
 * Closes a descriptor whose close never blocks for ever but may take long, as it frees much memory.
 */
void dispose_descriptor(struct disposal *d, int fd);
/*
 * Runs run(arg) on the thread, or at once if there is none. `run` may only touch what no other
 * thread uses.
 */
void dispose(struct disposal *d, void (*run)(void *arg), void *arg);

#endif
