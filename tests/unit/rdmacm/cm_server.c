/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ordinary rdma_cm server that hostile_peer_test.py talks to. Each event is a line of its
 * output, each command a line of its input. Ids are numbered in the order of creation.
 * usage: cm-server ADDRESS PORT BACKLOG
 *
 *	out: ready, EVENT ID STATUS, refused CALL ERRNO, done, begun ID,
 *	    received LENGTH (by the accepted rsocket)
 *	in: accept ID, reject ID, disconnect ID, destroy ID, connect ADDRESS PORT (UDP: lookup),
 *	    self (a connection with itself), exercise WRITES (over that), look, look-away,
 *	    hear (done: what happened up to now was said before), rlisten PORT (an rsocket),
 *	    raccept (its one connection, which may still have to come), end
 *
 * A request whose private data begins with 'a' is accepted at once, one with 'r' rejected. One with
 * 'b' gets a queue pair of the program's own, which stays in RTR.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IDS	65536
#define SOON_MS 10000

static struct rdma_event_channel *channel;
static struct rdma_cm_id *ids[IDS];
static uint32_t made;
static struct rdma_cm_id *own; /* of the connection with ourselves: the active end */
static char page[4096] __attribute__((aligned(4096)));
static bool looks = true;
static int streams = -1; /* the listening rsocket */

static void die(const char *what)
{
	printf("died: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void enter(struct rdma_cm_id *id)
{
	if (made == IDS)
		die("too many ids");
	id->context = (void *)(uintptr_t)made;
	ids[made++] = id;
}

static void answer(const char *call, int status)
{
	if (status == 0)
		printf("done\n");
	else
		printf("refused %s %d\n", call, errno);
}

static int give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	return id->qp != NULL ? 0 : rdma_create_qp(id, NULL, &init);
}

static int accept_id(struct rdma_cm_id *id)
{
	return give_qp(id) != 0 ? -1 : rdma_accept(id, NULL);
}

/* The queue pair and its CQ live as long as the program. */
static int accept_bare(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_conn_param param = { .responder_resources = 1 };
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;
	int mask;

	init.send_cq = init.recv_cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	qp = init.send_cq != NULL ? ibv_create_qp(id->pd, &init) : NULL;
	if (qp == NULL)
		return -1;
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTR; state++) {
		attr.qp_state = (enum ibv_qp_state)state;
		if (rdma_init_qp_attr(id, &attr, &mask) != 0 || ibv_modify_qp(qp, &attr, mask) != 0)
			return -1;
	}
	param.qp_num = qp->qp_num;
	return rdma_accept(id, &param);
}

static struct rdma_cm_id *new_id(enum rdma_port_space ps)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(channel, &id, NULL, ps) != 0)
		die("rdma_create_id");
	enter(id);
	return id;
}

static struct sockaddr *address(struct sockaddr_in *a, const char *text, int port)
{
	*a = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	if (inet_pton(AF_INET, text, &a->sin_addr) != 1)
		die("no address");
	return (struct sockaddr *)a;
}

static void serve(const char *text, int port, int backlog, enum rdma_port_space ps)
{
	struct rdma_cm_id *id = new_id(ps);
	struct sockaddr_in a;

	if (rdma_bind_addr(id, address(&a, text, port)) != 0 || rdma_listen(id, backlog) != 0)
		die("rdma_listen");
}

static void request(struct rdma_cm_event *e)
{
	const char *data = e->id->qp_type == IBV_QPT_UD ? e->param.ud.private_data
							: e->param.conn.private_data;

	enter(e->id);
	if (data[0] == 'a' && accept_id(e->id) != 0)
		answer("rdma_accept", -1);
	if (data[0] == 'b' && accept_bare(e->id) != 0)
		answer("rdma_accept", -1);
	if (data[0] == 'r' && rdma_reject(e->id, "no", 2) != 0)
		answer("rdma_reject", -1);
}

static void happened(struct rdma_cm_event *e)
{
	int error = 0;

	if (e->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		request(e);
	if (e->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		error = rdma_resolve_route(e->id, 2000);
	if (e->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		error = (e->id->qp_type == IBV_QPT_RC && give_qp(e->id) != 0) ||
			rdma_connect(e->id, &(struct rdma_conn_param){ .private_data = "a",
								       .private_data_len = 1,
								       .retry_count = 7,
								       .rnr_retry_count = 7 }) != 0;
	printf("%s %lu %d\n", rdma_event_str(e->event) + strlen("RDMA_CM_EVENT_"),
	       (unsigned long)(uintptr_t)e->id->context, e->status);
	if (error != 0)
		answer("on the way", -1);
	rdma_ack_cm_event(e);
}

static void look(void)
{
	struct rdma_cm_event *e;

	while (looks && rdma_get_cm_event(channel, &e) == 0)
		happened(e);
}

static void call(const char *text, int port, enum rdma_port_space ps, bool ourselves)
{
	struct rdma_cm_id *id = new_id(ps);
	struct sockaddr_in a;

	if (ourselves)
		own = id;
	if (rdma_resolve_addr(id, NULL, address(&a, text, port), 2000) == 0)
		printf("begun %u\n", made - 1);
	else
		answer("rdma_resolve_addr", -1);
}

static void exercise(int n)
{
	struct ibv_mr *mr = rdma_reg_write(own, page, sizeof(page));
	struct ibv_wc wc = { 0 };

	while (n-- > 0) {
		if (rdma_post_write(own, NULL, page, 8, mr, IBV_SEND_SIGNALED, (uintptr_t)page + 64,
				    mr->rkey) != 0 ||
		    rdma_get_send_comp(own, &wc) != 1 || wc.status != IBV_WC_SUCCESS) {
			printf("refused write %d\n", wc.status);
			break;
		}
	}
	rdma_dereg_mr(mr);
	if (n < 0)
		printf("done\n");
}

static void destroy(struct rdma_cm_id *id)
{
	if (id->qp != NULL)
		rdma_destroy_qp(id);
	ids[(uintptr_t)id->context] = NULL;
	answer("rdma_destroy_id", rdma_destroy_id(id));
}

static void hear(void)
{
	look();
	printf("done\n");
}

static int listen_for_streams(const char *text, int port)
{
	struct sockaddr_in a;

	streams = rsocket(AF_INET, SOCK_STREAM, 0);
	if (rbind(streams, address(&a, text, port), sizeof(a)) != 0)
		return -1;
	return rlisten(streams, 1);
}

static void accept_stream(void)
{
	struct pollfd p = { .fd = streams, .events = POLLIN };
	char octet;
	int s = -1;

	errno = ETIMEDOUT;
	if (rpoll(&p, 1, SOON_MS) == 1)
		s = raccept(streams, NULL, NULL);
	if (s < 0)
		answer("raccept", -1);
	else
		printf("received %zd\n", rrecv(s, &octet, 1, 0));
	rclose(s);
	rclose(streams);
}

/* False: the program ends. */
static bool obey(const char *line, const char *address_text, int port)
{
	char word[32] = "", text[64] = "";
	int n = 0, second = 0;

	if (sscanf(line, "%31s %63s %d", word, text, &second) < 1)
		return true;
	n = atoi(text);
	if (strcmp(word, "accept") == 0)
		answer(word, accept_id(ids[n]));
	else if (strcmp(word, "reject") == 0)
		answer(word, rdma_reject(ids[n], "no", 2));
	else if (strcmp(word, "disconnect") == 0)
		answer(word, rdma_disconnect(ids[n]));
	else if (strcmp(word, "destroy") == 0)
		destroy(ids[n]);
	else if (strcmp(word, "connect") == 0)
		call(text, second, RDMA_PS_TCP, false);
	else if (strcmp(word, "lookup") == 0)
		call(text, second, RDMA_PS_UDP, false);
	else if (strcmp(word, "self") == 0)
		call(address_text, port, RDMA_PS_TCP, true);
	else if (strcmp(word, "exercise") == 0)
		exercise(n);
	else if (strcmp(word, "look") == 0)
		looks = true;
	else if (strcmp(word, "look-away") == 0)
		looks = false;
	else if (strcmp(word, "hear") == 0)
		hear();
	else if (strcmp(word, "rlisten") == 0)
		answer(word, listen_for_streams(address_text, n));
	else if (strcmp(word, "raccept") == 0)
		accept_stream();
	return strcmp(word, "end") != 0;
}

int main(int argc, char **argv)
{
	struct pollfd p[2] = { { .fd = 0, .events = POLLIN } };
	int port = argc > 2 ? atoi(argv[2]) : 0;
	char line[128];

	if (argc != 4)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	setvbuf(stdin, NULL, _IONBF, 0);
	channel = rdma_create_event_channel();
	if (channel == NULL)
		die("rdma_create_event_channel");
	fcntl(channel->fd, F_SETFL, O_NONBLOCK);
	serve(argv[1], port, atoi(argv[3]), RDMA_PS_TCP);
	serve(argv[1], port, atoi(argv[3]), RDMA_PS_UDP);
	printf("ready\n");
	for (;;) {
		p[1] = (struct pollfd){ .fd = looks ? channel->fd : -1, .events = POLLIN };
		if (poll(p, 2, -1) < 0)
			die("poll");
		if (p[0].revents != 0 &&
		    (fgets(line, sizeof(line), stdin) == NULL || !obey(line, argv[1], port)))
			return 0;
		look();
	}
}
