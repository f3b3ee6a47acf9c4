/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets up and closes connections through rdma_cm, a window of them at a time, and prints how many
 * per second. Each connection has an id and an RC queue pair at both ends; nothing is sent over it.
 * Both ends check that every connection was closed and that nothing is left. Runs with any
 * librdmacm.
 *
 *	connections -l ADDRESS [-p PORT] [-n N]                 the passive end: exits after N
 *	connections -c ADDRESS [-p PORT] [-n N] [-w WINDOW]     the active end
 */
#include <errno.h>
#include <netdb.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 5000
#define BACKLOG	    1024

struct end {
	const char *address, *port;
	bool passive;
	unsigned long wanted, window;
	unsigned long begun, established, ended;
	struct rdma_event_channel *channel;
	struct addrinfo *where;
	struct ibv_pd *pd; /* shared by all queue pairs, like their CQ */
	struct ibv_cq *cq;
};

static void die(const char *what)
{
	fprintf(stderr, "connections: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- one connection ---- */

static void make_qp(struct end *e, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	if (e->pd == NULL) {
		e->pd = ibv_alloc_pd(id->verbs);
		e->cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
		if (e->pd == NULL || e->cq == NULL)
			die("no domain or completion queue");
	}
	init.send_cq = init.recv_cq = e->cq;
	if (rdma_create_qp(id, e->pd, &init) != 0)
		die("rdma_create_qp");
}

static void begin(struct end *e)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(e->channel, &id, e, RDMA_PS_TCP) != 0)
		die("rdma_create_id");
	if (rdma_resolve_addr(id, NULL, e->where->ai_addr, PATIENCE_MS) != 0)
		die("rdma_resolve_addr");
	e->begun++;
}

static void finish(struct end *e, struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	if (rdma_destroy_id(id) != 0)
		die("rdma_destroy_id");
	e->ended++;
}

static const struct rdma_conn_param parameters = {
	.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7
};

/* Returns an id that ends once the event is acknowledged, or NULL. */
static struct rdma_cm_id *take(struct end *e, const struct rdma_cm_event *event)
{
	struct rdma_conn_param p = parameters;
	struct rdma_cm_id *id = event->id;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, PATIENCE_MS) != 0)
			die("rdma_resolve_route");
		return NULL;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(e, id);
		if (rdma_connect(id, &p) != 0)
			die("rdma_connect");
		return NULL;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		make_qp(e, id);
		if (rdma_accept(id, &p) != 0)
			die("rdma_accept");
		return NULL;
	case RDMA_CM_EVENT_ESTABLISHED:
		e->established++;
		if (!e->passive && rdma_disconnect(id) != 0)
			die("rdma_disconnect");
		return NULL;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (e->passive)
			rdma_disconnect(id);
		return id;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_ADDR_CHANGE: /* a hint */
		return NULL;
	default:
		fprintf(stderr, "connections: %s, status %d, after %lu of %lu\n",
			rdma_event_str(event->event), event->status, e->ended, e->wanted);
		exit(1);
	}
}

/* ---- all ---- */

static void run(struct end *e)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *done;

	while (e->ended < e->wanted) {
		while (!e->passive && e->begun < e->wanted && e->begun - e->ended < e->window)
			begin(e);
		if (rdma_get_cm_event(e->channel, &event) != 0)
			die("rdma_get_cm_event");
		done = take(e, event);
		rdma_ack_cm_event(event);
		if (done != NULL)
			finish(e, done);
	}
}

static struct rdma_cm_id *listen_at(struct end *e)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(e->channel, &id, e, RDMA_PS_TCP) != 0 ||
	    rdma_bind_addr(id, e->where->ai_addr) != 0 || rdma_listen(id, BACKLOG) != 0)
		die("cannot listen");
	return id;
}

static void close_all(struct end *e, struct rdma_cm_id *listener)
{
	if (listener != NULL && rdma_destroy_id(listener) != 0)
		die("the listener");
	if (e->cq != NULL && (ibv_destroy_cq(e->cq) != 0 || ibv_dealloc_pd(e->pd) != 0))
		die("the completion queue or the domain is still in use");
	rdma_destroy_event_channel(e->channel);
	freeaddrinfo(e->where);
}

static int parse(int argc, char **argv, struct end *e)
{
	int c;

	while ((c = getopt(argc, argv, "l:c:p:n:w:")) != -1) {
		switch (c) {
		case 'l':
		case 'c':
			e->address = optarg;
			e->passive = c == 'l';
			break;
		case 'p':
			e->port = optarg;
			break;
		case 'n':
			e->wanted = strtoul(optarg, NULL, 0);
			break;
		case 'w':
			e->window = strtoul(optarg, NULL, 0);
			break;
		default:
			return 2;
		}
	}
	return e->address != NULL && e->window > 0 && optind == argc ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct end e = { .port = "7471", .wanted = 10000, .window = 64 };
	struct rdma_cm_id *listener = NULL;
	double start;

	if (parse(argc, argv, &e) != 0) {
		fprintf(stderr, "usage: connections -l|-c ADDRESS [-p PORT] [-n N] [-w WINDOW]\n");
		return 2;
	}
	if (getaddrinfo(e.address, e.port, NULL, &e.where) != 0)
		die("the address");
	e.channel = rdma_create_event_channel();
	if (e.channel == NULL)
		die("rdma_create_event_channel");
	if (e.passive)
		listener = listen_at(&e);
	start = seconds();
	run(&e);
	start = seconds() - start;
	if (e.established != e.wanted) {
		fprintf(stderr, "connections: %lu of %lu were established\n", e.established,
			e.wanted);
		return 1;
	}
	if (!e.passive)
		printf("%lu connections in %.2f s: %.0f a second, %.0f us each\n", e.wanted, start,
		       (double)e.wanted / start, start / (double)e.wanted * 1e6);
	close_all(&e, listener);
	return 0;
}
