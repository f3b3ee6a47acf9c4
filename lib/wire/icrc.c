/* SPDX-License-Identifier: BSD-3-Clause */
#include <isa-l/crc.h>

#include "base/bits.h"
#include "wire/fold.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/short_sum.h"

/*
 * The CRC-32 of eight octets of ones. They take the place of the LRH, which RoCEv2 does not have.
 */
#define SUM_OF_LRH UINT32_C(0x2144df1c)

#define IPV4_HEADERS (IPV4_LENGTH + UDP_LENGTH + BTH_LENGTH)
#define IPV6_HEADERS (IPV6_LENGTH + UDP_LENGTH + BTH_LENGTH)
#define TOGETHER     (ICRC_ONE_CALL - BTH_LENGTH) /* most octets copied behind the masked ones */

static_assert(TOGETHER <= COPY_SHORT, "they are copied in line");

/* Ones mask the variant fields, which may change on the way (IBTA A17.3.3). */
static const uint8_t ipv4_mask[IPV4_HEADERS] = {
	[IPV4_TOS] = 0xff,
	[IPV4_TTL] = 0xff,
	[IPV4_CHECKSUM] = 0xff,
	[IPV4_CHECKSUM + 1] = 0xff,
	[IPV4_LENGTH + UDP_CHECKSUM] = 0xff,
	[IPV4_LENGTH + UDP_CHECKSUM + 1] = 0xff,
	[IPV4_LENGTH + UDP_LENGTH + BTH_CONGESTION] = 0xff,
};

static const uint8_t ipv6_mask[IPV6_HEADERS] = {
	[0] = 0x0f, /* traffic class and flow label, but not the version */
	[1] = 0xff,
	[2] = 0xff,
	[3] = 0xff,
	[IPV6_HOP_LIMIT] = 0xff,
	[IPV6_LENGTH + UDP_CHECKSUM] = 0xff,
	[IPV6_LENGTH + UDP_CHECKSUM + 1] = 0xff,
	[IPV6_LENGTH + UDP_LENGTH + BTH_CONGESTION] = 0xff,
};

/* Copies words, because a vector load after stores of single octets would wait for each of them. */
static inline void masked_copy(uint8_t *to, const uint8_t *from, const uint8_t *mask, size_t n)
{
	size_t i;
	uint32_t x, m;

	for (i = 0; i < n; i += 4) {
		memcpy(&x, from + i, 4);
		memcpy(&m, mask + i, 4);
		x |= m;
		memcpy(to + i, &x, 4);
	}
}

/*
 * Clears the upper halves of the registers, because ISA-L 2.30 returns from its AVX-512 code with
 * dirty ones. Every later SSE instruction of the thread would merge into them: decoding a small
 * packet took 181 ns instead of 54.
 */
static inline uint32_t sum_octets(uint32_t sum, const void *octets, size_t length)
{
	if (length >= FOLD_LEAST && fold_works())
		return fold_add(sum, octets, length);
	sum = crc32_gzip_refl(sum, octets, length);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" ::: "memory");
#endif
	return sum;
}

uint32_t icrc_begin_anywhere(const uint8_t *l3, size_t header_length)
{
	uint8_t head[IPV6_HEADERS + TOGETHER];
	size_t masked, rest;

	if (l3[0] >> 4 == 6) {
		masked_copy(head, l3, ipv6_mask, IPV6_HEADERS);
		masked = IPV6_HEADERS;
	} else {
		masked_copy(head, l3, ipv4_mask, IPV4_HEADERS);
		masked = IPV4_HEADERS;
	}
	rest = header_length - masked;
	if (rest > TOGETHER) /* loads that straddle fresh stores cost more than a second call */
		return sum_octets(sum_octets(SUM_OF_LRH, head, masked), l3 + masked, rest);
	copy_short(head + masked, l3 + masked, rest);
	return sum_octets(SUM_OF_LRH, head, masked + rest);
}

/* Apart from icrc_begin(), because it needs a stack frame. */
static __attribute__((noinline)) uint32_t begin_long(const uint8_t *l3, size_t n)
{
	size_t headers = l3[0] >> 4 == 6 ? IPV6_HEADERS : IPV4_HEADERS;

	if (!short_sum_works())
		return icrc_begin_anywhere(l3, n);
	if (n >= headers + FOLD_LEAST && fold_works())
		return fold_headers_add(l3, headers, l3 + headers, n - headers);
	return sum_octets(icrc_begin(l3, headers), l3 + headers, n - headers);
}

uint32_t icrc_begin(const uint8_t *l3, size_t header_length)
{
	if (header_length <= SHORT_SUM_WIDE_MOST) {
		if (short_sum_512_works())
			return short_sum_512(l3, header_length);
		if (header_length % 4 == 0 && short_sum_256_works())
			return short_sum_256(l3, header_length);
	}
	if (header_length > SHORT_SUM_MOST || !short_sum_works())
		return begin_long(l3, header_length);
	return l3[0] >> 4 == 6 ? short_sum_ipv6(l3, header_length)
			       : short_sum_ipv4(l3, header_length);
}

uint32_t icrc_add(uint32_t sum, const void *octets, size_t length)
{
	return sum_octets(sum, octets, length);
}

uint32_t icrc_copy(uint32_t sum, void *to, const void *from, size_t length)
{
	if (length >= FOLD_LEAST && fold_works())
		return fold_copy(sum, to, from, length);
	memcpy(to, from, length);
	return sum_octets(sum, from, length);
}

uint32_t icrc_begin_copy(const uint8_t *l3, size_t header_length, void *to, const void *from,
			 size_t length)
{
	if (length >= FOLD_LEAST && header_length <= SHORT_SUM_MOST && fold_works())
		return fold_headers_copy(l3, header_length, to, from, length);
	return icrc_copy(icrc_begin(l3, header_length), to, from, length);
}

struct icrc_pattern icrc_pattern(const uint8_t *l3, size_t header_length)
{
	struct icrc_pattern p;

	p.works = header_length == (l3[0] >> 4 == 6 ? IPV6_HEADERS : IPV4_HEADERS) && fold_works();
	if (!p.works)
		return p;
	fold_headers_state(l3, header_length, p.state);
	memcpy(&p.last, l3 + header_length - sizeof(p.last), sizeof(p.last));
	return p;
}

/* How its last four octets differ from those of the pattern. */
static inline uint32_t change_of(const struct icrc_pattern *pattern, const uint8_t *l3,
				 size_t header_length)
{
	uint32_t last;

	memcpy(&last, l3 + header_length - sizeof(last), sizeof(last));
	return last ^ pattern->last;
}

uint32_t icrc_pattern_copy(const struct icrc_pattern *pattern, const uint8_t *l3,
			   size_t header_length, void *to, const void *from, size_t length)
{
	if (!pattern->works || length < FOLD_LEAST)
		return icrc_begin_copy(l3, header_length, to, from, length);
	return fold_state_copy(pattern->state, change_of(pattern, l3, header_length), to, from,
			       length);
}

uint32_t icrc_pattern_add(const struct icrc_pattern *pattern, const uint8_t *l3,
			  size_t header_length, size_t length)
{
	if (!pattern->works || length < FOLD_LEAST)
		return icrc_begin(l3, header_length + length);
	return fold_state_add(pattern->state, change_of(pattern, l3, header_length),
			      l3 + header_length, length);
}
