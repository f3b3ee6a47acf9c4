/* SPDX-License-Identifier: BSD-3-Clause */
#include "crowd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 64

void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

uint32_t draw(struct thread *t, uint32_t below)
{
	t->seed = t->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(t->seed >> 33) % below;
}

void crowd_arguments(struct crowd *c, int argc, char **argv)
{
	if (argc > 1)
		c->threads = (uint32_t)atoi(argv[1]);
	if (argc > 2)
		c->rounds = (uint32_t)atoi(argv[2]);
	if (argc > 3 || c->threads < 1 || c->threads > THREADS || c->rounds < 1)
		die("usage: %s [THREADS [CALLS]], at most %d threads", argv[0], THREADS);
}

static uint32_t kinds(const struct crowd *c)
{
	uint32_t n = 0;

	for (uint32_t i = 0; c->table[i].count > 0; i++)
		n += c->table[i].count;
	return n;
}

static const struct call *call_of(const struct crowd *c, uint32_t which)
{
	uint32_t i = 0;

	for (; which >= c->table[i].count; i++)
		which -= c->table[i].count;
	return &c->table[i].call[which];
}

static void *run(void *argument)
{
	struct thread *t = argument;

	for (uint32_t i = 0; i < t->crowd->rounds; i++) {
		const struct call *c = call_of(t->crowd, draw(t, kinds(t->crowd)));

		t->call = c->name;
		c->make(t);
		if (t->crowd->after != NULL)
			t->crowd->after(t);
	}
	return NULL;
}

void crowd_run(const struct crowd *c)
{
	static struct thread thread[THREADS];

	for (uint32_t i = 0; i < c->threads; i++) {
		thread[i].seed = i + 1;
		thread[i].crowd = c;
		if (pthread_create(&thread[i].id, NULL, run, &thread[i]) != 0)
			die("no thread %u", i);
	}
	for (uint32_t i = 0; i < c->threads; i++)
		pthread_join(thread[i].id, NULL);
	printf("%u calls of %u kinds from each of %u threads\n", c->rounds, kinds(c), c->threads);
}
