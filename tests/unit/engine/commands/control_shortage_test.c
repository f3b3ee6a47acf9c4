/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A create that fails at each of its steps, for want of descriptors or of address space, leaves
 * nothing behind (hostile H-110).
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/export_rig.h"

TestSuite(control_shortage, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

static int filler[1024];
static uint32_t fillers;

/* So that `left` more descriptors can be had: gaps between those that are open are filled. */
static void leave_descriptors(uint32_t left)
{
	struct rlimit limit;
	int highest = 0, fd;

	for (fd = 0; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			highest = fd;
	while ((fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) < highest)
		filler[fillers++] = fd;
	close(fd);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)highest + 1 + left;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void all_descriptors(void)
{
	struct rlimit limit;

	while (fillers > 0)
		close(filler[--fillers]);
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int create(int fd, enum command what, uint32_t context, int token, uint32_t exported_dm,
		  uint32_t imported)
{
	uint32_t made;

	switch (what) {
	case COMMAND_OPEN_CONTEXT: {
		struct request_empty q = { 0 };
		struct carrier_descriptors out = { 0 };
		struct reply_context r;
		int error = ask(fd, what, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

		close_all(&out);
		if (error == 0)
			cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, r.handle, NULL), 0);
		return error;
	}
	case COMMAND_IMPORT_CONTEXT: {
		int error = import_context(fd, token, &made);

		if (error == 0)
			cr_expect_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, made, NULL), 0);
		return error;
	}
	case COMMAND_ALLOC_DM: {
		struct request_alloc_dm q = { .context = context, .length = 4096 };
		struct carrier_descriptors out = { 0 };
		struct reply_dm r;
		int error = ask(fd, what, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

		close_all(&out);
		if (error == 0)
			cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, r.handle, NULL), 0);
		return error;
	}
	case COMMAND_IMPORT_DM: {
		int error = import(fd, what, imported, exported_dm, &made);

		if (error == 0)
			cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, made, NULL), 0);
		return error;
	}
	default: {
		int error = ask_handle(fd, what, context, &made);

		if (error == 0)
			cr_expect_eq(ask_handle(fd, COMMAND_DESTROY_CHANNEL, made, NULL), 0);
		return error;
	}
	}
}

/* hostile H-110: a create that fails at any step. */
Test(control_shortage, without_descriptors_nothing_is_left_behind)
{
	static const enum command creates[] = { COMMAND_OPEN_CONTEXT, COMMAND_IMPORT_CONTEXT,
						COMMAND_ALLOC_DM, COMMAND_IMPORT_DM,
						COMMAND_CREATE_CHANNEL };
	int fd = attach(), token, descriptors;
	uint32_t context = open_with_token(fd, &token), imported, dm = 0;
	struct reply_statistics before;

	cr_assert_eq(import_context(fd, token, &imported), 0);
	cr_assert_eq(alloc_dm(fd, context, 4096, 0, &dm), 0);
	statistics(&before);
	descriptors = count_descriptors();
	for (size_t i = 0; i < ARRAY_SIZE(creates); i++) {
		int error = ENOMEM, failures = 0;

		/* Both sides are this process: the reply's descriptors are counted, too. */
		for (uint32_t left = 0; left < 12; left++) {
			leave_descriptors(left);
			error = create(fd, creates[i], context, token, dm, imported);
			all_descriptors();
			failures += error != 0;
			expect_objects(&before, command_name(creates[i]));
			expect_descriptors(descriptors);
		}
		cr_expect_eq(error, 0, "%s with 12 descriptors left: %d", command_name(creates[i]),
			     error);
		cr_expect_gt(failures, 0, "%s needs no descriptors", command_name(creates[i]));
	}
	close(token);
	close(fd);
	expect_counts(0, 0, 0, 0);
}

/* hostile H-110: a create that fails at any step; H-147: ranges outside of a file. */
Test(control_shortage, without_addresses_nothing_is_left_behind)
{
	int fd = attach();
	uint32_t context = open_context(fd), dm = 0;
	int descriptors;
	struct reply_statistics before;
	struct rlimit old, none;
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	cr_assert_eq(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	statistics(&before);
	descriptors = count_descriptors();
	getrlimit(RLIMIT_AS, &old);
	none = old;
	none.rlim_cur = pages * 4096 + (4 << 20);
	cr_assert_eq(setrlimit(RLIMIT_AS, &none), 0);
	cr_expect_eq(alloc_dm(fd, context, LIMIT_DM_BYTES, 0, &dm), ENOMEM);
	setrlimit(RLIMIT_AS, &old);
	expect_objects(&before, "a mapping that failed");
	expect_descriptors(descriptors);
	cr_expect_eq(alloc_dm(fd, context, LIMIT_DM_BYTES, 0, &dm), 0);
	close(fd);
	expect_counts(0, 0, 0, 0);
}
