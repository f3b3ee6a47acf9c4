/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BASE_PREFETCH_H
#define BASE_PREFETCH_H

/*
 * Asks for the cache line of an octet that will be written, so that other cores give it up
 * meanwhile. Any address will do. The compiler's own function would only ask to read it where
 * -march promises no such instruction; processors that lack it do nothing.
 */
static inline void prefetch_to_write(const volatile void *octet)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const volatile unsigned char *)octet));
#else
	__builtin_prefetch((const void *)octet, 1);
#endif
}

#endif
