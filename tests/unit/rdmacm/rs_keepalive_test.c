/* SPDX-License-Identifier: BSD-3-Clause */
/* The timer of keep-alives. tests/end_to_end/faults.py shows what they are good for. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rs_rig.h"

TestSuite(rs_keepalive, .init = rs_pair_open, .fini = rs_pair_close, .timeout = 60);

/* How many timers of this process have an interval of so many seconds. */
static int timers(int seconds)
{
	DIR *folder = opendir("/proc/self/fdinfo");
	char path[300], line[100], expected[40];
	const struct dirent *entry;
	int found = 0;

	snprintf(expected, sizeof(expected), "it_interval: (%d, 0)\n", seconds);
	while ((entry = readdir(folder)) != NULL) {
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/fdinfo/%s", entry->d_name);
		f = fopen(path, "r");
		while (f != NULL && fgets(line, sizeof(line), f) != NULL)
			found += strcmp(line, expected) == 0;
		if (f != NULL)
			fclose(f);
	}
	closedir(folder);
	return found;
}

Test(rs_keepalive, the_timer_runs_while_there_is_a_connection)
{
	struct sockaddr_in a;
	int listener = rs_listening(&a), called;

	cr_assert_eq(rs_set(s, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
	cr_assert_eq(rs_set(s, IPPROTO_TCP, TCP_KEEPIDLE, 4321), 0);
	cr_assert_eq(rs_set(listener, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
	cr_expect_eq(timers(4321) + timers(7200), 0);
	called = rs_connect_stream(listener, &a);
	cr_expect_eq(timers(4321), 1, "of the calling end");
	cr_expect_eq(timers(7200), 1, "an accepted socket has the listener's options");
	cr_expect_eq(rs_ask(called, SOL_SOCKET, SO_KEEPALIVE), 1);
	cr_expect_eq(rs_set(called, IPPROTO_TCP, TCP_KEEPIDLE, 4321), 0);
	cr_expect_eq(timers(4321), 2);
	cr_expect_eq(rs_set(s, SOL_SOCKET, SO_KEEPALIVE, 0), 0);
	cr_expect_eq(timers(4321), 1);
	cr_expect_eq(rclose(called), 0);
	cr_expect_eq(timers(4321), 0);
	cr_expect_eq(rclose(listener), 0);
}

Test(rs_keepalive, no_descriptor_is_left_for_the_timer)
{
	struct rlimit before, none;
	int lowest = dup(0);

	cr_assert_geq(lowest, 0);
	close(lowest);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){ (rlim_t)lowest, before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	cr_expect_eq(rs_set(s, SOL_SOCKET, SO_KEEPALIVE, 1), ENOBUFS);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
	cr_expect_eq(rs_ask(s, SOL_SOCKET, SO_KEEPALIVE), 0);
	cr_expect_eq(rs_set(s, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
}

struct setter {
	int socket;
	bool begun;
};

static void *set_until_it_is_closed(void *argument)
{
	struct setter *of = argument;

	while (rs_set(of->socket, SOL_SOCKET, SO_KEEPALIVE, 1) == 0)
		__atomic_store_n(&of->begun, true, __ATOMIC_RELEASE);
	return NULL;
}

Test(rs_keepalive, an_option_that_is_set_beside_rclose_leaves_no_timer)
{
	int before = timers(0);

	for (int i = 0; i < 200; i++) {
		struct setter of = { .socket = rsocket(AF_INET, SOCK_STREAM, 0) };
		pthread_t thread;

		cr_assert_geq(of.socket, 0, "%m");
		cr_assert_eq(pthread_create(&thread, NULL, set_until_it_is_closed, &of), 0);
		while (!__atomic_load_n(&of.begun, __ATOMIC_ACQUIRE))
			sched_yield();
		cr_expect_eq(rclose(of.socket), 0);
		pthread_join(thread, NULL);
	}
	cr_expect_eq(timers(0), before);
}
