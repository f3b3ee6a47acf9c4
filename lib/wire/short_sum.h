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

/* ... of short_sum_512(). */
#define SHORT_SUM_512_MOST 120u

/* Whether this processor is one of them, and has AVX-512 and VPCLMULQDQ as well. */
#ifdef __x86_64__
static inline bool short_sum_512_works(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("vpclmulqdq");
}

static inline bool short_sum_works(void)
{
	return __builtin_cpu_supports("avx") && __builtin_cpu_supports("pclmul");
}
#else
#define short_sum_works()     false
#define short_sum_512_works() false
#endif

/*
 * The sum over `n` octets from the IP header on, at least IP + UDP + BTH, as icrc_begin() has it. Only if
 * short_sum_works().
 */
uint32_t short_sum_ipv4(const uint8_t *l3, size_t n);
uint32_t short_sum_ipv6(const uint8_t *l3, size_t n);
/* The same for at most SHORT_SUM_512_MOST octets. Only if short_sum_512_works(). */
uint32_t short_sum_512(const uint8_t *l3, size_t n);

#endif
