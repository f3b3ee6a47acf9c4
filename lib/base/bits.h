/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads and stores of numbers in network order, and small arithmetic for all folders. */
#ifndef BASE_BITS_H
#define BASE_BITS_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN_OF(a, b)  ((a) < (b) ? (a) : (b))
#define MAX_OF(a, b)  ((a) > (b) ? (a) : (b))
#define container_of_type(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline uint16_t load_be16(const void *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t load_be24(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline uint32_t load_be32(const void *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t load_be64(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

/* One's complement addition. It joins the sums of parts of an Internet checksum (RFC 1071). */
static inline uint16_t ones_complement_add(uint16_t a, uint16_t b)
{
	uint32_t sum = (uint32_t)a + b;

	return (uint16_t)(sum + (sum >> 16));
}

static inline void store_be16(void *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store_be24(void *p, uint32_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

static inline void store_be32(void *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store_be64(void *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

/* Whether [start, start + length) lies inside [0, size). No sum here can wrap. */
static inline bool range_inside(uint64_t start, uint64_t length, uint64_t size)
{
	return length <= size && start <= size - length;
}

static inline uint64_t round_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* Rounded down; v > 0. */
static inline uint8_t log2_of(uint32_t v)
{
	return (uint8_t)(31 - __builtin_clz(v));
}

/* The smallest power of two that is at least v; v in 1 .. 2^31. */
static inline uint32_t power_of_two_above(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "loads and stores swap");

#endif
