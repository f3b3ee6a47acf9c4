/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_advise_mr(3). The engine says where the elements are and whether they may be prefetched. The
 * library makes the pages present, because they are pages of this process. They are present when
 * the call returns, with or without IBV_ADVISE_MR_FLAG_FLUSH.
 */
#include <errno.h>

#include "base/memory_call.h"
#include "verbs/memory/mapping.h"
#include "verbs/types.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define PAGE ((uintptr_t)4096)

/* For kernels before Linux 5.14. The range is mapped, and writable if `write`. */
static void touch(uintptr_t from, uintptr_t to, bool write)
{
	for (; from < to; from += PAGE) {
		volatile uint8_t *at = (volatile uint8_t *)from;

		if (write) /* atomic, so that no write of another thread is lost */
			__atomic_fetch_or(at, 0, __ATOMIC_RELAXED);
		else
			(void)*at;
	}
}

static int prefetch(uint64_t address, uint32_t length, enum ibv_advise_mr_advice advice)
{
	bool write = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
	uintptr_t from = (uintptr_t)address & ~(PAGE - 1), to = (uintptr_t)address + length;
	int error = length == 0 ? 0 : mapping_check((uintptr_t)address, length, write);

	if (error != 0 || length == 0 || advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return error;
	if (memory_advise((void *)from, to - from,
			  write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) == 0)
		return 0;
	error = errno;
	if (error != EINVAL)
		return error == ENOMEM ? EFAULT : error;
	touch(from, to, write);
	return 0;
}

/* Advises at most ADVISE_MAX elements. */
static int advise_some(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		       const struct ibv_sge *sge, uint32_t n)
{
	struct request_advise_mr request = { .pd = pd->handle, .advice = advice, .num_sge = n };
	struct reply_advise_mr reply;
	int error;

	memcpy(request.sge, sge, n * sizeof(*sge));
	error = attachment_command(attachment_of(pd->context), COMMAND_ADVISE_MR, &request.h,
				   sizeof(request), &reply.h, sizeof(reply), NULL, NULL);
	for (uint32_t i = 0; i < n && error == 0; i++)
		error = prefetch(reply.address[i], sge[i].length, advice);
	return error;
}

int verbs_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sg_list, uint32_t num_sge)
{
	int error = 0;

	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return ENOTSUP;
	if ((flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH) != 0 || num_sge == 0 || sg_list == NULL)
		return EINVAL;
	for (uint32_t i = 0; i < num_sge && error == 0; i += ADVISE_MAX)
		error = advise_some(pd, advice, sg_list + i, MIN_OF(num_sge - i, ADVISE_MAX));
	return error;
}
