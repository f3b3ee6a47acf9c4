/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong arguments of the verbs of device memory and import: the errno of the manual page (EINVAL
 * where it names none), and no change in the engine. Runs with an engine at
 * $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "refused.h"

#define LENGTH 100u
#define ACCESS (IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE)

static struct endpoint e;
static struct ibv_context *other; /* the same device, opened again, with some objects */
static struct ibv_pd *other_pd;
static struct ibv_dm *other_dm, *dm;
static struct ibv_context *imported; /* the endpoint's context */
static struct ibv_device_attr_ex device;

static struct ibv_dm *allocate(struct ibv_context *context, size_t length)
{
	struct ibv_alloc_dm_attr attr = { .length = length };

	return ibv_alloc_dm(context, &attr);
}

static void open_all(void)
{
	endpoint_open(&e);
	other = open_only_device();
	other_pd = ibv_alloc_pd(other);
	other_dm = allocate(other, LENGTH);
	dm = allocate(e.context, LENGTH);
	imported = ibv_import_device(dup(e.context->cmd_fd));
	cr_assert(other_pd && other_dm && dm && imported, "%m");
	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &device), 0);
}

static void close_all(void)
{
	cr_expect_eq(ibv_close_device(imported), 0);
	cr_expect_eq(ibv_free_dm(other_dm), 0);
	cr_expect_eq(ibv_free_dm(dm), 0);
	cr_expect_eq(ibv_dealloc_pd(other_pd), 0);
	cr_expect_eq(ibv_close_device(other), 0);
	endpoint_close(&e);
}

TestSuite(refused_import, .init = open_all, .fini = close_all, .timeout = 60);

Test(refused_import, allocations)
{
	const struct {
		const char *what;
		struct ibv_alloc_dm_attr attr;
		int error;
	} cases[] = {
		{ "no octets", { .length = 0 }, EINVAL },
		{ "more than is announced", { .length = device.max_dm_size + 1 }, EINVAL },
		{ "all numbers", { .length = SIZE_MAX }, EINVAL },
		{ "an alignment beyond a page", { .length = 64, .log_align_req = 13 }, EINVAL },
		{ "no alignment at all", { .length = 64, .log_align_req = UINT32_MAX }, EINVAL },
		{ "an unknown member", { .length = 64, .comp_mask = 1 }, EINVAL },
		{ "unknown members", { .length = 64, .comp_mask = UINT32_MAX }, EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ibv_alloc_dm_attr attr = cases[i].attr;

		REFUSED(ibv_alloc_dm(e.context, &attr), cases[i].error, cases[i].what);
	}
	REFUSED(ibv_alloc_dm(e.context, NULL), EINVAL, "nothing");
}

Test(refused_import, announced_limits_are_granted)
{
	for (uint32_t align = 0; align <= 12; align++) {
		struct ibv_alloc_dm_attr attr = { .length = device.max_dm_size,
						  .log_align_req = align };
		struct ibv_dm *all = ibv_alloc_dm(e.context, &attr);
		uint32_t word = 0x01020304, back = 0;

		cr_assert_not_null(all, "alignment %u: %m", align);
		cr_expect_eq(ibv_memcpy_to_dm(all, device.max_dm_size - 4, &word, 4), 0);
		cr_expect_eq(ibv_memcpy_from_dm(&back, all, device.max_dm_size - 4, 4), 0);
		cr_expect_eq(back, word);
		cr_expect_eq(ibv_free_dm(all), 0);
	}
}

Test(refused_import, registrations)
{
	const struct {
		const char *what;
		struct ibv_pd *pd;
		struct ibv_dm *dm;
		uint64_t offset;
		size_t length;
		unsigned int access;
	} cases[] = {
		{ "no memory", e.pd, NULL, 0, LENGTH, ACCESS },
		{ "another context's PD", other_pd, dm, 0, LENGTH, ACCESS },
		{ "another context's memory", e.pd, other_dm, 0, LENGTH, ACCESS },
		{ "longer than it is", e.pd, dm, 0, LENGTH + 1, ACCESS },
		{ "past its end", e.pd, dm, LENGTH, 4, ACCESS },
		{ "far past its end", e.pd, dm, UINT64_MAX, 4, ACCESS },
		{ "around all numbers", e.pd, dm, 8, SIZE_MAX - 4, ACCESS },
		{ "not zero-based", e.pd, dm, 0, LENGTH, IBV_ACCESS_LOCAL_WRITE },
		{ "no access at all", e.pd, dm, 0, LENGTH, 0 },
		{ "an unknown flag", e.pd, dm, 0, LENGTH, ACCESS | 1u << 10 },
		{ "on demand", e.pd, dm, 0, LENGTH, ACCESS | IBV_ACCESS_ON_DEMAND },
		{ "huge pages", e.pd, dm, 0, LENGTH, ACCESS | IBV_ACCESS_HUGETLB },
		{ "remote write without local write", e.pd, dm, 0, LENGTH,
		  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE },
		{ "remote atomic without local write", e.pd, dm, 0, LENGTH,
		  IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_ATOMIC },
	};
	struct ibv_mr *mr;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		REFUSED(ibv_reg_dm_mr(cases[i].pd, cases[i].dm, cases[i].offset, cases[i].length,
				      cases[i].access),
			EINVAL, cases[i].what);
	mr = ibv_reg_dm_mr(e.pd, dm, 4, LENGTH - 4, ACCESS | IBV_ACCESS_RELAXED_ORDERING);
	cr_assert_not_null(mr, "%m");
	cr_expect_eq(ibv_free_dm(dm), EBUSY, "a region is of it");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
}

Test(refused_import, copies)
{
	static const struct {
		const char *what;
		uint64_t offset;
		size_t length;
		int error;
	} cases[] = {
		{ "an odd place", 3, 4, EINVAL },
		{ "an odd length", 4, 3, EINVAL },
		{ "past the end", LENGTH, 4, EFAULT },
		{ "across the end", LENGTH - 4, 8, EFAULT },
		{ "longer than it is", 0, LENGTH + 4, EFAULT },
		{ "far away", UINT64_MAX - 3, 4, EFAULT },
		{ "around all numbers", 4, SIZE_MAX - 3, EFAULT },
		{ "all of it", 0, LENGTH, 0 },
		{ "nothing", LENGTH, 0, 0 },
	};
	uint8_t host[2 * LENGTH] = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cr_expect_eq(ibv_memcpy_to_dm(dm, cases[i].offset, host, cases[i].length),
			     cases[i].error, "%s", cases[i].what);
		cr_expect_eq(ibv_memcpy_from_dm(host, dm, cases[i].offset, cases[i].length),
			     cases[i].error, "%s", cases[i].what);
	}
}

Test(refused_import, handles)
{
	static const uint32_t strange[] = { 0, 999, 1u << 31, 1u << 31 | 1, UINT32_MAX };
	struct ibv_pd *pd = ibv_import_pd(imported, e.pd->handle);

	cr_assert_not_null(pd, "%m");
	for (size_t i = 0; i < ARRAY_SIZE(strange); i++) {
		REFUSED(ibv_import_pd(imported, strange[i]), EINVAL, "a strange handle");
		REFUSED(ibv_import_mr(pd, strange[i]), EINVAL, "a strange handle");
		REFUSED(ibv_import_dm(imported, strange[i]), EINVAL, "a strange handle");
	}
	REFUSED(ibv_import_pd(imported, other_pd->handle), EINVAL, "of another context");
	REFUSED(ibv_import_dm(imported, other_dm->handle), EINVAL, "of another context");
	REFUSED(ibv_import_mr(other_pd, e.mr->handle), EINVAL, "of another context");
	REFUSED(ibv_import_pd(imported, e.qp[0]->handle + 500), EINVAL, "of another kind");
	ibv_unimport_pd(pd);
}

Test(refused_import, a_region_of_another_domain_is_refused)
{
	struct ibv_pd *second = ibv_alloc_pd(e.context), *pd;

	cr_assert_not_null(second);
	pd = ibv_import_pd(imported, second->handle);
	cr_assert_not_null(pd, "%m");
	REFUSED(ibv_import_mr(pd, e.mr->handle), EINVAL, "a region of another PD");
	ibv_unimport_pd(pd);
	cr_expect_eq(ibv_dealloc_pd(second), 0);
}

Test(refused_import, imported_objects_in_use_are_busy)
{
	uint64_t before = engine_objects();
	struct ibv_pd *pd = ibv_import_pd(imported, e.pd->handle);
	struct ibv_mr *mr = ibv_import_mr(pd, e.mr->handle), *own;
	struct ibv_dm *twin = ibv_import_dm(imported, dm->handle);

	cr_assert(pd && mr && twin, "%m");
	cr_expect_null(mr->addr, "ibv_import_mr(3): the address is not applicable");
	cr_expect_eq(ibv_dealloc_pd(pd), EBUSY);
	own = ibv_reg_dm_mr(pd, twin, 0, LENGTH, ACCESS);
	cr_assert_not_null(own, "%m");
	cr_expect_eq(ibv_free_dm(twin), EBUSY);
	cr_expect_eq(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		IBV_REREG_MR_ERR_INPUT, "only its exporter changes a region");
	cr_expect_eq(ibv_dereg_mr(mr), 0, "as unimport");
	cr_expect_eq(ibv_dereg_mr(own), 0);
	cr_expect_eq(ibv_free_dm(twin), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(engine_objects(), before);
}

Test(refused_import, unimport_leaves_objects_in_use_usable)
{
	uint64_t before = engine_objects();
	struct ibv_pd *pd = ibv_import_pd(imported, e.pd->handle);
	uint32_t word;
	struct ibv_mr *mr = ibv_reg_mr(pd, &word, sizeof(word), IBV_ACCESS_LOCAL_WRITE);

	cr_assert_not_null(mr, "%m");
	ibv_unimport_pd(pd);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_leq(engine_objects(), before + 1, "the PD may stay until its context closes");
}

/* Objects of a closed context are gone; destroying them only frees memory. */
Test(refused_import, objects_of_a_closed_context)
{
	struct ibv_context *c = open_only_device();
	struct ibv_pd *pd = ibv_alloc_pd(c);
	struct ibv_dm *d = allocate(c, LENGTH);
	struct ibv_mr *mr = ibv_reg_dm_mr(pd, d, 0, LENGTH, ACCESS);
	struct ibv_context *i = ibv_import_device(dup(c->cmd_fd));
	uint64_t before;

	cr_assert(pd && d && mr && i, "%m");
	cr_expect_eq(ibv_close_device(c), 0);
	before = engine_objects();
	REFUSED(ibv_import_pd(i, pd->handle), EINVAL, "of a closed context");
	REFUSED(ibv_import_dm(i, d->handle), EINVAL, "of a closed context");
	REFUSED(ibv_reg_dm_mr(pd, d, 0, LENGTH, ACCESS), EINVAL, "in a closed context");
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_free_dm(d), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	cr_expect_eq(engine_objects(), before);
	cr_expect_eq(ibv_close_device(i), 0);
}
