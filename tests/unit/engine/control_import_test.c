/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory and import, asked for by those who have no right to them, wrongly, or when the
 * engine has nothing left: hostile handles, descriptors and contents, and what a failed create
 * leaves behind.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "control_rig.h"

#define GUESSES	  70u
#define SEALS	  (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define DM_ACCESS (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_ZERO_BASED)

TestSuite(control_import, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

/* A context and, in *token, what it is exported with. */
static uint32_t open_with_token(int fd, int *token)
{
	struct request_empty q = { 0 };
	struct reply_context r;
	struct carrier_descriptors out = { 0 };

	cr_assert_eq(ask(fd, COMMAND_OPEN_CONTEXT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out),
		     0);
	cr_assert_eq(out.count, 2);
	close(out.fd[0]);
	*token = out.fd[1];
	return r.handle;
}

static void close_all(struct carrier_descriptors *d)
{
	for (uint32_t i = 0; i < d->count; i++)
		close(d->fd[i]);
}

static int import_context(int fd, int token, uint32_t *handle)
{
	struct carrier_descriptors in = { .count = 1, .fd = { token } }, out = { 0 };
	struct request_empty q = { 0 };
	struct reply_context r;
	int error = ask(fd, COMMAND_IMPORT_CONTEXT, &q.h, sizeof(q), &r.h, sizeof(r), &in, &out);

	close_all(&out);
	*handle = error == 0 ? r.handle : 0;
	return error;
}

static int import(int fd, enum command what, uint32_t into, uint32_t handle, uint32_t *made)
{
	struct request_import q = { .into = into, .handle = handle };
	struct carrier_descriptors out = { 0 };
	union {
		struct reply_handle handle;
		struct reply_import_mr mr;
		struct reply_dm dm;
	} r;
	size_t size = what == COMMAND_IMPORT_PD	  ? sizeof(r.handle)
		      : what == COMMAND_IMPORT_MR ? sizeof(r.mr)
						  : sizeof(r.dm);
	int error = ask(fd, what, &q.h, sizeof(q), &r.handle.h, size, NULL, &out);

	close_all(&out);
	*made = error == 0 ? r.handle.handle : 0;
	return error;
}

static int alloc_dm(int fd, uint32_t context, uint64_t length, uint32_t log_align, uint32_t *made)
{
	struct request_alloc_dm q = { .context = context,
				      .length = length,
				      .log_align = log_align };
	struct carrier_descriptors out = { 0 };
	struct reply_dm r;
	int error = ask(fd, COMMAND_ALLOC_DM, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

	if (error == 0) {
		cr_expect_eq(out.count, 1);
		cr_expect_eq(r.length, length);
		*made = r.handle;
	}
	close_all(&out);
	return error;
}

static int reg_dm_mr(int fd, struct request_reg_dm_mr q, uint32_t *made)
{
	struct reply_reg_mr r;
	int error = ask(fd, COMMAND_REG_DM_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		*made = r.handle;
	return error;
}

static void expect_objects(const struct reply_statistics *before, const char *after)
{
	struct reply_statistics now;

	statistics(&now);
	for (uint32_t i = 0; i < STATISTICS_KINDS; i++)
		cr_expect_eq(now.objects[i], before->objects[i],
			     "after %s: %u objects of kind %u, not %u", after, now.objects[i], i,
			     before->objects[i]);
}

/* ---- who has no token: hostile H-117 ---- */

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
	close(token);
	close(other);
	close(b);
	close(a);
	expect_counts(0, 0, 0, 0);
}

/* Two programs with thousands of handles of one domain hold up nobody (H-123). */
Test(control_import, many_handles_of_one_domain)
{
	enum {
		MANY = 3000
	};
	int fd[2] = { attach(), attach() }, token;
	uint32_t context = open_with_token(fd[0], &token), imported[2], pd, made;
	struct timespec start, end;
	double took;

	cr_assert_eq(ask_handle(fd[0], COMMAND_ALLOC_PD, context, &pd), 0);
	for (int i = 0; i < 2; i++)
		cr_assert_eq(import_context(fd[i], token, &imported[i]), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < MANY; i++)
		cr_assert_eq(import(fd[i % 2], COMMAND_IMPORT_PD, imported[i % 2], pd, &made), 0);
	clock_gettime(CLOCK_MONOTONIC, &end);
	took = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
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

/* ---- arguments ---- */

Test(control_import, device_memory_within_bounds)
{
	int fd = attach();
	uint32_t context = open_context(fd), other = open_context(fd), pd, other_pd, dm = 0, mr = 0;
	struct reply_statistics before;
	static const struct {
		const char *what;
		uint64_t length;
		uint32_t log_align;
		int error;
	} allocations[] = {
		{ "nothing", 0, 0, EINVAL },
		{ "more than there is", LIMIT_DM_BYTES + 1, 0, EINVAL },
		{ "far more", UINT64_MAX, 0, EINVAL },
		{ "an alignment that cannot be had", 64, DM_LOG_ALIGN_MAX + 1, EINVAL },
		{ "a wild alignment", 64, UINT32_MAX, EINVAL },
		{ "one octet", 1, 0, 0 },
		{ "all that is announced", LIMIT_DM_BYTES, DM_LOG_ALIGN_MAX, 0 },
	};
	static const struct {
		const char *what;
		uint64_t offset, length;
		uint32_t access;
		int error;
	} regions[] = {
		{ "behind the end", 4097, 0, DM_ACCESS, EINVAL },
		{ "beyond the end", 0, 4097, DM_ACCESS, EINVAL },
		{ "across the end", 4000, 97, DM_ACCESS, EINVAL },
		{ "around the end of numbers", 64, UINT64_MAX - 63, DM_ACCESS, EINVAL },
		{ "not zero-based", 0, 64, ACCESS_LOCAL_WRITE, EINVAL },
		{ "on demand", 0, 64, DM_ACCESS | ACCESS_ON_DEMAND, EINVAL },
		{ "an unknown flag", 0, 64, DM_ACCESS | 1u << 31, EINVAL },
		{ "remote write alone", 0, 64, ACCESS_ZERO_BASED | ACCESS_REMOTE_WRITE, EINVAL },
		{ "nothing at the end", 4096, 0, DM_ACCESS, 0 },
		{ "all", 0, 4096, DM_ACCESS, 0 },
		{ "odd", 3, 5, ACCESS_ZERO_BASED, 0 },
	};

	cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, context, &pd), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, other, &other_pd), 0);
	statistics(&before);
	for (size_t i = 0; i < ARRAY_SIZE(allocations); i++) {
		int error =
			alloc_dm(fd, context, allocations[i].length, allocations[i].log_align, &dm);

		cr_expect_eq(error, allocations[i].error, "%s: %d", allocations[i].what, error);
		if (error == 0)
			cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, dm, NULL), 0);
		expect_objects(&before, allocations[i].what);
	}
	cr_assert_eq(alloc_dm(fd, context, 4096, 0, &dm), 0);
	statistics(&before);
	for (size_t i = 0; i < ARRAY_SIZE(regions); i++) {
		struct request_reg_dm_mr q = { .pd = pd,
					       .dm = dm,
					       .offset = regions[i].offset,
					       .length = regions[i].length,
					       .access = regions[i].access };
		int error = reg_dm_mr(fd, q, &mr);

		cr_expect_eq(error, regions[i].error, "%s: %d", regions[i].what, error);
		if (error == 0) {
			cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, dm, NULL), EBUSY);
			cr_expect_eq(ask_handle(fd, COMMAND_DEALLOC_PD, pd, NULL), EBUSY);
			cr_expect_eq(ask_handle(fd, COMMAND_DEREG_MR, mr, NULL), 0);
		}
		q.pd = other_pd;
		cr_expect_eq(reg_dm_mr(fd, q, &mr), EINVAL, "another context's PD");
		expect_objects(&before, regions[i].what);
	}
	cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, dm, NULL), 0);
	cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, dm, NULL), EINVAL, "twice");
	close(fd);
	expect_counts(0, 0, 0, 0);
}

Test(control_import, device_memory_ends_and_comes_back)
{
	int fd[10], before = count_descriptors(), error = 0;
	uint32_t context = 0, dm = 0, pieces = 0;
	struct rlimit files = { 8192, 8192 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
	fd[0] = attach();
	context = open_context(fd[0]);
	while (pieces <= LIMIT_CLIENT_DMS && (error = alloc_dm(fd[0], context, 4, 0, &dm)) == 0)
		pieces++;
	cr_expect_eq(error, ENOMEM);
	cr_expect_eq(pieces, LIMIT_CLIENT_DMS, "%u pieces", pieces);
	cr_expect_eq(ask_handle(fd[0], COMMAND_FREE_DM, dm, NULL), 0);
	cr_expect_eq(alloc_dm(fd[0], context, 4, 0, &dm), 0);
	close(fd[0]);
	expect_counts(0, 0, 0, 0);
	pieces = 0;
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = attach();
		context = open_context(fd[i]);
		for (int k = 0; k < 2; k++)
			pieces += alloc_dm(fd[i], context, LIMIT_DM_BYTES, 0, &dm) == 0;
		cr_expect_eq(alloc_dm(fd[i], context, 4096, 0, &dm), ENOMEM, "a program's share");
	}
	cr_expect_eq(pieces, LIMIT_ENGINE_DM_BYTES / LIMIT_DM_BYTES, "%u pieces", pieces);
	close(fd[0]);
	expect_counts(ARRAY_SIZE(fd) - 1, 0, 0, 0);
	cr_expect_eq(alloc_dm(fd[9], context, LIMIT_DM_BYTES, 0, &dm), 0, "what one gave back");
	for (size_t i = 1; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
}

/* ---- a create that fails at each of its steps: H-110 ---- */

/* So that `left` more descriptors can be had. */
static void leave_descriptors(uint32_t left)
{
	struct rlimit limit;
	int fd = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	for (;; fd++)
		if (fcntl(fd, F_GETFD) < 0 && left-- == 0)
			break;
	limit.rlim_cur = (rlim_t)fd;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void all_descriptors(void)
{
	struct rlimit limit;

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

Test(control_import, without_descriptors_nothing_is_left_behind)
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

Test(control_import, without_addresses_nothing_is_left_behind)
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

/* ---- handles and tokens that come again: H-113 ---- */

Test(control_import, a_handle_rests_before_it_is_used_again)
{
	int fd = attach();
	uint32_t context = open_context(fd), first = 0, dm = 0;

	cr_assert_eq(alloc_dm(fd, context, 4, 0, &first), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_FREE_DM, first, NULL), 0);
	for (int i = 0; i < 50; i++) {
		cr_assert_eq(alloc_dm(fd, context, 4, 0, &dm), 0);
		cr_expect_neq(dm, first, "after %d others", i);
		cr_assert_eq(ask_handle(fd, COMMAND_FREE_DM, dm, NULL), 0);
		cr_expect_eq(ask_handle(fd, COMMAND_FREE_DM, first, NULL), EINVAL);
	}
	close(fd);
	expect_counts(0, 0, 0, 0);
}

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

/* ---- contents: H-118, H-119 ---- */

/* The reply to a request of any contents: nothing in it that was not put there. */
static void expect_clean(int fd, struct command_request *q, const char *with)
{
	uint8_t octets[LIMIT_COMMAND_BYTES];
	struct command_reply *r = (struct command_reply *)octets;
	char space[CMSG_SPACE(LIMIT_COMMAND_FDS * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = { octets, sizeof(octets) };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = space,
			    .msg_controllen = sizeof(space) };
	const char *name = command_name(q->command);
	ssize_t n;

	cr_assert_eq(send(fd, q, q->length, MSG_NOSIGNAL), (ssize_t)q->length);
	memset(octets, 0xaa, sizeof(octets));
	n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c))
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++)
			close(((int *)(void *)CMSG_DATA(c))[i]);
	cr_assert_geq(n, (ssize_t)sizeof(*r), "%s with %s: %zd octets", name, with, n);
	cr_expect_eq(r->length, (uint32_t)n);
	cr_expect_eq(r->reserved, 0);
	for (size_t i = strnlen(r->why, sizeof(r->why)); i < sizeof(r->why); i++)
		cr_expect_eq(r->why[i], 0, "%s with %s: octet %zu of why", name, with, i);
	if (r->error != 0)
		cr_expect_eq(n, (ssize_t)sizeof(*r), "%s with %s: an error has no more", name,
			     with);
}

Test(control_import, every_command_with_any_contents)
{
	static const struct {
		const char *name;
		uint8_t octet;
	} with[] = { { "zeros", 0 }, { "ones", 0xff }, { "small numbers", 1 }, { "noise", 0x55 } };
	uint8_t octets[LIMIT_COMMAND_BYTES];
	struct command_request *q = (struct command_request *)octets;
	int before = count_descriptors();
	struct objects o;

	srandom(1);
	for (uint32_t what = 0; what < COMMAND_COUNT; what++)
		for (size_t i = 0; i < 4 * ARRAY_SIZE(with); i++) {
			int fd = attach();

			make_objects(fd, &o);
			for (size_t k = 0; k < sizeof(octets); k++)
				octets[k] = with[i % 4].octet != 0x55 ? with[i % 4].octet
								      : (uint8_t)(random() & 3);
			*q = (struct command_request){ .magic = COMMAND_MAGIC,
						       .version = COMMAND_VERSION,
						       .command = (uint16_t)what,
						       .length = (uint32_t)request_size(what) };
			expect_clean(fd, q, with[i % 4].name);
			close(fd);
		}
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
	expect_serving();
}
