/* SPDX-License-Identifier: BSD-3-Clause */
/* A port whose bell rings, and is drained, before its frame can be received: the lcore looks again. */
#include <criterion/criterion.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "rig/test_port.h"
#include "engine/inside.h"

#define LATE   (2 * TIME_MS) /* the frame, after its bell was drained */
#define ROUNDS 5

static int bell;
static nanotime drained_at, found_at; /* atomic; 0: not yet */

/* ---- the port ---- */

/* Only notes when it would have received the frame. */
static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	nanotime drained = __atomic_load_n(&drained_at, __ATOMIC_RELAXED), now = clock_now();

	if (drained != 0 && now >= drained + LATE &&
	    __atomic_load_n(&found_at, __ATOMIC_RELAXED) == 0)
		__atomic_store_n(&found_at, now, __ATOMIC_RELEASE);
	return 0;
}

static int bell_fd(struct port *p, uint16_t queue)
{
	return bell;
}

static void bell_drain(struct port *p, uint16_t queue)
{
	uint64_t rings;

	if (read(bell, &rings, sizeof(rings)) == sizeof(rings))
		__atomic_store_n(&drained_at, clock_now(), __ATOMIC_RELAXED);
}

static void begin(bool early)
{
	bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_geq(bell, 0);
	test_port.rings_early = early;
	test_port_begin("early-bell",
			&(struct port_ops){ .rx_burst = rx_burst,
					    .bell_fd = bell_fd,
					    .bell_drain = bell_drain },
			(struct uroce_options){ .address = { { { 0xfd, 7, [15] = 1 }, 64 } },
						.pool_size = 1024 });
}

TestSuite(early_bell, .fini = control_rig_close, .timeout = 120);

/* ---- what the lcore does ---- */

static uint64_t sleeps(void)
{
	return __atomic_load_n(&((struct engine *)engine)->lcore[0].stats.sleeps, __ATOMIC_RELAXED);
}

static nanotime await(const nanotime *when, const char *what)
{
	nanotime end = clock_now() + ENOUGH_MS * TIME_MS, t;

	while ((t = __atomic_load_n(when, __ATOMIC_ACQUIRE)) == 0) {
		cr_assert_lt(clock_now(), end, "the lcore has not %s", what);
		usleep(100);
	}
	return t;
}

/* Returns when the lcore has drained it. */
static nanotime ring(void)
{
	__atomic_store_n(&drained_at, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&found_at, 0, __ATOMIC_RELAXED);
	cr_assert_eq(write(bell, &(uint64_t){ 1 }, sizeof(uint64_t)), sizeof(uint64_t));
	return await(&drained_at, "drained the bell");
}

/* How often the lcore falls asleep within so many milliseconds after a bell. */
static uint64_t sleeps_after_a_bell(uint32_t ms)
{
	uint64_t before;

	ring();
	before = sleeps();
	usleep(ms * 1000);
	return sleeps() - before;
}

/*
 * An lcore that does not look again sleeps for LIMIT_SLEEP_MS. The fastest of several rounds counts: a busy machine
 * may make any of them late.
 */
Test(early_bell, the_frame_does_not_wait_until_the_longest_sleep_ends)
{
	nanotime fastest = TIME_NEVER, drained, found;

	begin(true);
	for (int i = 0; i < ROUNDS; i++) {
		drained = ring();
		found = await(&found_at, "found the frame");
		fastest = time_earlier(fastest, found - drained);
	}
	cr_expect_lt(fastest, LIMIT_SLEEP_MS * TIME_MS / 2, "after %lu us",
		     (unsigned long)(fastest / TIME_US));
}

/* Ever later: 0.1, 0.4, 1.6, 6.4 and 26 ms after the bell, then as if there had been none. */
Test(early_bell, an_lcore_without_frames_sleeps_as_long_as_before)
{
	begin(true);
	ring(); /* the first sleeps are shorter, for what an engine does at its start */
	cr_expect_leq(sleeps_after_a_bell(1000), 10 + 2 * 5);
}

Test(early_bell, other_bells_wake_once)
{
	uint64_t fewest = UINT64_MAX;

	begin(false);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t n = sleeps_after_a_bell(LIMIT_SLEEP_MS / 2);

		fewest = n < fewest ? n : fewest;
	}
	cr_expect_leq(fewest, 2);
}
