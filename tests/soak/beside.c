/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Beside the traffic one thread registers memory, sends it through a queue pair to itself and
 * deregisters it. Another thread forks. The child reads the memory that its parent registered, and
 * changes its copy: the parent's memory must not change.
 */
#include "soak.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define REGION_MOST (1u << 20)
#define CHILD_S	    120
#define FAIL_MS	    60000

static pthread_t registrar, forker;
static bool has_registrar, has_forker;
static bool stop;
static struct ibv_cq *cq; /* of the queue pair to itself */
static struct ibv_qp *qp;

static bool stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void rest(uint32_t ms)
{
	for (uint32_t i = 0; i < ms && !stopped(); i += 10)
		usleep(10000);
}

/* ---- registrations ---- */

struct region {
	uint8_t *at;
	uint32_t length; /* of each half */
	struct ibv_mr *mr;
};

static uint32_t random_length(uint64_t n)
{
	return 4096u * (1 + (uint32_t)(mix(n, 5) % (REGION_MOST / 4096 >> (mix(n, 6) % 8))));
}

/* False: the engine is gone. */
static bool write_through(struct soak *s, struct region *r)
{
	struct ibv_sge sge = { (uintptr_t)r->at, r->length, r->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	double end = seconds_now() + STALL_S;
	int n;

	wr.wr.rdma.remote_addr = (uintptr_t)r->at + r->length;
	wr.wr.rdma.rkey = r->mr->rkey;
	if (ibv_post_send(qp, &wr, &bad) != 0)
		return false;
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0 && seconds_now() < end)
		usleep(1000);
	if (n == 0)
		die("%s: a WRITE within the program did not complete in %d s", s->o.name, STALL_S);
	return n == 1 && wc.status == IBV_WC_SUCCESS;
}

static bool one_region(struct soak *s, uint64_t n)
{
	struct region r = { .length = random_length(n) };
	bool good = false;

	r.at = mmap(NULL, 2 * r.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r.at == MAP_FAILED)
		die("memory: %m");
	pattern_fill(r.at, s->o.seed, n, 0, r.length);
	r.mr = ibv_reg_mr(s->pd, r.at, 2 * r.length,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (r.mr != NULL) {
		good = write_through(s, &r);
		good = ibv_dereg_mr(r.mr) == 0 && good;
	}
	if (good && (pattern_differs(r.at, s->o.seed, n, 0, r.length) < r.length ||
		     pattern_differs(r.at + r.length, s->o.seed, n, 0, r.length) < r.length))
		die("%s: region %llu of %u octets has other octets than were written", s->o.name,
		    (unsigned long long)n, 2 * r.length);
	munmap(r.at, 2 * r.length);
	return good;
}

static void *registers(void *arg)
{
	struct soak *s = arg;

	while (!stopped()) {
		if (!one_region(s, s->registrations))
			break;
		s->registrations++;
		rest(s->o.register_ms);
	}
	rest(FAIL_MS); /* the main thread notices that the engine is gone */
	if (!stopped())
		die("%s: a registration, or its WRITE, failed, and nobody is gone", s->o.name);
	return NULL;
}

/* ---- forks ---- */

static int child(const struct soak *s)
{
	alarm(CHILD_S);
	for (uint32_t i = 0; i < s->lane_count; i += 1 + s->lane_count / 64) {
		uint8_t *at = s->lanes[i].memory + AT_CONSTANT;

		if (pattern_differs(at, s->lanes[i].key, NUMBER_CONSTANT, 0, LONGEST) < LONGEST)
			return 2;
		memset(at, 0xee, LONGEST);
		if (at[0] != 0xee || at[LONGEST - 1] != 0xee)
			return 3;
	}
	return 0;
}

static void *forks(void *arg)
{
	struct soak *s = arg;

	for (; !stopped(); rest(s->o.fork_ms)) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(child(s));
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			die("%s: fork: %m", s->o.name);
		if (status != 0)
			die("%s: a child of fork() ended with %#x: 0x200: it saw wrong octets",
			    s->o.name, status);
		s->forks++;
	}
	return NULL;
}

void beside_begin(struct soak *s)
{
	cq = ibv_create_cq(s->context, 16, NULL, NULL, 0);
	qp = cq != NULL ? loop_qp(s, cq) : NULL;
	if (qp == NULL)
		die("%s: no queue pair for registrations: %m", s->o.name);
	loop_connect(s, qp, qp);
	has_registrar = s->o.register_ms > 0;
	has_forker = s->o.fork_ms > 0;
	if ((has_registrar && pthread_create(&registrar, NULL, registers, s) != 0) ||
	    (has_forker && pthread_create(&forker, NULL, forks, s) != 0))
		die("%s: no thread", s->o.name);
}

void beside_end(struct soak *s)
{
	int error;

	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	if (has_registrar)
		pthread_join(registrar, NULL);
	if (has_forker)
		pthread_join(forker, NULL);
	error = ibv_destroy_qp(qp);
	error = error != 0 ? error : ibv_destroy_cq(cq);
	if (error != 0)
		engine_must_be_gone(s, "the end of the queue pair for registrations", error);
}
