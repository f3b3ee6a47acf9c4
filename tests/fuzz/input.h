/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libFuzzer gives a target, taken from its front: zeros once nothing is left. A target is a
 * function of these octets alone, so that a kept input shows the same thing every time.
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

struct input {
	const uint8_t *at;
	size_t left;
};

static inline void input_take(struct input *in, void *to, size_t n)
{
	size_t some = n < in->left ? n : in->left;

	memset(to, 0, n);
	if (some > 0)
		memcpy(to, in->at, some);
	in->at += some;
	in->left -= some;
}

static inline uint8_t input_8(struct input *in)
{
	uint8_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

static inline uint16_t input_16(struct input *in)
{
	uint16_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

static inline uint32_t input_32(struct input *in)
{
	uint32_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

static inline uint64_t input_64(struct input *in)
{
	uint64_t v;

	input_take(in, &v, sizeof(v));
	return v;
}

/* Mostly a small number, sometimes any: what sizes and offsets are interesting as. */
static inline uint32_t input_size(struct input *in, uint32_t most)
{
	uint8_t v = input_8(in);

	return v < 0xf0 ? (most > 0 ? v % (most + 1) : 0) : input_32(in);
}

/* A promise of the code under test. */
#define demand(condition)                                                                       \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

#endif
