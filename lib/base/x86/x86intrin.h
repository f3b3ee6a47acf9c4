/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces the compiler's header of this name in files that include DPDK. The compiler's header
 * declares the instructions of every processor: 60,000 lines, which were four fifths of what was
 * compiled. DPDK's headers use only those of SSE4.2 and AES, unless the compiler may use AVX.
 */
#ifndef BASE_X86_X86INTRIN_H
#define BASE_X86_X86INTRIN_H

#ifdef __AVX__
#include_next <x86intrin.h>
#else
#include <nmmintrin.h>
#include <wmmintrin.h>
#endif

#endif
