/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icrc-bench: the cost of the ICRC compared with the copy that is needed anyway, in ns per call,
 * for payloads of 64 to 4096 octets. "near" uses one buffer in L1; "far" walks through areas that
 * fit only L3 or memory, as payloads do. Each figure is the best of several rounds.
 */
#include <isa-l/crc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bits.h"
#include "wire/decode.h"
#include "wire/encode.h"

#define AREA   (64u << 20)
#define CALLS  20000u
#define ROUNDS 9

static uint8_t *from, *to;
static volatile uint32_t result;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t copy_only(uint32_t sum, void *t, const void *f, size_t n)
{
	memcpy(t, f, n);
	__asm__ volatile("" ::: "memory");
	return sum;
}

static uint32_t sum_only(uint32_t sum, void *t, const void *f, size_t n)
{
	return crc32_gzip_refl(sum, f, n);
}

static uint32_t copy_then_sum(uint32_t sum, void *t, const void *f, size_t n)
{
	memcpy(t, f, n);
	return crc32_gzip_refl(sum, f, n);
}

static double best_ns(uint32_t (*f)(uint32_t, void *, const void *, size_t), size_t n, size_t step)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns(), took;
		size_t at = 0;
		uint32_t sum = 0;

		for (unsigned int i = 0; i < CALLS; i++) {
			sum = f(sum, to + at, from + at, n);
			at = (at + step) % (AREA - 8192);
		}
		took = (now_ns() - start) / CALLS;
		result = sum;
		best = MIN_OF(best, took);
	}
	return best;
}

static void table(const char *title, size_t step)
{
	static const size_t sizes[] = { 64, 128, 256, 512, 1024, 1500, 2048, 4096 };

	printf("%s, ns per call\n%8s %8s %8s %10s %8s %14s %16s\n", title, "octets", "memcpy",
	       "sum", "copy, sum", "icrc", "icrc / memcpy", "icrc / copy, sum");
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t n = sizes[i], s = step == 0 ? 0 : n + step;
		double copy = best_ns(copy_only, n, s), sum = best_ns(sum_only, n, s);
		double both = best_ns(copy_then_sum, n, s), icrc = best_ns(icrc_copy, n, s);

		printf("%8zu %8.1f %8.1f %10.1f %8.1f %14.2f %16.2f\n", n, copy, sum, both, icrc,
		       icrc / copy, icrc / both);
	}
}

/* Encodes and decodes a small packet. */
static void packets(size_t payload)
{
	struct address_vector av = { .src_gid = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } },
				     .dst_gid = { { [10] = 0xff, 0xff, 10, 0, 0, 2 } } };
	struct packet p = { .opcode = 0x0a, .payload_length = (uint32_t)payload }, q;
	const struct decode_options options = { .check_icrc = true };
	double encode = 1e9, decode = 1e9;
	struct flow flow;
	size_t n = 0, h;

	flow_init(&flow, &av);
	for (int round = 0; round < ROUNDS; round++) {
		double start = now_ns(), middle;

		for (unsigned int i = 0; i < CALLS; i++) {
			p.psn = i;
			h = packet_encode(to, &flow, &p, (uint16_t)i);
			memcpy(to + h, from, payload);
			n = packet_seal(to, &flow, h, payload);
		}
		middle = now_ns();
		for (unsigned int i = 0; i < CALLS; i++)
			result = packet_decode(&q, to, n, &options);
		encode = MIN_OF(encode, (middle - start) / CALLS);
		decode = MIN_OF(decode, (now_ns() - middle) / CALLS);
		if (result != REASON_NONE) {
			fprintf(stderr, "icrc-bench: a frame was not decoded\n");
			exit(1);
		}
	}
	printf("RC WRITE ONLY, %4zu octets, IPv4: encode, copy and seal %.1f ns, decode %.1f ns\n",
	       payload, encode, decode);
}

int main(void)
{
	from = malloc(AREA);
	to = malloc(AREA);
	if (from == NULL || to == NULL) {
		fprintf(stderr, "icrc-bench: no memory\n");
		return 1;
	}
	for (size_t i = 0; i < AREA; i++)
		from[i] = (uint8_t)(i * 2654435761u >> 13);
	memset(to, 1, AREA);
	table("near", 0);
	table("far", 4096 + 64);
	packets(8);
	packets(64);
	packets(256);
	packets(1024);
	packets(4096);
	free(from);
	free(to);
	return 0;
}
