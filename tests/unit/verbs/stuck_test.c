/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs whose registered memory blocks for ever (mute_fuse.h): every kind of request reads or
 * writes it; then they are killed or deregister it. Meanwhile a healthy pair goes on, and so does
 * the control path.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "endpoint.h"
#include "engine_objects.h"
#include "mute_fuse.h"

#define NOBODY	 65534
#define SOMEBODY 1234
#define PAGE	 4096u

#define DATA_GAP     0.1 /* seconds: between two completions of the healthy pair */
#define CONTROL_TIME 0.2 /* of one of its commands */
#define TRIES	     10 /* other work on the machine makes gaps, too */
#define ENOUGH	     100 /* commands and writes that are looked at after each event */

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool become(uid_t uid)
{
	if (uid != 0 && setresuid(uid, uid, uid) != 0)
		return false;
	/* Changing the user resets both. */
	return prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/* ---- the programs with memory that blocks ---- */

enum use {
	GATHERED, /* a WRITE of its octets */
	WRITTEN,
	READ_INTO,
	SENT_TO,
	COUNTED, /* by an atomic */
	THROUGH_WINDOW, /* written, by the key of a memory window */
};

enum way_out {
	KILLED,
	DEREGISTERS,
	DESTROYS,
	RESETS,
	REREGISTERS,
	DEALLOCATES, /* the window */
	BINDS, /* it again, which takes the old key back */
	CLOSES,
};

static const struct {
	enum use use;
	enum way_out way_out;
} attacks[] = {
	{ GATHERED, KILLED },	   { GATHERED, DEREGISTERS },  { GATHERED, DESTROYS },
	{ WRITTEN, KILLED },	   { WRITTEN, DEREGISTERS },   { WRITTEN, DESTROYS },
	{ READ_INTO, KILLED },	   { READ_INTO, DEREGISTERS }, { READ_INTO, DESTROYS },
	{ SENT_TO, KILLED },	   { SENT_TO, DEREGISTERS },   { SENT_TO, DESTROYS },
	{ COUNTED, KILLED },	   { COUNTED, DEREGISTERS },   { COUNTED, DESTROYS },
	{ WRITTEN, RESETS },	   { WRITTEN, REREGISTERS },   { THROUGH_WINDOW, DEALLOCATES },
	{ THROUGH_WINDOW, BINDS }, { WRITTEN, CLOSES },
};
#define ATTACKERS ARRAY_SIZE(attacks)

static struct endpoint e;
static struct ibv_mr *mute;
static struct ibv_mw *window;

static void receive(uint64_t address, uint32_t lkey)
{
	struct ibv_sge sge = { address, 64, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e.qp[1], &wr, &bad) != 0)
		_exit(3);
}

static int bind_window(uint64_t memory)
{
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = { .mr = mute,
						   .addr = memory,
						   .length = PAGE,
						   .mw_access_flags = IBV_ACCESS_REMOTE_WRITE } };

	return ibv_bind_mw(e.qp[1], window, &bind);
}

static void make_window(uint64_t memory)
{
	struct ibv_wc wc;

	window = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	if (window == NULL || bind_window(memory) != 0)
		_exit(6);
	poll_completions(e.cq, &wc, 1, "the first bind");
}

static void use_memory(enum use use, uint64_t memory)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer;
	wr.wr.rdma.rkey = e.mr->rkey;
	switch (use) {
	case GATHERED:
		sge = (struct ibv_sge){ memory, 8, mute->lkey };
		break;
	case WRITTEN:
		wr.wr.rdma.remote_addr = memory;
		wr.wr.rdma.rkey = mute->rkey;
		break;
	case READ_INTO:
		wr.opcode = IBV_WR_RDMA_READ;
		sge = (struct ibv_sge){ memory, 8, mute->lkey };
		break;
	case SENT_TO:
		wr.opcode = IBV_WR_SEND;
		receive(memory, mute->lkey);
		break;
	case COUNTED:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = memory;
		wr.wr.atomic.rkey = mute->rkey;
		break;
	case THROUGH_WINDOW:
		make_window(memory);
		wr.wr.rdma.remote_addr = memory;
		wr.wr.rdma.rkey = window->rkey;
		break;
	}
	for (int i = 0; i < DEPTH; i++)
		if (ibv_post_send(e.qp[0], &wr, &bad) != 0)
			_exit(4);
}

static void leave(enum way_out way_out, uint64_t memory)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	switch (way_out) {
	case KILLED:
		break;
	case DEREGISTERS:
		ibv_dereg_mr(mute);
		break;
	case DESTROYS:
		ibv_destroy_qp(e.qp[0]);
		ibv_destroy_qp(e.qp[1]);
		break;
	case RESETS:
		ibv_modify_qp(e.qp[0], &attr, IBV_QP_STATE);
		ibv_modify_qp(e.qp[1], &attr, IBV_QP_STATE);
		break;
	case REREGISTERS:
		ibv_rereg_mr(mute, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0);
		break;
	case DEALLOCATES:
		ibv_dealloc_mw(window);
		break;
	case BINDS:
		bind_window(memory);
		break;
	case CLOSES:
		ibv_close_device(e.context);
		break;
	}
}

/* Sends one octet when it has begun, another if it cannot. */
static void attack(size_t number, uid_t uid, int life, int ready)
{
	uint8_t *memory = mute_fuse_map(PAGE, life);

	if (memory == NULL || !become(uid)) {
		_exit(write(ready, "-", 1) == 1 ? 1 : 2);
	}
	endpoint_open(&e);
	mute = ibv_reg_mr(e.pd, memory, PAGE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				  IBV_ACCESS_MW_BIND);
	if (mute == NULL)
		_exit(5);
	use_memory(attacks[number].use, (uintptr_t)memory);
	if (!mute_fuse_is_waited_for(WAIT_SECONDS) || write(ready, "+", 1) != 1)
		_exit(2);
	leave(attacks[number].way_out, (uintptr_t)memory);
	for (;;)
		pause();
}

/* ---- the other programs ---- */

struct verdict {
	double gap; /* the longest between two completions, */
	double control; /* and the longest command */
	uint32_t done, commands; /* how many writes and commands so far */
	int error; /* of what failed; 0: nothing */
};

static struct verdict *seen; /* both processes see it */
static int stop;

static void *command_on(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		double begin = now();
		struct ibv_mr *mr = ibv_reg_mr(e.pd, e.buffer, PAGE, IBV_ACCESS_LOCAL_WRITE);

		if (mr == NULL || ibv_dereg_mr(mr) != 0)
			seen->error = errno;
		if ((now() - begin) / 2 > seen->control)
			seen->control = (now() - begin) / 2;
		__atomic_fetch_add(&seen->commands, 1, __ATOMIC_RELAXED);
		usleep(1000);
	}
	return NULL;
}

static void write_once(void)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 64, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_wc wc = { 0 };
	int n;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + PAGE;
	wr.wr.rdma.rkey = e.mr->rkey;
	seen->error |= ibv_post_send(e.qp[0], &wr, &bad);
	while ((n = ibv_poll_cq(e.cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		seen->error = EIO;
	__atomic_fetch_add(&seen->done, 1, __ATOMIC_RELAXED);
}

static void be_healthy(uid_t uid, int control, int report)
{
	struct pollfd p = { .fd = control, .events = POLLIN };
	pthread_t thread;

	if (!become(uid))
		_exit(1);
	endpoint_open(&e);
	write_once();
	if (write(report, "+", 1) != 1 || pthread_create(&thread, NULL, command_on, NULL) != 0)
		_exit(2);
	while (poll(&p, 1, 0) == 0) {
		double begin = now();

		write_once();
		if (now() - begin > seen->gap)
			seen->gap = now() - begin;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	_exit(write(report, "-", 1) == 1 ? 0 : 3);
}

struct healthy {
	pid_t pid;
	int control, report;
};

/* '?': none comes. */
static char next_octet(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char octet;

	return poll(&p, 1, WAIT_SECONDS * 1000) == 1 && read(fd, &octet, 1) == 1 ? octet : '?';
}

static struct healthy begin_healthy(uid_t uid)
{
	int control[2], report[2];
	struct healthy h;

	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(seen, MAP_FAILED);
	cr_assert_eq(pipe(control), 0);
	cr_assert_eq(pipe(report), 0);
	h.pid = fork();
	if (h.pid == 0) {
		close(control[1]);
		be_healthy(uid, control[0], report[1]);
	}
	close(control[0]);
	close(report[1]);
	h.control = control[1];
	h.report = report[0];
	cr_assert_eq(next_octet(h.report), '+', "the healthy pair of user %u does not begin", uid);
	return h;
}

static struct verdict end_healthy(struct healthy *h)
{
	struct verdict v;

	close(h->control);
	if (next_octet(h->report) != '-') {
		kill(h->pid, SIGKILL);
		seen->error = -1;
	}
	close(h->report);
	waitpid(h->pid, NULL, 0);
	v = *seen;
	munmap(seen, sizeof(*seen));
	return v;
}

/* Looks on for a while. Whoever stands still for WAIT_SECONDS is no longer waited for: its verdict says it. */
static void watch_healthy(void)
{
	uint32_t done = seen->done, commands = seen->commands;
	double end = now() + WAIT_SECONDS;

	while ((__atomic_load_n(&seen->done, __ATOMIC_RELAXED) - done < ENOUGH ||
		__atomic_load_n(&seen->commands, __ATOMIC_RELAXED) - commands < ENOUGH) &&
	       now() < end)
		usleep(1000);
}

/* ---- both ---- */

static pid_t attacker[ATTACKERS];

/* '-': FUSE is not available. beside: a descriptor that the programs must not have. */
static char begin_attack(uid_t uid, int life[2], const struct healthy *beside)
{
	int ready[2];
	char octet = '-';

	cr_assert_eq(pipe(life), 0);
	cr_assert_eq(pipe(ready), 0);
	for (size_t i = 0; i < ATTACKERS; i++) {
		attacker[i] = fork();
		if (attacker[i] == 0) {
			close(life[1]);
			close(beside->control);
			close(beside->report);
			attack(i, uid, life[0], ready[1]);
		}
	}
	close(ready[1]);
	close(life[0]);
	for (size_t i = 0; i < ATTACKERS; i++) {
		octet = next_octet(ready[0]);
		if (octet != '+')
			break;
	}
	close(ready[0]);
	return octet;
}

static void end_attack(int life[2])
{
	close(life[1]);
	for (size_t i = 0; i < ATTACKERS; i++) {
		kill(attacker[i], SIGKILL);
		waitpid(attacker[i], NULL, 0);
	}
}

static void kill_some(void)
{
	for (size_t i = 0; i < ATTACKERS; i++)
		if (attacks[i].way_out == KILLED)
			kill(attacker[i], SIGKILL);
}

static uint32_t queue_pairs_after(bool killed)
{
	uint32_t n = 2; /* the healthy pair's */

	for (size_t i = 0; i < ATTACKERS; i++)
		if (attacks[i].way_out != DESTROYS && !(killed && attacks[i].way_out == KILLED))
			n += 2;
	return n;
}

/*
 * The engine has taken apart what was destroyed, or killed, although its memory blocks. It may end others of
 * them, too.
 */
static void await_queue_pairs(uint32_t n)
{
	double end = now() + WAIT_SECONDS;
	struct reply_statistics s = { 0 };

	do {
		cr_assert_lt(now(), end, "%u queue pairs and not %u", s.qps, n);
		engine_statistics(&s);
		usleep(1000);
	} while (s.qps > n);
}

static void watch_attack(void)
{
	await_queue_pairs(queue_pairs_after(false));
	watch_healthy();
	kill_some();
	await_queue_pairs(queue_pairs_after(true));
	watch_healthy();
}

static struct verdict try(uid_t attackers, uid_t healthy)
{
	struct healthy h = begin_healthy(healthy);
	struct verdict v;
	int life[2];
	char began = begin_attack(attackers, life, &h);

	if (began == '+')
		watch_attack();
	v = end_healthy(&h);
	end_attack(life);
	cr_assert_neq(began, '?', "the programs do not begin");
	if (began == '-')
		cr_skip_test("no /dev/fuse, or no mount namespaces");
	return v;
}

/*
 * hostile H-121, H-123: nothing that programs do with their memory stops others; neither does their
 * end.
 */
static void nobody_else_waits(uid_t attackers, uid_t healthy)
{
	struct verdict v = { 0 };

	if (geteuid() != 0)
		cr_skip_test("users can be changed by root only");
	for (int i = 0; i < TRIES; i++) {
		v = try(attackers, healthy);
		cr_assert_eq(v.error, 0, "the healthy pair: %s",
			     v.error < 0 ? "stands still" : strerror(v.error));
		if (v.gap < DATA_GAP && v.control < CONTROL_TIME)
			break;
	}
	cr_expect_lt(v.gap, DATA_GAP, "no data for %.3f s", v.gap);
	cr_expect_lt(v.control, CONTROL_TIME, "a command took %.3f s", v.control);
	printf("user %u beside user %u: %u writes, gap %.3f s, command %.3f s\n", healthy,
	       attackers, v.done, v.gap, v.control);
}

TestSuite(stuck, .timeout = 240);

Test(stuck, programs_of_one_user_do_not_stop_other_users)
{
	nobody_else_waits(NOBODY, SOMEBODY);
}

Test(stuck, programs_of_another_user_do_not_stop_the_engines_own)
{
	nobody_else_waits(NOBODY, 0);
}

Test(stuck, programs_of_the_engines_user_do_not_stop_other_users)
{
	nobody_else_waits(0, SOMEBODY);
}

Test(stuck, programs_of_the_engines_user_do_not_stop_each_other)
{
	nobody_else_waits(0, 0);
}
