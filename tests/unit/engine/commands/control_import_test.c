/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Import, requested by programs that have no right to it: guessed handles, descriptors that are not
 * tokens, tokens whose context ends meanwhile.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/export_rig.h"

#define GUESSES 70u
#define SEALS	(F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

TestSuite(control_import, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

/* ---- programs without a token: hostile H-117 ---- */

/* hostile H-117: handles of others. */
Test(control_import, handles_of_others_are_unknown)
{
	int a = attach(), b = attach(), token;
	uint32_t context = open_with_token(a, &token), mine, pd, dm, mr, made;
	struct reply_statistics before;

	cr_assert_eq(ask_handle(a, COMMAND_ALLOC_PD, context, &pd), 0);
	cr_assert_eq(alloc_dm(a, context, 4096, 0, &dm), 0);
	cr_assert_eq(reg_mr(a, pd, ACCESS_LOCAL_WRITE, 64, &mr), 0);
	mine = open_context(b);
	statistics(&before);
	for (uint32_t guess = 0; guess < 2 * GUESSES; guess++) {
		uint32_t h = guess < GUESSES ? guess : MR_IMPORT_MARK | (guess - GUESSES);
		struct request_reg_dm_mr r = { .pd = h, .dm = h, .length = 4, .access = DM_ACCESS };

		cr_expect_eq(ask_handle(b, COMMAND_FREE_DM, h, NULL), EINVAL);
		cr_expect_eq(ask_handle(b, COMMAND_UNIMPORT_MR, h, NULL), EINVAL);
		cr_expect_eq(reg_dm_mr(b, r, &made), EINVAL);
		for (enum command c = COMMAND_IMPORT_PD; c <= COMMAND_IMPORT_DM; c++) {
			if (c == COMMAND_UNIMPORT_MR)
				continue;
			cr_expect_eq(import(b, c, mine, h, &made), EINVAL);
			cr_expect_eq(import(b, c, h, pd, &made), EINVAL);
		}
		if (h != mine)
			cr_expect_eq(alloc_dm(b, h, 4, 0, &made), EINVAL);
	}
	expect_objects(&before, "guessing");
	close(token);
	close(a);
	close(b);
	expect_counts(0, 0, 0, 0);
}

Test(control_import, a_token_opens_one_context_only)
{
	int a = attach(), b = attach(), token, other;
	uint32_t context = open_with_token(a, &token), second = open_with_token(a, &other);
	uint32_t imported, pd, pd_2, made, mr;

	cr_assert_eq(ask_handle(a, COMMAND_ALLOC_PD, context, &pd), 0);
	cr_assert_eq(ask_handle(a, COMMAND_ALLOC_PD, second, &pd_2), 0);
	cr_assert_eq(reg_mr(a, pd_2, ACCESS_LOCAL_WRITE, 64, &mr), 0);
	cr_assert_eq(import_context(b, token, &imported), 0);
	cr_expect_eq(import(b, COMMAND_IMPORT_PD, imported, pd_2, &made), EINVAL);
	cr_assert_eq(import(b, COMMAND_IMPORT_PD, imported, pd, &made), 0);
	cr_expect_eq(import(b, COMMAND_IMPORT_MR, made, mr, &made), EINVAL);
	cr_assert_eq(import_context(b, other, &imported), 0);
	cr_assert_eq(import(b, COMMAND_IMPORT_PD, imported, pd_2, &made), 0);
	cr_expect_eq(import(b, COMMAND_IMPORT_MR, made, mr, &made), 0);
	cr_expect_eq(ask_handle(b, COMMAND_UNIMPORT_MR, made, NULL), 0);
	cr_expect_eq(ask_handle(b, COMMAND_UNIMPORT_MR, made, NULL), EINVAL, "it is gone");
	close(token);
	close(other);
	close(b);
	close(a);
	expect_counts(0, 0, 0, 0);
}

int __real_memfd_create(const char *name, unsigned int flags);
int __wrap_memfd_create(const char *name, unsigned int flags);

static bool input_closes; /* before the next token */

/* As if another thread of the program closed its standard input just then: the file gets descriptor 0. */
int __wrap_memfd_create(const char *name, unsigned int flags)
{
	if (input_closes && strcmp(name, "uroce-context") == 0)
		close(STDIN_FILENO);
	return __real_memfd_create(name, flags);
}

Test(control_import, a_token_may_be_descriptor_0)
{
	int fd = attach(), token;
	uint32_t context, imported;

	cr_assert_gt(fd, STDIN_FILENO);
	input_closes = true;
	context = open_with_token(fd, &token);
	input_closes = false;
	cr_assert_eq(import_context(fd, token, &imported), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
	close(token);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* Two programs with thousands of handles of one domain hold up no other program (H-123). */
Test(control_import, many_handles_of_one_domain)
{
	enum {
		MANY = 3000
	};
	int fd[2] = { attach(), attach() }, token;
	uint32_t context = open_with_token(fd[0], &token), imported[2], pd, made;
	double took;

	cr_assert_eq(ask_handle(fd[0], COMMAND_ALLOC_PD, context, &pd), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(import_context(fd[i], token, &imported[i]), 0);
	took = -seconds_of_control();
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(import(fd[i % 2], COMMAND_IMPORT_PD, imported[i % 2], pd, &made), 0);
	took += seconds_of_control();
	/* a walk over all handles for each handle would take minutes */
	cr_expect_lt(took, 20, "%d imports in %.1f s", MANY, took);
	close(token);
	close(fd[0]);
	close(fd[1]);
	expect_counts(0, 0, 0, 0);
}

/* ---- what else a descriptor may be: H-119 ---- */

static int sealed_file(const void *octets, size_t n, uint64_t size, int seals)
{
	int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	cr_assert_eq(write(fd, octets, n), (ssize_t)n);
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	if (seals != 0)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* hostile H-119: any message. */
Test(control_import, only_a_token_is_one)
{
	int before = count_descriptors(), fd = attach(), token, pipes[2], many[40];
	uint32_t context = open_with_token(fd, &token), made;
	struct reply_statistics counts;
	struct context_token t;
	const size_t n = sizeof(t);

	cr_assert_eq(pread(token, &t, n, 0), (ssize_t)n);
	struct {
		const char *what;
		int fd;
	} wrong[] = {
		{ "a pipe", pipe(pipes) == 0 ? pipes[0] : -1 },
		{ "a folder", open("/tmp", O_RDONLY | O_CLOEXEC) },
		{ "a device", open("/dev/null", O_RDWR | O_CLOEXEC) },
		{ "a file", open("/proc/self/exe", O_RDONLY | O_CLOEXEC) },
		{ "a socket", socket(AF_UNIX, SOCK_STREAM, 0) },
		{ "an empty memfd", sealed_file("", 0, 0, SEALS) },
		{ "the token's octets", sealed_file(&t, n, n, 0) },
		{ "... sealed", sealed_file(&t, n, n, SEALS) },
		{ "... in a huge file", sealed_file(&t, n, UINT64_C(1) << 40, SEALS) },
		{ "... cut short", sealed_file(&t, n, n - 1, SEALS) },
	};
	statistics(&counts);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		cr_expect_eq(import_context(fd, wrong[i].fd, &made), EINVAL, "%s", wrong[i].what);
	expect_objects(&counts, "wrong descriptors");
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = fcntl(token, F_DUPFD_CLOEXEC, 0);
	for (uint32_t k = 0; k <= ARRAY_SIZE(many); k++) {
		struct request_empty q = { { COMMAND_MAGIC, COMMAND_VERSION, COMMAND_IMPORT_CONTEXT,
					     sizeof(q), 1 } };
		struct command_reply reply;
		int asker = attach(), error;

		error = throw_at(asker, &q, sizeof(q), many, k, &reply);
		cr_expect(error == (k == 1 ? 0 : EPROTO) || (k > 1 && error == -1),
			  "%u descriptors: %d", k, error);
		close(asker);
	}
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		close(many[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		close(wrong[i].fd);
	close(pipes[1]);
	cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
	cr_expect_eq(import_context(fd, token, &made), EINVAL, "of a closed context");
	close(token);
	close(fd);
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
}

/* ---- tokens that come again: H-113 ---- */

static int tokens[2]; /* a pipe of a kind: the newest token, sent by its exporter */

/* Opens, exports and closes contexts as fast as it can. */
static void *export_and_close(void *arg)
{
	int fd = attach();
	uint32_t pd;

	for (int i = 0; i < 300; i++) {
		int token;
		uint32_t context = open_with_token(fd, &token);

		cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, context, &pd), 0);
		__atomic_store_n(&tokens[1], (int)pd, __ATOMIC_RELEASE);
		dup3(token, tokens[0], O_CLOEXEC);
		cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
		close(token);
	}
	close(fd);
	return NULL;
}

/* hostile H-113: a number that comes again. */
Test(control_import, imports_race_the_end_of_what_they_import)
{
	int fd = attach();
	pthread_t thread;

	tokens[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_assert_eq(pthread_create(&thread, NULL, export_and_close, NULL), 0);
	for (int i = 0; i < 600; i++) {
		uint32_t context, pd;
		int error = import_context(fd, tokens[0], &context);

		cr_assert(error == 0 || error == EINVAL, "%d", error);
		if (error != 0)
			continue;
		error = import(fd, COMMAND_IMPORT_PD, context,
			       (uint32_t)__atomic_load_n(&tokens[1], __ATOMIC_ACQUIRE), &pd);
		cr_assert(error == 0 || error == EINVAL, "%d", error);
		cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
	}
	pthread_join(thread, NULL);
	close(tokens[0]);
	close(fd);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}
