/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client with thousands of objects, or gibibytes of memory, dies or closes its context:
 * the commands and data of other programs go on meanwhile (hostile H-123). The test measures the
 * processor time that the freeing thread used before a command was answered: that is how long the
 * command waited for it, however busy the machine is.
 */
#include <criterion/logging.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "rig/attacker.h"
#include "base/bits.h"
#include "control/control.h"
#include "../verbs/rig/endpoint.h"
#include "../verbs/rig/starved.h"

#define QUEUES	     10000u /* freed in one piece they keep a command waiting for about 0.07 s */
#define FILES	     3u /* each keeps a command waiting for 0.1 s if it is freed in one piece */
#define FILE_OCTETS  ((size_t)1 << 30)
#define COMMAND_SLOW 0.05 /* seconds: a slice has 2 ms */
#define DATA_SLOW    0.1
#define TRIES	     4 /* some hypervisors take a processor for 0.1 s and do not say so */
#define STANDS_STILL 60.0 /* seconds in which nothing is freed: it hangs */

static void begin(void)
{
	setenv("UROCE_SOCKET", "/nonexistent", 1); /* nobody but ourselves */
	control_rig_open();
	cr_assert_eq(uroce_register(engine), 0, "libibverbs.so.1 of this build is not loaded");
}

TestSuite(control_reclaim, .init = begin, .timeout = 240);

/* ---- the program that dies ---- */

static int attacker_fd; /* in its own process */
static uint32_t attacker_context;

/* Their rings are pages of the arena, which are given back one by one. */
static void take_queues(struct taken *t)
{
	struct request_create_qp q = { .type = QP_TYPE_RC,
				       .max_send_wr = 60,
				       .max_recv_wr = 60,
				       .max_send_sge = 2,
				       .max_recv_sge = 2 };
	struct request_create_cq cq = { .cqe = 100 };
	struct reply_create_cq r;
	int fd = try_attach(t, &cq.context);

	if (fd < 0 || ask_handle(fd, COMMAND_ALLOC_PD, cq.context, &q.pd) != 0 ||
	    ask(fd, COMMAND_CREATE_CQ, &cq.h, sizeof(cq), &r.h, sizeof(r), NULL, NULL) != 0)
		return;
	q.send_cq = q.recv_cq = r.handle;
	take_many(fd, COMMAND_CREATE_QP, &q.h, sizeof(q), QUEUES, t);
	attacker_fd = fd;
	attacker_context = cq.context;
}

/*
 * The answer comes when everything is gone: another context can have as much, and the handle is
 * unknown.
 */
static bool close_context(void)
{
	return ask_handle(attacker_fd, COMMAND_CLOSE_CONTEXT, attacker_context, NULL) == 0 &&
	       ask_handle(attacker_fd, COMMAND_CLOSE_CONTEXT, attacker_context, NULL) == EINVAL;
}

/* ... and dies, while it is under way. */
static bool begin_to_close_context(void)
{
	struct request_handle q = { .handle = attacker_context };

	q.h.magic = COMMAND_MAGIC;
	q.h.version = COMMAND_VERSION;
	q.h.command = COMMAND_CLOSE_CONTEXT;
	q.h.length = sizeof(q);
	return send(attacker_fd, &q, sizeof(q), MSG_NOSIGNAL) == (ssize_t)sizeof(q);
}

static int filled_file(size_t octets)
{
	int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fallocate(fd, 0, 0, (off_t)octets) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
		_exit(2);
	return fd;
}

static int register_file(int fd, uint32_t pd, int file, uint64_t octets)
{
	uint8_t message[sizeof(struct request_reg_mr) + sizeof(struct mr_backing)]
		__attribute__((aligned(8))) = { 0 };
	struct request_reg_mr *q = (struct request_reg_mr *)(void *)message;
	struct carrier_descriptors in = { .count = 1, .fd = { file } };
	struct reply_reg_mr r;

	q->pd = pd;
	q->access = ACCESS_LOCAL_WRITE;
	q->address = q->iova = 4096;
	q->length = octets;
	q->backings = 1;
	q->backing[0] = (struct mr_backing){ .length = octets, .writable = 1 };
	return ask(fd, COMMAND_REG_MR, &q->h, sizeof(message), &r.h, sizeof(r), &in, NULL);
}

/* Regions of files that no other process has: their pages go with the engine's mapping. */
static void take_files(struct taken *t)
{
	uint32_t context, pd = 0;
	int fd = try_attach(t, &context);

	if (fd < 0 || ask_handle(fd, COMMAND_ALLOC_PD, context, &pd) != 0)
		return;
	while (t->n < FILES && t->error == 0) {
		int file = filled_file(FILE_OCTETS);

		t->error = register_file(fd, pd, file, FILE_OCTETS);
		t->n += t->error == 0;
		close(file);
	}
}

/* ---- the programs beside it ---- */

struct slowest {
	double command, data;
};

/*
 * What the thread that frees had of a processor until two commands of another program were answered,
 * less the time in which we could not hear of it, or in which the processor itself was somebody else's.
 */
static double ask_beside(const struct starved *s, int fd, uint32_t context,
			 double (*seconds_of_freeing)(void))
{
	double deaf = seconds_without_processor() + starved_stolen(s), used = seconds_of_freeing();
	uint32_t pd;

	cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, context, &pd), 0);
	cr_assert_eq(ask_handle(fd, COMMAND_DEALLOC_PD, pd, NULL), 0);
	used = seconds_of_freeing() - used;
	return used - (seconds_without_processor() + starved_stolen(s) - deaf);
}

struct progress {
	uint32_t left; /* queue pairs and regions */
	double since; /* ... there are so many */
};

static bool stands_still(struct progress *p)
{
	const struct engine *inside = (const struct engine *)(const void *)engine;
	/* without the lock, which the others wait for */
	uint32_t left = __atomic_load_n(&inside->qp_count, __ATOMIC_RELAXED) +
			__atomic_load_n(&inside->mr_count, __ATOMIC_RELAXED);

	if (left != p->left)
		*p = (struct progress){ .left = left, .since = starved_now() };
	return starved_now() - p->since > STANDS_STILL;
}

/* From before the attacker's end until nothing is left of it. */
static void expect_going_on(struct endpoint *e, struct attacker *a, int fd, struct slowest *s)
{
	const struct engine *inside = (const struct engine *)(const void *)engine;
	uint32_t context = open_context(fd);
	struct progress progress = { .since = starved_now() };
	struct starved starved;
	bool left = true;

	starved_open(&starved);
	attack_let_go(a);
	while (left && !stands_still(&progress)) {
		double used = ask_beside(&starved, fd, context, seconds_of_control), took;

		s->command = used > s->command ? used : s->command;
		took = starved_write(&starved, e, 1);
		s->data = took > s->data ? took : s->data;
		left = __atomic_load_n(&inside->client_count, __ATOMIC_RELAXED) > 2;
	}
	starved_close(&starved);
	cr_assert_not(left, "the attacker's objects are still there");
	attack_end(a);
	cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
}

static struct slowest die_once(void (*take)(struct taken *t), uint64_t wanted, bool (*last)(void))
{
	struct slowest s = { 0 };
	struct endpoint e;
	struct attacker a;
	struct taken t;
	int fd = attach();

	endpoint_open(&e);
	attack_begin_with(&a, take, last);
	t = attack_result(&a);
	cr_assert_eq(t.n, wanted, "%lu: %d %s", (unsigned long)t.n, t.error, t.why);
	expect_going_on(&e, &a, fd, &s);
	endpoint_close(&e);
	close(fd);
	expect_counts(0, 0, 0, 0);
	return s;
}

static bool is_quick(const struct slowest *s)
{
	cr_log_info("commands took up to %.3f s, WRITEs up to %.3f s", s->command, s->data);
	return s->command < COMMAND_SLOW && s->data < DATA_SLOW;
}

static void expect_quick(const struct slowest *s)
{
	cr_expect_lt(s->command, COMMAND_SLOW, "a command took %.3f s", s->command);
	cr_expect_lt(s->data, DATA_SLOW, "a WRITE took %.3f s", s->data);
}

/* What the engine does in one piece is slow each time. */
static void expect_no_stall(void (*take)(struct taken *t), uint64_t wanted, bool (*last)(void))
{
	struct slowest s = die_once(take, wanted, last);

	for (int i = 1; i < TRIES && !is_quick(&s); i++)
		s = die_once(take, wanted, last);
	expect_quick(&s);
	control_rig_close();
}

/* hostile H-123: each of these. */
Test(control_reclaim, files)
{
	expect_no_stall(take_files, FILES, NULL);
}

/* hostile H-123: ... */
Test(control_reclaim, queue_pairs)
{
	expect_no_stall(take_queues, QUEUES, NULL);
}

/* hostile H-123: ... */
Test(control_reclaim, a_context_is_closed)
{
	expect_no_stall(take_queues, QUEUES, close_context);
}

/* hostile H-123: ... */
Test(control_reclaim, a_client_dies_while_its_context_is_closed)
{
	expect_no_stall(take_queues, QUEUES, begin_to_close_context);
}

/* ---- the program that has the engine inside ---- */

static struct ibv_qp *own_qp[QUEUES]; /* the library's objects stay: only the engine's are closed */

struct closing {
	struct ibv_context *context;
	pthread_t thread;
	int result;
	uint32_t over; /* atomic */
	int go[2]; /* pipe: it may end */
};

static void make_own(struct ibv_context *context)
{
	struct ibv_qp_init_attr init = { .cap = { 60, 60, 2, 2, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_pd *pd = ibv_alloc_pd(context);

	init.send_cq = init.recv_cq = ibv_create_cq(context, 100, NULL, NULL, 0);
	cr_assert(pd != NULL && init.send_cq != NULL, "%m");
	for (uint32_t i = 0; i < QUEUES; i++) {
		own_qp[i] = ibv_create_qp(pd, &init);
		cr_assert_not_null(own_qp[i], "queue pair %u: %m", i);
	}
}

static void *close_own(void *arg)
{
	struct closing *c = arg;
	char octet;

	c->result = ibv_close_device(c->context);
	__atomic_store_n(&c->over, 1, __ATOMIC_RELEASE);
	return read(c->go[0], &octet, 1) == 0 ? NULL : c; /* its clock is looked at until then */
}

static clockid_t closing_clock;

static double seconds_of_closing(void)
{
	struct timespec t;

	cr_assert_eq(clock_gettime(closing_clock, &t), 0, "%m");
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Commands of another program and WRITEs of ours while the thread closes the context. */
static struct slowest close_beside(struct closing *c, struct endpoint *e, int fd)
{
	uint32_t context = open_context(fd);
	struct slowest s = { 0 };
	struct starved starved;

	cr_assert_eq(pipe(c->go), 0);
	cr_assert_eq(pthread_create(&c->thread, NULL, close_own, c), 0);
	cr_assert_eq(pthread_getcpuclockid(c->thread, &closing_clock), 0);
	starved_open(&starved);
	while (!__atomic_load_n(&c->over, __ATOMIC_ACQUIRE)) {
		double used = ask_beside(&starved, fd, context, seconds_of_closing), took;

		s.command = used > s.command ? used : s.command;
		took = starved_write(&starved, e, 1);
		s.data = took > s.data ? took : s.data;
	}
	starved_close(&starved);
	close(c->go[1]);
	cr_assert_eq(pthread_join(c->thread, NULL), 0);
	close(c->go[0]);
	cr_assert_eq(c->result, 0);
	cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
	return s;
}

static struct slowest close_once(void)
{
	int fd = attach();
	struct closing c = { 0 };
	struct slowest s;
	struct endpoint e;

	endpoint_open(&e);
	c.context = open_only_device();
	make_own(c.context);
	s = close_beside(&c, &e, fd);
	endpoint_close(&e);
	close(fd);
	expect_counts(1, 0, 0, 0); /* the library has not forgotten the closed objects */
	return s;
}

/* hostile H-123: ... */
Test(control_reclaim, the_embedding_program_closes_a_context)
{
	struct slowest s = close_once();

	for (int i = 1; i < TRIES && !is_quick(&s); i++)
		s = close_once();
	expect_quick(&s);
	control_rig_close();
}
