/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory is missing, at each place where a command asks for some (H-110, H-111): the command fails
 * with ENOMEM and leaves nothing, and the next one succeeds. Runs privileged, for raw packets.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/attacker.h"
#include "rig/export_rig.h"

/* The engine's allocations go through here (meson.build: --wrap). */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static int left; /* allocations until the one that fails; 0: it failed; negative: none */

static bool fails(void)
{
	bool now = __atomic_load_n(&left, __ATOMIC_RELAXED) > 0 &&
		   __atomic_sub_fetch(&left, 1, __ATOMIC_RELAXED) == 0;

	if (now)
		errno = ENOMEM;
	return now;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

static uint32_t umasks; /* how often the process's was changed */

mode_t __real_umask(mode_t mask);
mode_t __wrap_umask(mode_t mask);

mode_t __wrap_umask(mode_t mask)
{
	umasks++;
	return __real_umask(mask);
}

static bool mute; /* eventfds cannot be watched: the user has fs.epoll.max_user_watches */

int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	if (__atomic_load_n(&mute, __ATOMIC_RELAXED) && operation == EPOLL_CTL_ADD &&
	    (event->events & EPOLLET) != 0) {
		errno = ENOSPC;
		return -1;
	}
	return __real_epoll_ctl(epoll, operation, fd, event);
}

static int socketless; /* the errno of socketpair(2), or 0 */

int __real_socketpair(int domain, int type, int protocol, int fd[2]);
int __wrap_socketpair(int domain, int type, int protocol, int fd[2]);

int __wrap_socketpair(int domain, int type, int protocol, int fd[2])
{
	int error = __atomic_load_n(&socketless, __ATOMIC_RELAXED);

	if (error == 0)
		return __real_socketpair(domain, type, protocol, fd);
	errno = error;
	return -1;
}

TestSuite(control_faults, .init = control_rig_open, .fini = control_rig_close, .timeout = 60);

/* The objects that the commands made, one after the other; later commands may use them. */
static struct {
	int fd, token;
	struct objects o;
	uint32_t imported, imported_pd;
	uint32_t made, xrcd, target_qpn, wq, table, rss, counters, raw, ud, dm, srq;
} w;

static int make_pd(void)
{
	return ask_handle(w.fd, COMMAND_ALLOC_PD, w.o.context, &w.made);
}

static int make_channel(void)
{
	return ask_handle(w.fd, COMMAND_CREATE_CHANNEL, w.o.context, &w.made);
}

static int make_region(void)
{
	return reg_mr(w.fd, w.o.pd, ACCESS_LOCAL_WRITE, 100, &w.made);
}

static int change_region(void)
{
	struct request_rereg_mr q = { .mr = w.o.mr,
				      .flags = REREG_ACCESS | REREG_TRANSLATION,
				      .access = ACCESS_LOCAL_WRITE,
				      .address = (uintptr_t)memory,
				      .iova = (uintptr_t)memory,
				      .length = 200 };
	struct reply_reg_mr r;

	return ask(w.fd, COMMAND_REREG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int change_access(void)
{
	struct request_rereg_mr q = { .mr = w.o.mr, .flags = REREG_ACCESS, .access = 0 };
	struct reply_reg_mr r;

	return ask(w.fd, COMMAND_REREG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_null_region(void)
{
	struct request_handle q = { .handle = w.o.pd };
	struct reply_reg_mr r;

	return ask(w.fd, COMMAND_ALLOC_NULL_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_window(void)
{
	struct request_alloc_mw q = { .pd = w.o.pd, .type = 2 };
	struct reply_alloc_mw r;

	return ask(w.fd, COMMAND_ALLOC_MW, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_cq(void)
{
	return create_cq(w.fd, w.o.context, w.o.channel, 10, &w.made);
}

static int make_typed_qp(uint32_t type, uint32_t *handle)
{
	struct request_create_qp q = { .pd = w.o.pd,
				       .type = type,
				       .send_cq = w.o.cq,
				       .recv_cq = w.o.cq,
				       .max_send_wr = 4,
				       .max_recv_wr = 4,
				       .max_send_sge = 1,
				       .max_recv_sge = 1 };
	struct reply_create_qp r;
	int error = create_qp(w.fd, &q, &r);

	if (error == 0)
		*handle = r.handle;
	return error;
}

static int make_rc(void)
{
	return make_typed_qp(QP_TYPE_RC, &w.made);
}

static int make_ud(void)
{
	return make_typed_qp(QP_TYPE_UD, &w.ud);
}

static int make_initiator(void)
{
	return make_typed_qp(QP_TYPE_XRC_SEND, &w.made);
}

static int make_raw(void)
{
	return make_typed_qp(QP_TYPE_RAW_PACKET, &w.raw);
}

static int make_work_queue(void)
{
	struct request_create_qp q = { .pd = w.o.pd,
				       .type = QP_TYPE_RAW_PACKET,
				       .send_cq = w.o.cq,
				       .recv_cq = w.o.cq,
				       .max_recv_wr = 4,
				       .max_recv_sge = 1,
				       .raw_flags = RAW_WQ };
	struct reply_create_qp r;
	int error = create_qp(w.fd, &q, &r);

	if (error == 0)
		w.wq = r.handle;
	return error;
}

static int make_table(void)
{
	struct request_create_rwq_table q = { .context = w.o.context, .wq = { w.wq } };
	struct reply_handle r;
	int error =
		ask(w.fd, COMMAND_CREATE_RWQ_TABLE, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		w.table = r.handle;
	return error;
}

static int make_rss(void)
{
	struct request_create_rss q = { .pd = w.o.pd, .table = w.table };
	struct reply_handle r;

	return ask(w.fd, COMMAND_CREATE_RSS, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_counters(void)
{
	return ask_handle(w.fd, COMMAND_CREATE_COUNTERS, w.o.context, &w.counters);
}

static int make_flow(void)
{
	struct request_create_flow q = { .qp = w.raw, .counters = w.counters };
	struct reply_handle r;

	return ask(w.fd, COMMAND_CREATE_FLOW, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_group(void)
{
	struct request_mcast q = { .qp = w.ud, .group = { { [10] = 0xff, 0xff, 239, 1, 2, 3 } } };
	struct reply_empty r;

	return ask(w.fd, COMMAND_ATTACH_MCAST, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_address_handle(void)
{
	struct request_create_ah q = { .pd = w.o.pd, .path = { .is_global = 1, .port_num = 1 } };
	struct reply_device d;
	struct request_empty ask_device = { 0 };
	struct reply_ah r;

	cr_assert_eq(ask(w.fd, COMMAND_DEVICE, &ask_device.h, sizeof(ask_device), &d.h, sizeof(d),
			 NULL, NULL),
		     0);
	q.path.dgid = d.gid[0];
	return ask(w.fd, COMMAND_CREATE_AH, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_domain(void)
{
	struct request_open_xrcd q = { .context = w.o.context, .flags = XRCD_CREATE };
	struct reply_handle r;
	int error = ask(w.fd, COMMAND_OPEN_XRCD, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		w.xrcd = r.handle;
	return error;
}

static int make_target(void)
{
	struct request_create_qp q = { .type = QP_TYPE_XRC_RECV, .xrcd = w.xrcd };
	struct reply_create_qp r;
	int error = create_qp(w.fd, &q, &r);

	if (error == 0)
		w.target_qpn = r.qpn;
	return error;
}

static int open_target(void)
{
	struct request_open_qp q = { .xrcd = w.xrcd,
				     .qpn = w.target_qpn,
				     .type = QP_TYPE_XRC_RECV };
	struct reply_create_qp r;

	return ask(w.fd, COMMAND_OPEN_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_typed_srq(uint32_t type)
{
	struct request_create_srq q = { .pd = w.o.pd,
					.type = type,
					.cq = type != 0 ? w.o.cq : 0,
					.xrcd = type == 1 ? w.xrcd : 0,
					.max_wr = 4,
					.max_sge = 1,
					.max_tags = type == 2 ? 4 : 0,
					.max_ops = type == 2 ? 4 : 0 };
	struct reply_create_srq r;
	int error = ask(w.fd, COMMAND_CREATE_SRQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	if (error == 0)
		w.srq = r.handle;
	return error;
}

static int make_srq(void)
{
	return make_typed_srq(0);
}

static int make_xrc_srq(void)
{
	return make_typed_srq(1);
}

static int make_tag_srq(void)
{
	return make_typed_srq(2);
}

static int resize_srq(void)
{
	struct request_modify_srq q = { .srq = w.srq, .mask = SRQ_ATTR_MAX_WR, .max_wr = 9 };
	struct reply_modify_srq r;

	return ask(w.fd, COMMAND_MODIFY_SRQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static int make_device_memory(void)
{
	return alloc_dm(w.fd, w.o.context, 4096, 0, &w.dm);
}

static int make_device_region(void)
{
	return reg_dm_mr(w.fd,
			 (struct request_reg_dm_mr){
				 .pd = w.o.pd, .dm = w.dm, .length = 4096, .access = DM_ACCESS },
			 &w.made);
}

static int make_context(void)
{
	struct request_empty q = { 0 };
	struct carrier_descriptors out = { 0 };
	struct reply_context r;
	int error = ask(w.fd, COMMAND_OPEN_CONTEXT, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out);

	close_all(&out);
	return error;
}

static int import_it(void)
{
	return import_context(w.fd, w.token, &w.imported);
}

static int import_domain(void)
{
	return import(w.fd, COMMAND_IMPORT_PD, w.imported, w.o.pd, &w.imported_pd);
}

static int import_region(void)
{
	return import(w.fd, COMMAND_IMPORT_MR, w.imported_pd, w.o.mr, &w.made);
}

static int import_memory(void)
{
	return import(w.fd, COMMAND_IMPORT_DM, w.imported, w.dm, &w.made);
}

/* To RTR with room for a peer's READs. */
static int make_records(void)
{
	struct request_modify_qp q = { .qp = w.o.qp,
				       .mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
					       QP_ATTR_ACCESS_FLAGS,
				       .attributes = { .state = QP_STATE_INIT, .port_num = 1 } };
	struct request_empty ask_device = { 0 };
	struct reply_modify_qp r;
	struct reply_device d;

	cr_assert_eq(ask(w.fd, COMMAND_DEVICE, &ask_device.h, sizeof(ask_device), &d.h, sizeof(d),
			 NULL, NULL),
		     0);
	cr_assert_eq(ask(w.fd, COMMAND_MODIFY_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	q.mask = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
		 QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	q.attributes = (struct qp_attributes){
		.state = QP_STATE_RTR,
		.path_mtu = 1,
		.dest_qpn = 17,
		.max_dest_rd_atomic = 16,
		.path = { .is_global = 1, .port_num = 1, .dgid = d.gid[0] }
	};
	return ask(w.fd, COMMAND_MODIFY_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);
}

static const struct {
	const char *name;
	int (*make)(void);
} steps[] = {
	{ "a context", make_context },
	{ "a protection domain", make_pd },
	{ "a channel", make_channel },
	{ "a region", make_region },
	{ "a region elsewhere", change_region },
	{ "a region's access", change_access },
	{ "a null region", make_null_region },
	{ "a window", make_window },
	{ "a CQ", make_cq },
	{ "an RC queue pair", make_rc },
	{ "... that answers READs", make_records },
	{ "a UD queue pair", make_ud },
	{ "a group", make_group },
	{ "an address handle", make_address_handle },
	{ "an XRC initiator", make_initiator },
	{ "an XRC domain", make_domain },
	{ "an XRC target", make_target },
	{ "... opened", open_target },
	{ "an XRC SRQ", make_xrc_srq },
	{ "an SRQ", make_srq },
	{ "... of more requests", resize_srq },
	{ "a tag matching SRQ", make_tag_srq },
	{ "a raw queue pair", make_raw },
	{ "a work queue", make_work_queue },
	{ "an indirection table", make_table },
	{ "a queue pair on it", make_rss },
	{ "counters", make_counters },
	{ "a steering rule", make_flow },
	{ "device memory", make_device_memory },
	{ "a region of it", make_device_region },
	{ "an imported context", import_it },
	{ "an imported domain", import_domain },
	{ "an imported region", import_region },
	{ "imported device memory", import_memory },
};

/* Returns at the first time that no allocation of it failed; how many there are. */
static int with_each_fault(const char *name, int (*make)(void))
{
	struct reply_statistics before;
	int descriptors = count_descriptors();

	statistics(&before);
	for (int at = 1;; at++) {
		int error;

		__atomic_store_n(&left, at, __ATOMIC_RELAXED);
		error = make();
		if (__atomic_exchange_n(&left, -1, __ATOMIC_RELAXED) != 0) {
			cr_assert_eq(error, 0, "%s: %s", name, strerror(error));
			return at - 1;
		}
		cr_assert_eq(error, ENOMEM, "%s, allocation %d: %s", name, at, strerror(error));
		expect_objects(&before, name);
		expect_descriptors(descriptors);
	}
}

/* hostile H-110, H-111, H-144: a create that fails at any step; H-63: so does an attach. */
Test(control_faults, at_each_allocation)
{
	left = -1;
	w.fd = attach();
	make_objects(w.fd, &w.o);
	{
		/* the same program exports and imports */
		uint32_t second = open_with_token(w.fd, &w.token);

		cr_assert_eq(ask_handle(w.fd, COMMAND_CLOSE_CONTEXT, w.o.context, NULL), 0);
		w.o.context = second;
		cr_assert_eq(make_pd(), 0);
		w.o.pd = w.made;
		cr_assert_eq(make_channel(), 0);
		w.o.channel = w.made;
		cr_assert_eq(make_cq(), 0);
		w.o.cq = w.made;
		cr_assert_eq(make_region(), 0);
		w.o.mr = w.made;
		cr_assert_eq(make_rc(), 0);
		w.o.qp = w.made;
	}
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++)
		cr_expect_gt(with_each_fault(steps[i].name, steps[i].make), 0,
			     "%s asks for no memory", steps[i].name);
	close(w.token);
	close(w.fd);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

/* The engine is a library: files that other threads make meanwhile have the modes that they ask for. */
Test(control_faults, the_umask_stays_as_it_is)
{
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600, "%o", st.st_mode);
	cr_expect_eq(umasks, 0);
}

/* Its requests would wait until something else wakes the lcore. */
Test(control_faults, a_program_that_cannot_wake_the_lcores_is_refused)
{
	struct taken t = { 0 };
	uint32_t context;
	int descriptors = count_descriptors();

	left = -1;
	__atomic_store_n(&mute, true, __ATOMIC_RELAXED);
	cr_expect_eq(try_attach(&t, &context), -1);
	cr_expect_eq(t.error, ENOSPC, "%s", strerror(t.error));
	cr_expect_not_null(strstr(t.why, "max_user_watches"), "%s", t.why);
	__atomic_store_n(&mute, false, __ATOMIC_RELAXED);
	expect_descriptors(descriptors);
	expect_counts(0, 0, 0, 0);
	expect_serving();
}

/* Missing memory and missing descriptors are different causes. */
Test(control_faults, why_there_is_no_pair_of_sockets_is_said)
{
	const struct {
		enum command what;
		int error;
	} cases[] = { { COMMAND_CREATE_CHANNEL, ENOBUFS },
		      { COMMAND_CREATE_CHANNEL, EMFILE },
		      { COMMAND_OPEN_CONTEXT, ENOBUFS } };
	int fd, descriptors;
	uint32_t context;

	left = -1;
	fd = attach();
	context = open_context(fd);
	descriptors = count_descriptors();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct request_handle q = { .handle = context };
		struct reply_handle r;

		__atomic_store_n(&socketless, cases[i].error, __ATOMIC_RELAXED);
		cr_expect_eq(ask(fd, cases[i].what, &q.h, request_size(cases[i].what), &r.h,
				 sizeof(r), NULL, NULL),
			     cases[i].error, "case %zu", i);
		cr_expect_not_null(strstr(r.h.why, strerror(cases[i].error)), "case %zu: %s", i,
				   r.h.why);
	}
	__atomic_store_n(&socketless, 0, __ATOMIC_RELAXED);
	expect_descriptors(descriptors);
	close(fd);
	expect_counts(0, 0, 0, 0);
}
