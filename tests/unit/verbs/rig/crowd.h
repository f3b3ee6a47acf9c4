/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that make calls drawn at random from tables, all at once, on objects that they share. A
 * thread's seed is its number, so that each draws the same calls in every run.
 */
#ifndef TESTS_VERBS_CROWD_H
#define TESTS_VERBS_CROWD_H

#include <pthread.h>
#include <stdint.h>

struct thread {
	pthread_t id;
	uint64_t seed;
	const char *call; /* that it is in */
	const struct crowd *crowd;
};

struct call {
	const char *name;
	void (*make)(struct thread *t);
};

struct crowd {
	struct {
		const struct call *call;
		uint32_t count;
	} table[4]; /* an empty one ends them */
	uint32_t threads;
	uint32_t rounds; /* calls of each */
	void (*after)(struct thread *t); /* each call; may be NULL */
};

/* [THREADS [CALLS]] where they are given. */
void crowd_arguments(struct crowd *c, int argc, char **argv);
/* Returns when every thread has returned; prints what they did. */
void crowd_run(const struct crowd *c);

/* A number below `below`. */
uint32_t draw(struct thread *t, uint32_t below);
/* Says why and ends the program, whatever the other threads do. */
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
