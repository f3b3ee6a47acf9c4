/* SPDX-License-Identifier: BSD-3-Clause */
#include "waiting.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"

#define LOOKS 20 /* 10 ms apart: if it is in the same wait each time, it does not return */

static void *run(void *argument)
{
	struct waiting *w = argument;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	w->result = w->call(w->argument);
	w->error = errno;
	return NULL;
}

/* Number and arguments of the call that the thread sleeps in; none if it runs. */
static void look(const struct waiting *w, char *text, int size)
{
	pid_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
	char path[64];
	FILE *f;

	text[0] = '\0';
	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = tid != 0 ? fopen(path, "r") : NULL;
	if (f == NULL)
		return;
	if (fgets(text, size, f) == NULL)
		text[0] = '\0';
	fclose(f);
}

static bool waits(const char *text)
{
	long number = -1;

	return sscanf(text, "%ld", &number) == 1 &&
	       (number == SYS_recvfrom || number == SYS_recvmsg || number == SYS_poll ||
		number == SYS_ppoll || number == SYS_futex);
}

void waiting_start(struct waiting *w, const char *what, int (*call)(void *argument), void *argument)
{
	*w = (struct waiting){ .what = what, .call = call, .argument = argument };
	cr_assert_eq(pthread_create(&w->thread, NULL, run, w), 0);
}

bool waiting_sleeps(struct waiting *w)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	char before[256] = "", now[256];
	int same = 0;

	for (int tries = 0; same < LOOKS; tries++) {
		cr_assert_lt(tries, 100 * WAIT_SECONDS, "%s does not block: %s", w->what, now);
		if (pthread_tryjoin_np(w->thread, NULL) == 0)
			return false;
		look(w, now, sizeof(now));
		same = waits(now) && strcmp(now, before) == 0 ? same + 1 : 0;
		strcpy(before, now);
		nanosleep(&nap, NULL);
	}
	return true;
}

void waiting_begin(struct waiting *w, const char *what, int (*call)(void *argument), void *argument)
{
	waiting_start(w, what, call, argument);
	cr_assert(waiting_sleeps(w), "%s does not block: it returned %d", what, w->result);
}

void waiting_end(struct waiting *w)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_SECONDS;
	cr_assert_eq(pthread_timedjoin_np(w->thread, NULL, &end), 0, "%s does not return", w->what);
}
