/* SPDX-License-Identifier: BSD-3-Clause */
/* A port whose bell rings, and is drained, before its frame can be received: the lcore looks again. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "rig/control_rig.h"
#include "drivers/port.h"
#include "engine/inside.h"
#include "engine/port.h"

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

static uint16_t tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	rte_pktmbuf_free_bulk(frames, n);
	return n;
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

static bool refresh(struct port *p)
{
	return false;
}

static void nothing(struct port *p)
{
}

static const struct port_ops ops = { .rx_burst = rx_burst,
				     .tx_burst = tx_burst,
				     .bell_fd = bell_fd,
				     .bell_drain = bell_drain,
				     .refresh = refresh,
				     .close = nothing };
static struct port port = { .ops = &ops,
			    .name = "test",
			    .mac = { { 2, 0, 0, 0, 0, 1 } },
			    .mtu = 1500,
			    .queues = 1,
			    .socket = -1,
			    .link_up = true };

static void begin(bool early)
{
	struct uroce_options o = { .size = sizeof(o),
				   .lcores = 1,
				   .adaptive = true,
				   .socket_gid = -1,
				   .socket_path = path,
				   .port = port_for_program(&port),
				   .addresses = 1,
				   .address = { { { 0xfd, 7, [15] = 1 }, 64 } },
				   .pool_size = 1024 };
	char why[256];

	port.rings_early = early;
	bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert_geq(bell, 0);
	snprintf(path, sizeof(path), "/tmp/uroce-early-bell-test-%d.sock", getpid());
	control_rig_make();
	uroce_destroy(engine);
	o.lcore_ids[0] = rte_get_main_lcore();
	engine = uroce_create(&o, why, sizeof(why));
	cr_assert_not_null(engine, "%s", why);
	cr_assert_eq(uroce_start(engine), 0);
}

TestSuite(early_bell, .fini = control_rig_close, .timeout = 60);

/* ---- what the lcore does ---- */

static uint64_t sleeps(void)
{
	return __atomic_load_n(&((struct engine *)engine)->lcore[0].stats.sleeps, __ATOMIC_RELAXED);
}

/* Returns when the lcore has drained it. */
static nanotime ring(void)
{
	nanotime drained;

	__atomic_store_n(&drained_at, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&found_at, 0, __ATOMIC_RELAXED);
	cr_assert_eq(write(bell, &(uint64_t){ 1 }, sizeof(uint64_t)), sizeof(uint64_t));
	while ((drained = __atomic_load_n(&drained_at, __ATOMIC_RELAXED)) == 0)
		usleep(100);
	return drained;
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
		while ((found = __atomic_load_n(&found_at, __ATOMIC_ACQUIRE)) == 0)
			usleep(100);
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
