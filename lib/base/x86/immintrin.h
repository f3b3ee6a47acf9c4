/* SPDX-License-Identifier: BSD-3-Clause */
/* As x86intrin.h, for DPDK's headers that include this name, and for that header itself with AVX. */
#ifndef BASE_X86_IMMINTRIN_H
#define BASE_X86_IMMINTRIN_H

#ifdef __AVX__
#include_next <immintrin.h>
#else
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

#endif
