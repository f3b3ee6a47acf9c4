/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs whose registered memory blocks for ever (mute_fuse.h): every kind of request reads or
 * writes it; then they are killed or deregister it. Meanwhile a healthy pair goes on, and so does
 * the control path.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "endpoint.h"
#include "engine_objects.h"
#include "mute_fuse.h"
#include "starved.h"

#define NOBODY	 65534
#define SOMEBODY 1234
#define PAGE	 4096u

#define DATA_GAP     0.1 /* seconds: between two completions of the healthy pair */
#define CONTROL_TIME 0.2 /* of one of its commands */
#define ENOUGH	     100 /* commands and writes that are looked at after each event */

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
#define ATTACKERS ARRAY_SIZE(attacks)

/* How far a program has come. */
#define STEPS(X)                                                  \
	X(STARTS, "starts")                                       \
	X(MAPS, "maps its memory")                                \
	X(OPENS, "opens the device and connects its queue pairs") \
	X(REGISTERS, "registers its memory")                      \
	X(POSTS, "posts its requests")                            \
	X(AWAITS, "waits until the engine touches its memory")    \
	X(ATTACKS, "attacks")                                     \
	X(CANNOT, "has no FUSE, or no mount namespaces")

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

static uint32_t *step_of; /* atomic, of each; all processes see it */

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
	__atomic_store_n(&step_of[number], step, __ATOMIC_RELAXED);
}

static void attack(size_t number, uid_t uid, int life)
{
	uint8_t *memory;

	comes_to(number, MAPS);
	memory = mute_fuse_map(PAGE, life);
	if (memory == NULL || !become(uid)) {
		comes_to(number, CANNOT);
		_exit(1);
	}
	comes_to(number, OPENS);
	endpoint_open(&e);
	comes_to(number, REGISTERS);
	mute = ibv_reg_mr(e.pd, memory, PAGE,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				  IBV_ACCESS_MW_BIND);
	if (mute == NULL)
		_exit(5);
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

/* ---- the other programs ---- */

struct verdict {
	double gap; /* the longest between two completions, */
	double control; /* and the longest command; both as in starved.h */
	double slowest; /* ... and what the longest of them took by the clock */
	uint32_t done, commands; /* how many writes and commands so far */
	int error; /* of what failed; 0: nothing */
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

	if (!become(uid))
		_exit(1);
	endpoint_open(&e);
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
	double end = starved_now() + WAIT_SECONDS;

	while ((__atomic_load_n(&seen->done, __ATOMIC_RELAXED) - done < ENOUGH ||
		__atomic_load_n(&seen->commands, __ATOMIC_RELAXED) - commands < ENOUGH) &&
	       starved_now() < end)
		usleep(1000);
}

/* ---- both ---- */

static pid_t attacker[ATTACKERS];

/* beside: descriptors that the programs must not have. */
static void begin_attack(uid_t uid, int life[2], const struct healthy *beside)
{
	size_t octets = ATTACKERS * sizeof(*step_of);

	step_of = mmap(NULL, octets, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(step_of, MAP_FAILED);
	cr_assert_eq(pipe(life), 0);
	for (size_t i = 0; i < ATTACKERS; i++) {
		attacker[i] = fork();
		if (attacker[i] == 0) {
			close(life[1]);
			close(beside->control);
			close(beside->report);
			attack(i, uid, life[0]);
		}
	}
	close(life[0]);
}

/* The first that has not begun by then; ATTACKERS: all have. */
static size_t await_attack(void)
{
	double end = starved_now() + WAIT_SECONDS;
	size_t i = 0;

	while (i < ATTACKERS && starved_now() < end) {
		if (__atomic_load_n(&step_of[i], __ATOMIC_RELAXED) >= ATTACKS)
			i++;
		else
			usleep(1000);
	}
	return i;
}

static void explain(size_t i, char why[200])
{
	int status;
	bool ended = waitpid(attacker[i], &status, WNOHANG) == attacker[i];

	snprintf(why, 200, "program %zu of %zu (%s, %d) %s%s", i, ATTACKERS,
		 use_name[attacks[i].use], attacks[i].way_out, step_name[step_of[i]],
		 ended ? ", and has ended" : "");
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
	double end = starved_now() + WAIT_SECONDS;
	struct reply_statistics s = { 0 };

	do {
		cr_assert_lt(starved_now(), end, "%u queue pairs and not %u", s.qps, n);
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

static struct verdict attack_beside(uid_t attackers, uid_t healthy)
{
	struct healthy h = begin_healthy(healthy);
	struct verdict v;
	char why[200] = "";
	int life[2];
	size_t begun;
	bool cannot;

	begin_attack(attackers, life, &h);
	begun = await_attack();
	cannot = step_of[0] == CANNOT;
	if (begun < ATTACKERS)
		explain(begun, why);
	else if (!cannot)
		watch_attack();
	v = end_healthy(&h);
	end_attack(life);
	munmap(step_of, ATTACKERS * sizeof(*step_of));
	cr_assert_eq(begun, ATTACKERS, "%s; meanwhile %u writes and %u commands of others", why,
		     v.done, v.commands);
	if (cannot)
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
