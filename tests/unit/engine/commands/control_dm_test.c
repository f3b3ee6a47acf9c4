/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory within its bounds: of a piece, of a region on it, of a program, of the engine. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/export_rig.h"

TestSuite(control_dm, .init = control_rig_open, .fini = control_rig_close, .timeout = 120);

Test(control_dm, device_memory_within_bounds)
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

Test(control_dm, device_memory_ends_and_comes_back)
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
	/* The last quarter is for other users. */
	cr_expect_eq(pieces, LIMIT_ENGINE_DM_BYTES / LIMIT_DM_BYTES * 3 / 4, "%u pieces", pieces);
	close(fd[0]);
	expect_counts(ARRAY_SIZE(fd) - 1, 0, 0, 0);
	cr_expect_eq(alloc_dm(fd[9], context, LIMIT_DM_BYTES, 0, &dm), 0, "what one gave back");
	for (size_t i = 1; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	expect_counts(0, 0, 0, 0);
	expect_descriptors(before);
}

/* H-113 */
Test(control_dm, a_handle_rests_before_it_is_used_again)
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
