/* SPDX-License-Identifier: BSD-3-Clause */
#include "mortal_engine.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char folder[] = "/tmp/uroce-mortal-XXXXXX";
static char path[64];
static pid_t engine;

void mortal_engine_start(void)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	struct stat st;

	char number[16];

	engine = fork();
	if (engine == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		freopen("/dev/null", "w", stdout);
		execl(getenv("UROCED"), "uroced", "--no-huge", "-m", "32", "--", "--socket", path,
		      "--ip", "127.0.0.1/8", NULL);
		_exit(127);
	}
	snprintf(number, sizeof(number), "%d", (int)engine);
	setenv("UROCED_PID", number, 1);
	for (int tries = 0; stat(path, &st) != 0; tries++) {
		cr_assert_lt(tries, 1500, "the engine does not serve %s", path);
		cr_assert_eq(waitpid(engine, NULL, WNOHANG), 0, "the engine ends at once");
		nanosleep(&nap, NULL);
	}
}

void mortal_engine_kill(void)
{
	kill(engine, SIGKILL);
	waitpid(engine, NULL, 0);
	engine = 0;
	unlink(path);
}

bool mortal_engine_ends(int signal, int milliseconds)
{
	const struct timespec nap = { .tv_nsec = 1000000 };

	kill(engine, signal);
	for (int i = 0; i < milliseconds; i++) {
		if (waitpid(engine, NULL, WNOHANG) == engine) {
			engine = 0;
			unlink(path);
			return true;
		}
		nanosleep(&nap, NULL);
	}
	return false;
}

void mortal_engine_begin(void)
{
	cr_assert_not_null(getenv("UROCED"), "UROCED is not set");
	cr_assert_not_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/s", folder);
	setenv("UROCE_SOCKET", path, 1);
	mortal_engine_start();
}

void mortal_engine_end(void)
{
	char command[128];

	if (engine > 0)
		mortal_engine_kill();
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	cr_expect_eq(system(command), 0);
}
