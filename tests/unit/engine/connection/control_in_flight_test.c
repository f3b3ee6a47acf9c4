/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors in replies that nobody has read. The kernel bounds them for all programs of our user
 * together. A program that does not read takes no room from others. A reply that finds no room comes
 * later, and its client goes on.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "../verbs/rig/starved.h"

#define STALL	  0.2 /* s of the engine's own */
#define PIPELINED 8u
#define ROUNDS	  20 /* of another client: the engine has looked at every socket meanwhile, */
#define WATCH	  0.3 /* s: ... and has sent again what it owes */

TestSuite(control_in_flight, .init = control_rig_open, .timeout = 120);

static uint32_t to_refuse; /* replies with descriptors that find no room */
static uint32_t refused, sent; /* those that did not, and those that did */

static bool is_reply_with_descriptors(const struct msghdr *m)
{
	const struct command_reply *r = m->msg_iov[0].iov_base;

	return m->msg_controllen > 0 && m->msg_iov[0].iov_len >= sizeof(*r) &&
	       r->magic == COMMAND_MAGIC;
}

/* The test may say meanwhile that there is room. */
static bool is_to_be_refused(void)
{
	uint32_t n = __atomic_load_n(&to_refuse, __ATOMIC_ACQUIRE);

	while (n > 0)
		if (__atomic_compare_exchange_n(&to_refuse, &n, n - 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			return true;
	return false;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
	if (!is_reply_with_descriptors(m))
		return __real_sendmsg(fd, m, flags);
	if (is_to_be_refused()) {
		__atomic_add_fetch(&refused, 1, __ATOMIC_ACQ_REL);
		errno = ETOOMANYREFS;
		return -1;
	}
	/* Counted when the client has it, at the latest. */
	__atomic_add_fetch(&sent, 1, __ATOMIC_ACQ_REL);
	return __real_sendmsg(fd, m, flags);
}

static uint32_t sent_so_far(void)
{
	return __atomic_load_n(&sent, __ATOMIC_ACQUIRE);
}

/* Commands of a client that reads are answered at once. */
static void expect_others_served(const char *while_what)
{
	struct request_empty q = { 0 };
	struct reply_device r;
	int fd = message_connect(path);
	struct starved starved;
	double longest = 0, end;

	cr_assert_geq(fd, 0);
	starved_open(&starved);
	end = starved_now() + WATCH;
	for (int i = 0; i < ROUNDS || starved_now() < end; i++) {
		double took;

		starved_begin(&starved);
		cr_assert_eq(ask(fd, COMMAND_DEVICE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL),
			     0, "%s", while_what);
		took = starved_command(&starved);
		longest = took > longest ? took : longest;
	}
	starved_close(&starved);
	cr_assert_lt(longest, STALL, "%s: a command took %.3f s", while_what, longest);
	close(fd);
}

static void send_open_context(int fd, uint32_t sequence)
{
	struct request_empty q = { .h = { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_OPEN_CONTEXT,
					  sizeof(q), sequence } };

	cr_assert_eq(send(fd, &q, sizeof(q), MSG_NOSIGNAL), (ssize_t)sizeof(q));
}

/* The next reply; the kernel closes what comes beside it. */
static void take_context(int fd, uint32_t sequence)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct reply_context r;

	cr_assert_eq(poll(&p, 1, ENOUGH_MS), 1, "reply %u does not come", sequence);
	cr_assert_eq(recv(fd, &r, sizeof(r), 0), (ssize_t)sizeof(r), "the client was ended");
	cr_assert_eq(r.h.error, 0, "%s", r.h.why);
	cr_assert_eq(r.h.sequence, sequence);
}

Test(control_in_flight, a_reply_without_room_comes_later)
{
	int fd;

	__atomic_store_n(&to_refuse, 3, __ATOMIC_RELEASE);
	fd = attach();
	cr_expect_eq(__atomic_load_n(&refused, __ATOMIC_ACQUIRE), 3);
	__atomic_store_n(&to_refuse, 3, __ATOMIC_RELEASE);
	open_context(fd);
	cr_expect_eq(__atomic_load_n(&refused, __ATOMIC_ACQUIRE), 6);
	open_context(fd);
	close(fd);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}

Test(control_in_flight, others_are_served_while_a_reply_waits_for_room)
{
	int fd = attach();

	__atomic_store_n(&to_refuse, UINT32_MAX, __ATOMIC_RELEASE);
	send_open_context(fd, 1);
	send_open_context(fd, 2);
	expect_others_served("a reply waits for room");
	__atomic_store_n(&to_refuse, 0, __ATOMIC_RELEASE);
	take_context(fd, 1);
	take_context(fd, 2);
	/* One that is owed a reply may leave. */
	__atomic_store_n(&to_refuse, UINT32_MAX, __ATOMIC_RELEASE);
	send_open_context(fd, 3);
	expect_others_served("a reply waits for room again");
	close(fd);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}

Test(control_in_flight, one_that_does_not_read_has_one_reply_in_flight)
{
	int fd = attach(), other;
	uint32_t before = sent_so_far();

	for (uint32_t i = 1; i <= PIPELINED; i++)
		send_open_context(fd, i);
	for (uint32_t i = 1; i <= PIPELINED; i++) {
		expect_others_served("a program does not read");
		cr_assert_leq(sent_so_far() - before, i, "%u replies in flight",
			      sent_so_far() - before - i + 1);
		take_context(fd, i);
	}
	cr_expect_eq(sent_so_far() - before, PIPELINED);
	/* One that needs descriptors itself, beside one that takes none. */
	send_open_context(fd, PIPELINED + 1);
	send_open_context(fd, PIPELINED + 2);
	other = attach();
	open_context(other);
	close(other);
	close(fd);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}
