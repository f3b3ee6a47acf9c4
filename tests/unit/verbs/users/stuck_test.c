/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of some programs blocks for ever (stuck_attack.h). A healthy pair and the control path work
 * nevertheless.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig/endpoint.h"
#include "rig/starved.h"
#include "stuck_attack.h"

#define NOBODY	 65534
#define SOMEBODY 1234
#define PAGE	 4096u

#define DATA_GAP     0.1 /* seconds: between two completions of the healthy pair */
#define CONTROL_TIME 0.2 /* of one of its commands */
#define ENOUGH	     100 /* commands and writes that are looked at after each event */

static struct endpoint e;

struct verdict {
	double gap; /* the longest between two completions, */
	double control; /* and the longest command; both as in starved.h */
	double slowest; /* ... and what the longest of them took by the clock */
	uint32_t done, commands; /* how many writes and commands so far */
	int error; /* of what failed; 0: nothing */
	const char *failed; /* at the beginning */
};

static struct verdict *seen; /* both processes see it */

static void slower(double *slowest, double seconds)
{
	if (seconds > *slowest)
		*slowest = seconds;
}

/* A round trip to the lcores, which have stuck copies. */
static bool look_at_queue_pair(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(e.qp[1], &attr, IBV_QP_STATE | IBV_QP_RQ_PSN, &init) == 0 &&
	       attr.qp_state == IBV_QPS_RTS;
}

static void command_once(struct starved *s)
{
	struct ibv_mr *mr;

	starved_begin(s);
	mr = ibv_reg_mr(e.pd, e.buffer, PAGE, IBV_ACCESS_LOCAL_WRITE);
	slower(&seen->control, starved_command(s));
	starved_begin(s);
	if (mr == NULL || ibv_dereg_mr(mr) != 0)
		seen->error = errno;
	slower(&seen->control, starved_command(s));
	starved_begin(s);
	if (!look_at_queue_pair())
		seen->error = EIO;
	slower(&seen->control, starved_command(s));
	__atomic_fetch_add(&seen->commands, 1, __ATOMIC_RELAXED);
}

static void write_once(struct starved *s)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 64, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + PAGE;
	wr.wr.rdma.rkey = e.mr->rkey;
	slower(&seen->gap, starved_request(s, e.qp[0], e.cq, &wr, &wc));
	slower(&seen->slowest, starved_now() - s->began);
	if (wc.status != IBV_WC_SUCCESS)
		seen->error = EIO;
	__atomic_fetch_add(&seen->done, 1, __ATOMIC_RELAXED);
}

/*
 * Never both at once: while lcores work, they wait for processors, and that would excuse a command that waits
 * for something else.
 */
static void be_healthy(uid_t uid, int control, int report)
{
	struct pollfd p = { .fd = control, .events = POLLIN };
	struct starved s;

	if (!stuck_become(uid))
		_exit(1);
	seen->failed = endpoint_try(&e);
	seen->error = errno;
	if (seen->failed != NULL)
		_exit(4);
	seen->error = 0;
	starved_open(&s);
	write_once(&s);
	if (write(report, "+", 1) != 1)
		_exit(2);
	while (poll(&p, 1, 0) == 0) {
		write_once(&s);
		command_once(&s);
	}
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
	cr_assert_eq(next_octet(h.report), '+',
		     "the healthy pair of user %u does not begin: %s: %s", uid,
		     seen->failed != NULL ? seen->failed : "?", strerror(seen->error));
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

/* Watches for a while. A program without progress for WAIT_SECONDS is given up, and its verdict says so. */
static void watch_healthy(void)
{
	uint32_t done = seen->done, commands = seen->commands;
	double end = starved_now() + WAIT_SECONDS;

	while ((__atomic_load_n(&seen->done, __ATOMIC_RELAXED) - done < ENOUGH ||
		__atomic_load_n(&seen->commands, __ATOMIC_RELAXED) - commands < ENOUGH) &&
	       starved_now() < end)
		usleep(1000);
}

static void watch_attack(void)
{
	stuck_await_queue_pairs(2);
	watch_healthy();
	stuck_kill_some();
	stuck_await_queue_pairs(2);
	watch_healthy();
}

static struct verdict attack_beside(uid_t attackers, uid_t healthy)
{
	struct healthy h = begin_healthy(healthy);
	enum stuck_begun begun;
	struct verdict v;
	char why[200] = "";

	stuck_begin(attackers, (const int[]){ h.control, h.report });
	begun = stuck_await(why);
	if (begun == STUCK_ALL)
		watch_attack();
	v = end_healthy(&h);
	stuck_end();
	cr_assert_neq(begun, STUCK_NOT_ALL, "%s; meanwhile %u writes and %u commands of others",
		      why, v.done, v.commands);
	if (begun == STUCK_CANNOT)
		cr_skip_test("no /dev/fuse, or no mount namespaces");
	return v;
}

/*
 * hostile H-121, H-123: nothing that programs do with their memory stops others; neither does their
 * end.
 */
static void nobody_else_waits(uid_t attackers, uid_t healthy)
{
	struct verdict v;

	if (geteuid() != 0)
		cr_skip_test("users can be changed by root only");
	v = attack_beside(attackers, healthy);
	cr_assert_eq(v.error, 0, "the healthy pair: %s",
		     v.error < 0 ? "stands still" : strerror(v.error));
	cr_expect_lt(v.gap, DATA_GAP, "no data for %.3f s", v.gap);
	cr_expect_lt(v.control, CONTROL_TIME, "a command took %.3f s", v.control);
	printf("user %u beside user %u: %u writes, gap %.3f s (%.3f s by the clock), command %.3f s\n",
	       healthy, attackers, v.done, v.gap, v.slowest, v.control);
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
