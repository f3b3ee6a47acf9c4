/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce ping: checks that an engine carries data for this user, and times it. One process connects
 * two queue pairs to each other through the engine's own address. A round trip is one RDMA WRITE
 * with its acknowledgement, from post to completion, so it involves every part: the socket, the
 * queues, the doorbell, the lcore (awake or asleep), the transport and the access to memory.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "devices.h"
#include "histogram.h"
#include "json.h"
#include "locate.h"
#include "options.h"
#include "output.h"

#define LARGEST	 (1u << 20)
#define PATIENCE UINT64_C(5000000000) /* ns for one round trip */

static const char usage[] =
	"usage: uroce ping [--socket PATH] [--count N] [--interval MS] [--size OCTETS] [--json]\n"
	"\n"
	"Times RDMA WRITEs from this process to itself through an engine: post to completion.\n"
	"\n"
	"  --socket PATH  use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  -c, --count N  number of round trips (default 5)\n"
	"  --interval MS  pause between them (default 200). An adaptive engine sleeps during the\n"
	"                 pause, so that the time includes its wake-up; 0: no pause\n"
	"  --size OCTETS  size of each WRITE, 1 .. 1048576 (default 8)\n"
	"  --json         print the result as JSON\n";

struct ping_options {
	const char *socket;
	uint64_t count;
	uint64_t interval_ms;
	uint64_t size;
	bool json;
};

struct ping {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[2]; /* qp[0] writes to qp[1] */
	uint8_t *memory; /* `size` octets to send, then `size` octets to receive */
	union ibv_gid gid;
	int gid_index;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool parse(int argc, char **argv, struct ping_options *o, int *status)
{
	const struct option_row rows[] = { { "socket", .text = &o->socket },
					   { "count", 'c', .u64 = &o->count, .least = 1,
					     .most = 1000000000 },
					   { "interval", .u64 = &o->interval_ms, .most = 60000 },
					   { "size", .u64 = &o->size, .least = 1, .most = LARGEST },
					   { "json", .flag = &o->json },
					   { NULL } };

	return options_read("ping", usage, rows, argc, argv, NULL, status);
}

static int complain(const char *what)
{
	fprintf(stderr, "uroce ping: %s: %s\n", what, strerror(errno));
	return EXIT_FAILED;
}

static int open_device(struct ping *p, const char *name)
{
	p->context = device_open(name);
	return p->context != NULL ? EXIT_DONE : complain(name);
}

/* The first address that is not link-local. As on Linux index 0 is link-local. */
static int choose_gid(struct ping *p)
{
	static const union ibv_gid none;

	for (int i = 1; i < (int)LIMIT_GIDS; i++) {
		if (ibv_query_gid(p->context, 1, i, &p->gid) == 0 &&
		    memcmp(&p->gid, &none, sizeof(none)) != 0) {
			p->gid_index = i;
			return EXIT_DONE;
		}
	}
	errno = EADDRNOTAVAIL;
	return complain("the engine's port has no address");
}

static int open_objects(struct ping *p, size_t size)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 1, 1, 1, 1, 0 } };

	p->memory = calloc(2, size);
	p->pd = ibv_alloc_pd(p->context);
	p->cq = ibv_create_cq(p->context, 4, NULL, NULL, 0);
	if (p->memory == NULL || p->pd == NULL || p->cq == NULL)
		return complain("cannot create the objects");
	p->mr = ibv_reg_mr(p->pd, p->memory, 2 * size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = p->cq;
	for (int i = 0; p->mr != NULL && i < 2; i++) {
		p->qp[i] = ibv_create_qp(p->pd, &init);
		if (p->qp[i] == NULL)
			return complain("cannot create a queue pair");
	}
	return p->mr != NULL ? EXIT_DONE : complain("cannot register memory");
}

static int connect_qp(struct ping *p, struct ibv_qp *qp, uint32_t to)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	if (ibv_query_port(p->context, 1, &port) != 0)
		return complain("cannot query the port");
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		return complain("cannot move the queue pair to INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = port.active_mtu;
	a.dest_qp_num = to;
	a.max_dest_rd_atomic = 1;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = p->gid;
	a.ah_attr.grh.sgid_index = (uint8_t)p->gid_index;
	a.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		return complain("cannot move the queue pair to RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	if (ibv_modify_qp(qp, &a,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		return complain("cannot move the queue pair to RTS");
	return EXIT_DONE;
}

/* Times one WRITE and checks that its octets arrived. */
static int round_trip(struct ping *p, size_t size, uint64_t number, uint64_t *took)
{
	struct ibv_sge sge = { (uintptr_t)p->memory, (uint32_t)size, p->mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = number,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { (uintptr_t)p->memory + size, p->mr->rkey } };
	struct ibv_wc wc;
	uint64_t start;
	int n;

	memset(p->memory, (int)(number % 255 + 1), size);
	start = now_ns();
	errno = ibv_post_send(p->qp[0], &wr, &bad);
	if (errno != 0)
		return complain("posting");
	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 0 && now_ns() - start < PATIENCE)
		;
	*took = now_ns() - start;
	if (n < 0)
		return complain("polling");
	if (n == 0) {
		fprintf(stderr, "uroce ping: no completion within 5 s\n");
		return EXIT_FAILED;
	}
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "uroce ping: %s (vendor_err %u)\n", ibv_wc_status_str(wc.status),
			wc.vendor_err);
		return EXIT_FAILED;
	}
	if (memcmp(p->memory, p->memory + size, size) != 0) {
		fprintf(stderr, "uroce ping: the data that arrived differs from the data sent\n");
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static int round_trips(struct ping *p, const struct ping_options *o, struct histogram *h)
{
	struct timespec pause = { .tv_sec = (time_t)(o->interval_ms / 1000),
				  .tv_nsec = (long)(o->interval_ms % 1000) * 1000000 };
	uint64_t took = 0;

	for (uint64_t i = 0; i < o->count; i++) {
		if (i > 0 && o->interval_ms > 0)
			nanosleep(&pause, NULL);
		if (round_trip(p, o->size, i, &took) != 0)
			return EXIT_FAILED;
		histogram_add(h, took);
		if (!o->json && o->interval_ms > 0)
			printf("%" PRIu64 " octets written, round %" PRIu64 ": %.1f us\n", o->size,
			       i + 1, (double)took / 1e3);
	}
	return EXIT_DONE;
}

static void report_json(const struct ping_options *o, const struct engine_place *where,
			const struct reply_device *device, uint64_t control_ns,
			const struct histogram *h)
{
	struct json j = { .out = stdout };

	json_open(&j, NULL, '{');
	json_string(&j, "device", device->name);
	json_string(&j, "socket", where->path);
	json_number(&j, "control_round_trip_us", (double)control_ns / 1e3);
	json_integer(&j, "size", o->size);
	json_integer(&j, "count", h->count);
	json_number(&j, "min_us", (double)h->min / 1e3);
	json_number(&j, "p50_us", (double)histogram_percentile(h, 50) / 1e3);
	json_number(&j, "p99_us", (double)histogram_percentile(h, 99) / 1e3);
	json_number(&j, "max_us", (double)h->max / 1e3);
	json_close(&j, '}');
}

/* Times one command over the socket: the control path. */
static int ask(const struct engine_place *where, uint64_t *took, char *why, size_t why_size)
{
	struct reply_device device;
	int fd = engine_connect(where->path), error;
	uint64_t start = now_ns();

	if (fd < 0) {
		snprintf(why, why_size, "%s: %s", where->path, strerror(-fd));
		return EXIT_FAILED;
	}
	error = engine_ask(fd, COMMAND_DEVICE, &device.h, sizeof(device), why, why_size);
	*took = now_ns() - start;
	close(fd);
	return error == 0 ? EXIT_DONE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
	static struct histogram h;
	struct ping_options o = { .count = 5, .interval_ms = 200, .size = 8 };
	struct ping p = { 0 };
	struct engine_place where;
	struct reply_device device;
	uint64_t control_ns = 0;
	char text[512];
	int status;

	output_keep_closed();
	if (!parse(argc, argv, &o, &status))
		return status;
	if (engine_locate(o.socket, &where, &device, text, sizeof(text)) != 0 ||
	    ask(&where, &control_ns, text, sizeof(text)) != EXIT_DONE) {
		fprintf(stderr, "uroce ping: %s\n", text);
		return EXIT_FAILED;
	}
	setenv("UROCE_SOCKET", where.path, 1);
	engine_describe(&device, text, sizeof(text));
	if (!o.json)
		printf("%s at %s, answers in %.1f us\n", text, where.path,
		       (double)control_ns / 1e3);
	histogram_init(&h);
	if (open_device(&p, device.name) || choose_gid(&p) || open_objects(&p, o.size) ||
	    connect_qp(&p, p.qp[0], p.qp[1]->qp_num) || connect_qp(&p, p.qp[1], p.qp[0]->qp_num) ||
	    round_trips(&p, &o, &h))
		return EXIT_FAILED;
	if (o.json)
		report_json(&o, &where, &device, control_ns, &h);
	else
		printf("%lu round trips: min %.1f, median %.1f, p99 %.1f, max %.1f us\n",
		       (unsigned long)h.count, (double)h.min / 1e3,
		       (double)histogram_percentile(&h, 50) / 1e3,
		       (double)histogram_percentile(&h, 99) / 1e3, (double)h.max / 1e3);
	return output_status("uroce ping");
}
