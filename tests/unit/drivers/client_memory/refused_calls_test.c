/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel refuses the system calls that replace pages, or a hook answers them without an error
 * but with another address (libucm 1.13 mapped buffers at 0). The program's memory stays as it was,
 * and no page of the file that it still shows is given to another.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#define PAGE   4096u
#define OCTETS (1u << 20)
#define PARTS  16u

#define INTO_FILE  (MAP_SHARED | MAP_FIXED | MAP_NORESERVE) /* flags of mmap */
#define OUT_OF_IT  (MREMAP_MAYMOVE | MREMAP_FIXED) /* of mremap */
#define TAKEN_BACK (MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE) /* of mmap */

/* From now on such a call does nothing, and returns this error; 0: success at address 0. */
static void refuse(uint32_t call, uint32_t flags, uint32_t error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, flags, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0, "%m");
}

static uint8_t *filled(void)
{
	uint8_t *p = mmap(NULL, OCTETS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	for (uint32_t i = 0; i < OCTETS; i += PAGE)
		memset(p + i, (int)(i / PAGE), PAGE);
	return p;
}

static void expect_contents(uint8_t *p)
{
	for (uint32_t i = 0; i < OCTETS; i++)
		cr_assert_eq(p[i], (uint8_t)(i / PAGE), "octet %u is %u", i, p[i]);
	memset(p, 7, OCTETS);
	cr_assert_eq(p[OCTETS - 1], 7);
}

static bool is_shared(const void *p)
{
	struct mapping m;

	cr_assert_eq(maps_read((uintptr_t)p, (uintptr_t)p + 1, false, &m, 1), 1);
	return m.shared;
}

static uint64_t octets_of_file(void)
{
	struct stat st;

	cr_assert_eq(fstat(promote_file(), &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static uint32_t promoted(uint8_t *p, struct mr_backing *b)
{
	uint32_t count = promote_range(p, OCTETS, b, PARTS);

	if (count == 0)
		cr_skip_test("this user may not promote memory");
	cr_assert(is_shared(p));
	return count;
}

static void promote_refused(uint32_t error)
{
	struct mr_backing b[PARTS];
	uint8_t *p = filled();

	promoted(filled(), b);
	refuse(SYS_mmap, INTO_FILE, error);
	cr_assert_eq(promote_range(p, OCTETS, b, PARTS), 0);
	cr_expect_not(is_shared(p));
	cr_expect_eq(octets_of_file(), OCTETS, "of the other one only");
	expect_contents(p);
}

Test(refused_calls, mmap_fails)
{
	promote_refused(ENOMEM);
}

Test(refused_calls, mmap_says_another_address)
{
	promote_refused(0);
}

/*
 * Memory that cannot be moved is taken back; memory that cannot be taken back either stays in the
 * file.
 */
static void demote_refused(uint32_t error)
{
	struct mr_backing b[PARTS], other[PARTS];
	uint8_t *p = filled(), *q = filled();
	uint32_t count = promoted(p, b), more = promoted(q, other);

	refuse(SYS_mremap, OUT_OF_IT, error);
	promote_release(b, count);
	cr_expect_not(is_shared(p));
	refuse(SYS_mmap, TAKEN_BACK, error);
	promote_release(other, more);
	cr_expect(is_shared(q));
	cr_expect_eq(octets_of_file(), OCTETS, "the second one's");
	expect_contents(p);
	expect_contents(q);
}

Test(refused_calls, mremap_fails)
{
	demote_refused(ENOMEM);
}

Test(refused_calls, mremap_says_another_address)
{
	demote_refused(0);
}

/* ... or the first one: each registration would be held up by what failed once. */
Test(refused_calls, a_file_that_could_not_be_made_is_not_tried_again)
{
	struct rlimit before, none;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ 0, before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(promote_file(), -1);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_expect_eq(promote_file(), -1, "it was made by now");
}
