/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 for processors that multiply polynomials 32 octets at a time (VPCLMULQDQ with AVX2) but
 * have no AVX-512. On them, ISA-L takes 16 octets at a time. The copy is made in the same pass
 * (docs/decisions/0001-icrc.md).
 */
#ifndef WIRE_FOLD_H
#define WIRE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Octets. For fewer, ISA-L is as fast or faster. */
#define FOLD_LEAST     512u /* with the copy */
#define FOLD_ADD_LEAST 2048u /* without */

/* Whether this processor is of that kind. */
#ifdef __x86_64__
static inline bool fold_is_faster(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2") &&
	       !__builtin_cpu_supports("avx512f");
}
#else
#define fold_is_faster() false
#endif

/*
 * The same as icrc_add() and icrc_copy() (icrc.h), for at least FOLD_LEAST octets. Call them only
 * if fold_is_faster().
 */
uint32_t fold_add(uint32_t sum, const void *octets, size_t length);
uint32_t fold_copy(uint32_t sum, void *to, const void *from, size_t length);

#endif
