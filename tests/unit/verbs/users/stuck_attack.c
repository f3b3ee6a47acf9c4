/* SPDX-License-Identifier: BSD-3-Clause */
#include "stuck_attack.h"

#include <assert.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "rig/engine_objects.h"
#include "rig/mute_fuse.h"
#include "rig/starved.h"

#define PAGE 4096u

bool stuck_become(uid_t uid)
{
	if (uid != 0 && setresuid(uid, uid, uid) != 0)
		return false;
	/* Changing the user resets both. */
	return prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

/* ---- one program ---- */

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

static const char *const use_name[] = { "GATHERED", "WRITTEN", "READ_INTO",
					"SENT_TO",  "COUNTED", "THROUGH_WINDOW" };

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
static_assert(ARRAY_SIZE(attacks) == STUCK_PROGRAMS, "stuck_attack.h");

/* How far a program has come. */
#define STEPS(X)                                                  \
	X(STARTS, "starts")                                       \
	X(MAPS, "maps its memory")                                \
	X(OPENS, "opens the device and connects its queue pairs") \
	X(REGISTERS, "registers its memory")                      \
	X(POSTS, "posts its requests")                            \
	X(AWAITS, "waits until the engine touches its memory")    \
	X(ATTACKS, "attacks")                                     \
	X(CANNOT, "has no FUSE, or no mount namespaces")          \
	X(FAILED, "fails")

enum step {
#define X(NAME, name) NAME,
	STEPS(X)
#undef X
};

static const char *const step_name[] = {
#define X(NAME, name) name,
	STEPS(X)
#undef X
};

/* Of each program; all processes see it. */
static struct progress {
	uint32_t step; /* atomic, stored last */
	int error;
	const char *failed; /* what it could not do: it goes no step further */
} * progress;

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

static void comes_to(size_t number, enum step step)
{
	__atomic_store_n(&progress[number].step, step, __ATOMIC_RELEASE);
}

/* With errno. A forked process cannot fail the test by itself. */
static void fails(size_t number, const char *what)
{
	progress[number].error = errno;
	progress[number].failed = what;
	comes_to(number, FAILED);
	_exit(1);
}

static void attack(size_t number, uid_t uid, int life)
{
	const char *failed;
	uint8_t *memory;

	comes_to(number, MAPS);
	memory = mute_fuse_map(PAGE, life);
	if (memory == NULL || !stuck_become(uid)) {
		comes_to(number, CANNOT);
		_exit(1);
	}
	comes_to(number, OPENS);
	failed = endpoint_try(&e);
	if (failed != NULL)
		fails(number, failed);
	comes_to(number, REGISTERS);
	mute = ibv_reg_mr(e.pd, memory, PAGE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				  IBV_ACCESS_MW_BIND);
	if (mute == NULL)
		fails(number, "ibv_reg_mr of its memory");
	comes_to(number, POSTS);
	use_memory(attacks[number].use, (uintptr_t)memory);
	comes_to(number, AWAITS);
	if (!mute_fuse_is_waited_for(2 * WAIT_SECONDS)) /* the test gives up earlier */
		_exit(2);
	comes_to(number, ATTACKS);
	leave(attacks[number].way_out, (uintptr_t)memory);
	for (;;)
		pause();
}

/* ---- all of them ---- */

static pid_t attacker[STUCK_PROGRAMS];
static int living; /* the mute daemons live as long as somebody has it open */
static bool some_are_killed;

void stuck_begin(uid_t uid, const int hidden[2])
{
	size_t octets = STUCK_PROGRAMS * sizeof(*progress);
	int life[2];

	some_are_killed = false;
	progress = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(progress, MAP_FAILED);
	cr_assert_eq(pipe(life), 0);
	for (size_t i = 0; i < STUCK_PROGRAMS; i++) {
		attacker[i] = fork();
		if (attacker[i] == 0) {
			close(life[1]);
			close(hidden[0]);
			close(hidden[1]);
			attack(i, uid, life[0]);
		}
	}
	close(life[0]);
	living = life[1];
}

static uint32_t step_of(size_t i)
{
	return __atomic_load_n(&progress[i].step, __ATOMIC_ACQUIRE);
}

static void explain(size_t i, char why[200])
{
	int status;
	bool ended = waitpid(attacker[i], &status, WNOHANG) == attacker[i];
	int n = snprintf(why, 200, "program %zu of %u (%s, %d) %s", i, STUCK_PROGRAMS,
			 use_name[attacks[i].use], attacks[i].way_out, step_name[step_of(i)]);

	if (step_of(i) == FAILED)
		snprintf(why + n, 200 - n, ": %s: %s", progress[i].failed,
			 strerror(progress[i].error));
	else if (ended)
		snprintf(why + n, 200 - n, ", and has ended");
}

enum stuck_begun stuck_await(char why[200])
{
	double end = starved_now() + WAIT_SECONDS;
	size_t i = 0;

	while (i < STUCK_PROGRAMS && step_of(i) != FAILED && starved_now() < end) {
		if (step_of(i) >= ATTACKS)
			i++;
		else
			usleep(1000);
	}
	if (i == STUCK_PROGRAMS)
		return step_of(0) == CANNOT ? STUCK_CANNOT : STUCK_ALL;
	explain(i, why);
	return STUCK_NOT_ALL;
}

static uint32_t queue_pairs(void)
{
	struct reply_statistics s = { 0 };

	engine_statistics(&s);
	return s.qps;
}

static uint32_t before_kill; /* so many were there */

void stuck_kill_some(void)
{
	before_kill = queue_pairs();
	some_are_killed = true;
	for (size_t i = 0; i < STUCK_PROGRAMS; i++)
		if (attacks[i].way_out == KILLED)
			kill(attacker[i], SIGKILL);
}

pid_t stuck_program(size_t i)
{
	return some_are_killed && attacks[i].way_out == KILLED ? 0 : attacker[i];
}

/*
 * How many a program has left. A program that destroys both has lost one at once, but the answer comes when
 * the copies of that one are over, if it has any. Until then, for 10 s at most, nothing ends the other one.
 */
static uint32_t left_to(enum way_out way_out)
{
	switch (way_out) {
	case KILLED:
		return some_are_killed ? 0 : 2;
	case DESTROYS:
		return 1;
	case CLOSES:
		return 0;
	default:
		return 2;
	}
}

void stuck_await_queue_pairs(uint32_t others)
{
	double end = starved_now() + WAIT_SECONDS;
	uint32_t wanted = others, killed = 0, n;

	for (size_t i = 0; i < STUCK_PROGRAMS; i++) {
		wanted += left_to(attacks[i].way_out);
		killed += attacks[i].way_out == KILLED;
	}
	/* Some that destroy have none left, which must not stand for what the killed ones have. */
	if (some_are_killed)
		wanted = MIN_OF(wanted, before_kill - 2 * killed);
	while ((n = queue_pairs()) > wanted) {
		cr_assert_lt(starved_now(), end, "%u queue pairs and not %u", n, wanted);
		usleep(1000);
	}
}

void stuck_end(void)
{
	close(living);
	for (size_t i = 0; i < STUCK_PROGRAMS; i++) {
		kill(attacker[i], SIGKILL);
		waitpid(attacker[i], NULL, 0);
	}
	munmap(progress, STUCK_PROGRAMS * sizeof(*progress));
}
