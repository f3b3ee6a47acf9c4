/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program whose memory calls are replaced, as by memory hooks, with functions that break their
 * contract. Promotion and demotion do not call them.
 */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#define MIB   ((size_t)1 << 20)
#define PARTS 16u

enum hook {
	HOOK_MMAP = 1,
	HOOK_MREMAP = 2,
	HOOK_OTHERS = 4, /* do nothing and return success */
	HOOK_ALL = 7,
};

static uint32_t armed, calls;

static bool is_hostile(enum hook hook)
{
	if (!(__atomic_load_n(&armed, __ATOMIC_RELAXED) & hook))
		return false;
	__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	return true;
}

/* Maps at another address than the caller wants, and returns success. */
void *mmap(void *at, size_t length, int access, int flags, int fd, off_t offset)
{
	if (is_hostile(HOOK_MMAP))
		flags &= ~MAP_FIXED, at = NULL;
	return (void *)syscall(SYS_mmap, at, length, access, flags, fd, offset);
}

/* As libucm 1.13, which loses the fifth argument. */
void *mremap(void *old, size_t old_length, size_t length, int flags, ...)
{
	va_list list;
	void *to;

	va_start(list, flags);
	to = va_arg(list, void *);
	va_end(list);
	if (is_hostile(HOOK_MREMAP))
		flags &= ~MREMAP_FIXED, to = NULL;
	return (void *)syscall(SYS_mremap, old, old_length, length, flags, to);
}

int munmap(void *at, size_t length)
{
	return is_hostile(HOOK_OTHERS) ? 0 : (int)syscall(SYS_munmap, at, length);
}

int madvise(void *at, size_t length, int advice)
{
	return is_hostile(HOOK_OTHERS) ? 0 : (int)syscall(SYS_madvise, at, length, advice);
}

int mprotect(void *at, size_t length, int access)
{
	return is_hostile(HOOK_OTHERS) ? 0 : (int)syscall(SYS_mprotect, at, length, access);
}

static void arm(uint32_t hooks)
{
	__atomic_store_n(&armed, hooks, __ATOMIC_RELAXED);
}

static uint8_t *new_memory(int value)
{
	uint8_t *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	memset(p, value, MIB);
	return p;
}

static uint32_t promote(uint8_t *p, struct mr_backing *b, uint32_t hooks)
{
	uint32_t count;

	arm(hooks);
	count = promote_range(p, MIB, b, PARTS);
	arm(0);
	if (count == 0)
		cr_skip_test("this kernel or user may not use userfaultfd");
	return count;
}

static void assert_all(const uint8_t *p, uint8_t value)
{
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], value, "octet %zu is %u, not %u", i, p[i], value);
}

/* Two buffers, one after the other; the second is at another address. */
static void register_two(uint32_t hooks)
{
	uint8_t *a = new_memory(0xa1), *b = new_memory(0xb2);
	struct mr_backing in_a[PARTS], in_b[PARTS];
	uint32_t count_a = promote(a, in_a, hooks), count_b;

	arm(hooks);
	promote_release(in_a, count_a);
	arm(0);
	assert_all(a, 0xa1);
	count_b = promote(b, in_b, hooks);
	assert_all(a, 0xa1);
	assert_all(b, 0xb2);
	promote_release(in_b, count_b);
	cr_assert_eq(calls, 0, "%u calls went through the program's hooks", calls);
}

Test(hooks, an_mremap_that_loses_the_address)
{
	register_two(HOOK_MREMAP);
}

Test(hooks, an_mmap_that_loses_the_address)
{
	register_two(HOOK_MMAP);
}

Test(hooks, all_hooks_are_bypassed)
{
	register_two(HOOK_ALL);
}

Test(hooks, a_forks_copies_bypass_hooks)
{
	uint8_t *p = new_memory(0xa1);
	struct mr_backing b[PARTS];
	uint32_t count = promote(p, b, HOOK_ALL);
	pid_t pid;
	int status;

	arm(HOOK_ALL);
	pid = fork();
	if (pid == 0) {
		arm(0);
		memset(p, 1, MIB);
		_exit(calls != 0);
	}
	arm(0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "the child's copies went through hooks");
	assert_all(p, 0xa1);
	promote_release(b, count);
}
