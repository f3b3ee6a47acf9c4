/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program attacks with everything it has: the memory of its queues, long requests, endless errors
 * and endless commands. Meanwhile a pair of another program gets no error and does not stall, and
 * the engine logs nothing about it. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rte_ring.h>

#include "base/bits.h"
#include "base/work.h"
#include "rig/endpoint.h"
#include "rig/starved.h"
#include "verbs/types.h"

#define WINDOWS	   5u
#define MOST	   150u /* where there are few processors */
#define WINDOW_NS  200000000u
#define STALL_S	   0.1
#define HANGS_NS   2000000000u /* an attacker without an effect for so long */
#define LOG_OCTETS 4096
#define LARGE	   (32u << 20)
#define MANY	   12000u
#define OF_MANY	   (256u << 10)
#define MADE_NS	   120000000000u /* only bounds a hang */

static struct endpoint e;
static pid_t attacker;
static int ready[2];
static uint64_t *effects; /* of the attack; shared with the attacker */

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static long octets_of_log(void)
{
	char path[256];
	struct stat s;

	snprintf(path, sizeof(path), "%s", getenv("UROCE_SOCKET"));
	*strrchr(path, '/') = 0;
	strcat(path, "/log");
	return stat(path, &s) == 0 ? (long)s.st_size : 0;
}

/* Waits until it ends, or kills it: a program that overwrote its own doorbells may wait for ever. */
static void await_end(pid_t round)
{
	uint64_t seen = 0, since = now();

	while (waitpid(round, NULL, WNOHANG) == 0) {
		uint64_t current = __atomic_load_n(effects, __ATOMIC_RELAXED);

		if (current != seen)
			since = now();
		seen = current;
		if (now() - since > HANGS_NS)
			kill(round, SIGKILL);
		usleep(1000);
	}
}

/* Attacks as long as the test lives. An attacker that dies or hangs of its own attack is replaced. */
static void attack_on(void (*attack)(void))
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t round = fork();

		if (round == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (freopen("/dev/null", "w", stderr) == NULL)
				_exit(1);
			endpoint_open(&e);
			if (write(ready[1], "x", 1) == 1)
				attack();
			_exit(0);
		}
		await_end(round);
	}
}

static void begin(void (*attack)(void))
{
	char octet;

	cr_assert_eq(pipe(ready), 0);
	effects = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(effects, MAP_FAILED);
	attacker = fork();
	if (attacker == 0)
		attack_on(attack);
	cr_assert_eq(read(ready[0], &octet, 1), 1);
	endpoint_open(&e);
}

static void end(void)
{
	cr_expect_eq(kill(attacker, SIGKILL), 0);
	cr_expect_eq(waitpid(attacker, NULL, 0), attacker);
	endpoint_close(&e);
}

struct worst {
	uint64_t rounds;
	double data, command; /* s */
};

/* Measures the longest round trip until then, and the longest command, one after sixteen of those. */
static void watch_until(uint64_t until, struct starved *s, struct worst *w)
{
	while (now() < until) {
		double took = starved_write(s, &e, w->rounds);

		w->data = took > w->data ? took : w->data;
		if (++w->rounds % 16 == 0) {
			took = starved_commands(s, e.context);
			w->command = took > w->command ? took : w->command;
		}
	}
}

static uint64_t effects_of_the_attack(void)
{
	return __atomic_load_n(effects, __ATOMIC_RELAXED);
}

static void expect_nobody_else_suffers(void)
{
	const long said = octets_of_log();
	struct worst w = { 0 };
	struct starved s;

	starved_open(&s);
	for (uint32_t i = 0;
	     i < WINDOWS || (i < MOST && (w.rounds <= 100 || effects_of_the_attack() <= 10)); i++)
		watch_until(now() + WINDOW_NS, &s, &w);
	starved_close(&s);
	cr_log_info("%lu round trips, the longest %.3f s; the longest command %.3f s",
		    (unsigned long)w.rounds, w.data, w.command);
	cr_expect_leq(w.command, ENDPOINT_COMMAND_S, "a command took %.3f s", w.command);
	cr_expect_leq(w.data, STALL_S, "no data for %.3f s", w.data);
	cr_expect_gt(effects_of_the_attack(), 10, "nobody attacked");
	cr_expect_gt(w.rounds, 100, "%lu round trips", (unsigned long)w.rounds);
	cr_expect_leq(octets_of_log() - said, LOG_OCTETS, "the engine says a lot");
	end();
}

/* Two queue pairs of the attacker do this again and again, whatever the result. */
static void post_to(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint64_t to, uint32_t length,
		    uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, length, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = to;
	wr.wr.rdma.rkey = rkey;
	ibv_post_send(qp, &wr, &bad);
}

static bool drain(void)
{
	struct ibv_wc wc[16];
	bool any = false;
	int n;

	while ((n = ibv_poll_cq(e.cq, 16, wc)) > 0) {
		__atomic_fetch_add(effects, (uint64_t)n, __ATOMIC_RELAXED);
		any = true;
	}
	return any;
}

static bool is_in_error(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 && attr.qp_state == IBV_QPS_ERR;
}

/* With a completion queue that has less room than the queue pairs have requests. */
static void begin_again(void)
{
	for (int i = 0; i < 2; i++)
		ibv_destroy_qp(e.qp[i]);
	ibv_destroy_cq(e.cq);
	e.cq = ibv_create_cq(e.context, 1, NULL, NULL, 0);
	for (int i = 0; i < 2; i++)
		e.qp[i] = e.cq != NULL ? endpoint_create_qp(&e) : NULL;
	if (e.qp[0] == NULL || e.qp[1] == NULL ||
	    endpoint_connect(&e, e.qp[0], e.qp[1]->qp_num) != 0 ||
	    endpoint_connect(&e, e.qp[1], e.qp[0]->qp_num) != 0)
		_exit(1);
}

static void connect_again(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	for (int i = 0; i < 2; i++)
		ibv_modify_qp(e.qp[i], &attr, IBV_QP_STATE);
	for (int i = 0; i < 2; i++)
		endpoint_connect(&e, e.qp[i], e.qp[1 - i]->qp_num);
}

/* Overwrites all that it shares with the engine but the first page, mostly its queues. */
static void scribble(void)
{
	struct qp *qp = (struct qp *)(void *)e.qp[0];
	struct cq *cq = (struct cq *)(void *)e.cq;
	uint32_t *place[] = {
		(uint32_t *)(void *)(qp->sq.ring + 1), (uint32_t *)(void *)(qp->rq.ring + 1),
		(uint32_t *)(void *)(cq->ring + 1),    (uint32_t *)(void *)qp->sq.ring,
		(uint32_t *)(void *)qp->rq.ring,       (uint32_t *)(void *)cq->ring,
		(uint32_t *)(void *)qp->page,	       (uint32_t *)(void *)qp->bell
	};
	const uint32_t words[] = {
		qp->sq.stride * DEPTH / 4, qp->rq.stride * DEPTH / 4, 256, 64, 64, 64, 32, 64
	};
	unsigned int seed = (unsigned int)getpid();

	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t k = (uint32_t)rand_r(&seed) % (round % 64 == 0 ? 8 : 3);
		uint32_t value = (uint32_t)rand_r(&seed) << (rand_r(&seed) % 32);

		post_to(e.qp[0], IBV_WR_RDMA_WRITE, (uintptr_t)e.buffer, 64, e.mr->rkey);
		__atomic_store_n(place[k] + (uint32_t)rand_r(&seed) % words[k], value,
				 __ATOMIC_RELAXED);
		drain();
		if (round % 256 == 0)
			connect_again();
	}
}

/*
 * hostile H-87: num_sge changes between its check and its use. H-88: a receive request changes
 * while a packet is placed. H-89: a number of elements out of range. H-91: completions are written
 * over. H-142: more elements than there is room for. H-149: a ring's positions lie outside of it.
 * hostile H-60: the engine's log does not grow.
 */
Test(attacked, by_a_program_that_overwrites_its_queues, .timeout = 60)
{
	begin(scribble);
	expect_nobody_else_suffers();
}

/* hostile H-25: READs of all its memory, as many at once as allowed, again and again. */
static void read_on(void)
{
	uint8_t *large = aligned_alloc(4096, LARGE);
	struct ibv_mr *mr =
		ibv_reg_mr(e.pd, large, LARGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge sge = { (uintptr_t)large, LARGE, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)large;
	wr.wr.rdma.rkey = mr->rkey;
	for (;;) {
		for (int i = 0; i < 2; i++)
			while (ibv_post_send(e.qp[i], &wr, &bad) == 0)
				;
		drain();
	}
}

/* hostile H-25: requests of 60 octets that are answered with many gigabytes. */
Test(attacked, by_a_program_that_reads_endlessly, .timeout = 60)
{
	begin(read_on);
	expect_nobody_else_suffers();
}

/*
 * Completions that the program does not take. A queue that has overrun is made again, with the
 * queue pairs on it.
 */
static void complete_on(void)
{
	for (;;) {
		begin_again();
		for (int i = 0; i < DEPTH; i++)
			post_to(e.qp[0], IBV_WR_RDMA_WRITE, (uintptr_t)e.buffer, 64, e.mr->rkey);
		while (!is_in_error(e.qp[0]))
			;
		__atomic_fetch_add(effects, 1, __ATOMIC_RELAXED);
	}
}

/* hostile H-108: a completion queue that is never polled. */
Test(attacked, by_a_program_that_never_polls, .timeout = 60)
{
	begin(complete_on);
	expect_nobody_else_suffers();
}

/* SENDs without a receive request, which are repeated for ever, and wrong keys. */
static void err_on(void)
{
	unsigned int seed = 3;

	for (uint32_t round = 0;; round++) {
		for (int i = 0; i < 2 && round % 4 == 3; i++) {
			ibv_destroy_qp(e.qp[i]);
			e.qp[i] = endpoint_create_qp(&e);
			if (e.qp[i] == NULL)
				_exit(1);
		}
		connect_again();
		post_to(e.qp[1], IBV_WR_SEND, 0, 64, 0);
		post_to(e.qp[0], IBV_WR_RDMA_WRITE, (uintptr_t)e.buffer, 64,
			(uint32_t)rand_r(&seed));
		for (uint64_t until = now() + 20000000; !drain() && now() < until;)
			;
	}
}

/*
 * hostile H-33: keys are guessed, each guess ends a queue pair. H-124: errors are the weapon.
 * H-126: queue pairs go while a timer of theirs runs.
 * hostile H-49: RNR NAKs without end; H-60: the engine's log does not grow.
 */
Test(attacked, by_a_program_that_makes_errors_endlessly, .timeout = 60)
{
	begin(err_on);
	expect_nobody_else_suffers();
}

static void command_on(void)
{
	for (;;) {
		struct ibv_mr *mr = ibv_reg_mr(e.pd, e.buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE);
		struct ibv_cq *cq = ibv_create_cq(e.context, 1000, NULL, NULL, 0);
		struct ibv_qp *qp = endpoint_create_qp(&e);

		if (mr == NULL || cq == NULL || qp == NULL)
			_exit(1);
		endpoint_connect(&e, qp, e.qp[0]->qp_num);
		ibv_destroy_qp(qp);
		ibv_destroy_cq(cq);
		ibv_dereg_mr(mr);
		__atomic_fetch_add(effects, 1, __ATOMIC_RELAXED);
	}
}

/* hostile H-123: objects are endlessly made, changed and destroyed. */
Test(attacked, by_a_program_that_sends_commands_endlessly, .timeout = 60)
{
	begin(command_on);
	expect_nobody_else_suffers();
}

/* Each writes to itself, and always has something to send. */
static void write_large(struct ibv_qp *qp, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, OF_MANY, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)qp,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
	wr.wr.rdma.rkey = mr->rkey;
	if (ibv_post_send(qp, &wr, &bad) != 0)
		_exit(1);
}

static struct ibv_mr *make_many(struct ibv_qp *qp[MANY])
{
	void *memory = aligned_alloc(4096, OF_MANY);
	struct ibv_mr *mr =
		ibv_reg_mr(e.pd, memory, OF_MANY, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);

	ibv_destroy_qp(e.qp[0]);
	ibv_destroy_qp(e.qp[1]);
	ibv_destroy_cq(e.cq);
	e.cq = ibv_create_cq(e.context, MANY + 1, NULL, NULL, 0);
	for (uint32_t i = 0; i < MANY; i++) {
		qp[i] = e.cq != NULL ? endpoint_create_qp(&e) : NULL;
		if (mr == NULL || qp[i] == NULL || endpoint_connect(&e, qp[i], qp[i]->qp_num) != 0)
			_exit(1);
		__atomic_fetch_add(effects, 1, __ATOMIC_RELAXED);
	}
	return mr;
}

static void send_from_many(void)
{
	static struct ibv_qp *qp[MANY];
	struct ibv_mr *mr = make_many(qp);
	struct ibv_wc wc[16];

	for (uint32_t i = 0; i < MANY; i++)
		write_large(qp[i], mr);
	for (;;) {
		int n = ibv_poll_cq(e.cq, 16, wc);

		for (int i = 0; i < n; i++)
			write_large((struct ibv_qp *)(uintptr_t)wc[i].wr_id, mr);
		__atomic_fetch_add(effects, n > 0 ? (uint64_t)n : 0, __ATOMIC_RELAXED);
	}
}

/* hostile H-25: many queue pairs of one user always have something to send. */
Test(attacked, by_a_program_that_sends_from_thousands_of_queue_pairs, .timeout = 240)
{
	begin(send_from_many);
	for (uint64_t until = now() + MADE_NS; effects_of_the_attack() < 2 * MANY;) {
		cr_assert_lt(now(), until, "%lu", (unsigned long)effects_of_the_attack());
		usleep(1000);
	}
	expect_nobody_else_suffers();
}
