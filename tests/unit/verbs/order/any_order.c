/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Verbs in any order. A thread makes, changes, uses and destroys objects as its seed says, beside a
 * model of what they are:
 *
 *	PD <- MR <- MW		PD <- AH, SRQ, QP	CQ, SRQ <- QP	QP -> QP, its peer
 *	XRC domain <- XRC SRQ, XRC target
 *
 * What is in use is not destroyed (EBUSY). A state follows only those that ibv_modify_qp(3) names
 * (EINVAL). Each request that a queue took completes once, in the queue's order and in the right CQ.
 * A descriptor that is readable has an event. What a completion says is free, because keys, peers
 * and states are drawn, too. At the end every queue pair goes to ERR, all that is still posted
 * completes, and all is destroyed.
 *
 * Runs with an engine at $UROCE_SOCKET. usage: any-order FIRST-SEED SEEDS STEPS
 */
#include "model.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE    60 /* seconds for what is still posted */
#define LONGEST_RUN 100 /* seconds: a call that does not return is named */

struct world w;

void wrong(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "seed %llu, step %llu, %s: ", (unsigned long long)w.seed,
		(unsigned long long)w.step, w.call);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(1);
}

/* A thread that hangs calls nothing that its handler interrupts. */
static void hangs(int signal)
{
	(void)signal;
	wrong("does not return");
}

uint32_t draw(uint32_t below)
{
	w.random = w.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return below == 0 ? 0 : (uint32_t)(w.random >> 33) % below;
}

void expect(int got, int wanted)
{
	if (got != wanted)
		wrong("returned %d (%s), must return %d (%s)", got, strerror(got), wanted,
		      strerror(wanted));
}

/* ---- requests that wait ---- */

bool fifo_push(struct fifo *f, struct posted p, uint32_t most)
{
	if (f->count >= most)
		return false;
	f->entry[(f->head + f->count++) % MOST] = p;
	return true;
}

struct posted fifo_pop(struct fifo *f)
{
	struct posted p = f->entry[f->head];

	f->head = (f->head + 1) % MOST;
	f->count--;
	return p;
}

static struct posted *find(const struct fifo *f, uint64_t wr_id)
{
	for (uint32_t i = 0; i < f->count; i++) {
		const struct posted *p = &f->entry[(f->head + i) % MOST];

		if (p->wr_id == wr_id)
			return (struct posted *)p;
	}
	return NULL;
}

bool fifo_has(const struct fifo *f, uint64_t wr_id)
{
	return find(f, wr_id) != NULL;
}

bool fifo_take(struct fifo *f, uint64_t wr_id)
{
	struct posted *p = find(f, wr_id);

	if (p == NULL)
		return false;
	*p = f->entry[f->head];
	fifo_pop(f);
	return true;
}

/* ---- beside verbs ---- */

/*
 * A child writes to memory that it has of its parent, registered or not. With a
 * sanitizer there are no forks (-DFORKS), because another thread may hold a lock of it.
 */
static void fork_step(void)
{
#ifdef FORKS
	volatile uint8_t *octet = &w.memory[draw(MEMORY)];
	pid_t child;
	int status = 0;

	if (draw(20) != 0)
		return;
	child = fork();
	if (child == 0) {
		*octet = 1;
		_exit(*octet == 1 ? 0 : 1);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		wrong("a child ended with %d: %m", status);
#endif
}

static void write_step(void)
{
	uint32_t length = draw(5000);

	memset(w.memory + draw(MEMORY - length), (int)draw(256), length);
}

/* ---- a run ---- */

static const struct step {
	const char *name;
	void (*step)(void);
	uint32_t weight;
} steps[] = {
	{ "ibv_alloc_pd", pd_step, 2 },
	{ "ibv_reg_mr", mr_step, 6 },
	{ "ibv_alloc_mw", mw_step, 2 },
	{ "ibv_create_cq", cq_step, 3 },
	{ "ibv_create_srq", srq_step, 3 },
	{ "ibv_create_ah", ah_step, 1 },
	{ "ibv_open_xrcd", xrcd_step, 2 },
	{ "ibv_create_qp", qp_step, 20 },
	{ "connecting", connect_step, 15 },
	{ "ibv_query_qp", query_step, 4 },
	{ "ibv_post_send", send_step, 30 },
	{ "ibv_wr_start", extended_step, 15 },
	{ "ibv_bind_mw", bind_step, 6 },
	{ "ibv_post_recv", recv_step, 30 },
	{ "ibv_post_srq_recv", srq_recv_step, 20 },
	{ "ibv_poll_cq", poll_step, 100 },
	{ "ibv_get_cq_event", event_step, 5 },
	{ "ibv_get_async_event", async_step, 5 },
	{ "fork", fork_step, 1 },
	{ "writing", write_step, 3 },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static void step(void)
{
	const struct step *s = steps;
	uint32_t all = 0, which;

	for (uint32_t i = 0; i < STEPS; i++)
		all += steps[i].weight;
	for (which = draw(all); which >= s->weight; s++)
		which -= s->weight;
	w.call = s->name;
	s->step();
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Requests that ask for no completion get none, but in ERR. */
static bool waits(const struct model_qp *q)
{
	for (uint32_t i = 0; i < q->sends.count; i++)
		if (q->sends.entry[(q->sends.head + i) % MOST].signaled)
			return true;
	return q->receives.count > 0;
}

static bool any_waits(void)
{
	for (uint32_t i = 0; i < QPS; i++)
		if (w.qp[i].qp != NULL && waits(&w.qp[i]))
			return true;
	return false;
}

static void finish(void)
{
	double until = seconds() + PATIENCE;

	qps_to_error();
	w.call = "the end";
	while (any_waits()) {
		poll_all();
		if (seconds() > until)
			wrong("what was posted does not complete within %d s", PATIENCE);
	}
	async_step();
	qps_end();
	objects_end();
}

static void run(uint64_t seed, uint64_t count)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	memset(&w, 0, sizeof(w));
	w.seed = seed;
	w.random = seed * UINT64_C(0x9e3779b97f4a7c15);
	w.call = "the beginning";
	w.context = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	if (w.context == NULL)
		wrong("no device: is an engine at $UROCE_SOCKET?");
	ibv_free_device_list(list);
	w.channel = ibv_create_comp_channel(w.context);
	w.memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w.channel == NULL || w.memory == MAP_FAILED)
		wrong("%m");
	alarm(LONGEST_RUN);
	for (w.step = 0; w.step < count; w.step++)
		step();
	finish();
	printf("seed %llu: %llu requests succeeded, %llu failed\n", (unsigned long long)seed,
	       (unsigned long long)w.succeeded, (unsigned long long)w.failed);
}

int main(int argc, char **argv)
{
	uint64_t seed, seeds;

	if (argc != 4) {
		fprintf(stderr, "usage: any-order FIRST-SEED SEEDS STEPS\n");
		return 2;
	}
	signal(SIGALRM, hangs);
	seed = strtoull(argv[1], NULL, 0);
	seeds = strtoull(argv[2], NULL, 0);
	for (uint64_t i = 0; i < seeds; i++)
		run(seed + i, strtoull(argv[3], NULL, 0));
	return 0;
}
