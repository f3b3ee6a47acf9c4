/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands in the arena: the program's side, with a thread that stands for the engine. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "client/slots.h"

TestSuite(slots, .timeout = 60);

static struct command_slots shared;
static struct slots s;
static uint32_t is_killed; /* atomic */

static bool ended(void *argument)
{
	cr_expect_eq(argument, (void *)&s);
	return __atomic_load_n(&is_killed, __ATOMIC_RELAXED) != 0;
}

static void begin(void)
{
	s = (struct slots){
		.shared = &shared, .bell = eventfd(0, EFD_CLOEXEC), .ended = ended, .argument = &s
	};
	cr_assert_geq(s.bell, 0);
}

static void wake(struct command_slot *slot)
{
	syscall(SYS_futex, &slot->state, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static int put(uint32_t number, enum slot_state state)
{
	struct request_handle q = { .h = { .sequence = number, .length = sizeof(q) } };

	return slots_put(&s, &q.h, sizeof(q), state);
}

/* ---- the engine ---- */

static uint32_t executed; /* by the thread: requests 0, 1, 2 ... */

static void execute(struct command_slot *slot)
{
	struct request_handle q = { 0 };
	struct reply_handle r = { 0 };

	cr_assert_eq(slot_take(slot, &q), sizeof(q));
	cr_expect_eq(q.h.sequence, executed, "in order");
	r.handle = 1000 + executed++;
	if (slot_answer(slot, &r, sizeof(r)))
		wake(slot);
}

static void await_bell(void)
{
	uint64_t rung;

	cr_assert_eq(read(s.bell, &rung, sizeof(rung)), (ssize_t)sizeof(rung));
}

static void *serve(void *last)
{
	uint32_t most = (uint32_t)(uintptr_t)last;

	while (executed < most) {
		struct command_slot *slot = &shared.slot[executed % LIMIT_COMMAND_SLOTS];

		if (slot_has_request(slot))
			execute(slot);
		else
			await_bell();
	}
	return NULL;
}

/* ---- the program ---- */

Test(slots, each_command_gets_its_reply)
{
	const uint32_t rounds = 100;
	pthread_t engine;

	begin();
	pthread_create(&engine, NULL, serve, (void *)(uintptr_t)rounds);
	for (uint32_t i = 0; i < rounds; i++) {
		struct reply_handle r;

		if (i % 3 != 2) {
			cr_assert_eq(put(i, SLOT_POSTED), 0);
			continue;
		}
		cr_assert_eq(put(i, SLOT_AWAITED), 0);
		cr_assert_eq(slots_receive(&s, &r.h, sizeof(r)), (ssize_t)sizeof(r));
		cr_expect_eq(r.handle, 1000 + i);
	}
	cr_expect_eq(slots_drain(&s), 0);
	cr_expect_eq(executed, rounds);
	pthread_join(engine, NULL);
}

static void *serve_once_full(void *last)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	/* the program wants the first slot again */
	while (slot_state(&shared.slot[0]) != SLOT_AWAITED)
		nanosleep(&nap, NULL);
	return serve(last);
}

Test(slots, a_program_that_posts_faster_than_the_engine_waits)
{
	pthread_t engine;

	begin();
	pthread_create(&engine, NULL, serve_once_full,
		       (void *)(uintptr_t)(LIMIT_COMMAND_SLOTS + 1));
	for (uint32_t i = 0; i <= LIMIT_COMMAND_SLOTS; i++)
		cr_assert_eq(put(i, SLOT_POSTED), 0);
	cr_expect_eq(slots_drain(&s), 0);
	pthread_join(engine, NULL);
	cr_expect_eq(executed, LIMIT_COMMAND_SLOTS + 1);
}

static void *end_connection(void *slot)
{
	await_bell();
	if (slot_finish(slot, SLOT_ENDED))
		wake(slot);
	return NULL;
}

Test(slots, the_engine_ends_the_connection)
{
	struct reply_handle r;
	pthread_t engine;

	begin();
	pthread_create(&engine, NULL, end_connection, &shared.slot[0]);
	cr_assert_eq(put(0, SLOT_AWAITED), 0);
	cr_expect_eq(slots_receive(&s, &r.h, sizeof(r)), -ENODEV);
	pthread_join(engine, NULL);
}

static void *die(void *unused)
{
	await_bell();
	__atomic_store_n(&is_killed, 1, __ATOMIC_RELAXED);
	return unused;
}

Test(slots, an_engine_that_was_killed_wakes_nobody)
{
	struct reply_handle r;
	pthread_t engine;

	begin();
	pthread_create(&engine, NULL, die, NULL);
	cr_assert_eq(put(0, SLOT_AWAITED), 0);
	cr_expect_eq(slots_receive(&s, &r.h, sizeof(r)), -ENODEV);
	pthread_join(engine, NULL);
	for (uint32_t i = 1; i < LIMIT_COMMAND_SLOTS; i++)
		cr_expect_eq(put(i, SLOT_POSTED), 0, "there is room");
	cr_expect_eq(put(0, SLOT_POSTED), ENODEV, "the first one was never executed");
}

Test(slots, a_reply_that_lies_about_its_length)
{
	uint8_t reply[64 + 8];

	begin();
	cr_assert_eq(put(0, SLOT_AWAITED), 0);
	memset(shared.slot[0].contents, 7, LIMIT_COMMAND_BYTES);
	__atomic_store_n(&shared.slot[0].octets, UINT32_MAX, __ATOMIC_RELAXED);
	slot_finish(&shared.slot[0], SLOT_REPLY);
	memset(reply, 0, sizeof(reply));
	cr_expect_eq(slots_receive(&s, (void *)reply, 64), (ssize_t)LIMIT_COMMAND_BYTES);
	cr_expect_eq(reply[63], 7);
	cr_expect_eq(reply[64], 0, "no more than there is room for");
}

Test(slots, a_reply_that_comes_over_the_socket)
{
	struct reply_handle r;

	begin();
	cr_assert_eq(put(0, SLOT_AWAITED), 0);
	slot_finish(&shared.slot[0], SLOT_ON_SOCKET);
	cr_expect_eq(slots_receive(&s, &r.h, sizeof(r)), -EAGAIN);
}
