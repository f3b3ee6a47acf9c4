/* SPDX-License-Identifier: BSD-3-Clause */
#include "stat_cycles.h"

#include <errno.h>
#include <time.h>

#include "cycles.h"
#include "locate.h"

/*
 * One round in this many is measured: few, so that rates hardly change; odd, so that no rhythm is
 * met.
 */
#define EVERY 7

static int ask(int fd, enum cycles_action action, uint32_t milliseconds, struct reply_cycles *reply,
	       char *why, size_t why_size)
{
	struct request_cycles q = { .h = { .command = COMMAND_CYCLES, .length = sizeof(q) },
				    .action = action,
				    .every = EVERY,
				    .milliseconds = milliseconds };

	return engine_call(fd, &q.h, &reply->h, sizeof(*reply), why, why_size);
}

static void print(const struct reply_cycles *r, double seconds, bool json)
{
	struct cycles_table t = { .columns = 1, .name = { "a packet" }, .of = { r } };
	struct json j = { .out = stdout };
	char title[64];

	if (json) {
		cycles_json(&j, NULL, r);
		return;
	}
	snprintf(title, sizeof(title), "cycles of all lcores, %g s", seconds);
	t.title = title;
	cycles_print(stdout, &t);
}

int stat_cycles(int fd, double seconds, bool json, char *why, size_t why_size)
{
	struct timespec pause = { .tv_sec = (time_t)seconds };
	struct reply_cycles reply;
	int error = ask(fd, CYCLES_START, (uint32_t)(seconds * 1000), &reply, why, why_size);

	if (error != 0)
		return error;
	pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
	while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
		;
	error = ask(fd, CYCLES_READ, 0, &reply, why, why_size);
	if (error == 0)
		print(&reply, seconds, json);
	return error;
}
