/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine cannot accept a connection: it has no descriptor or no memory for it. The connection
 * waits, the engine does not try again without end, and the programs that it has go on.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "engine/inside.h"
#include "rig/control_rig.h"

#define WATCH_MS 300
#define EACH_MS \
	5 /* no tick is shorter; without a pause there are hundreds of tries a millisecond */

static int why_not; /* atomic: the errno of accept4(); 0: it accepts */
static uint32_t tries; /* atomic: those that failed */

int __real_accept4(int fd, struct sockaddr *a, socklen_t *length, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *length, int flags);

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *length, int flags)
{
	int error = __atomic_load_n(&why_not, __ATOMIC_ACQUIRE);

	if (error == 0)
		return __real_accept4(fd, a, length, flags);
	__atomic_add_fetch(&tries, 1, __ATOMIC_ACQ_REL);
	errno = error;
	return -1;
}

static void refuse(int error)
{
	__atomic_store_n(&tries, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&why_not, error, __ATOMIC_RELEASE);
}

static uint32_t count(void)
{
	return __atomic_load_n(&tries, __ATOMIC_ACQUIRE);
}

TestSuite(control_accept, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

/* A client that waits is served once the engine can accept it. */
static void expect_hello(int fd)
{
	struct request_hello q = { .pid = (uint32_t)getpid(), .program = "control_test" };
	struct carrier_descriptors out = { 0 };
	struct reply_hello r;

	message_prove(q.proof);
	cr_expect_eq(ask(fd, COMMAND_HELLO, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out), 0);
	for (uint32_t i = 0; i < out.count; i++)
		close(out.fd[i]);
}

static void waits_while(int error, int served)
{
	nanotime begin = clock_now(), end, until = begin + ENOUGH_MS * TIME_MS;
	uint32_t most, pd, context = open_context(served);
	int fd;

	refuse(error);
	fd = message_connect(path);
	cr_assert_geq(fd, 0);
	while (count() == 0)
		cr_assert_lt(clock_now(), until, "the engine does not see the connection");
	for (end = clock_now() + WATCH_MS * TIME_MS; clock_now() < end;) {
		cr_assert_eq(ask_handle(served, COMMAND_ALLOC_PD, context, &pd), 0);
		cr_assert_eq(ask_handle(served, COMMAND_DEALLOC_PD, pd, NULL), 0);
	}
	most = (uint32_t)((clock_now() - begin) / (EACH_MS * TIME_MS));
	cr_expect_lt(count(), most, "%u tries after %s", count(), strerror(error));
	while (count() < 2)
		cr_assert_lt(clock_now(), until, "the engine does not try again");
	refuse(0);
	expect_hello(fd);
	close(fd);
}

/* hostile H-122: all descriptors that can be had. */
Test(control_accept, a_connection_waits_for_a_descriptor)
{
	int served = attach();

	waits_while(EMFILE, served);
	waits_while(ENFILE, served);
	close(served);
	expect_serving();
}

Test(control_accept, a_connection_waits_for_memory)
{
	int served = attach();

	waits_while(ENOMEM, served);
	waits_while(ENOBUFS, served);
	close(served);
	expect_serving();
}
