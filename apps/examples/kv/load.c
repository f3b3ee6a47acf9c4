/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load for the store: kv-load HOST [SECONDS [DEPTH [PUTS-PER-THOUSAND]]]. GETs of random keys, DEPTH
 * at a time, with PUTs between them. It checks every value, and prints rate and latency.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client.h"

#define KEYS	   1000u
#define MOST_DEPTH 64u
#define STEPS	   100000u /* of the latency's histogram, 0.1 us each */

static struct {
	unsigned int key[MOST_DEPTH]; /* of the GET in a slot */
	double begun[MOST_DEPTH];
	unsigned long gets, puts, again, wrong;
	unsigned long within[STEPS];
} load;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static const char *key_of(unsigned int n)
{
	static char key[KV_KEY];

	snprintf(key, sizeof(key), "key-%u", n);
	return key;
}

/* Every value begins with its key, and ends with the number of its PUT. */
static int put(struct kv *k, unsigned int n)
{
	char value[KV_VALUE];
	int length = snprintf(value, sizeof(value), "%s %0120lu", key_of(n), load.puts++);

	return kv_put(k, key_of(n), value, (size_t)length);
}

static int begin(struct kv *k, unsigned int slot, unsigned int n)
{
	load.key[slot] = n;
	load.begun[slot] = now();
	return kv_begin(k, slot, key_of(n));
}

/* The result of a slot's read. The slot is free then, unless the bucket changed meanwhile. */
static int end(struct kv *k, unsigned int slot)
{
	const char *key = key_of(load.key[slot]);
	double us = (now() - load.begun[slot]) * 1e6;
	const void *value;
	size_t length;
	int error = kv_result(k, slot, &value, &length);

	if (error == EAGAIN) {
		load.again++;
		return kv_begin(k, slot, key) == 0 ? EAGAIN : EIO;
	}
	load.gets++;
	load.wrong += error != 0 || length < strlen(key) || memcmp(value, key, strlen(key)) != 0;
	load.within[us * 10 < STEPS ? (unsigned int)(us * 10) : STEPS - 1]++;
	return 0;
}

/* A PUT waits for its reply, so it is made while no GET is under way. */
static int rounds(struct kv *k, double until, unsigned int depth, unsigned int puts)
{
	unsigned int busy;
	int error = 0;

	while (now() < until && error == 0) {
		if ((unsigned int)rand() % 1000 < puts * depth)
			error = put(k, (unsigned int)rand() % KEYS);
		for (busy = 0; busy < depth && error == 0; busy++)
			error = begin(k, busy, (unsigned int)rand() % KEYS);
		while (busy > 0 && error == 0) {
			int slot = kv_next(k);

			if (slot == -2)
				return EIO;
			if (slot < 0)
				continue;
			error = end(k, (unsigned int)slot);
			busy -= error == 0;
			error = error == EAGAIN ? 0 : error;
		}
	}
	return error;
}

static double percentile(double share)
{
	unsigned long sum = 0;
	unsigned int i = 0;

	while (i < STEPS - 1 && (sum += load.within[i]) < share * (double)load.gets)
		i++;
	return i / 10.0;
}

/* argv[i], or `other` if there are fewer words; -1, and a line about it: the value is wrong. */
static int number(int argc, char **argv, int i, const char *name, int other, int least, int most)
{
	char *end;
	long n;

	if (argc <= i)
		return other;
	n = strtol(argv[i], &end, 10);
	if (end != argv[i] && *end == '\0' && n >= least && n <= most)
		return (int)n;
	fprintf(stderr, "kv-load: %s %s: must be in %d .. %d\n", name, argv[i], least, most);
	return -1;
}

int main(int argc, char **argv)
{
	int seconds, depth, puts, error = 0;
	double begun;
	struct kv *k;

	if (argc < 2 || argc > 5) {
		fprintf(stderr,
			"kv-load: %d words: must be HOST [SECONDS [DEPTH [PUTS-PER-THOUSAND]]]\n",
			argc - 1);
		return 2;
	}
	seconds = number(argc, argv, 2, "SECONDS", 3, 1, 3600);
	depth = seconds < 0 ? -1 : number(argc, argv, 3, "DEPTH", 8, 1, MOST_DEPTH);
	puts = depth < 0 ? -1 : number(argc, argv, 4, "PUTS-PER-THOUSAND", 10, 0, 1000);
	if (puts < 0)
		return 2;
	k = kv_open(argv[1], (unsigned int)depth);
	if (k == NULL) {
		fprintf(stderr, "kv-load: cannot connect to %s: %s\n", argv[1], strerror(errno));
		return EXIT_FAILURE;
	}
	for (unsigned int i = 0; i < KEYS && error == 0; i++)
		error = put(k, i);
	load.puts = 0;
	begun = now();
	if (error == 0)
		error = rounds(k, begun + seconds, (unsigned int)depth, (unsigned int)puts);
	begun = now() - begun;
	kv_close(k);
	printf("%.0f GETs a second, %.0f PUTs a second; a GET takes %.1f us, 1 of 100 more than "
	       "%.1f us; %lu read again, %lu wrong\n",
	       (double)load.gets / begun, (double)load.puts / begun, percentile(0.5),
	       percentile(0.99), load.again, load.wrong);
	if (error != 0)
		fprintf(stderr, "kv-load: %s\n", strerror(error));
	return error == 0 && load.wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
