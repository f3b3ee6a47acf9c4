/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One program can have as many objects as the device's attributes announce; one more is refused
 * with ENOMEM. Another program still has its own share meanwhile. (The tests of each kind try the sizes
 * of objects.) Runs with an engine at $UROCE_SOCKET; the test of groups also with one on a Linux interface.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/ud.h"

/* its end destroys all of them; one by one it would take long */
static struct ibv_context *context;
static struct ibv_device_attr_ex device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint8_t octets[64];
static void **made;
static pid_t other; /* a program that makes one object of the kind we name */
static int to_other[2], from_other[2];

static bool open_own(void)
{
	context = open_only_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 8, NULL, NULL, 0);
	return pd != NULL && cq != NULL && ibv_query_device_ex(context, NULL, &device) == 0;
}

/* The functions have the same addresses there. */
static void be_other(void)
{
	void *(*make)(void);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(to_other[0], &make, sizeof(make)) == sizeof(make)) {
		int error;

		errno = 0;
		error = (context != NULL || open_own()) && make() != NULL ? 0 : errno;
		if (write(from_other[1], &error, sizeof(error)) != sizeof(error))
			break;
	}
	_exit(0);
}

static void open_device(void)
{
	cr_assert_eq(pipe(to_other), 0);
	cr_assert_eq(pipe(from_other), 0);
	other = fork();
	if (other == 0)
		be_other();
	cr_assert(open_own(), "%m");
}

static void expect_other(void *(*make)(void), const char *what)
{
	int error = -1;

	cr_assert_eq(write(to_other[1], &make, sizeof(make)), (ssize_t)sizeof(make));
	cr_assert_eq(read(from_other[0], &error, sizeof(error)), (ssize_t)sizeof(error));
	cr_expect_eq(error, 0, "another program's %s: %s", what, strerror(error));
}

static void close_device(void)
{
	cr_expect_eq(kill(other, SIGKILL), 0);
	cr_expect_eq(waitpid(other, NULL, 0), other);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
	free(made);
}

TestSuite(maxima, .init = open_device, .fini = close_device, .timeout = 240);

/* `there`: how many there are already. */
static void fill(const char *what, int most, int there, void *(*make)(void), int (*destroy)(void *))
{
	int n = most - there;

	cr_assert_gt(n, 0, "%s: %d are announced", what, most);
	made = calloc((size_t)n, sizeof(*made));
	cr_assert_not_null(made);
	for (int i = 0; i < n; i++) {
		made[i] = make();
		cr_assert_not_null(made[i], "%s %d of %d: %m", what, i + 1, n);
	}
	errno = 0;
	cr_expect_null(make(), "one %s too many", what);
	cr_expect_eq(errno, ENOMEM, "%s: %m", what);
	expect_other(make, what);
	cr_assert_eq(destroy(made[0]), 0);
	made[0] = make();
	cr_expect_not_null(made[0], "%s: one goes, one comes: %m", what);
	cr_assert_eq(ibv_close_device(context), 0);
	for (int i = 0; i < n; i++)
		cr_assert_eq(destroy(made[i]), 0, "%s %d: its memory", what, i);
}

static void *make_pd(void)
{
	return ibv_alloc_pd(context);
}

static int destroy_pd(void *p)
{
	return ibv_dealloc_pd(p);
}

Test(maxima, protection_domains)
{
	fill("protection domain", device.orig_attr.max_pd, 1, make_pd, destroy_pd);
}

static void *make_cq(void)
{
	return ibv_create_cq(context, 1, NULL, NULL, 0);
}

static int destroy_cq(void *p)
{
	return ibv_destroy_cq(p);
}

/* hostile H-122: as many as allowed, and more. */
Test(maxima, completion_queues)
{
	fill("completion queue", device.orig_attr.max_cq, 1, make_cq, destroy_cq);
}

static void *make_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { 1, 1, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};

	return ibv_create_qp(pd, &init);
}

static int destroy_qp(void *p)
{
	return ibv_destroy_qp(p);
}

/* hostile H-122: as many as allowed, and more. */
Test(maxima, queue_pairs)
{
	fill("queue pair", device.orig_attr.max_qp, 0, make_qp, destroy_qp);
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };

	return ibv_create_srq(pd, &init);
}

static int destroy_srq(void *p)
{
	return ibv_destroy_srq(p);
}

Test(maxima, shared_receive_queues)
{
	fill("shared receive queue", device.orig_attr.max_srq, 0, make_srq, destroy_srq);
}

/* Regions and windows are counted together; windows are made faster. */
static void *make_window(void)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}

static int destroy_window(void *p)
{
	return ibv_dealloc_mw(p);
}

static void *make_region(void)
{
	return ibv_reg_mr(pd, octets, sizeof(octets), IBV_ACCESS_LOCAL_WRITE);
}

static int destroy_region(void *p)
{
	return ibv_dereg_mr(p);
}

/* hostile H-122: as many as allowed, and more. */
Test(maxima, windows_and_regions)
{
	const int most = device.orig_attr.max_mw, windows = most - 1000;
	void **window = calloc((size_t)windows, sizeof(*window));

	cr_assert_eq(device.orig_attr.max_mr, most);
	cr_assert_not_null(window);
	for (int i = 0; i < windows; i++) {
		window[i] = make_window();
		cr_assert_not_null(window[i], "window %d: %m", i + 1);
	}
	fill("region", most, windows, make_region, destroy_region);
	for (int i = 0; i < windows; i++)
		cr_assert_eq(destroy_window(window[i]), 0);
	free(window);
}

static void *make_ah(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };

	attr.grh.sgid_index = GID_INDEX;
	cr_assert_eq(ibv_query_gid(context, 1, GID_INDEX, &attr.grh.dgid), 0);
	return ibv_create_ah(pd, &attr);
}

static int destroy_ah(void *p)
{
	return ibv_destroy_ah(p);
}

Test(maxima, address_handles)
{
	fill("address handle", device.orig_attr.max_ah, 0, make_ah, destroy_ah);
}

static struct ibv_qp *member;

/* A different one each time; NULL: the attach failed. */
static void *make_member(void)
{
	static uint32_t n;
	union ibv_gid group = ipv4_gid(239, (uint8_t)getpid(), (uint8_t)(n >> 8), (uint8_t)n);
	int error;

	if (member == NULL) {
		struct ibv_qp_init_attr init = { .send_cq = cq,
						 .recv_cq = cq,
						 .cap = { 1, 1, 1, 1, 0 },
						 .qp_type = IBV_QPT_UD };

		member = ibv_create_qp(pd, &init);
		cr_assert_not_null(member, "%m");
		cr_assert_eq(ud_ready(member, UD_QKEY), 0);
	}
	n++;
	error = ibv_attach_mcast(member, &group, 0);
	errno = error;
	return error == 0 ? member : NULL;
}

/* hostile H-63: endless groups. */
Test(maxima, groups)
{
	for (int i = 0; i < device.orig_attr.max_mcast_grp; i++)
		cr_assert_not_null(make_member(), "group %d: %m", i);
	cr_expect_null(make_member(), "one group too many");
	cr_expect_eq(errno, ENOMEM, "%m");
	for (int i = 0; i < device.orig_attr.max_mcast_grp; i++)
		expect_other(make_member, "group");
	cr_assert_eq(ibv_close_device(context), 0);
	cr_expect_eq(ibv_destroy_qp(member), 0, "its memory");
}

/*
 * The longest region; none of its pages needs to exist.
 * hostile H-155: regions of many gigabytes.
 */
Test(maxima, octets_of_a_region)
{
	struct ibv_mr *mr = (ibv_reg_mr)(pd, (void *)4096, device.orig_attr.max_mr_size,
					 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);

	cr_assert_not_null(mr, "%m");
	cr_expect_eq(mr->length, device.orig_attr.max_mr_size);
	cr_expect_eq(ibv_dereg_mr(mr), 0);
	errno = 0;
	cr_expect_null((ibv_reg_mr)(pd, (void *)4096, device.orig_attr.max_mr_size + 1,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND));
	cr_expect_eq(errno, EINVAL);
	cr_assert_eq(ibv_close_device(context), 0);
}

/* READs under way, on both sides. */
Test(maxima, outstanding_reads)
{
	struct endpoint e;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	const int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	const int rts = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

	cr_assert_eq(ibv_close_device(context), 0);
	endpoint_open(&e);
	cr_assert_eq(ibv_modify_qp(e.qp[0], &attr, IBV_QP_STATE), 0);
	cr_assert_eq(endpoint_to_init(e.qp[0]), 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = e.qp[0]->qp_num,
		.max_dest_rd_atomic = (uint8_t)device.orig_attr.max_qp_rd_atom,
		.max_rd_atomic = (uint8_t)device.orig_attr.max_qp_init_rd_atom,
		.timeout = 14,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};
	cr_assert_eq(ibv_modify_qp(e.qp[0], &attr, rtr), 0);
	attr.qp_state = IBV_QPS_RTS;
	cr_assert_eq(ibv_modify_qp(e.qp[0], &attr, rts), 0);
	cr_assert_eq(ibv_query_qp(e.qp[0], &attr, IBV_QP_STATE, &init), 0);
	cr_expect_eq(attr.max_rd_atomic, device.orig_attr.max_qp_init_rd_atom);
	cr_expect_eq(attr.max_dest_rd_atomic, device.orig_attr.max_qp_rd_atom);
	endpoint_close(&e);
}
