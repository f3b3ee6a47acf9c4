/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icrc_begin() of a short frame, whose headers are masked in registers. ISA-L needs a masked copy of them, and
 * is made for long buffers (docs/decisions/0001-icrc.md). For processors with PCLMULQDQ and AVX.
 */
#ifndef WIRE_SHORT_SUM_H
#define WIRE_SHORT_SUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Octets from the IP header on; ISA-L is as fast or faster for more. */
#define SHORT_SUM_MOST 256u

/* ... of those that are summed at once. */
#define SHORT_SUM_WIDE_MOST 120u

/* Whether this processor is one of them, */
#ifdef __x86_64__
static inline bool short_sum_works(void)
{
	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("pclmul");
}

/* ... with VPCLMULQDQ and AVX-512 */
static inline bool short_sum_512_works(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw");
}

/* ... or AVX2. */
static inline bool short_sum_256_works(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2");
}
#else
#define short_sum_works()     false
#define short_sum_512_works() false
#define short_sum_256_works() false
#endif

/*
 * The sum over `n` octets from the IP header on, at least IP + UDP + BTH, as icrc_begin() has it. Only if
 * short_sum_works().
 */
uint32_t short_sum_ipv4(const uint8_t *l3, size_t n);
uint32_t short_sum_ipv6(const uint8_t *l3, size_t n);
/* The same for at most SHORT_SUM_WIDE_MOST octets. Only if short_sum_512_works(). */
uint32_t short_sum_512(const uint8_t *l3, size_t n);
/* ... and for a multiple of four octets. Only if short_sum_256_works(). */
uint32_t short_sum_256(const uint8_t *l3, size_t n);

#endif
