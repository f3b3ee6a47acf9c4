/* SPDX-License-Identifier: BSD-3-Clause */
#include <unistd.h>

#include "export_rig.h"

uint32_t open_with_token(int fd, int *token)
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

void close_all(struct carrier_descriptors *d)
{
	for (uint32_t i = 0; i < d->count; i++)
		close(d->fd[i]);
}

int import_context(int fd, int token, uint32_t *handle)
{
	struct carrier_descriptors in = { .count = 1, .fd = { token } }, out = { 0 };
	struct request_empty q = { 0 };
	struct reply_context r;
	int error = ask(fd, COMMAND_IMPORT_CONTEXT, &q.h, sizeof(q), &r.h, sizeof(r), &in, &out);

	close_all(&out);
	*handle = error == 0 ? r.handle : 0;
	return error;
}

int import(int fd, enum command what, uint32_t into, uint32_t handle, uint32_t *made)
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

int alloc_dm(int fd, uint32_t context, uint64_t length, uint32_t log_align, uint32_t *made)
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

int reg_dm_mr(int fd, struct request_reg_dm_mr q, uint32_t *made)
{
	struct reply_reg_mr r;
	int error = ask(fd, COMMAND_REG_DM_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		*made = r.handle;
	return error;
}

void expect_objects(const struct reply_statistics *before, const char *after)
{
	struct reply_statistics now;

	statistics(&now);
	for (uint32_t i = 0; i < STATISTICS_KINDS; i++)
		cr_expect_eq(now.objects[i], before->objects[i],
			     "after %s: %u objects of kind %u, not %u", after, now.objects[i], i,
			     before->objects[i]);
}
