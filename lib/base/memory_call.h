/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap(2) and related calls, for code that runs inside other programs. They do not go through libc,
 * because memory hooks replace libc's functions. Some hooks lose arguments: libucm 1.13 passes no
 * address to mremap. Registration caches use such hooks, too, and would drop what we have just
 * registered. Errors are reported as libc does: MAP_FAILED or -1, with errno. Any thread.
 */
#ifndef BASE_MEMORY_CALL_H
#define BASE_MEMORY_CALL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define MEMORY_CALL_LIBC 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MEMORY_CALL_LIBC 1
#endif
#endif

#if defined(MEMORY_CALL_LIBC)

/*
 * Goes through libc, for the thread sanitizer. It must see these calls, to forget what it knows of
 * the addresses.
 */
static inline long memory_call_raw(long n, long a, long b, long c, long d, long e, long f)
{
	switch (n) {
	case SYS_mmap:
		return (long)mmap((void *)a, (size_t)b, (int)c, (int)d, (int)e, f);
	case SYS_munmap:
		return munmap((void *)a, (size_t)b);
	case SYS_mremap:
		return (long)mremap((void *)a, (size_t)b, (size_t)c, (int)d, (void *)e);
	default:
		return syscall(n, a, b, c, d, e, f);
	}
}

#elif defined(__x86_64__) || defined(__aarch64__)

static inline long memory_call_raw(long n, long a, long b, long c, long d, long e, long f)
{
	long result;

#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
#else
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	result = x0;
#endif
	if (result < 0 && result >= -4095) {
		errno = (int)-result;
		return -1;
	}
	return result;
}

#else
#define memory_call_raw(n, a, b, c, d, e, f) syscall(n, a, b, c, d, e, f)
#endif

static inline void *memory_map(void *at, size_t length, int access, int flags, int fd,
			       uint64_t offset)
{
	return (void *)memory_call_raw(SYS_mmap, (long)at, (long)length, access, flags, fd,
				       (long)offset);
}

static inline int memory_unmap(void *at, size_t length)
{
	return (int)memory_call_raw(SYS_munmap, (long)at, (long)length, 0, 0, 0, 0);
}

/*
 * mremap(2): moves the pages [from, from + length) to `to`, and replaces what is mapped there.
 * False: they were not moved.
 */
static inline bool memory_remap(void *from, size_t length, void *to)
{
	return memory_call_raw(SYS_mremap, (long)from, (long)length, (long)length,
			       MREMAP_MAYMOVE | MREMAP_FIXED, (long)to, 0) == (long)to;
}

/*
 * mremap(2) with an old size of 0: maps the pages [at, at + length) of a shared mapping a second
 * time, at `to`, and replaces what is mapped there. False: it failed.
 */
static inline bool memory_show_again(void *at, size_t length, void *to)
{
	return memory_call_raw(SYS_mremap, (long)at, 0, (long)length, MREMAP_MAYMOVE | MREMAP_FIXED,
			       (long)to, 0) == (long)to;
}

static inline int memory_protect(void *at, size_t length, int access)
{
	return (int)memory_call_raw(SYS_mprotect, (long)at, (long)length, access, 0, 0, 0);
}

static inline int memory_advise(void *at, size_t length, int advice)
{
	return (int)memory_call_raw(SYS_madvise, (long)at, (long)length, advice, 0, 0, 0);
}

static inline int memory_lock(void *at, size_t length)
{
	return (int)memory_call_raw(SYS_mlock, (long)at, (long)length, 0, 0, 0, 0);
}

#endif
