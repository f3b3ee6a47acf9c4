/* SPDX-License-Identifier: BSD-3-Clause */
/* The promoted memory that a fork's child sees while other threads of its parent write it. */
#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "users.h"

#define PAGE	((size_t)4096)
#define MIB	((size_t)1 << 20)
#define SEVERAL (4 * MIB) /* copying them takes longer than a writer needs for its four words */
#define PARTS	16u
#define WRITERS 3
#define FORKS	36

static uint32_t stop;
static bool promoted;

/* It is in the stacks of all threads, also of the library's own. */
static __thread volatile uint8_t local[256 << 10];

/* Words that a thread increments one after the other, in rounds. */
struct counters {
	volatile uint64_t *word[4];
	uint64_t rounds; /* atomic */
	pthread_t thread;
};

static struct counters counters[WRITERS];
static int pipes[WRITERS][2];

static uint8_t *new_memory(size_t octets)
{
	void *p = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(p, MAP_FAILED);
	return p;
}

static uint8_t *new_promoted(size_t octets)
{
	struct mr_backing b[PARTS];
	uint8_t *p = new_memory(octets);

	memset(p, 0, octets);
	promoted = promote_range(p, octets, b, PARTS) == 1;
	if (!promoted)
		cr_skip_test("this kernel or user may not use userfaultfd");
	return p;
}

static void *count_up(void *argument)
{
	struct counters *c = argument;

	for (uint64_t i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		for (int w = 0; w < 4; w++)
			__atomic_store_n(c->word[w], i, __ATOMIC_RELEASE);
		__atomic_store_n(&c->rounds, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The same by system calls, where the kernel writes for the thread. */
static void *count_up_by_reads(void *argument)
{
	struct counters *c = argument;
	const int *pipe_of = pipes[c - counters];

	for (uint64_t i = 1; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		for (int w = 0; w < 4; w++)
			if (write(pipe_of[1], &i, sizeof(i)) != sizeof(i) ||
			    read(pipe_of[0], (void *)c->word[w], sizeof(i)) != sizeof(i))
				return (void *)(intptr_t)errno;
		__atomic_store_n(&c->rounds, i, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The first and the last page, one in the middle, and one that is not promoted. */
static void begin_writers(uint8_t *p, size_t octets, bool by_reads)
{
	uint8_t *private = new_memory(PAGE);

	local[0]++;
	__atomic_store_n(&stop, 0, __ATOMIC_RELAXED);
	memset(counters, 0, sizeof(counters));

	for (int i = 0; i < WRITERS; i++) {
		struct counters *c = &counters[i];
		size_t at = (size_t)i * 64;
		bool reads = by_reads && i == 0;

		cr_assert_eq(pipe(pipes[i]), 0);
		c->word[0] = (void *)(p + octets - PAGE + at);
		c->word[1] = (void *)(p + at);
		c->word[2] = (void *)(p + octets / 2 + at);
		c->word[3] = (void *)(private + at);
		cr_assert_eq(
			pthread_create(&c->thread, NULL, reads ? count_up_by_reads : count_up, c),
			0);
	}
}

static void end_writers(void)
{
	void *failed;

	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < WRITERS; i++) {
		cr_assert_eq(pthread_join(counters[i].thread, &failed), 0);
		cr_expect_null(failed, "a thread's system call failed: %s",
			       strerror((int)(intptr_t)failed));
		close(pipes[i][0]);
		close(pipes[i][1]);
	}
}

static void await_rounds(uint64_t more)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	uint64_t from[WRITERS];

	for (int i = 0; i < WRITERS; i++)
		from[i] = __atomic_load_n(&counters[i].rounds, __ATOMIC_ACQUIRE);
	for (int i = 0; i < WRITERS; i++) {
		int tries = 0;

		while (__atomic_load_n(&counters[i].rounds, __ATOMIC_ACQUIRE) < from[i] + more) {
			cr_assert_lt(tries++, 20000, "a writer makes no progress");
			nanosleep(&nap, NULL);
		}
	}
}

/*
 * In the child no word is less than the one that was written after it, none is ahead by more than
 * one round, and none changes when the parent goes on.
 */
static int look(int go)
{
	uint64_t seen[WRITERS][4];
	char octet;

	for (int i = 0; i < WRITERS; i++)
		for (int w = 0; w < 4; w++)
			seen[i][w] = *counters[i].word[w];
	if (read(go, &octet, 1) != 1)
		return 2;
	for (int i = 0; i < WRITERS; i++) {
		for (int w = 0; w < 4; w++) {
			if (*counters[i].word[w] != seen[i][w])
				return 3;
			if (w > 0 &&
			    (seen[i][w - 1] < seen[i][w] || seen[i][w - 1] > seen[i][w] + 1))
				return 4;
			if (seen[i][0] > seen[i][w] + 1)
				return 5;
		}
	}
	return 0;
}

static void fork_and(int (*look_there)(int go))
{
	int go[2], status;
	pid_t child;

	cr_assert_eq(pipe(go), 0);
	child = fork();
	cr_assert_geq(child, 0, "fork: %s", strerror(errno));
	if (child == 0)
		_exit(look_there(go[0]));
	await_rounds(2);
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
		  "the child does not have what was there at the fork: %#x", (unsigned int)status);
	close(go[0]);
	close(go[1]);
}

static void fork_and_look(void)
{
	fork_and(look);
}

/* Linux guarantees this; promoted memory must do the same. */
Test(forks, private_memory_is_copied_at_one_time, .timeout = 120)
{
	begin_writers(new_memory(SEVERAL), SEVERAL, true);
	await_rounds(2);
	for (int i = 0; i < FORKS; i++)
		fork_and_look();
	end_writers();
}

/* hostile H-101: fork while threads write registered memory */
Test(forks, a_child_has_promoted_memory_of_one_time, .timeout = 120)
{
	uint8_t *p = new_promoted(SEVERAL);

	begin_writers(p, SEVERAL, false);
	await_rounds(2);
	for (int i = 0; i < FORKS; i++)
		fork_and_look();
	end_writers();
}

/* Needs the privilege: without it no thread is held, because system calls would fail. */
Test(forks, a_child_has_what_system_calls_wrote_at_one_time, .timeout = 120)
{
	uint8_t *p = new_promoted(SEVERAL);

	if (geteuid() != 0)
		cr_skip_test("only root may hold back what the kernel writes");
	begin_writers(p, SEVERAL, true);
	await_rounds(2);
	for (int i = 0; i < FORKS; i++)
		fork_and_look();
	end_writers();
}

/* ---- a program that may not hold back what the kernel writes ---- */

static uint64_t rounds_before[WRITERS];

/*
 * If the memory cannot be taken back: each word is at least as new as the fork's beginning, none is
 * newer than the fork, and none changes when the parent goes on. Writes of threads during the copy
 * may be there in part: see docs/decisions/0003-client-memory.md.
 */
static int look_at_parts(int go)
{
	uint64_t seen[WRITERS][4], newest[WRITERS];
	char octet;

	for (int i = 0; i < WRITERS; i++) {
		newest[i] = counters[i].rounds + 1; /* the child's own: it has no other thread */
		for (int w = 0; w < 4; w++)
			seen[i][w] = *counters[i].word[w];
	}
	if (read(go, &octet, 1) != 1)
		return 2;
	for (int i = 0; i < WRITERS; i++)
		for (int w = 0; w < 4; w++) {
			if (*counters[i].word[w] != seen[i][w])
				return 3;
			if (seen[i][w] < rounds_before[i])
				return 4;
			if (seen[i][w] > newest[i])
				return 5;
		}
	return 0;
}

static void note_rounds(void)
{
	for (int i = 0; i < WRITERS; i++)
		rounds_before[i] = __atomic_load_n(&counters[i].rounds, __ATOMIC_ACQUIRE);
}

static uint32_t asked;

static bool engines_leave(uint32_t leaves)
{
	asked = leaves;
	return true;
}

static bool engines_stay(uint32_t leaves)
{
	asked = leaves;
	return false;
}

/* 's' or 'p', '-' if nothing is mapped there */
static char kind_of_mapping(const void *at)
{
	struct mapping m;

	if (maps_read((uintptr_t)at, (uintptr_t)at + 1, false, &m, 1) != 1)
		return '-';
	return m.shared ? 's' : 'p';
}

/* hostile H-101: threads, some in system calls, write registered memory of a program without privilege */
Test(forks, without_privilege_the_memory_is_taken_back, .init = expect_root, .timeout = 240)
{
	promote_before_fork(engines_leave);
	for (uint32_t round = 1; round <= FORKS / 3; round++) {
		uint8_t *p;

		be_root();
		p = new_promoted(SEVERAL);
		cr_assert_eq(kind_of_mapping(p), 's');
		be_nobody();
		begin_writers(p, SEVERAL, true);
		await_rounds(2);
		for (int i = 0; i < 3; i++)
			fork_and_look();
		cr_assert_eq(asked, round, "engines leave once");
		cr_assert_eq(kind_of_mapping(p), 'p');
		end_writers();
		for (size_t i = 0; i < SEVERAL; i += PAGE)
			cr_assert(p[i + PAGE - 1] == 0, "page %zu", i / PAGE);
		cr_assert_eq(madvise(p, SEVERAL, MADV_DONTNEED), 0);
		for (size_t i = 0; i < SEVERAL; i++)
			cr_assert_eq(p[i], 0, "octet %zu is not discarded", i);
		munmap(p, SEVERAL);
	}
}

/* hostile H-101: ... and an engine that goes on using the memory */
Test(forks, without_privilege_no_call_fails_and_no_later_write_is_seen, .init = expect_root,
     .timeout = 120)
{
	uint8_t *p = new_promoted(SEVERAL);

	promote_before_fork(engines_stay);
	be_nobody();
	begin_writers(p, SEVERAL, true);
	await_rounds(2);
	for (int i = 0; i < FORKS / 3; i++) {
		note_rounds();
		fork_and(look_at_parts);
	}
	cr_expect_gt(asked, 0);
	cr_expect_eq(kind_of_mapping(p), 's');
	end_writers();
}

/*
 * Memory that the program may not write is not copied; the child shows it nevertheless,
 * permanently.
 */
Test(forks, a_child_keeps_what_may_not_be_written, .init = expect_root, .timeout = 120)
{
	uint8_t *p = new_promoted(MIB), *other;
	struct mr_backing all = { .length = UINT64_C(1) << 60 };
	int go[2], status;
	pid_t child;

	promote_before_fork(engines_leave);
	memset(p, 5, MIB);
	cr_assert_eq(mprotect(p + MIB / 2, MIB / 2, PROT_READ), 0);
	be_nobody();
	begin_writers(new_memory(MIB), MIB, false);
	cr_assert_eq(pipe(go), 0);
	child = fork();
	if (child == 0) {
		char octet;

		_exit(read(go[0], &octet, 1) == 1 && p[MIB - 1] == 5 && p[0] == 5 ? 0 : 1);
	}
	cr_assert_eq(kind_of_mapping(p + MIB - 1), 'p');
	be_root();
	promote_release(&all, 1);
	other = new_promoted(MIB); /* in another place of the file */
	memset(other, 6, MIB);
	cr_assert_eq(write(go[1], "g", 1), 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%#x", (unsigned int)status);
	for (size_t i = 0; i < MIB; i++)
		cr_assert_eq(p[i], 5);
	end_writers();
}

/* It makes no difference if no descriptor is free. */
Test(forks, a_child_has_its_copy_without_free_descriptors, .timeout = 120)
{
	struct rlimit limit = { 64, 64 };
	uint8_t *p = new_promoted(SEVERAL);
	int go[2], status, filled[64], n = 0;

	begin_writers(p, SEVERAL, false);
	await_rounds(2);
	cr_assert_eq(pipe(go), 0);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (n < 64 && (filled[n] = dup(go[0])) >= 0)
		n++;
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (child == 0)
			_exit(look(go[0]));
		await_rounds(2);
		cr_assert_eq(write(go[1], "g", 1), 1);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0,
			  "the child does not have what was there at the fork: %#x",
			  (unsigned int)status);
	}
	while (n > 0)
		close(filled[--n]);
	end_writers();
}

/* ---- handlers of a fork, while other threads are held back ---- */

static volatile uint64_t *touched; /* in promoted memory */
static pthread_mutex_t pool = PTHREAD_MUTEX_INITIALIZER;
static bool takes_pool;

/* Registered before the library's handlers, so the prepare handler is called after theirs. */
static void touch(void)
{
	if (touched != NULL)
		(*touched)++;
	if (takes_pool)
		pthread_mutex_lock(&pool);
}

static void leave(void)
{
	if (takes_pool)
		pthread_mutex_unlock(&pool);
}

static __attribute__((constructor(101))) void handle_forks(void)
{
	pthread_atfork(touch, leave, leave);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

Test(forks, the_thread_that_forks_may_write, .timeout = 60)
{
	uint8_t *p = new_promoted(MIB);
	int64_t begin;

	begin_writers(p, MIB, false);
	await_rounds(2);
	touched = (void *)(p + MIB / 4);
	begin = now_ms();
	for (int i = 0; i < 20; i++)
		fork_and_look();
	cr_expect_eq(*touched, 20);
	cr_expect_lt(now_ms() - begin, 20 * 1000, "the fork waits for itself");
	end_writers();
}

static void *use_pool(void *memory)
{
	for (uint64_t i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++) {
		pthread_mutex_lock(&pool);
		*(volatile uint64_t *)memory = i;
		pthread_mutex_unlock(&pool);
	}
	return NULL;
}

/* A held-back thread may have a lock that a handler needs. The fork must not wait for ever. */
Test(forks, a_lock_over_promoted_memory_is_no_deadlock, .timeout = 60)
{
	uint8_t *p = new_promoted(MIB);
	pthread_t thread;

	takes_pool = true;
	cr_assert_eq(pthread_create(&thread, NULL, use_pool, p), 0);
	for (int i = 0; i < 5; i++) {
		pid_t child = fork();
		int status;

		cr_assert_geq(child, 0);
		if (child == 0)
			_exit(0);
		cr_assert_eq(waitpid(child, &status, 0), child);
		cr_assert_eq(status, 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A file of /proc that stays open would keep /proc from being unmounted. */
Test(forks, without_promoted_memory_no_descriptor_is_left, .timeout = 60)
{
	int before = descriptors(), status;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0)
		_exit(descriptors() - before);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_expect_eq(status, 0, "%d more in the child", WEXITSTATUS(status));
	cr_expect_eq(descriptors(), before, "%d more in the parent", descriptors() - before);
}
