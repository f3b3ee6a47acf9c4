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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "endpoint.h"
#include "mute_fuse.h"

#define NOBODY	  65534
#define SOMEBODY  1234
#define ATTACKERS 15 /* each kind of request with each way to end */
#define PAGE	  4096u

#define DATA_GAP     0.1 /* seconds: between two completions of the healthy pair */
#define CONTROL_TIME 0.2 /* of one of its commands */
#define TRIES	     10 /* other work on the machine makes gaps, too */

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

enum way_out {
	KILLED,
	DEREGISTERS,
	DESTROYS,
	WAYS_OUT
};

struct attacker {
	pid_t pid;
	enum way_out way_out;
};

static struct endpoint e;
static struct ibv_mr *mute;

static void receive(uint64_t address, uint32_t lkey)
{
	struct ibv_sge sge = { address, 64, lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(e.qp[1], &wr, &bad) != 0)
		_exit(3);
}

static void use_memory(int kind, uint64_t memory)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer;
	wr.wr.rdma.rkey = e.mr->rkey;
	switch (kind) {
	case 0:
		sge = (struct ibv_sge){ memory, 8, mute->lkey };
		break;
	case 1:
		wr.wr.rdma.remote_addr = memory;
		wr.wr.rdma.rkey = mute->rkey;
		break;
	case 2:
		wr.opcode = IBV_WR_RDMA_READ;
		sge = (struct ibv_sge){ memory, 8, mute->lkey };
		break;
	case 3:
		wr.opcode = IBV_WR_SEND;
		receive(memory, mute->lkey);
		break;
	case 4:
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = memory;
		wr.wr.atomic.rkey = mute->rkey;
		break;
	}
	for (int i = 0; i < DEPTH; i++)
		if (ibv_post_send(e.qp[0], &wr, &bad) != 0)
			_exit(4);
}

/* Sends one octet when it has begun, another if it cannot. */
static void attack(int number, uid_t uid, enum way_out way_out, int life, int ready)
{
	uint8_t *memory = mute_fuse_map(PAGE, life);

	if (memory == NULL || !become(uid)) {
		_exit(write(ready, "-", 1) == 1 ? 1 : 2);
	}
	endpoint_open(&e);
	mute = ibv_reg_mr(e.pd, memory, PAGE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (mute == NULL)
		_exit(5);
	use_memory(number / WAYS_OUT, (uintptr_t)memory);
	if (!mute_fuse_is_waited_for(WAIT_SECONDS) || write(ready, "+", 1) != 1)
		_exit(2);
	switch (way_out) {
	case DEREGISTERS:
		ibv_dereg_mr(mute);
		break;
	case DESTROYS:
		ibv_destroy_qp(e.qp[0]);
		ibv_destroy_qp(e.qp[1]);
		break;
	default:
		break;
	}
	pause();
}

/* ---- the other programs ---- */

struct verdict {
	double gap; /* the longest between two completions, */
	double control; /* and the longest command */
	uint32_t done;
	int error; /* of what failed; 0: nothing */
};

static struct verdict seen;
static int stop;

static void *command_on(void *unused)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		double begin = now();
		struct ibv_mr *mr = ibv_reg_mr(e.pd, e.buffer, PAGE, IBV_ACCESS_LOCAL_WRITE);

		if (mr == NULL || ibv_dereg_mr(mr) != 0)
			seen.error = errno;
		if ((now() - begin) / 2 > seen.control)
			seen.control = (now() - begin) / 2;
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
	seen.error |= ibv_post_send(e.qp[0], &wr, &bad);
	while ((n = ibv_poll_cq(e.cq, 1, &wc)) == 0)
		;
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		seen.error = EIO;
	seen.done++;
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
		if (now() - begin > seen.gap)
			seen.gap = now() - begin;
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	_exit(write(report, &seen, sizeof(seen)) == sizeof(seen) ? 0 : 3);
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
	struct verdict v = { .error = -1 };
	struct pollfd p = { .fd = h->report, .events = POLLIN };

	close(h->control);
	if (poll(&p, 1, WAIT_SECONDS * 1000) != 1)
		kill(h->pid, SIGKILL);
	if (read(h->report, &v, sizeof(v)) != sizeof(v))
		v.error = -1;
	close(h->report);
	waitpid(h->pid, NULL, 0);
	return v;
}

/* ---- both ---- */

static struct attacker attacker[ATTACKERS];

/* '-': FUSE is not available. beside: a descriptor that the programs must not have. */
static char begin_attack(uid_t uid, int life[2], const struct healthy *beside)
{
	int ready[2];
	char octet = '-';

	cr_assert_eq(pipe(life), 0);
	cr_assert_eq(pipe(ready), 0);
	for (int i = 0; i < ATTACKERS; i++) {
		attacker[i].way_out = i % WAYS_OUT;
		attacker[i].pid = fork();
		if (attacker[i].pid == 0) {
			close(life[1]);
			close(beside->control);
			close(beside->report);
			attack(i, uid, attacker[i].way_out, life[0], ready[1]);
		}
	}
	close(ready[1]);
	close(life[0]);
	for (int i = 0; i < ATTACKERS; i++) {
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
	for (int i = 0; i < ATTACKERS; i++) {
		kill(attacker[i].pid, SIGKILL);
		waitpid(attacker[i].pid, NULL, 0);
	}
}

static void kill_some(void)
{
	for (int i = 0; i < ATTACKERS; i++)
		if (attacker[i].way_out == KILLED)
			kill(attacker[i].pid, SIGKILL);
}

static struct verdict try(uid_t attackers, uid_t healthy)
{
	struct healthy h = begin_healthy(healthy);
	struct verdict v;
	int life[2];
	char began = begin_attack(attackers, life, &h);

	usleep(500000);
	kill_some();
	usleep(1500000);
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

TestSuite(stuck, .timeout = 120);

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
