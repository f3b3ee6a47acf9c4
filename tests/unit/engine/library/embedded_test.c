/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verbs of a program that has the engine inside: device memory and import take the same way as
 * those of an attached one, without a socket.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rig/control_rig.h"
#include "../verbs/rig/endpoint.h"

#define LENGTH 8192u

static void begin(void)
{
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	control_rig_open();
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
}

TestSuite(embedded, .init = begin, .fini = control_rig_close, .timeout = 60);

Test(embedded, device_memory_is_written_to)
{
	struct ibv_alloc_dm_attr attr = { .length = LENGTH, .log_align_req = 12 };
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	uint8_t back[LENGTH];
	struct ibv_sge sge;
	struct endpoint e;
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	struct ibv_wc wc;

	endpoint_open(&e);
	dm = ibv_alloc_dm(e.context, &attr);
	cr_assert_not_null(dm, "%m");
	mr = ibv_reg_dm_mr(e.pd, dm, 0, LENGTH,
			   IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE |
				   IBV_ACCESS_REMOTE_WRITE);
	cr_assert_not_null(mr, "%m");
	memset(e.buffer, 'b', LENGTH);
	sge = (struct ibv_sge){ (uintptr_t)e.buffer, LENGTH, e.mr->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.rkey = mr->rkey;
	cr_assert_eq(ibv_post_send(e.qp[0], &wr, &bad), 0);
	poll_completions(e.cq, &wc, 1, "a WRITE into device memory");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_assert_eq(ibv_memcpy_from_dm(back, dm, 0, LENGTH), 0);
	cr_assert_eq(memcmp(back, e.buffer, LENGTH), 0);
	cr_expect_eq(ibv_free_dm(dm), EBUSY);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_free_dm(dm), 0);
	endpoint_close(&e);
}

Test(embedded, what_was_imported_is_the_same)
{
	struct ibv_alloc_dm_attr attr = { .length = LENGTH };
	uint32_t word = 0x600dcafe, back = 0;
	struct ibv_context *imported;
	struct ibv_dm *dm, *twin;
	struct endpoint e;
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	endpoint_open(&e);
	dm = ibv_alloc_dm(e.context, &attr);
	imported = ibv_import_device(dup(e.context->cmd_fd));
	cr_assert(dm != NULL && imported != NULL, "%m");
	pd = ibv_import_pd(imported, e.pd->handle);
	twin = ibv_import_dm(imported, dm->handle);
	cr_assert(pd != NULL && twin != NULL, "%m");
	mr = ibv_import_mr(pd, e.mr->handle);
	cr_assert_not_null(mr, "%m");
	cr_expect_eq(mr->rkey, e.mr->rkey);
	cr_expect_eq(ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)), 0);
	cr_expect_eq(ibv_free_dm(dm), 0, "the other handle keeps it");
	cr_expect_eq(ibv_memcpy_from_dm(&back, twin, 0, sizeof(back)), 0);
	cr_expect_eq(back, word);
	ibv_unimport_mr(mr);
	ibv_unimport_dm(twin);
	ibv_unimport_pd(pd);
	errno = 0;
	cr_expect_null(ibv_import_device(STDIN_FILENO));
	cr_expect_eq(errno, EINVAL);
	cr_expect_eq(ibv_close_device(imported), 0);
	endpoint_close(&e);
}

static enum ibv_wc_status request(struct endpoint *e, enum ibv_wr_opcode opcode, struct ibv_sge sge,
				  const void *remote, uint32_t rkey)
{
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)remote;
	wr.wr.rdma.rkey = rkey;
	cr_assert_eq(ibv_post_send(e->qp[0], &wr, &bad), 0);
	poll_completions(e->cq, &wc, 1, "a request");
	return wc.status;
}

Test(embedded, regions_change_and_windows_open_them)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
	static uint8_t here[LENGTH], there[LENGTH];
	struct ibv_mr *mr, *null;
	struct endpoint e;
	struct ibv_sge from;
	struct ibv_mw *mw;
	struct ibv_wc wc;

	endpoint_open(&e);
	memset(e.buffer, 'w', LENGTH);
	from = (struct ibv_sge){ (uintptr_t)e.buffer, LENGTH, e.mr->lkey };
	mr = ibv_reg_mr(e.pd, here, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	null = ibv_alloc_null_mr(e.pd);
	cr_assert(mr && mw && null, "%m");
	cr_assert_eq(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, there, LENGTH, 0), 0);
	bind.bind_info =
		(struct ibv_mw_bind_info){ mr, (uintptr_t)there, LENGTH, IBV_ACCESS_REMOTE_WRITE };
	cr_assert_eq(ibv_bind_mw(e.qp[1], mw, &bind), 0);
	poll_completions(e.cq, &wc, 1, "a bind");
	cr_assert_eq(wc.status, IBV_WC_SUCCESS);
	cr_expect_eq(request(&e, IBV_WR_RDMA_WRITE, from, there, mw->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(memcmp(there, e.buffer, LENGTH), 0);
	cr_expect_eq(here[0], 0);
	from.lkey = null->lkey;
	cr_expect_eq(request(&e, IBV_WR_RDMA_WRITE, from, there, mw->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(memcmp(there, here, LENGTH), 0, "zeros");
	cr_expect_eq(request(&e, IBV_WR_RDMA_READ, from, e.buffer, e.mr->rkey), IBV_WC_SUCCESS);
	cr_expect_eq(ibv_dereg_mr(mr), EBUSY);
	cr_expect_eq(ibv_dealloc_mw(mw), 0);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	cr_expect_eq(ibv_dereg_mr(null), 0);
	endpoint_close(&e);
}

/* Its own memory the engine touches without asking: a page that is missing would end both. */
Test(embedded, nothing_comes_on_demand)
{
	struct ibv_device_attr_ex a;
	struct endpoint e;

	endpoint_open(&e);
	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &a), 0);
	cr_expect_eq(a.odp_caps.general_caps, 0);
	errno = 0;
	cr_expect_null(
		ibv_reg_mr(e.pd, e.buffer, LENGTH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
	cr_expect_eq(errno, EOPNOTSUPP);
	cr_expect_null(
		ibv_reg_mr(e.pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
	cr_expect_eq(errno, EOPNOTSUPP);
	endpoint_close(&e);
}

/* The engine has one client for all contexts of a device, as long as there are any. */
Test(embedded, the_last_context_ends_the_client)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context[2];

	cr_assert_not_null(list);
	expect_counts(0, 0, 0, 0);
	for (int i = 0; i < 2; i++)
		cr_assert_not_null(context[i] = ibv_open_device(list[0]), "%m");
	ibv_free_device_list(list);
	expect_counts(1, 0, 0, 0);
	cr_expect_eq(ibv_close_device(context[0]), 0);
	expect_counts(1, 0, 0, 0);
	cr_expect_eq(ibv_close_device(context[1]), 0);
	expect_counts(0, 0, 0, 0);
}

/* A program whose standard input is closed: descriptor 0 is the copy that the engine gets. */
Test(embedded, the_engine_may_get_descriptor_0)
{
	int file = memfd_create("domain", MFD_CLOEXEC);
	struct ibv_xrcd_init_attr init = { .comp_mask = IBV_XRCD_INIT_ATTR_FD |
							IBV_XRCD_INIT_ATTR_OFLAGS,
					   .fd = file,
					   .oflags = O_CREAT };
	struct ibv_xrcd *domain;
	struct endpoint e;

	endpoint_open(&e);
	cr_assert_gt(file, STDIN_FILENO);
	close(STDIN_FILENO);
	domain = ibv_open_xrcd(e.context, &init);
	cr_assert_not_null(domain, "%m");
	cr_expect_eq(ibv_close_xrcd(domain), 0);
	endpoint_close(&e);
	close(file);
}

/* ---- names ---- */

static void expect_names(const char *first, const char *second)
{
	const char *const wanted[] = { first, second };
	int n, count = second != NULL ? 2 : 1;
	struct ibv_device **list = ibv_get_device_list(&n);

	cr_assert_not_null(list);
	cr_expect_eq(n, count);
	for (int i = 0; i < n && i < count; i++) {
		cr_expect_str_eq(ibv_get_device_name(list[i]), wanted[i]);
		cr_expect_str_eq(strrchr(list[i]->ibdev_path, '/') + 1, wanted[i]);
	}
	ibv_free_device_list(list);
}

Test(embedded, it_is_one_device_also_where_its_socket_is_found)
{
	setenv("UROCE_SOCKET", path, 1);
	expect_names("uroce0", NULL);
}

Test(embedded, another_engine_of_its_name_is_numbered)
{
	char own[sizeof(path)], why[256], lock[80];
	struct ibv_context *context;
	struct ibv_device **list;
	struct uroce_engine *other;

	memcpy(own, path, sizeof(own));
	snprintf(path, sizeof(path), "/tmp/uroce-other-test-%d.sock", getpid());
	other = make_engine(why, sizeof(why));
	cr_assert_not_null(other, "%s", why);
	setenv("UROCE_SOCKET", path, 1);
	expect_names("uroce0", "uroce1");
	expect_names("uroce0", "uroce1");
	/* a name that a program holds stays, whichever engine comes then */
	list = ibv_get_device_list(NULL);
	context = ibv_open_device(list[1]);
	cr_assert_not_null(context, "%m");
	ibv_free_device_list(list);
	cr_expect_str_eq(ibv_get_device_name(context->device), "uroce1");
	expect_names("uroce0", "uroce1");
	cr_expect_eq(ibv_close_device(context), 0);
	uroce_destroy(other);
	expect_names("uroce0", NULL);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	unlink(lock);
	memcpy(path, own, sizeof(own));
}
