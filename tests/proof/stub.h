/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Frama-C does not know of the compiler's built-in functions, included before every file that is
 * proved.
 */
#ifndef PROOF_STUB_H
#define PROOF_STUB_H

#include <stddef.h>
#include <stdint.h>

#define static_assert _Static_assert

static inline uint16_t proof_swap16(uint16_t x)
{
	return (uint16_t)((uint16_t)(x << 8) | (uint16_t)(x >> 8));
}

static inline uint32_t proof_swap32(uint32_t x)
{
	return (uint32_t)proof_swap16((uint16_t)x) << 16 | proof_swap16((uint16_t)(x >> 16));
}

static inline uint64_t proof_swap64(uint64_t x)
{
	return (uint64_t)proof_swap32((uint32_t)x) << 32 | proof_swap32((uint32_t)(x >> 32));
}

#define __builtin_bswap16 proof_swap16
#define __builtin_bswap32 proof_swap32
#define __builtin_bswap64 proof_swap64

/* With PROOF_HOSTILE whoever shares a word writes it at any time: each read gives any value. */
#ifdef PROOF_HOSTILE
#define PROOF_SHARED(p) (*(volatile __typeof__(*(p)) *)(p))
#else
#define PROOF_SHARED(p) (*(p))
#endif
#define __atomic_load_n(p, order)     PROOF_SHARED(p)
#define __atomic_store_n(p, v, order) (PROOF_SHARED(p) = (v))

#define __builtin_cpu_supports(what) 0

#endif
