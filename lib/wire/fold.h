/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CRC-32 for processors that multiply polynomials 32 or 64 octets at a time (VPCLMULQDQ with AVX2, or with
 * AVX-512). The copy is made in the same pass (docs/decisions/0001-icrc.md).
 */
#ifndef WIRE_FOLD_H
#define WIRE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Octets. For fewer, ISA-L is as fast or faster. */
#define FOLD_LEAST 256u

/* Whether this processor is one of them. */
#ifdef __x86_64__
static inline bool fold_works(void)
{
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx2");
}
#else
#define fold_works() false
#endif

/*
 * The same as icrc_add() and icrc_copy() (icrc.h), for at least FOLD_LEAST octets. Call these and those below only
 * if fold_works().
 */
uint32_t fold_add(uint32_t sum, const void *octets, size_t length);
uint32_t fold_copy(uint32_t sum, void *to, const void *from, size_t length);

/*
 * The same as icrc_begin() with `header_length` octets from the IP header on, and then icrc_add() or icrc_copy() of at
 * least FOLD_LEAST octets. What sums the headers is handed on as a state of 128 bits, without the wait for its sum.
 */
uint32_t fold_headers_add(const uint8_t *l3, size_t header_length, const void *octets,
			  size_t length);
uint32_t fold_headers_copy(const uint8_t *l3, size_t header_length, void *to, const void *from,
			   size_t length);

/*
 * fold_headers_add() and fold_headers_copy() in two steps, for headers that differ from those of the state in their last four octets alone:
 * `change` is what differs there.
 */
void fold_headers_state(const uint8_t *l3, size_t header_length, uint8_t state[16]);
uint32_t fold_state_add(const uint8_t state[16], uint32_t change, const void *octets,
			size_t length);
uint32_t fold_state_copy(const uint8_t state[16], uint32_t change, void *to, const void *from,
			 size_t length);

#endif
