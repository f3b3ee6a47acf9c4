/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that polls its engine in a loop of its own, between other things: what programs posted
 * leaves before their queue pairs go, as it does where the engine has threads.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../verbs/rig/starved.h"
#include "../verbs/rig/ud.h"
#include "base/bits.h"
#include "control/control.h"
#include "rig/control_rig.h"
#include "lcore/inside.h"

#define LENGTH	   1024u
#define ROUNDS	   10
#define MOST_TRIES 200
#define PAUSE_US   200 /* of the program, between two polls */

static pid_t attached;
static int begin_fd[2], end_fd[2];

/*
 * Both programs see it. What is posted is waited for LEAVE_TIME: a polling program that comes later, as
 * on a busy machine it may, loses some, so a round counts only if it came in time.
 */
static struct {
	uint32_t polls, late; /* atomic */
} * poller;

/*
 * Posts datagrams and destroys the objects that they were posted with. Returns how many were lost.
 */
static int posts_and_destroys(struct endpoint *e, bool handle_first, void (*idle)(void))
{
	struct ibv_qp *from = ud_open(e, UD_QKEY), *to = ud_open(e, UD_QKEY);
	struct ibv_ah *ah = ud_self(e, GID_INDEX);
	int missing = UD_DEPTH;
	struct ibv_wc wc;

	for (uint32_t i = 0; i < UD_DEPTH; i++)
		ud_receive(e, to, 32768 + i * 2048, LENGTH + GRH);
	for (uint32_t i = 0; i < UD_DEPTH; i++)
		cr_assert_eq(ud_send(e, from, ah, to->qp_num, UD_QKEY, 0, LENGTH), 0);
	if (handle_first)
		cr_assert_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ibv_destroy_qp(from), 0);
	for (int i = 0; i < 500 && missing > 0; i++) {
		idle();
		while (ibv_poll_cq(e->cq, 1, &wc) == 1)
			missing -= wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV;
	}
	if (!handle_first)
		cr_assert_eq(ibv_destroy_ah(ah), 0);
	cr_assert_eq(ibv_destroy_qp(to), 0);
	return missing;
}

static void wait_a_little(void)
{
	usleep(1000);
}

/* How often it was late, up to now. */
static uint32_t late(void)
{
	uint32_t polls = __atomic_load_n(&poller->polls, __ATOMIC_ACQUIRE);

	while (__atomic_load_n(&poller->polls, __ATOMIC_ACQUIRE) - polls < 2)
		usleep(PAUSE_US);
	return __atomic_load_n(&poller->late, __ATOMIC_ACQUIRE);
}

/* In a child: once the engine exists. */
static void begin_as_told(struct endpoint *e)
{
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not end us */
	if (read(begin_fd[0], &c, 1) != 1)
		_exit(99);
	setenv("UROCE_SOCKET", path, 1);
	endpoint_open(e);
}

/* The other program: its exit status is 0 if all arrived. */
static void be_attached(bool handle_first)
{
	struct endpoint e;
	int missing = 0, rounds = 0;

	begin_as_told(&e);
	for (int tries = 0; rounds < ROUNDS && tries < MOST_TRIES; tries++) {
		uint32_t before = late();
		int lost = posts_and_destroys(&e, handle_first, wait_a_little);

		if (late() != before)
			continue;
		missing += lost;
		rounds++;
	}
	endpoint_close(&e);
	if (rounds < ROUNDS)
		_exit(97);
	_exit(missing > 96 ? 96 : missing);
}

static void fork_attached(void (*what)(bool), bool argument)
{
	poller = mmap(NULL, sizeof(*poller), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	cr_assert_neq(poller, MAP_FAILED);
	cr_assert_eq(pipe(begin_fd), 0);
	cr_assert_eq(pipe(end_fd), 0);
	snprintf(path, sizeof(path), "/tmp/uroce-polled-test-%d.sock", getpid());
	attached = fork();
	if (attached == 0)
		what(argument);
	control_rig_make();
	cr_assert_eq(write(begin_fd[1], "b", 1), 1);
}

static void expect_all_arrive(bool handle_first)
{
	nanotime before, now;
	int status = -1;

	fork_attached(be_attached, handle_first);
	before = clock_now();
	while (waitpid(attached, &status, WNOHANG) == 0) {
		uroce_poll(engine, 0);
		now = clock_now();
		if (now - before > LEAVE_TIME / 2)
			__atomic_fetch_add(&poller->late, 1, __ATOMIC_RELEASE);
		__atomic_fetch_add(&poller->polls, 1, __ATOMIC_RELEASE);
		before = now;
		usleep(PAUSE_US);
	}
	cr_expect(WIFEXITED(status));
	cr_expect_neq(WEXITSTATUS(status), 97, "the program came too late in nearly all rounds");
	cr_expect_eq(WEXITSTATUS(status), 0, "%d datagrams were lost", WEXITSTATUS(status));
	control_rig_close();
}

/* hostile H-128: a queue pair with frames on their way. */
Test(polled, posts_leave_before_their_queue_pair_goes, .timeout = 60)
{
	expect_all_arrive(false);
}

Test(polled, posts_leave_before_handle_and_queue_pair_go, .timeout = 60)
{
	expect_all_arrive(true);
}

#define LOOKS 10 /* at destructions that wait */
#define SLOW                \
	(0.5 * LEAVE_TIME / \
	 TIME_S) /* s of the engine's own; a destruction waits for twice as long */

/* How often a command of the program itself did not end at once. */
static uint32_t waited;

void __real_call_wait(struct call *call);
void __wrap_call_wait(struct call *call);

void __wrap_call_wait(struct call *call)
{
	waited++;
	__real_call_wait(call);
}

/* Which object is being destroyed: an odd number; even: none. Nobody polls meanwhile. */
static uint32_t *destroying; /* atomic */

static void posts_and_stays(struct endpoint *e, bool handle)
{
	struct ibv_qp *from = ud_open(e, UD_QKEY);
	struct ibv_ah *ah = ud_self(e, GID_INDEX);

	cr_assert_eq(ud_send(e, from, ah, from->qp_num, UD_QKEY, 0, LENGTH), 0);
	__atomic_fetch_add(destroying, 1, __ATOMIC_SEQ_CST);
	if (handle)
		cr_assert_eq(ibv_destroy_ah(ah), 0);
	else
		cr_assert_eq(ibv_destroy_qp(from), 0);
	__atomic_fetch_add(destroying, 1, __ATOMIC_SEQ_CST);
	if (handle)
		cr_assert_eq(ibv_destroy_qp(from), 0);
	else
		cr_assert_eq(ibv_destroy_ah(ah), 0);
}

/* Until it is killed; slowly, so that its user may wait each time. */
static void be_destroying(bool handle)
{
	struct endpoint e;

	begin_as_told(&e);
	for (;;) {
		posts_and_stays(&e, handle);
		usleep(2 * LIMIT_WAIT_BURST_MS * 1000);
	}
}

/* Whether a command waits without holding up anybody. */
static bool one_is_parked(void)
{
	struct engine *e = (struct engine *)engine;
	bool parked;

	pthread_mutex_lock(&e->control_lock);
	parked = !LIST_EMPTY(&e->control->parked);
	pthread_mutex_unlock(&e->control_lock);
	return parked;
}

/* Asks as another program while one destruction lasts. True: it was seen to wait. */
static bool ask_meanwhile(int other, struct starved *starved, double *longest)
{
	uint32_t which = __atomic_load_n(destroying, __ATOMIC_SEQ_CST);
	struct reply_statistics s;
	bool parked = false;

	while (which % 2 != 0 && __atomic_load_n(destroying, __ATOMIC_SEQ_CST) == which) {
		struct request_empty q = { { 0 } };
		double took;

		starved_begin(starved);
		parked |= one_is_parked();
		cr_assert_eq(ask(other, COMMAND_STATISTICS, &q.h, sizeof(q), &s.h, sizeof(s), NULL,
				 NULL),
			     0);
		took = starved_command(starved);
		*longest = MAX_OF(*longest, took);
	}
	return parked;
}

static void expect_others_served(bool handle)
{
	double end = starved_now() + ENOUGH_MS / 1000, longest = 0;
	struct starved starved;
	uint32_t looks = 0;
	int other;

	destroying = mmap(NULL, sizeof(*destroying), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(destroying, MAP_FAILED);
	fork_attached(be_destroying, handle);
	other = message_connect(path);
	cr_assert_geq(other, 0);
	starved_open(&starved);
	while (looks < LOOKS && longest < SLOW && starved_now() < end) {
		looks += ask_meanwhile(other, &starved, &longest);
		usleep(100);
	}
	starved_close(&starved);
	cr_log_info("the longest command took %.4f s", longest);
	cr_expect_lt(longest, SLOW, "a command took %.4f s", longest);
	cr_expect_eq(looks, LOOKS, "only %u destructions were seen to wait", looks);
	close(other);
	kill(attached, SIGKILL);
	waitpid(attached, NULL, 0);
	control_rig_close();
}

/*
 * A destruction waits for posted datagrams, which leave when a thread polls, up to LEAVE_TIME. No
 * other command waits for that.
 */
Test(polled, others_go_on_while_posts_leave, .timeout = 60)
{
	expect_others_served(false);
}

Test(polled, others_go_on_while_posts_leave_a_handle, .timeout = 60)
{
	expect_others_served(true);
}

#define MOST_POLLS 64 /* that a WRITE takes, of all that its frames do */
#define STALL	   0.1 /* s of the engine's own, in one poll */

static void await_parked(void)
{
	double end = starved_now() + ENOUGH_MS / 1000;

	while (!one_is_parked())
		cr_assert_lt(starved_now(), end, "no destruction is seen to wait");
}

/* A call that finds the control thread at work on the lcore does nothing, so calls are not counted. */
static uint64_t polls_so_far(void)
{
	return ((const struct engine *)(const void *)engine)->lcore[0].stats.polls;
}

/* How many polls the engine takes for a WRITE of the program that polls, and the longest of them. */
static uint32_t polls_of_write(struct endpoint *e, struct starved *s, double *longest)
{
	struct ibv_sge sge = { (uintptr_t)e->buffer, 64, e->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	double end = starved_now() + ENOUGH_MS / 1000;
	uint64_t polls = 0, before = polls_so_far();
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)e->buffer + 4096;
	wr.wr.rdma.rkey = e->mr->rkey;
	cr_assert_eq(ibv_post_send(e->qp[0], &wr, &bad), 0);
	while (ibv_poll_cq(e->cq, 1, &wc) == 0) {
		cr_assert_lt(polls, MOST_POLLS, "no completion after %lu polls", polls);
		cr_assert_lt(starved_now(), end, "nothing lets us poll");
		starved_begin(s);
		uroce_poll(engine, 0);
		*longest = MAX_OF(*longest, starved_alone(s));
		polls = polls_so_far() - before;
	}
	cr_assert_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	return (uint32_t)polls;
}

/*
 * No thread polls until a destruction waits: then the WRITE and the posts that it waits for leave
 * by the same polls.
 */
static void expect_data_goes_on(bool handle)
{
	double longest = 0;
	struct starved starved;
	struct endpoint e;
	uint32_t most = 0;

	destroying = mmap(NULL, sizeof(*destroying), PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(destroying, MAP_FAILED);
	fork_attached(be_destroying, handle);
	setenv("UROCE_SOCKET", "/nonexistent", 1);
	cr_assert_eq(uroce_register(engine), 0);
	endpoint_open(&e);
	starved_open(&starved);
	for (int i = 0; i < LOOKS; i++) {
		uint32_t polls;

		await_parked();
		polls = polls_of_write(&e, &starved, &longest);
		most = MAX_OF(most, polls);
	}
	starved_close(&starved);
	cr_log_info("up to %u polls, of up to %.4f s", most, longest);
	cr_expect_lt(longest, STALL, "the engine does nothing else for %.4f s", longest);
	kill(attached, SIGKILL);
	waitpid(attached, NULL, 0);
	endpoint_close(&e);
	control_rig_close();
}

Test(polled, data_goes_on_while_posts_leave, .timeout = 60)
{
	expect_data_goes_on(false);
}

Test(polled, data_goes_on_while_posts_leave_a_handle, .timeout = 60)
{
	expect_data_goes_on(true);
}

/* Here only, and says so. */
static void stay(bool argument)
{
	struct endpoint e;
	char c;

	begin_as_told(&e);
	if (write(end_fd[1], "h", 1) != 1 || read(begin_fd[0], &c, 1) != 1)
		_exit(98);
	_exit(0);
}

static void poll_once(void)
{
	uroce_poll(engine, 0);
}

/* The program itself destroys, in the thread that polls, beside one that is attached. */
Test(polled, posts_of_the_program_itself_leave, .timeout = 60)
{
	struct endpoint e;
	int missing = 0;
	fd_set set;

	fork_attached(stay, false);
	do {
		struct timeval t = { 0, 0 };

		poll_once();
		FD_ZERO(&set);
		FD_SET(end_fd[0], &set);
		cr_assert_geq(select(end_fd[0] + 1, &set, NULL, NULL, &t), 0);
	} while (!FD_ISSET(end_fd[0], &set));
	setenv("UROCE_SOCKET", "/nonexistent", 1);
	cr_assert_eq(uroce_register(engine), 0);
	endpoint_open(&e);
	for (int i = 0; i < ROUNDS; i++)
		missing += posts_and_destroys(&e, i % 2 == 0, poll_once);
	cr_expect_eq(missing, 0, "%d datagrams were lost", missing);
	endpoint_close(&e);
	cr_expect_eq(write(begin_fd[1], "e", 1), 1);
	cr_expect_eq(waitpid(attached, NULL, 0), attached);
	control_rig_close();
}

/* ---- more than is sent at once under the control lock ---- */

/* Datagrams: twice as many as all those turns send. */
#define MANY (2 * LIMIT_TURNS_AT_ONCE * LIMIT_STAGE)

static struct ibv_qp *large_queue_pair(struct endpoint *e, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .cap = { MANY, MANY, 1, 1, 0 }, .qp_type = IBV_QPT_UD
	};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

	cr_assert_not_null(qp, "ibv_create_qp: %m");
	cr_assert_eq(ud_ready(qp, UD_QKEY), 0, "%m");
	return qp;
}

/* The command waits in the thread of the program itself, and no other thread polls. */
Test(polled, many_posts_of_the_program_itself_leave, .timeout = 60)
{
	struct ibv_qp *from, *to;
	struct endpoint e;
	struct ibv_ah *ah;
	struct ibv_cq *cq;
	uint32_t missing = MANY;
	struct ibv_wc wc;

	snprintf(path, sizeof(path), "/tmp/uroce-polled-test-%d.sock", getpid());
	setenv("UROCE_SOCKET", "/nonexistent", 1);
	control_rig_make();
	cr_assert_eq(uroce_register(engine), 0);
	endpoint_open(&e);
	cq = ibv_create_cq(e.context, 2 * MANY, NULL, NULL, 0);
	cr_assert_not_null(cq, "ibv_create_cq: %m");
	from = large_queue_pair(&e, cq);
	to = large_queue_pair(&e, cq);
	ah = ud_self(&e, GID_INDEX);
	for (uint32_t i = 0; i < MANY; i++)
		ud_receive(&e, to, 4096, 64 + GRH);
	for (uint32_t i = 0; i < MANY; i++)
		cr_assert_eq(ud_send(&e, from, ah, to->qp_num, UD_QKEY, 0, 64), 0);
	waited = 0;
	cr_assert_eq(ibv_destroy_qp(from), 0);
	cr_expect_eq(waited, 1, "the command waited %u times", waited);
	for (double end = starved_now() + ENOUGH_MS / 1000; missing > 0 && starved_now() < end;) {
		uroce_poll(engine, 0);
		while (ibv_poll_cq(cq, 1, &wc) == 1)
			missing -= wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV;
	}
	cr_expect_eq(missing, 0, "%u of %u datagrams were lost", missing, MANY);
	cr_expect_eq(ibv_destroy_ah(ah), 0);
	cr_expect_eq(ibv_destroy_qp(to), 0);
	cr_expect_eq(ibv_destroy_cq(cq), 0);
	endpoint_close(&e);
	control_rig_close();
}

/* ---- what was acknowledged before the queue pair's end ---- */

static struct ibv_wc completion_of_polls(struct endpoint *e, const char *what)
{
	struct ibv_wc wc = { .status = IBV_WC_GENERAL_ERR };
	int found = 0;

	for (double end = starved_now() + ENOUGH_MS / 1000; found == 0 && starved_now() < end;) {
		uroce_poll(engine, 0);
		found = ibv_poll_cq(e->cq, 1, &wc);
	}
	cr_assert_eq(found, 1, "%s did not come", what);
	return wc;
}

#define TRIES 100

/*
 * The message has come, and the acknowledgement has not been taken in yet: sometimes one poll does
 * both. Then what is tested has not happened, and the connection begins anew.
 */
static bool only_the_message_comes(struct endpoint *e)
{
	struct ibv_recv_wr receive = { .wr_id = 1 }, *bad_receive;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad_send;
	struct ibv_wc wc;

	cr_assert_eq(ibv_post_recv(e->qp[1], &receive, &bad_receive), 0);
	cr_assert_eq(ibv_post_send(e->qp[0], &send, &bad_send), 0);
	wc = completion_of_polls(e, "the message");
	cr_assert_eq(wc.opcode, IBV_WC_RECV, "the send completes later");
	return ibv_poll_cq(e->cq, 1, &wc) == 0;
}

/*
 * A program that has the message may make the sender's end at once. The acknowledgement left with the
 * completion, but the lcore may not have had a processor since.
 */
Test(polled, what_was_received_is_not_flushed, .timeout = 60)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct endpoint e;
	struct ibv_wc wc;
	int rounds = 1;

	snprintf(path, sizeof(path), "/tmp/uroce-polled-test-%d.sock", getpid());
	setenv("UROCE_SOCKET", "/nonexistent", 1);
	control_rig_make();
	cr_assert_eq(uroce_register(engine), 0);
	endpoint_open(&e);
	for (; !only_the_message_comes(&e); rounds++)
		cr_assert_lt(rounds, TRIES, "the acknowledgement is always taken in at once");
	cr_assert_eq(ibv_modify_qp(e.qp[0], &attr, IBV_QP_STATE), 0, "%m");
	wc = completion_of_polls(&e, "the completion of the send");
	cr_expect_eq(wc.status, IBV_WC_SUCCESS, "%s", ibv_wc_status_str(wc.status));
	endpoint_close(&e);
	control_rig_close();
}
