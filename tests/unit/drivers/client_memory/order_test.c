/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order in which a client's memory is written, and which atomics wait for others. System calls
 * on a client's memory go through this test, which counts them and blocks some.
 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drivers/client_memory/mover.h"
#include "drivers/client_memory/peer.h"
#include "drivers/client_memory/peer_atomic.h"

#define CALLS	 16u
#define SOMEBODY 1234u /* a user id */

ssize_t __real_pread64(int fd, void *to, size_t n, off64_t at);
ssize_t __real_pwrite64(int fd, const void *from, size_t n, off64_t at);
ssize_t __wrap_pread64(int fd, void *to, size_t n, off64_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t n, off64_t at);

struct written {
	uint64_t at;
	size_t length;
};

static struct written written[CALLS];
static uint32_t writes;

/* The first copy of this word, in the given direction, blocks. */
static const void *held_word;
static bool held_write;
static sem_t reached, released;

static void hold(off64_t at, bool write)
{
	const void *word = __atomic_load_n(&held_word, __ATOMIC_ACQUIRE);

	if (word == NULL || (uintptr_t)at != (uintptr_t)word || write != held_write)
		return;
	__atomic_store_n(&held_word, NULL, __ATOMIC_RELEASE);
	sem_post(&reached);
	while (sem_wait(&released) != 0)
		;
}

ssize_t __wrap_pread64(int fd, void *to, size_t n, off64_t at)
{
	hold(at, false);
	return __real_pread64(fd, to, n, at);
}

ssize_t __wrap_pwrite64(int fd, const void *from, size_t n, off64_t at)
{
	hold(at, true);
	if (writes < CALLS)
		written[writes++] = (struct written){ (uint64_t)at, n };
	return __real_pwrite64(fd, from, n, at);
}

static void wait_for(sem_t *s, const char *what)
{
	struct timespec until;
	int error;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 20;
	do
		error = sem_timedwait(s, &until);
	while (error != 0 && errno == EINTR);
	cr_assert_eq(error, 0, "%s did not happen", what);
}

/* Memory of this process, which is used as that of several clients. */
static void open_memory(struct peer_memory *m, uid_t user)
{
	cr_assert_eq(peer_memory_open(m, open("/proc/self/mem", O_RDWR | O_CLOEXEC), 0, user), 0);
}

/* The kernel may copy the octets of one call in any order. */
Test(order, the_tail_is_written_by_the_last_call)
{
	static uint8_t from[4096], to[4096];
	struct peer_memory m;
	struct peer_copy copy = { .peer_address = (uintptr_t)to,
				  .local = from,
				  .length = sizeof(from),
				  .to_peer = true,
				  .tail = 8 };

	memset(from, 0x5a, sizeof(from));
	open_memory(&m, 0);
	peer_memory_copy(&m, &copy, 1);
	cr_assert(copy.ok);
	cr_assert_eq(writes, 2, "%u calls", writes);
	cr_expect_eq(written[0].at, (uintptr_t)to);
	cr_expect_eq(written[0].length, sizeof(to) - 8);
	cr_expect_eq(written[1].at, (uintptr_t)to + sizeof(to) - 8);
	cr_expect_eq(written[1].length, 8);
	cr_assert_arr_eq(to, from, sizeof(to));
	peer_memory_close(&m);
}

/*
 * A packet in the middle of a message has no tail, and a message may be all tail: one call each.
 */
Test(order, without_a_tail_there_is_one_call)
{
	static uint64_t from[2], to[2];
	struct peer_memory m;
	struct peer_copy copy[2] = {
		{ .peer_address = (uintptr_t)to, .local = from, .length = 16, .to_peer = true },
		{ .peer_address = (uintptr_t)to,
		  .local = from,
		  .length = 8,
		  .to_peer = true,
		  .tail = 8 },
	};

	open_memory(&m, 0);
	peer_memory_copy(&m, copy, 2);
	cr_assert_eq(writes, 2, "%u calls", writes);
	peer_memory_close(&m);
}

struct adder {
	struct peer_memory memory;
	struct peer_atomic atomic;
	uint64_t address;
	int error;
};

static void *add(void *arg)
{
	struct adder *a = arg;

	a->error = peer_memory_atomic(&a->memory, a->address, &a->atomic, 0);
	return NULL;
}

/* An atomic that is blocked in one of its two copies and holds the stripe. */
static pthread_t begin_held(struct adder *a, const void *word, bool in_write)
{
	pthread_t thread;

	a->address = (uintptr_t)word;
	a->atomic = (struct peer_atomic){ .value = 1 };
	sem_init(&reached, 0, 0);
	sem_init(&released, 0, 0);
	held_write = in_write;
	__atomic_store_n(&held_word, word, __ATOMIC_RELEASE);
	cr_assert_eq(pthread_create(&thread, NULL, add, a), 0);
	wait_for(&reached, "the atomic");
	return thread;
}

static void end_held(pthread_t thread)
{
	sem_post(&released);
	cr_assert_eq(pthread_join(thread, NULL), 0);
}

/* Two words at the same offset in their pages. */
static uint64_t page[2][512] __attribute__((aligned(4096)));

static int add_at(const struct peer_memory *m, uint64_t *word, struct peer_atomic *a, nanotime now)
{
	return peer_memory_atomic(m, (uintptr_t)word, a, now);
}

Test(order, an_atomic_of_another_user_does_not_wait)
{
	struct peer_atomic a = { .value = 1 };
	struct peer_memory other;
	struct adder held;
	pthread_t thread;

	open_memory(&held.memory, SOMEBODY);
	open_memory(&other, SOMEBODY + 1);
	thread = begin_held(&held, &page[0][7], false);
	cr_expect_eq(add_at(&other, &page[1][7], &a, 0), 0);
	cr_expect_eq(page[1][7], 1);
	end_held(thread);
	cr_expect_eq(held.error, 0);
	peer_memory_close(&other);
	peer_memory_close(&held.memory);
}

static void taken_over(bool in_write)
{
	struct peer_atomic a = { .value = 1 };
	struct peer_memory other;
	struct adder held;
	pthread_t thread;

	open_memory(&held.memory, SOMEBODY);
	open_memory(&other, SOMEBODY);
	thread = begin_held(&held, &page[0][9], in_write);
	cr_expect_eq(add_at(&other, &page[1][9], &a, 100), EBUSY);
	cr_expect_eq(add_at(&other, &page[1][9], &a, 99 + LIMIT_ATOMIC_WAIT * TIME_MS), EBUSY);
	cr_expect_eq(add_at(&other, &page[1][9], &a, 100 + LIMIT_ATOMIC_WAIT * TIME_MS), 0);
	cr_expect_eq(add_at(&other, &page[1][9], &a, 101 + LIMIT_ATOMIC_WAIT * TIME_MS), 0,
		     "it is free now");
	cr_expect_eq(page[1][9], 2);
	end_held(thread);
	if (!in_write) {
		cr_expect_eq(held.error, EBUSY, "what it read may be outdated");
		cr_expect_eq(page[0][9], 0);
		cr_expect_eq(add_at(&held.memory, &page[0][9], &held.atomic, 0), 0);
	}
	cr_expect_eq(page[0][9], 1);
	peer_memory_close(&other);
	peer_memory_close(&held.memory);
}

Test(order, a_program_takes_over_a_stuck_atomic_of_another)
{
	taken_over(false);
	memset(page, 0, sizeof(page));
	taken_over(true);
}

/*
 * The second one would block in the same copy, and the first one's work would be lost.
 */
Test(order, a_program_does_not_take_over_its_own_stuck_atomic)
{
	struct peer_atomic a = { .value = 1 };
	struct adder held;
	pthread_t thread;

	open_memory(&held.memory, SOMEBODY);
	thread = begin_held(&held, &page[0][3], true);
	for (nanotime now = 0; now < 10 * TIME_S; now += TIME_MS)
		cr_assert_eq(add_at(&held.memory, &page[0][3], &a, now), EBUSY);
	end_held(thread);
	cr_expect_eq(add_at(&held.memory, &page[0][3], &a, 0), 0);
	cr_expect_eq(page[0][3], 2);
	peer_memory_close(&held.memory);
}

/* When a program ends while its atomic is stuck, its user's stripes stay usable. */
Test(order, a_stuck_atomic_outlives_its_memory)
{
	struct peer_atomic a = { .value = 1 };
	struct peer_memory original, other;
	struct adder held;
	pthread_t thread;

	open_memory(&original, SOMEBODY);
	cr_assert_eq(peer_memory_clone(&held.memory, &original), 0);
	thread = begin_held(&held, &page[0][5], false);
	peer_memory_close(&original);
	open_memory(&other, SOMEBODY);
	cr_expect_eq(add_at(&other, &page[1][5], &a, 1), EBUSY);
	cr_expect_eq(add_at(&other, &page[1][5], &a, 1 + LIMIT_ATOMIC_WAIT * TIME_MS), 0);
	peer_memory_close(&other);
	end_held(thread);
	peer_memory_close(&held.memory);
}

static struct mover_batch *back_from(struct mover *m)
{
	time_t until = time(NULL) + 20;
	struct mover_batch *b;

	while ((b = mover_poll(m, 0)) == NULL)
		cr_assert_lt(time(NULL), until, "no batch came back");
	return b;
}

/* A mover that has begun this batch, and is stuck in its first copy, which writes `at`. */
static struct mover *begin_stuck(const struct peer_memory *m, struct mover_batch *batch,
				 uint64_t *at)
{
	struct mover *mover = mover_create(m, NULL, 1);

	cr_assert_not_null(mover);
	sem_init(&reached, 0, 0);
	sem_init(&released, 0, 0);
	held_write = true;
	__atomic_store_n(&held_word, at, __ATOMIC_RELEASE);
	cr_assert(mover_submit(mover, batch));
	wait_for(&reached, "the copy");
	return mover;
}

/* Memory that the engine maps may be revoked while an earlier copy is stuck. */
Test(order, revoked_memory_is_not_written)
{
	static uint64_t from[3] = { 1, 2, 3 }, to[3];
	struct peer_copy copy[3] = {
		{ .peer_address = (uintptr_t)&to[0],
		  .local = &from[0],
		  .length = 8,
		  .to_peer = true },
		{ .direct = &to[1], .local = &from[1], .length = 8, .to_peer = true },
		{ .direct = &to[2], .local = &from[2], .length = 8, .to_peer = true },
	};
	struct mover_batch batch = { .copy = copy, .count = 3 };
	struct peer_memory m;
	struct mover *mover;

	open_memory(&m, SOMEBODY);
	mover = begin_stuck(&m, &batch, &to[0]);
	cr_expect_eq(to[1], 0, "it is written after a stuck copy");
	__atomic_store_n(&copy[1].direct, MOVER_REVOKED, __ATOMIC_RELAXED);
	mover_leaves_direct(mover);
	sem_post(&released);
	cr_assert_eq(back_from(mover), &batch);
	cr_expect(copy[0].ok && !copy[1].ok && copy[2].ok);
	cr_expect_eq(to[1], 0);
	cr_expect_eq(to[2], 3);
	mover_close(mover);
	peer_memory_close(&m);
}

/* ... or become peer memory: then it is written, in its turn. */
Test(order, memory_that_is_left_is_written_as_peer_memory)
{
	static uint64_t from[2] = { 1, 2 }, to[2], word = 40, mapped;
	struct peer_atomic add = { .value = 2 };
	struct peer_copy copy[3] = {
		{ .peer_address = (uintptr_t)&to[0],
		  .local = &from[0],
		  .length = 8,
		  .to_peer = true },
		{ .peer_address = (uintptr_t)&to[1],
		  .direct = &mapped,
		  .local = &from[1],
		  .length = 8,
		  .to_peer = true },
		{ .peer_address = (uintptr_t)&word,
		  .direct = &mapped,
		  .length = 8,
		  .to_peer = true,
		  .atomic = &add },
	};
	struct mover_batch batch = { .copy = copy, .count = 3 };
	struct peer_memory m, other;
	struct mover *mover;

	open_memory(&m, SOMEBODY);
	open_memory(&other, SOMEBODY + 1);
	mover = begin_stuck(&m, &batch, &to[0]);
	copy[1].memory = &other;
	__atomic_store_n(&copy[1].direct, NULL, __ATOMIC_RELEASE);
	__atomic_store_n(&copy[2].direct, NULL, __ATOMIC_RELEASE);
	mover_leaves_direct(mover);
	sem_post(&released);
	cr_assert_eq(back_from(mover), &batch);
	cr_expect(copy[0].ok && copy[1].ok && copy[2].ok);
	cr_expect_eq(mapped, 0);
	cr_expect_eq(to[1], 2);
	cr_expect_eq(word, 42);
	cr_expect_eq(add.original, 40);
	mover_close(mover);
	peer_memory_close(&other);
	peer_memory_close(&m);
}

/* While memory changes from direct to peer memory the CPU may make atomics in it. */
Test(order, atomics_wait_while_memory_changes)
{
	struct peer_atomic a = { .value = 1 };
	struct peer_memory m, other;

	open_memory(&m, SOMEBODY);
	open_memory(&other, SOMEBODY + 1);
	peer_locks_hold(m.locks);
	cr_expect_eq(add_at(&m, &page[0][1], &a, 0), EBUSY);
	cr_expect_eq(add_at(&m, &page[0][1], &a, 10 * TIME_S), EBUSY, "nobody takes it over");
	cr_expect_eq(add_at(&other, &page[1][1], &a, 0), 0, "another user's");
	peer_locks_let_go(m.locks);
	cr_expect_eq(add_at(&m, &page[0][1], &a, 0), 0);
	cr_expect_eq(page[0][1], 1);
	peer_memory_close(&other);
	peer_memory_close(&m);
}

static uint32_t threads(void)
{
	DIR *d = opendir("/proc/self/task");
	uint32_t n = 0;

	cr_assert_not_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* A mover that was closed during a copy makes no further copy, whenever that copy ends. */
Test(order, a_mover_that_was_closed_copies_nothing_more)
{
	static uint64_t from[3] = { 1, 2, 3 }, to[3];
	static struct peer_copy copy[3] = {
		{ .local = &from[0], .length = 8, .to_peer = true },
		{ .local = &from[1], .length = 8, .to_peer = true },
		{ .direct = &to[2], .local = &from[2], .length = 8, .to_peer = true },
	};
	static struct mover_batch batch = { .copy = copy, .count = 3 };
	uint32_t others = threads();
	time_t until = time(NULL) + 20;
	struct peer_memory m;
	struct mover *mover;

	copy[0].peer_address = (uintptr_t)&to[0];
	copy[1].peer_address = (uintptr_t)&to[1];
	open_memory(&m, SOMEBODY);
	mover = begin_stuck(&m, &batch, &to[0]);
	mover_close(mover);
	sem_post(&released);
	while (threads() > others)
		cr_assert_lt(time(NULL), until, "the thread does not end");
	cr_expect_eq(to[0], 1);
	cr_expect_eq(to[1], 0);
	cr_expect_eq(to[2], 0);
	peer_memory_close(&m);
}
