/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Does what x86intrin.h does, for headers that include this name: some of DPDK's, and with AVX the
 * compiler's x86intrin.h.
 */
#ifndef BASE_X86_IMMINTRIN_H
#define BASE_X86_IMMINTRIN_H

#ifdef __AVX__
#include_next <immintrin.h>
#else
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

#endif
