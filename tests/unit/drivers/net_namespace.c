/* SPDX-License-Identifier: BSD-3-Clause */
#include "net_namespace.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_MS 10000

void net_namespace_enter(void)
{
	if (unshare(CLONE_NEWNET) == 0)
		return;
	fprintf(stderr, "skipped: a network namespace of its own needs root: %s\n",
		strerror(errno));
	cr_skip_test("no network namespace");
}

void ip(const char *format, ...)
{
	char command[256] = "ip ";
	va_list args;

	va_start(args, format);
	vsnprintf(command + 3, sizeof(command) - 3, format, args);
	va_end(args);
	cr_assert_eq(system(command), 0, "%s", command);
}

uint32_t index_of(const char *name)
{
	uint32_t index = if_nametoindex(name);

	cr_assert_neq(index, 0, "no interface %s", name);
	return index;
}

void await(bool (*condition)(int fd, uint32_t ifindex), uint32_t ifindex, bool wanted,
	   const char *what)
{
	const struct timespec nap = { .tv_nsec = 10000000 };

	for (int ms = 0; condition(-1, ifindex) != wanted; ms += 10) {
		cr_assert_lt(ms, PATIENCE_MS, "not within %d s: %s", PATIENCE_MS / 1000, what);
		nanosleep(&nap, NULL);
	}
}
