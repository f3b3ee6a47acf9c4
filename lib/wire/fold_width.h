/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sums that fold.c chooses from. `first` is added to the first 16 octets. At least FOLD_LEAST octets (fold.h).
 * The areas of a copy do not overlap.
 */
#ifndef WIRE_FOLD_WIDTH_H
#define WIRE_FOLD_WIDTH_H

#ifdef __x86_64__

#include <stddef.h>
#include <stdint.h>

#include <immintrin.h>

/* 32 octets at a time: AVX2 and VPCLMULQDQ. */
uint32_t fold_add_256(__m128i first, const uint8_t *octets, size_t length);
uint32_t fold_copy_256(__m128i first, uint8_t *to, const uint8_t *from, size_t length);
/* 64 octets at a time: AVX-512 and VPCLMULQDQ. */
uint32_t fold_add_512(__m128i first, const uint8_t *octets, size_t length);
uint32_t fold_copy_512(__m128i first, uint8_t *to, const uint8_t *from, size_t length);

#endif
#endif
