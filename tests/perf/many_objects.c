/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many objects in one process: queue pairs with a completion queue each, and regions. All are made,
 * each is used at least once, all are destroyed. Prints what a thousand of each cost at the
 * beginning and at the end, because lookups must not slow down, and what a queue pair costs the
 * engine. Runs with an engine at $UROCE_SOCKET, whose process is $UROCED_PID.
 * usage: many-objects [QUEUE-PAIRS [REGIONS [KIB [hold]]]]
 * Fails if a queue pair takes more than so many KiB. `hold`: says "held" when all are connected and were used, and then
 * does nothing until it is killed.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GID_INDEX    1
#define OCTETS	     64u /* size of a region */
#define SAMPLE	     1000u
#define WAIT_SECONDS 20

static struct ibv_context *context;
static struct ibv_pd *pd;
static union ibv_gid gid;
static uint32_t qps = 10000, mrs = 100000;
static struct ibv_cq **cq;
static struct ibv_qp **qp;
static struct ibv_mr **mr;
static uint8_t *memory;

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* KiB of memory that the engine uses; 0: unknown. */
static long engine_memory(void)
{
	const char *pid = getenv("UROCED_PID");
	char path[64], line[128];
	long anonymous = 0;
	FILE *f;

	if (pid == NULL)
		return 0;
	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "RssAnon: %ld", &anonymous) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return anonymous;
}

/* Calls `one` for 0 .. n-1, and prints the cost of the first and of the last ones. */
static void each(const char *what, uint32_t n, void (*one)(uint32_t i))
{
	uint32_t sample = n < 2 * SAMPLE ? n / 2 : SAMPLE;
	double start = now(), first = 0, last = 0, end;

	for (uint32_t i = 0; i < n; i++) {
		if (i == sample)
			first = now();
		if (i == n - sample)
			last = now();
		one(i);
	}
	end = now();
	printf("%-28s %7u in %6.2f s   first %u: %6.1f us each   last: %6.1f us each\n", what, n,
	       end - start, sample, (first - start) / sample * 1e6, (end - last) / sample * 1e6);
	fflush(stdout);
}

static void make_cq(uint32_t i)
{
	cq[i] = ibv_create_cq(context, 15, NULL, NULL, 0);
	if (cq[i] == NULL)
		die("CQ %u of %u: %m", i, qps);
}

static void make_qp(uint32_t i)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq[i],
		.recv_cq = cq[i],
		.cap = { .max_send_wr = 8, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	qp[i] = ibv_create_qp(pd, &init);
	if (qp[i] == NULL)
		die("queue pair %u of %u: %m", i, qps);
}

static void modify(uint32_t i, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(qp[i], attr, mask);

	if (error != 0)
		die("queue pair %u to state %d: %s", i, (int)attr->qp_state, strerror(error));
}

static void connect_qp(uint32_t i)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	modify(i, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qp[i ^ 1]->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .grh = { .dgid = gid, .sgid_index = GID_INDEX, .hop_limit = 64 },
			     .port_num = 1 }
	};
	modify(i, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	modify(i, &attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC);
}

static void make_mr(uint32_t i)
{
	mr[i] = ibv_reg_mr(pd, memory + (size_t)i * OCTETS, OCTETS,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	if (mr[i] == NULL)
		die("region %u of %u: %m", i, mrs);
}

static void wait_for(uint32_t i)
{
	double end = now() + WAIT_SECONDS;
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(cq[i], 1, &wc);
	while (n == 0 && now() < end);
	if (n != 1)
		die("queue pair %u: no completion in %d s", i, WAIT_SECONDS);
	if (wc.status != IBV_WC_SUCCESS)
		die("queue pair %u: %s", i, ibv_wc_status_str(wc.status));
}

/* Region i is written through queue pair i (modulo their number) from the previous region. */
static void write_through(uint32_t i)
{
	uint32_t q = i % qps, from = (i + mrs - 1) % mrs;
	struct ibv_sge sge = { (uintptr_t)mr[from]->addr, OCTETS, mr[from]->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)mr[i]->addr;
	wr.wr.rdma.rkey = mr[i]->rkey;
	*(volatile uint32_t *)mr[from]->addr = i;
	if (ibv_post_send(qp[q], &wr, &bad) != 0)
		die("cannot post to queue pair %u", q);
	wait_for(q);
	if (*(volatile uint32_t *)mr[i]->addr != i)
		die("region %u was not written", i);
}

static void destroy_mr(uint32_t i)
{
	if (ibv_dereg_mr(mr[i]) != 0)
		die("cannot deregister region %u", i);
}

static void destroy_qp(uint32_t i)
{
	if (ibv_destroy_qp(qp[i]) != 0)
		die("cannot destroy queue pair %u", i);
}

static void destroy_cq(uint32_t i)
{
	if (ibv_destroy_cq(cq[i]) != 0)
		die("cannot destroy CQ %u", i);
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	context = list != NULL && list[0] != NULL ? ibv_open_device(list[0]) : NULL;
	if (context == NULL)
		die("no device: is an engine at $UROCE_SOCKET?");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	if (pd == NULL || ibv_query_gid(context, 1, GID_INDEX, &gid) != 0)
		die("the device has no protection domain or GID: %m");
}

int main(int argc, char **argv)
{
	double most = argc > 3 ? strtod(argv[3], NULL) : 1e9, each_takes;
	long before, after;

	if (argc > 1)
		qps = (uint32_t)strtoul(argv[1], NULL, 10) & ~1u;
	if (argc > 2)
		mrs = (uint32_t)strtoul(argv[2], NULL, 10);
	if (qps < 2 || mrs < 2)
		die("usage: many-objects [QUEUE-PAIRS [REGIONS [KIB [hold]]]], at least 2 each");
	cq = calloc(qps, sizeof(*cq));
	qp = calloc(qps, sizeof(*qp));
	mr = calloc(mrs, sizeof(*mr));
	memory = aligned_alloc(4096, ((size_t)mrs * OCTETS + 4095) & ~(size_t)4095);
	if (cq == NULL || qp == NULL || mr == NULL || memory == NULL)
		die("out of memory");
	open_device();
	each("ibv_create_cq", qps, make_cq);
	before = engine_memory();
	each("ibv_create_qp", qps, make_qp);
	after = engine_memory();
	each("ibv_modify_qp to RTS", qps, connect_qp);
	each("ibv_reg_mr", mrs, make_mr);
	each("RDMA WRITE and its poll", mrs, write_through);
	if (argc > 4 && strcmp(argv[4], "hold") == 0) {
		puts("held");
		fflush(stdout);
		pause();
	}
	each("ibv_dereg_mr", mrs, destroy_mr);
	each("ibv_destroy_qp", qps, destroy_qp);
	each("ibv_destroy_cq", qps, destroy_cq);
	each_takes = (double)(after - before) / qps;
	if (after > 0)
		printf("a queue pair takes %.2f KiB of the engine's own memory\n", each_takes);
	if (each_takes > most)
		die("that is more than %.1f KiB", most);
	if (ibv_dealloc_pd(pd) != 0 || ibv_close_device(context) != 0)
		die("objects are left over");
	return 0;
}
