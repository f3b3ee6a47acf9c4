/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that registers a buffer for each transfer: registration, an RDMA WRITE of the whole
 * buffer and deregistration, in a loop, with promotion set to auto and to off. Each pair of runs is
 * two processes, one after the other. Prints the time per cycle, including the first cycles, in the
 * fastest and in the median run of each kind, and their ratio; then that of the pairs: the median, the
 * lowest and the highest. Runs with an engine at $UROCE_SOCKET, which both kinds use.
 * usage: register-cycle [same | malloc] [PAIRS [CYCLES]]
 * same: one buffer for all cycles; malloc: each cycle allocates and frees its buffer.
 */
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plain.h"

#define PAIRS_MAX 64
#define ACCESS	  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[2];
static union ibv_gid gid;

static void open_device(void)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;

	need(list != NULL && list[0] != NULL, "no device");
	context = ibv_open_device(list[0]);
	need(context != NULL, "ibv_open_device");
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	need(pd != NULL && cq != NULL && ibv_query_gid(context, 1, 1, &gid) == 0, "PD, CQ, GID");
	need(ibv_query_port(context, 1, &port) == 0, "ibv_query_port");
	init.send_cq = init.recv_cq = cq;
	for (int i = 0; i < 2; i++) {
		qp[i] = ibv_create_qp(pd, &init);
		need(qp[i] != NULL, "ibv_create_qp");
	}
	for (int i = 0; i < 2; i++)
		connect_plain(qp[i], &gid, qp[1 - i]->qp_num, ACCESS, port.active_mtu);
}

static void transfer(struct ibv_mr *from, struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, (uint32_t)from->length, from->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)to->addr;
	wr.wr.rdma.rkey = to->rkey;
	need(ibv_post_send(qp[0], &wr, &bad) == 0, "ibv_post_send");
	while (ibv_poll_cq(cq, 1, &wc) == 0)
		;
	need(wc.status == IBV_WC_SUCCESS, "the WRITE");
}

static void *allocate(size_t octets)
{
	void *p = malloc(octets);

	need(p != NULL, "malloc");
	memset(p, 1, octets);
	return p;
}

/* Microseconds per cycle, including the first. */
static double cycles(size_t octets, uint32_t count, bool allocates)
{
	struct ibv_mr *to = ibv_reg_mr(pd, allocate(octets), octets, ACCESS);
	void *buffer = allocate(octets);
	double begin = now_us();

	need(to != NULL, "ibv_reg_mr");
	for (uint32_t i = 0; i < count; i++) {
		void *p = allocates ? allocate(octets) : buffer;
		struct ibv_mr *from = ibv_reg_mr(pd, p, octets, IBV_ACCESS_LOCAL_WRITE);

		need(from != NULL, "ibv_reg_mr");
		transfer(from, to);
		need(ibv_dereg_mr(from) == 0, "ibv_dereg_mr");
		if (allocates)
			free(p);
	}
	return (now_us() - begin) / count;
}

static double run(const char *promote, size_t octets, uint32_t count, bool allocates)
{
	double took = 0;
	int ends[2], status;
	pid_t pid;

	need(pipe(ends) == 0, "pipe");
	pid = fork();
	if (pid == 0) {
		setenv("UROCE_PROMOTE", promote, 1);
		open_device();
		took = cycles(octets, count, allocates);
		_exit(write(ends[1], &took, sizeof(took)) != sizeof(took));
	}
	need(read(ends[0], &took, sizeof(took)) == sizeof(took), "a run's figure");
	waitpid(pid, &status, 0);
	close(ends[0]);
	close(ends[1]);
	return took;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void print(const char *how, size_t kib, double *on, double *off, uint32_t pairs)
{
	double ratio[PAIRS_MAX];

	for (uint32_t i = 0; i < pairs; i++)
		ratio[i] = on[i] / off[i];
	qsort(on, pairs, sizeof(*on), by_size);
	qsort(off, pairs, sizeof(*off), by_size);
	qsort(ratio, pairs, sizeof(*ratio), by_size);
	printf("%-6s %4zu KiB: auto %8.1f us, off %8.1f us, %.2f; median %8.1f, %8.1f, %.2f; pairs %.2f (%.2f to %.2f)\n",
	       how, kib, on[0], off[0], on[0] / off[0], on[pairs / 2], off[pairs / 2],
	       on[pairs / 2] / off[pairs / 2], ratio[pairs / 2], ratio[0], ratio[pairs - 1]);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	bool allocates = argc > 1 && strcmp(argv[1], "malloc") == 0;
	uint32_t pairs = argc > 2 ? (uint32_t)atoi(argv[2]) : 9;
	uint32_t count = argc > 3 ? (uint32_t)atoi(argv[3]) : 400;
	double on[PAIRS_MAX], off[PAIRS_MAX];

	if (pairs == 0 || pairs > PAIRS_MAX || count == 0)
		return 2;
	for (size_t kib = 64; kib <= 4096; kib *= 4) {
		for (uint32_t i = 0; i < pairs; i++) {
			on[i] = run("auto", kib << 10, count, allocates);
			off[i] = run("off", kib << 10, count, allocates);
		}
		print(allocates ? "malloc" : "same", kib, on, off, pairs);
	}
	return 0;
}
