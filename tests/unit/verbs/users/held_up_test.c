/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program passes descriptors to the engine whose close(2) hangs (hostile H-119). Meanwhile the pair of
 * another program works. Then the engine ends when it is told to, or is killed.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../engine/rig/holding.h"
#include "base/bits.h"
#include "client/message.h"
#include "rig/endpoint.h"
#include "rig/mortal_engine.h"
#include "rig/starved.h"

#define TIMES  4 /* as many as a user may have under way */
#define GAP    0.1 /* s */
#define END_MS 5000
#define ROUNDS 2000
#define ASKED  200 /* commands */

static const struct {
	const char *name;
	int (*make)(void);
} kinds[] = {
	{ "a socket that lingers", lingering_socket },
	{ "a file whose file system is mute", mute_file },
	{ "4 GiB of memory", filled_memory },
};

TestSuite(held_up, .init = mortal_engine_begin, .fini = mortal_engine_end, .timeout = 120);

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- the attack ---- */

static void pass_and_wait(int (*make)(void), int ready)
{
	int passed = make();

	for (int i = 0; i < TIMES && passed >= 0; i++)
		send_with_descriptor(message_connect(getenv("UROCE_SOCKET")), COMMAND_HELLO,
				     sizeof(struct request_hello), passed, 1);
	if (passed >= 0 && make != mute_file) /* it holds us up as well */
		close(passed);
	if (write(ready, passed < 0 ? "-" : "+", 1) == 1)
		for (;;)
			pause();
	_exit(0);
}

/* Skips the test where there is no such descriptor. */
static pid_t attack(size_t kind)
{
	char octet = '?';
	int ready[2];
	pid_t pid;

	daemons_share();
	cr_assert_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pass_and_wait(kinds[kind].make, ready[1]);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &octet, 1), 1, "the attacker has died");
	close(ready[0]);
	if (octet == '-')
		cr_skip_test("%s cannot be made here", kinds[kind].name);
	return pid;
}

static void end_attack(pid_t attacker)
{
	daemons_end();
	kill(attacker, SIGKILL);
	waitpid(attacker, NULL, 0);
}

/* ---- the pair beside it ---- */

static void expect_no_gap(struct endpoint *e, const char *name, const char *when)
{
	double gap = 0, command = 0;
	struct starved s;

	starved_open(&s);
	for (uint64_t n = 1; n <= ROUNDS; n++) {
		double took = starved_write(&s, e, n);

		gap = MAX_OF(gap, took);
	}
	for (uint32_t n = 0; n < ASKED; n++) {
		double took = starved_commands(&s, e->context);

		command = MAX_OF(command, took);
	}
	starved_close(&s);
	cr_log_info("%s%s: gap %.3f s, command %.3f s", name, when, gap, command);
	cr_expect_lt(gap, GAP, "%s%s: %.3f s", name, when, gap);
	cr_expect_lt(command, ENDPOINT_COMMAND_S, "%s%s: a command of %.3f s", name, when, command);
}

static void expect_no_gap_beside(size_t kind)
{
	struct endpoint e;
	pid_t attacker;

	endpoint_open(&e);
	attacker = attack(kind);
	expect_no_gap(&e, kinds[kind].name, "");
	end_attack(attacker);
	expect_no_gap(&e, kinds[kind].name, ", then dead");
	endpoint_close(&e);
}

/* hostile H-119: any descriptors. */
Test(held_up, data_goes_on_beside_sockets_that_linger)
{
	expect_no_gap_beside(0);
}

/* hostile H-119: any descriptors. */
Test(held_up, data_goes_on_beside_files_of_a_mute_file_system)
{
	expect_no_gap_beside(1);
}

/* hostile H-119: any descriptors. */
Test(held_up, data_goes_on_beside_memory_that_takes_long_to_free)
{
	expect_no_gap_beside(2);
}

/* ---- the end of the engine ---- */

static void expect_it_ends(size_t kind, int signal)
{
	pid_t attacker = attack(kind);
	double begin = now_ms();

	cr_expect(mortal_engine_ends(signal, END_MS), "%s: no end after signal %d within %d ms",
		  kinds[kind].name, signal, END_MS);
	cr_log_info("%s, signal %d: %.0f ms", kinds[kind].name, signal, now_ms() - begin);
	end_attack(attacker);
	mortal_engine_start(); /* its socket is free */
	mortal_engine_kill();
}

/* hostile H-119: any descriptors. */
Test(held_up, sigterm_ends_the_engine_beside_sockets_that_linger)
{
	expect_it_ends(0, SIGTERM);
}

/* hostile H-119: any descriptors. */
Test(held_up, sigkill_ends_the_engine_beside_sockets_that_linger)
{
	expect_it_ends(0, SIGKILL);
}

/* hostile H-119: any descriptors. */
Test(held_up, sigterm_ends_the_engine_beside_files_of_a_mute_file_system)
{
	expect_it_ends(1, SIGTERM);
}

/* hostile H-119: any descriptors. */
Test(held_up, sigkill_ends_the_engine_beside_files_of_a_mute_file_system)
{
	expect_it_ends(1, SIGKILL);
}
