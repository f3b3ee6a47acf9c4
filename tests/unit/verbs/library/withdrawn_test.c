/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of destroyed objects leave their socket. The engine's end is this test's. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "verbs/withdrawn.h"

#define FIRST_GONE 100u /* cookies from here on are of destroyed objects */

static struct withdrawn w;
static int ours, engines;

/* Another thread receives so many messages while the first one is looked at. */
static uint32_t stolen;

static void begin(void)
{
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ours = pair[0];
	engines = pair[1];
	withdrawn_init(&w);
}

static void end(void)
{
	close(ours);
	close(engines);
}

/* A call that waits for a message would wait for ever. */
TestSuite(withdrawn, .init = begin, .fini = end, .timeout = 60);

static void put(uint64_t cookie)
{
	struct channel_message m = { .cookie = cookie };

	cr_assert_eq(send(engines, &m, sizeof(m), 0), sizeof(m));
}

static bool readable(void)
{
	return poll(&(struct pollfd){ ours, POLLIN, 0 }, 1, 0) == 1;
}

static uint64_t take(void)
{
	struct channel_message m;

	cr_assert_eq(recv(ours, &m, sizeof(m), MSG_DONTWAIT), sizeof(m), "no message is left");
	return m.cookie;
}

static bool is_of_nothing(const void *message)
{
	bool is = ((const struct channel_message *)message)->cookie >= FIRST_GONE;

	cr_expect(withdrawn_may_wait(&w), "a thread that takes what is looked at must look again");
	for (; stolen > 0; stolen--)
		take();
	return is;
}

static void withdraw(void)
{
	withdrawn_remove(&w, ours, sizeof(struct channel_message), is_of_nothing);
}

/* Another one waits for the thread that was faster: this one, once. */
static void expect_kept(uint64_t cookie)
{
	struct channel_message m = { 0 };

	cr_expect(withdrawn_may_wait(&w));
	cr_assert(withdrawn_kept(&w, &m, sizeof(m)), "the message is lost");
	cr_expect_eq(m.cookie, cookie);
	cr_expect_not(withdrawn_kept(&w, &m, sizeof(m)), "it comes twice");
}

Test(withdrawn, an_empty_socket_has_none)
{
	struct channel_message m;

	withdraw();
	cr_expect_not(withdrawn_may_wait(&w));
	cr_expect_not(withdrawn_kept(&w, &m, sizeof(m)));
}

Test(withdrawn, all_at_the_head_leave)
{
	for (uint32_t i = 0; i < 5; i++)
		put(FIRST_GONE + i);
	withdraw();
	cr_expect_not(readable());
	cr_expect_not(withdrawn_may_wait(&w));
}

/* As in the figure of withdrawn.h. */
Test(withdrawn, one_behind_another_leaves_after_that)
{
	put(1);
	put(FIRST_GONE);
	put(2);
	withdraw();
	cr_assert(withdrawn_may_wait(&w));
	cr_expect_eq(take(), 1, "messages of objects that live keep their order");
	withdraw();
	cr_expect(withdrawn_may_wait(&w), "the next one may be behind the head, too");
	cr_expect_eq(take(), 2);
	withdraw();
	cr_expect_not(withdrawn_may_wait(&w));
	cr_expect_not(readable());
}

/* A message of async_fd has another size. */
static bool is_of_no_event(const void *message)
{
	return ((const struct async_message *)message)->cookie >= FIRST_GONE;
}

Test(withdrawn, messages_are_read_whole)
{
	const struct async_message sent[] = { { 7, 1, FIRST_GONE }, { 8, 2, 3 } };
	struct async_message m;

	for (uint32_t i = 0; i < ARRAY_SIZE(sent); i++)
		cr_assert_eq(send(engines, &sent[i], sizeof(m), 0), sizeof(m));
	withdrawn_remove(&w, ours, sizeof(m), is_of_no_event);
	cr_assert_eq(recv(ours, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	cr_expect_arr_eq(&m, &sent[1], sizeof(m));
}

/* ---- another thread is faster ---- */

Test(withdrawn, what_was_received_instead_is_kept)
{
	put(FIRST_GONE);
	put(1);
	put(2);
	stolen = 1;
	withdraw();
	expect_kept(1);
	cr_expect_eq(take(), 2);
}

Test(withdrawn, what_is_of_nothing_is_not_kept)
{
	put(FIRST_GONE);
	put(FIRST_GONE + 1);
	put(FIRST_GONE + 2);
	put(1);
	stolen = 1;
	withdraw();
	cr_expect(withdrawn_may_wait(&w));
	cr_expect_eq(take(), 1);
}

Test(withdrawn, the_other_thread_may_have_taken_all)
{
	struct channel_message m;

	put(FIRST_GONE);
	stolen = 1;
	withdraw();
	cr_expect_not(withdrawn_may_wait(&w));
	cr_expect_not(withdrawn_kept(&w, &m, sizeof(m)));
}

/* There is room for one. The thread that takes it removes the others. */
Test(withdrawn, nothing_replaces_what_is_kept)
{
	put(FIRST_GONE);
	put(1);
	put(FIRST_GONE + 1);
	put(2);
	stolen = 1;
	withdraw();
	stolen = 1;
	withdraw();
	stolen = 0;
	expect_kept(1);
	withdraw();
	cr_expect_eq(take(), 2);
}

/* ---- a thread that is cancelled ---- */

static void *remove_although_cancelled(void *unused)
{
	int state;

	(void)unused;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	pthread_cancel(pthread_self());
	withdraw();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	return &w;
}

Test(withdrawn, a_thread_that_is_cancelled_keeps_no_lock)
{
	pthread_t thread;
	void *result;

	put(FIRST_GONE);
	cr_assert_eq(pthread_create(&thread, NULL, remove_although_cancelled, NULL), 0);
	cr_assert_eq(pthread_join(thread, &result), 0);
	cr_expect_eq(result, &w, "it ended in the middle");
	cr_assert_eq(pthread_mutex_trylock(&w.lock), 0);
	pthread_mutex_unlock(&w.lock);
	cr_expect_not(readable());
}
