/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of another user takes all that it can get from the engine (hostile H-122). It is refused at
 * its share, with a reason. Programs of root are served all the while: a pair that works already, and one
 * that begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rig/attacker.h"
#include "base/bits.h"
#include "rig/beside.h"
#include "control/control.h"
#include "lcore/srq.h"

TestSuite(control_quota, .init = control_rig_open, .timeout = 240);

static struct users *users(void)
{
	return &((struct engine *)engine)->control->users;
}

/*
 * As if the engine had room for so many. The real limits differ by the number alone: `user` counts up
 * to each, and verbs/maxima makes as many objects as one program may have.
 */
static uint64_t room_for(enum resource r, uint64_t most)
{
	struct users *all = users();

	all->of_program[r] = all->of_program[r] * most / all->limit[r];
	all->limit[r] = most;
	return most;
}

#define FEW 8192u /* objects */

static uint64_t counted(void)
{
	struct reply_statistics s;

	statistics(&s);
	return s.by_reason[REASON_SHARE_USED];
}

/* A program of root, from its beginning to a queue pair. */
static void expect_service(const char *while_what)
{
	struct objects o;
	int fd = attach();

	make_objects(fd, &o);
	cr_expect_neq(o.qp, 0, "%s", while_what);
	close(fd);
}

static struct beside pair; /* it has one of each kind of object */

/* Runs the attack beside the pair; the attacker keeps what it took. */
static struct taken attack(struct attacker *a, void (*take)(struct taken *t))
{
	beside_open(&pair);
	attack_begin(a, take);
	do
		beside_once(&pair);
	while (!attack_is_over(a, 1));
	beside_once(&pair);
	return attack_result(a);
}

static void end(struct attacker *a)
{
	attack_end(a);
	beside_close(&pair);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}

/* ---- files that the engine maps ---- */

#define SPARSE (UINT64_C(1) << 47)

static int sealed_file(uint64_t octets)
{
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (ftruncate(fd, (off_t)octets) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		_exit(2);
	return fd;
}

/* One region of `backings` parts of the file, a page apart, as much of it as fits. */
static int register_file(int fd, uint32_t pd, int file, uint64_t octets, uint32_t backings)
{
	size_t size = sizeof(struct request_reg_mr) + backings * sizeof(struct mr_backing);
	struct carrier_descriptors in = { .count = 1, .fd = { file } };
	struct request_reg_mr *q = calloc(1, size);
	struct reply_reg_mr r;
	int error;

	q->pd = pd;
	q->access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE;
	q->address = q->iova = 4096;
	q->length = octets;
	q->backings = backings;
	for (uint32_t i = 0; i < backings; i++)
		q->backing[i] = (struct mr_backing){ .offset = octets / backings * i,
						     .length = octets / backings / 2,
						     .file_offset = octets / backings * i,
						     .writable = 1 };
	error = ask(fd, COMMAND_REG_MR, &q->h, size, &r.h, sizeof(r), &in, NULL);
	free(q);
	return error;
}

static void register_files(struct taken *t, uint64_t octets, uint32_t backings, uint64_t most)
{
	uint32_t context, pd = 0;
	int fd = try_attach(t, &context), file = sealed_file(octets);

	if (fd < 0 || ask_handle(fd, COMMAND_ALLOC_PD, context, &pd) != 0)
		return;
	while (t->n < most && t->error == 0) {
		t->error = register_file(fd, pd, file, octets, backings);
		t->n += t->error == 0;
	}
}

/* Large ones while they fit, then smaller ones. */
static void register_sparse(struct taken *t)
{
	int fd, file = sealed_file(SPARSE);
	uint32_t context, pd = 0;

	fd = try_attach(t, &context);
	if (fd < 0 || ask_handle(fd, COMMAND_ALLOC_PD, context, &pd) != 0)
		return;
	while (t->n < 216 && t->error == 0) {
		t->error = register_file(fd, pd, file, SPARSE >> t->n / 12, 1);
		t->n += t->error == 0;
	}
}

/*
 * Regions of a file that holds nothing and is larger than the address space: as peer memory.
 * hostile H-122: all addresses that can be had.
 */
Test(control_quota, addresses_for_sparse_files)
{
	struct attacker a;
	struct taken t = attack(&a, register_sparse);

	expect_service("the attacker has registered a sparse file again and again");
	cr_expect_eq(t.error, 0, "peer memory needs no addresses: %d", t.error);
	cr_expect_eq(t.n, 216);
	end(&a);
}

static void register_pieces(struct taken *t)
{
	register_files(t, UINT64_C(64) * 2 * 4096, 64, 1100);
}

/*
 * A file is mapped once, however many regions are in it.
 * hostile H-122: all mappings that can be had.
 */
Test(control_quota, mappings_of_one_file)
{
	struct attacker a;
	struct taken t = attack(&a, register_pieces);

	expect_service("the attacker has 1,100 regions of 64 backings");
	cr_expect_eq(t.n, 1100, "%d", t.error);
	cr_expect_lt(users()->all[RESOURCE_MAPPINGS], 1000, "mappings");
	end(&a);
}

/* ---- descriptors ---- */

static void few_descriptors(void)
{
	struct rlimit limit = { 1000, 1000 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	control_rig_open();
}

/* Two programs: one alone has no more than half. */
static void take_channels(struct taken *t)
{
	for (int i = 0; i < 2; i++) {
		struct request_handle q = { 0 };
		int fd = try_attach(t, &q.handle);

		if (fd < 0)
			return;
		take_many(fd, COMMAND_CREATE_CHANNEL, &q.h, sizeof(q), 100000, t);
		take_many(fd, COMMAND_CM_CREATE_CHANNEL, &q.h, sizeof(struct request_empty), 100000,
			  t);
	}
}

TestSuite(control_quota_of_few, .init = few_descriptors, .timeout = 120);

/* hostile H-122: all descriptors that can be had. */
Test(control_quota_of_few, descriptors_for_channels)
{
	struct attacker a;
	struct taken t = attack(&a, take_channels);

	cr_expect_gt(counted(), 0, "`uroce stat` says nothing of it");
	expect_service("the attacker has all the channels it is given");
	cr_expect_eq(t.error, ENOMEM, "%d", t.error);
	cr_expect_not_null(strstr(t.why, "per-user limit"), "%s", t.why);
	cr_expect_not_null(strstr(t.why, "descriptors of the engine"), "%s", t.why);
	cr_expect_gt(t.n, 300, "%lu", (unsigned long)t.n);
	cr_expect_lt(t.n, 750, "%lu of %lu", (unsigned long)t.n,
		     (unsigned long)users()->limit[RESOURCE_DESCRIPTORS]);
	end(&a);
}

/* ---- objects ---- */

/* Null regions cost little: what counts is their number, and that of their keys. */
static void take_regions(struct taken *t)
{
	for (int i = 0; i < 3; i++) {
		struct request_handle q = { 0 };
		uint32_t context;
		int fd = try_attach(t, &context);

		if (fd < 0 || ask_handle(fd, COMMAND_ALLOC_PD, context, &q.handle) != 0)
			return;
		take_many(fd, COMMAND_ALLOC_NULL_MR, &q.h, sizeof(q), UINT64_MAX, t);
	}
}

/* hostile H-122: all objects that can be had. */
Test(control_quota, regions)
{
	uint64_t most = room_for(RESOURCE_MRS, FEW);
	struct attacker a;
	struct taken t = attack(&a, take_regions);

	cr_expect_gt(counted(), 0, "`uroce stat` says nothing of it");
	expect_service("the attacker has all the regions it is given");
	cr_expect_eq(t.error, ENOMEM, "%d", t.error);
	cr_expect_eq(t.n, most / 4 * 3 - 1, "%lu", (unsigned long)t.n);
	cr_expect_not_null(strstr(t.why, "per-user limit"), "%s", t.why);
	end(&a);
}

static void take_domains(struct taken *t)
{
	for (int i = 0; i < 5; i++) {
		struct request_handle q = { 0 };
		int fd = try_attach(t, &q.handle);

		if (fd < 0)
			return;
		take_many(fd, COMMAND_ALLOC_PD, &q.h, sizeof(q), UINT64_MAX, t);
	}
}

Test(control_quota, protection_domains)
{
	uint64_t most = room_for(RESOURCE_PDS, FEW);
	struct attacker a;
	struct taken t = attack(&a, take_domains);

	expect_service("the attacker has all the protection domains it is given");
	cr_expect_eq(t.error, ENOMEM, "%d", t.error);
	cr_expect_eq(t.n, most / 4 * 3 - 1, "%lu", (unsigned long)t.n);
	end(&a);
}

static void take_queues(struct taken *t)
{
	for (int i = 0; i < 4; i++) {
		struct request_create_cq q = { .cqe = 1 };
		int fd = try_attach(t, &q.context);

		if (fd < 0)
			return;
		take_many(fd, COMMAND_CREATE_CQ, &q.h, sizeof(q), UINT64_MAX, t);
	}
}

Test(control_quota, completion_queues)
{
	uint64_t most = room_for(RESOURCE_CQS, FEW);
	struct attacker a;
	struct taken t = attack(&a, take_queues);

	expect_service("the attacker has all the completion queues it is given");
	cr_expect_eq(t.error, ENOMEM, "%d", t.error);
	cr_expect_eq(t.n, most / 4 * 3 - 1, "%lu", (unsigned long)t.n);
	end(&a);
}

/* ---- memory of queues ---- */

#define OF_QUEUES (UINT64_C(1) << 30)

static uint64_t charged(void)
{
	return __atomic_load_n(&users()->all[RESOURCE_QUEUES], __ATOMIC_RELAXED);
}

/* Two programs: one alone has no more than half. */
static void take_large_queues(struct taken *t)
{
	for (int i = 0; i < 2; i++) {
		struct request_create_cq q = { .cqe = 65535 };
		int fd = try_attach(t, &q.context);

		if (fd < 0)
			return;
		take_many(fd, COMMAND_CREATE_CQ, &q.h, sizeof(q), UINT64_MAX, t);
	}
}

/* hostile H-122: an engine touches pages of queues, and the kernel charges them to the engine. */
Test(control_quota, memory_for_queues)
{
	uint64_t most = room_for(RESOURCE_QUEUES, OF_QUEUES);
	struct attacker a;
	struct taken t = attack(&a, take_large_queues);

	expect_service("the attacker has all the memory for queues that it is given");
	cr_expect_eq(t.error, ENOMEM, "%d", t.error);
	cr_expect_not_null(strstr(t.why, "octets of queues"), "%s", t.why);
	cr_expect_leq(t.n * 65536 * sizeof(struct completion), most / 4 * 3, "%lu",
		      (unsigned long)t.n);
	cr_expect_gt(t.n * 65536 * sizeof(struct completion), most / 8 * 5, "%lu",
		     (unsigned long)t.n);
	end(&a);
}

static uint32_t create_srq(int fd, const struct objects *o, uint32_t type)
{
	struct request_create_srq q = {
		.pd = o->pd, .cq = o->cq, .type = type, .max_wr = 100, .max_sge = 1
	};
	struct reply_create_srq r;

	if (type == SRQ_TYPE_TM)
		q.max_tags = q.max_ops = 100;
	cr_assert_eq(ask(fd, COMMAND_CREATE_SRQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
	return r.handle;
}

static uint32_t create_event_channel(int fd)
{
	struct carrier_descriptors out = { 0 };
	struct request_empty q = { 0 };
	struct reply_cm_channel r;

	cr_assert_eq(
		ask(fd, COMMAND_CM_CREATE_CHANNEL, &q.h, sizeof(q), &r.h, sizeof(r), NULL, &out),
		0);
	cr_assert_eq(out.count, 1);
	close(out.fd[0]);
	return r.handle;
}

static void resize_cq(int fd, uint32_t cq)
{
	struct request_resize_cq q = { .cq = cq, .cqe = 60000 };
	struct reply_create_cq r;

	cr_assert_eq(ask(fd, COMMAND_RESIZE_CQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
}

static void resize_srq(int fd, uint32_t srq)
{
	struct request_modify_srq q = { .srq = srq, .mask = SRQ_ATTR_MAX_WR, .max_wr = 10000 };
	struct reply_modify_srq r;

	cr_assert_eq(ask(fd, COMMAND_MODIFY_SRQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0);
}

/* Destroys it. What it had must be at least `least`, and is charged no longer. */
static void expect_charged(int fd, enum command destroy, uint32_t handle, uint64_t before,
			   uint64_t least)
{
	uint64_t with = charged();
	uint32_t events;

	cr_expect_geq(with - before, least, "%u: %lu", destroy, (unsigned long)(with - before));
	cr_assert_eq(ask_handle(fd, destroy, handle, &events), 0);
	cr_expect_eq(charged(), before, "%u leaves %ld", destroy, (long)(charged() - before));
}

Test(control_quota, each_kind_of_queue_is_charged)
{
	uint64_t none = charged(), before;
	int fd = attach();
	struct objects o;
	uint32_t handle;

	make_objects(fd, &o);
	before = charged();
	cr_assert_eq(create_cq(fd, o.context, 0, 1000, &handle), 0);
	resize_cq(fd, handle);
	expect_charged(fd, COMMAND_DESTROY_CQ, handle, before, 61000 * sizeof(struct completion));
	handle = create_srq(fd, &o, SRQ_TYPE_BASIC);
	resize_srq(fd, handle);
	expect_charged(fd, COMMAND_DESTROY_SRQ, handle, before, 10100 * sizeof(struct recv_work));
	handle = create_srq(fd, &o, SRQ_TYPE_TM);
	expect_charged(fd, COMMAND_DESTROY_SRQ, handle, before,
		       100 * sizeof(struct recv_work) + 100 * sizeof(struct tag_work));
	handle = create_event_channel(fd);
	cr_expect_geq(charged() - before, LIMIT_CM_SHOWN * sizeof(struct reply_cm_event));
	cr_assert_eq(ask_handle(fd, COMMAND_CM_DESTROY_CHANNEL, handle, NULL), 0);
	cr_expect_eq(charged(), before, "%lu", (unsigned long)charged());
	cr_assert_eq(ask_handle(fd, COMMAND_DESTROY_QP, o.qp, &handle), 0);
	cr_expect_leq(charged() + 10 * (sizeof(struct send_work) + sizeof(struct recv_work)),
		      before, "%lu", (unsigned long)charged());
	close(fd);
	expect_counts(0, 0, 0, 0);
	cr_expect_eq(charged(), none, "%lu", (unsigned long)charged());
	control_rig_close();
}
