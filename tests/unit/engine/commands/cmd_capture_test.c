/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Captures: which users may capture, one at a time, into a file that they cannot truncate; and its
 * contents.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "config/limits.h"
#include "control/control.h"
#include "rig/control_rig.h"
#include "lcore/capture/capture.h"

TestSuite(cmd_capture, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* The reply's errno; the file in *file. */
static int begin_capture(int fd, uint32_t snap, uint32_t ring, int *file)
{
	struct request_capture q = { .snap = snap, .ring = ring };
	struct carrier_descriptors out = { 0 };
	struct reply_capture r;
	int error = ask(fd, COMMAND_CAPTURE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

	*file = out.count > 0 ? out.fd[0] : -1;
	return error;
}

static int capture_is_refused(void)
{
	int fd = message_connect(path), file;

	return fd >= 0 && begin_capture(fd, 64, LIMIT_CAPTURE_RING_MIN, &file) == EPERM && file < 0
		       ? 0
		       : 1;
}

Test(cmd_capture, strangers_capture_nothing)
{
	as_nobody(capture_is_refused);
}

Test(cmd_capture, one_capture_at_a_time)
{
	int first = message_connect(path), second = message_connect(path), file, other;
	struct stat st;

	cr_assert_eq(begin_capture(first, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	cr_assert_eq(fstat(file, &st), 0);
	cr_expect_eq((size_t)st.st_size, capture_octets(1, LIMIT_CAPTURE_RING_MIN));
	cr_expect_neq(ftruncate(file, 0), 0, "an lcore would die of a file that is cut");
	cr_expect_eq(begin_capture(second, 64, LIMIT_CAPTURE_RING_MIN, &other), EBUSY);
	close(file);
	close(first);
	for (int i = 0; i < 1000; i++) { /* the engine is told of its end */
		if (begin_capture(second, 64, LIMIT_CAPTURE_RING_MIN, &other) == 0)
			break;
		usleep(10000);
	}
	cr_expect_geq(other, 0);
	close(other);
	close(second);
	expect_serving();
}

Test(cmd_capture, wrong_captures_are_refused)
{
	static const uint32_t wrong[][2] = {
		{ LIMIT_CAPTURE_SNAP_MIN - 1, LIMIT_CAPTURE_RING_MIN },
		{ LIMIT_CAPTURE_SNAP + 1, LIMIT_CAPTURE_RING_MIN },
		{ 64, LIMIT_CAPTURE_RING_MIN - 1 },
		{ 64, LIMIT_CAPTURE_RING_MIN + 1 },
		{ 64, 2 * LIMIT_CAPTURE_RING_MAX },
		{ 64, 0 },
	};
	int fd = message_connect(path), file;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		cr_expect_eq(begin_capture(fd, wrong[i][0], wrong[i][1], &file), EINVAL, "%zu", i);
		cr_expect_lt(file, 0);
	}
	cr_expect_eq(begin_capture(fd, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	close(file);
	close(fd);
}

/* The engine writes into the file: its holder can neither change its size nor remove its seals. */
Test(cmd_capture, the_file_is_sealed)
{
	const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	int fd = message_connect(path), file;

	cr_assert_eq(begin_capture(fd, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	cr_expect_eq(fcntl(file, F_GET_SEALS) & seals, seals);
	close(file);
	close(fd);
}

static uint32_t connections(void)
{
	struct engine *e = (struct engine *)engine;
	uint32_t n;

	pthread_mutex_lock(&e->control_lock);
	n = e->control->connection_count;
	pthread_mutex_unlock(&e->control_lock);
	return n;
}

/* The end of another connection, which also asked, is not the end of the capture. */
Test(cmd_capture, it_ends_with_its_own_connection)
{
	int first = message_connect(path), second = message_connect(path), file, other;
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;

	cr_assert_eq(begin_capture(first, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	cr_expect_eq(begin_capture(second, 64, LIMIT_CAPTURE_RING_MIN, &other), EBUSY);
	cr_expect_eq(connections(), 2);
	close(second);
	while (connections() != 1 && clock_now() < until)
		usleep(1000);
	cr_assert_eq(connections(), 1, "the engine did not notice the end");
	second = message_connect(path);
	cr_expect_eq(begin_capture(second, 64, LIMIT_CAPTURE_RING_MIN, &other), EBUSY);
	close(file);
	close(first);
	close(second);
}

static void pass_frame(struct lcore *l, void *arg, nanotime now)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(l->engine->pool);
	char *octets;

	*(bool *)arg = m != NULL;
	if (m == NULL)
		return;
	octets = rte_pktmbuf_append(m, 200);
	for (int i = 0; i < 200; i++)
		octets[i] = (char)i;
	capture_frames(l, &m, 1, CAPTURE_RECEIVED);
	rte_pktmbuf_free(m);
}

static void pass(void)
{
	struct engine *e = (struct engine *)engine;
	bool passed = false;

	pthread_mutex_lock(&e->control_lock);
	lcore_call(&e->lcore[0], pass_frame, &passed);
	pthread_mutex_unlock(&e->control_lock);
	cr_assert(passed);
}

/* From the command's reply on, as it was asked for. */
Test(cmd_capture, what_passes_an_lcore_is_in_the_file)
{
	const size_t octets = capture_octets(1, LIMIT_CAPTURE_RING_MIN);
	struct capture_reader reader;
	struct capture_record record;
	uint8_t frame[200];
	int fd = message_connect(path), file;
	void *shared;

	pass();
	cr_assert_eq(begin_capture(fd, 100, LIMIT_CAPTURE_RING_MIN, &file), 0);
	shared = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	cr_assert_neq(shared, MAP_FAILED);
	capture_reader_init(&reader, shared, 0, LIMIT_CAPTURE_RING_MIN);
	cr_expect_not(capture_reader_peek(&reader, &record), "it is of before");
	pass();
	cr_assert(capture_reader_peek(&reader, &record));
	cr_expect_eq(record.whole, 200);
	cr_expect_eq(record.length, 100);
	cr_expect_eq(record.way, CAPTURE_RECEIVED);
	capture_reader_take(&reader, &record, frame, sizeof(frame));
	cr_expect_eq(frame[99], 99);
	cr_expect_not(capture_reader_peek(&reader, &record));
	munmap(shared, octets);
	close(file);
	close(fd);
}

static void open_alone(void)
{
	snprintf(path, sizeof(path), "/tmp/uroce-capture-test-%d.sock", getpid());
	control_rig_make();
}

/* Nobody polls but the test. */
TestSuite(cmd_capture_polled, .init = open_alone, .fini = control_rig_close, .timeout = 60);

/* An lcore that has seen the capture writes into its file: the file goes when the lcore is done. */
Test(cmd_capture_polled, the_file_stays_until_lcores_have_left_it)
{
	struct engine *e = (struct engine *)engine;
	struct lcore *l = &e->lcore[0];
	nanotime until = clock_now() + ENOUGH_MS * TIME_MS;
	int fd = message_connect(path), file;
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->pool);
	struct capture *c;

	cr_assert_not_null(m);
	cr_assert_not_null(rte_pktmbuf_append(m, 64));
	cr_assert_eq(begin_capture(fd, 64, LIMIT_CAPTURE_RING_MIN, &file), 0);
	close(file);
	cr_assert(lcore_sit(l));
	c = __atomic_load_n(&e->capture, __ATOMIC_ACQUIRE);
	cr_assert_not_null(c);
	close(fd);
	while (rte_ring_empty(l->messages) && clock_now() < until)
		usleep(100);
	cr_assert_not(rte_ring_empty(l->messages), "nobody waits for the lcore");
	cr_expect_null(__atomic_load_n(&e->capture, __ATOMIC_ACQUIRE));
	capture_copy(c, l, &m, 1, CAPTURE_SENT);
	messages_poll(l, clock_now());
	lcore_rise(l);
	rte_pktmbuf_free(m);
	expect_serving();
}
