/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four programs of one user take all queue pairs, CQs and regions that they can get. The engine is a real
 * one, with limits small enough to be reached. Another user still gets a share (hostile H-122).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "control/control.h"
#include "rig/control_rig.h"
#include "lcore/inside.h"

#define GREEDY	 65533
#define NOBODY	 65534
#define PROGRAMS 4
#define MOST	 64u /* of each, of the engine */
#define SHARE	 (MOST - MOST / 4) /* of one user */
#define OF_FEW	 (MOST / 16) /* what is left for a user who has less */

enum kind {
	QPS,
	CQS,
	REGIONS,
	KINDS
};

/* What a user was given; both processes see it. */
struct taken {
	uint32_t count[KINDS];
	int error[KINDS]; /* of the first refusal */
	char why[KINDS][sizeof(((struct command_reply *)0)->why)];
};

static void begin(void)
{
	static const enum resource all[] = { RESOURCE_QPS, RESOURCE_CQS, RESOURCE_MRS };
	struct users *users;

	if (geteuid() != 0)
		cr_skip_test("other users are wanted");
	control_rig_open();
	cr_assert_eq(chmod(path, 0666), 0);
	users = &((struct engine *)engine)->control->users;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		users->limit[all[i]] = MOST;
}

TestSuite(control_greedy, .init = begin, .fini = control_rig_close, .timeout = 60);

static int take_qp(int fd, const struct objects *o, struct command_reply *reply)
{
	struct request_create_qp q = small_qp(o);
	struct reply_create_qp r;
	int error = create_qp(fd, &q, &r);

	*reply = r.h;
	return error;
}

static int take_cq(int fd, const struct objects *o, struct command_reply *reply)
{
	struct request_create_cq q = { .context = o->context, .cqe = 1 };
	struct reply_create_cq r;
	int error = ask(fd, COMMAND_CREATE_CQ, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*reply = r.h;
	return error;
}

static int take_region(int fd, const struct objects *o, struct command_reply *reply)
{
	struct request_reg_mr q = { .pd = o->pd,
				    .access = ACCESS_LOCAL_WRITE,
				    .address = (uintptr_t)memory,
				    .iova = (uintptr_t)memory,
				    .length = sizeof(memory) };
	struct reply_reg_mr r;
	int error = ask(fd, COMMAND_REG_MR, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL);

	*reply = r.h;
	return error;
}

static int (*const take[KINDS])(int fd, const struct objects *o, struct command_reply *reply) = {
	[QPS] = take_qp, [CQS] = take_cq, [REGIONS] = take_region
};

/* The programs take one after the other, until all of them are refused. */
static void take_all(uint32_t programs, struct taken *t)
{
	struct command_reply reply;
	struct objects o[PROGRAMS];
	int fd[PROGRAMS];

	for (uint32_t i = 0; i < programs; i++) {
		fd[i] = attach();
		o[i].context = open_context(fd[i]);
		if (ask_handle(fd[i], COMMAND_ALLOC_PD, o[i].context, &o[i].pd) != 0 ||
		    create_cq(fd[i], o[i].context, 0, 1, &o[i].cq) != 0)
			return;
		t->count[CQS]++;
	}
	for (int kind = 0; kind < KINDS; kind++)
		for (uint32_t i = 0; i < programs;) {
			int error = take[kind](fd[i], &o[i], &reply);

			t->count[kind] += error == 0;
			if (error != 0 && t->error[kind] == 0) {
				t->error[kind] = error;
				memcpy(t->why[kind], reply.why, sizeof(reply.why));
			}
			i += error != 0;
		}
}

/* A process of that user, which keeps its objects until it is killed. */
static pid_t taker(uid_t uid, uint32_t programs, struct taken **taken)
{
	int done[2];
	pid_t pid;
	char c;

	*taken = mmap(NULL, sizeof(**taken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(*taken, MAP_FAILED);
	cr_assert_eq(pipe(done), 0);
	pid = fork();
	if (pid == 0) {
		/* its memory is its own to show again */
		if (setgid(uid) != 0 || setuid(uid) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0)
			_exit(1);
		take_all(programs, *taken);
		if (write(done[1], "d", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(done[1]);
	cr_assert_eq(read(done[0], &c, 1), 1, "the process of user %u failed", uid);
	close(done[0]);
	return pid;
}

static void end(pid_t pid, struct taken *t)
{
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	munmap(t, sizeof(*t));
}

static void expect_taken(const struct taken *t, uint32_t each, const char *why)
{
	for (int kind = 0; kind < KINDS; kind++) {
		cr_expect_eq(t->count[kind], each, "%u of kind %d", t->count[kind], kind);
		cr_expect_eq(t->error[kind], ENOMEM, "%d", t->error[kind]);
		cr_expect_not_null(strstr(t->why[kind], why), "'%s'", t->why[kind]);
	}
}

/* hostile H-122: as many as can be had, by four programs at once. */
Test(control_greedy, another_user_gets_its_share)
{
	struct taken *greedy, *other, *after;
	pid_t first = taker(GREEDY, PROGRAMS, &greedy), second = taker(NOBODY, 1, &other), third;
	struct objects o;
	int fd;

	expect_taken(greedy, SHARE, "the per-user limit is reached: ");
	expect_taken(other, OF_FEW, "the per-user limit is reached: ");
	/* and so does the engine's own user */
	fd = attach();
	make_objects(fd, &o);
	close(fd);
	end(second, other);
	end(first, greedy);
	/* what they had is free again, in slices */
	expect_counts(0, 0, 0, 0);
	third = taker(NOBODY, 1, &after);
	expect_taken(after, SHARE, "the per-user limit is reached: ");
	end(third, after);
}
