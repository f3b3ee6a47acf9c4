/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/mover.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u

static nanotime clock_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

/*
 * This process's own memory is used as a client's; the descriptor is of the same kind. by_pid:
 * batches of reads use process_vm_readv, which blocks where new kernels return an error for the
 * descriptor.
 */
static struct mover *new_mover_with(const struct mover_bell *bell, uint32_t lcores, bool by_pid)
{
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	struct peer_memory peer;
	struct mover *m;

	cr_assert_eq(peer_memory_open(&peer, fd, by_pid ? getpid() : 0, geteuid()), 0);
	cr_assert_eq(peer.pid != 0, by_pid);
	m = mover_create(&peer, bell, lcores);
	cr_assert_not_null(m);
	peer_memory_close(&peer);
	return m;
}

static struct mover *new_mover(uint32_t lcores, bool by_pid)
{
	return new_mover_with(NULL, lcores, by_pid);
}

static struct mover_batch *wait_for(struct mover *m, uint32_t lcore)
{
	nanotime until = clock_now() + 10 * TIME_S;
	struct mover_batch *b;

	while ((b = mover_poll(m, lcore)) == NULL)
		cr_assert_lt(clock_now(), until, "no batch came back to lcore %u", lcore);
	return b;
}

#define BATCHES 3000u

Test(mover, batches_come_back_to_their_lcores_in_order, .timeout = 100)
{
	static uint64_t from[BATCHES], to[BATCHES];
	static struct peer_copy copy[BATCHES];
	static struct mover_batch batch[BATCHES];
	struct mover *m = new_mover(2, false);
	uint32_t sent = 0, back[2] = { 0, 1 };

	for (uint32_t i = 0; i < BATCHES; i++) {
		from[i] = i * 1000003;
		copy[i] = (struct peer_copy){ .peer_address = (uintptr_t)&from[i],
					      .local = &to[i],
					      .length = 8 };
		batch[i] = (struct mover_batch){ .copy = &copy[i], .count = 1, .lcore = i % 2 };
	}
	while (back[0] < BATCHES || back[1] < BATCHES) {
		if (sent < BATCHES && mover_submit(m, &batch[sent])) {
			sent++;
			continue;
		}
		for (uint32_t lcore = 0; lcore < 2; lcore++) {
			if (back[lcore] >= sent)
				continue;
			cr_assert_eq(wait_for(m, lcore), &batch[back[lcore]]);
			cr_assert(copy[back[lcore]].ok);
			cr_assert_eq(to[back[lcore]], from[back[lcore]]);
			back[lcore] += 2;
		}
	}
	mover_close(m);
}

Test(mover, batches_are_bounded)
{
	static struct mover_batch batch[LIMIT_MOVER_BATCHES + 1];
	struct mover *m = new_mover(1, true);

	for (uint32_t i = 0; i < LIMIT_MOVER_BATCHES; i++)
		cr_assert(mover_submit(m, &batch[i]));
	cr_assert_not(mover_submit(m, &batch[LIMIT_MOVER_BATCHES]), "no batch was polled yet");
	for (uint32_t i = 0; i < LIMIT_MOVER_BATCHES; i++)
		wait_for(m, 0);
	cr_assert(mover_submit(m, &batch[0]));
	cr_assert_eq(wait_for(m, 0), &batch[0]);
	mover_close(m);
}

Test(mover, only_an_lcore_that_sleeps_is_woken)
{
	static const uint32_t sleeping[2] = { 1, 0 };
	static struct mover_batch batch[2] = { { .lcore = 0 }, { .lcore = 1 } };
	struct mover_bell bell[2];
	struct pollfd p = { .events = POLLIN };
	struct mover *m;

	for (uint32_t i = 0; i < 2; i++)
		bell[i] = (struct mover_bell){ &sleeping[i], eventfd(0, EFD_NONBLOCK) };
	m = new_mover_with(bell, 2, false);
	cr_assert(mover_submit(m, &batch[0]));
	p.fd = bell[0].fd;
	cr_assert_eq(poll(&p, 1, 10000), 1, "the lcore was not woken");
	cr_assert_eq(mover_poll(m, 0), &batch[0], "it is woken for a finished batch");
	cr_assert(mover_submit(m, &batch[1]));
	wait_for(m, 1);
	mover_close(m);
	p.fd = bell[1].fd;
	cr_assert_eq(poll(&p, 1, 0), 0, "an lcore that does not sleep was woken");
}

/* A page whose access blocks until the descriptor is closed. */
static void *blocking_page(int *fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	void *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0)
		return NULL;
	cr_assert_eq(ioctl(*fd, UFFDIO_API, &api), 0);
	reg.range.start = (uintptr_t)p;
	reg.range.len = PAGE;
	cr_assert_eq(ioctl(*fd, UFFDIO_REGISTER, &reg), 0);
	return p;
}

#define READS 4u

static void fill(struct peer_copy *copy, void *page, uint64_t *local)
{
	for (uint32_t i = 0; i < READS; i++)
		copy[i] = (struct peer_copy){ .peer_address = (uintptr_t)page + 8 * i,
					      .local = &local[i],
					      .length = 8,
					      .ok = true };
}

static void wait_for_fault(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 10000), 1, "the mover did not access the page");
}

Test(mover, a_blocking_page_blocks_no_lcore, .timeout = 100)
{
	static uint64_t local[2][READS];
	static struct peer_copy copy[2][READS];
	struct mover_batch batch[2];
	struct mover *m = new_mover(1, true);
	nanotime before;
	int fd;
	void *page = blocking_page(&fd);

	if (page == NULL)
		cr_skip_test("no privilege for a full userfaultfd");
	for (uint32_t i = 0; i < 2; i++) {
		fill(copy[i], page, local[i]);
		batch[i] = (struct mover_batch){ .copy = copy[i], .count = READS };
	}
	cr_assert(mover_submit(m, &batch[0]));
	wait_for_fault(fd);
	before = clock_now();
	cr_assert(mover_submit(m, &batch[1]));
	cr_assert_null(mover_poll(m, 0));
	cr_assert_lt(clock_now() - before, 10 * TIME_S, "an lcore waited");
	close(fd);
	cr_assert_eq(wait_for(m, 0), &batch[0]);
	cr_assert(copy[0][READS - 1].ok);
	cr_assert_eq(wait_for(m, 0), &batch[1]);
	mover_close(m);
}

/* Waiting batches come back at once; the batch of the thread comes back when its copy ends. */
Test(mover, stopping_a_blocked_mover_does_not_block, .timeout = 100)
{
	static uint64_t local[3][READS];
	static struct peer_copy copy[3][READS];
	static struct mover_batch batch[3];
	struct mover *m = new_mover(1, true);
	nanotime before;
	int fd;
	void *page = blocking_page(&fd);

	if (page == NULL)
		cr_skip_test("no privilege for a full userfaultfd");
	for (uint32_t i = 0; i < 3; i++) {
		fill(copy[i], page, local[i]);
		batch[i] = (struct mover_batch){ .copy = copy[i], .count = READS };
		cr_assert(mover_submit(m, &batch[i]));
	}
	wait_for_fault(fd);
	before = clock_now();
	mover_stop(m);
	cr_assert_lt(clock_now() - before, TIME_S, "it waited");
	cr_assert_eq(mover_poll(m, 0), &batch[1]);
	cr_assert_eq(mover_poll(m, 0), &batch[2]);
	cr_assert_not(copy[1][0].ok || copy[2][0].ok);
	cr_assert_null(mover_poll(m, 0), "a copy into this one is under way");
	close(fd);
	cr_assert_eq(wait_for(m, 0), &batch[0]);
	mover_close(m);
}

static int count_threads(void)
{
	DIR *d = opendir("/proc/self/task");
	int n = 0;

	cr_assert_not_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void wait_for_threads(int wanted)
{
	nanotime until = clock_now() + 10 * TIME_S;

	while (count_threads() != wanted) {
		cr_assert_lt(clock_now(), until, "%d threads, not %d", count_threads(), wanted);
		poll(NULL, 0, 1);
	}
}

Test(mover, closing_a_blocked_mover_does_not_block, .timeout = 100)
{
	static uint64_t local[READS];
	static struct peer_copy copy[READS];
	static struct mover_batch batch = { .copy = copy, .count = READS };
	static const uint32_t sleeping = 1;
	struct mover_bell bell = { &sleeping, eventfd(0, EFD_NONBLOCK) };
	int threads = count_threads();
	struct mover *m = new_mover_with(&bell, 1, true);
	nanotime before;
	uint64_t rings;
	int fd;
	void *page = blocking_page(&fd);

	if (page == NULL)
		cr_skip_test("no privilege for a full userfaultfd");
	fill(copy, page, local);
	cr_assert(mover_submit(m, &batch));
	wait_for_fault(fd);
	before = clock_now();
	mover_close(m);
	cr_assert_lt(clock_now() - before, TIME_S, "it waited");
	while (read(bell.fd, &rings, sizeof(rings)) > 0)
		;
	close(fd); /* the blocked thread ends and frees the mover */
	wait_for_threads(threads);
	cr_assert_lt(read(bell.fd, &rings, sizeof(rings)), 0, "it woke an lcore that is gone");
}
