/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What rdmacm-utils do not test: private data of any size in both directions, rejections with
 * private data, a server that takes no events, and a client that sends requests without end. Built
 * with Debian's headers and libraries.
 *
 *	cm_peer serve|connect ADDRESS PORT [OPTION...]
 *	  -u		UDP port space
 *	  -s OCTETS	private data to send: in a REQ, a REP or a REJ
 *	  -r OCTETS	private data to expect
 *	  -j		the server rejects, the client expects it
 *	  -e		both exchange options of a vendor (ECE); the programs handle their queue
 *			pairs themselves and have none
 *	cm_peer deaf ADDRESS PORT	listens and takes no events until it is killed
 *	cm_peer flood ADDRESS PORT -t SECONDS
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define LIMIT_MS  5000
#define CONSUMER  28 /* reject reason: by the program */
#define AT_ONCE	  16u /* requests of a flood sent at once */
#define FLOOD_MAX 20000u

static struct {
	enum rdma_port_space space;
	uint8_t send, receive;
	bool reject, ece;
	unsigned int seconds;
	struct sockaddr_storage address;
	struct rdma_event_channel *channel;
	uint8_t private_data[256];
} o;

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "cm_peer: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void need(bool good, const char *what)
{
	if (!good)
		die(what);
}

static uint8_t octet(size_t i)
{
	return (uint8_t)(7 * i + 3);
}

/* CM messages carry a fixed number of octets: those that were not sent arrive as zeros. */
static void check_private(const struct rdma_cm_event *e)
{
	bool datagram = o.space == RDMA_PS_UDP;
	const uint8_t *data = datagram ? e->param.ud.private_data : e->param.conn.private_data;
	uint8_t length = datagram ? e->param.ud.private_data_len : e->param.conn.private_data_len;

	printf("%s with %u octets of private data\n", rdma_event_str(e->event), length);
	if (length < o.receive) {
		fprintf(stderr, "cm_peer: expected %u octets of private data\n", o.receive);
		exit(1);
	}
	for (size_t i = 0; i < length; i++) {
		if (data[i] == (i < o.receive ? octet(i) : 0))
			continue;
		fprintf(stderr, "cm_peer: octet %zu of the private data is %u\n", i, data[i]);
		exit(1);
	}
}

static struct rdma_cm_event *expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;

	need(rdma_get_cm_event(o.channel, &e) == 0, "rdma_get_cm_event");
	if (e->event == type)
		return e;
	fprintf(stderr, "cm_peer: %s, status %d, came instead of %s\n", rdma_event_str(e->event),
		e->status, rdma_event_str(type));
	exit(1);
}

static void expect_only(enum rdma_cm_event_type type)
{
	rdma_ack_cm_event(expect(type));
}

static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){
		.private_data = o.private_data,
		.private_data_len = o.send,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
}

static void give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr a = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = o.space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC,
	};

	a.send_cq = a.recv_cq = ibv_create_cq(id->verbs, 4, NULL, NULL, 0);
	need(a.send_cq != NULL, "ibv_create_cq");
	need(rdma_create_qp(id, NULL, &a) == 0, "rdma_create_qp");
}

/* ---- one empty message, from the passive side ----
 *
 * Linux may handle the messages of one connection on two processors, so that a DREQ overtakes the RTU
 * that came before it, and the program hears of the end only. So the active side does not disconnect
 * before it knows that the other one is established.
 */

static void ready_to_hear(struct rdma_cm_id *id)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	need(ibv_post_recv(id->qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void say(struct rdma_cm_id *id)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	need(ibv_post_send(id->qp, &wr, &bad) == 0, "ibv_post_send");
}

static void hear(struct rdma_cm_id *id)
{
	struct ibv_wc wc = { 0 };
	int came = 0;

	for (int ms = 0; ms < LIMIT_MS && came == 0; ms++) {
		came = ibv_poll_cq(id->qp->recv_cq, 1, &wc);
		usleep(1000);
	}
	errno = came == 0 ? ETIMEDOUT : EIO;
	need(came == 1 && wc.status == IBV_WC_SUCCESS, "the message of the passive side");
}

static struct rdma_cm_id *listener(int backlog)
{
	struct rdma_cm_id *id;

	need(rdma_create_id(o.channel, &id, NULL, o.space) == 0, "rdma_create_id");
	need(rdma_bind_addr(id, (struct sockaddr *)&o.address) == 0, "rdma_bind_addr");
	need(rdma_listen(id, backlog) == 0, "rdma_listen");
	return id;
}

/* ---- options of a vendor (ECE): 24 and 32 bits on the wire ---- */

#define VENDOR	      0xfedcbau
#define OPTIONS	      0x87654321u
#define QPN_OF_NOBODY 0x200000u

static void say_ece(struct rdma_cm_id *id, bool active)
{
	struct ibv_ece ece = { .vendor_id = VENDOR + !active, .options = OPTIONS + active };

	need(rdma_set_local_ece(id, &ece) == 0, "rdma_set_local_ece");
}

/* rdma-core answers with the vendor of the request, whatever the program sets. */
static void check_ece(struct rdma_cm_id *id, bool active)
{
	struct ibv_ece ece;

	need(rdma_get_remote_ece(id, &ece) == 0, "rdma_get_remote_ece");
	printf("vendor 0x%x, options 0x%x\n", ece.vendor_id, ece.options);
	if (ece.vendor_id != VENDOR || ece.options != OPTIONS + !active) {
		fprintf(stderr, "cm_peer: the options are not the peer's\n");
		exit(1);
	}
}

/* The passive side disconnects. Linux may handle the active side's DREQ before its RTU. */
static int serve_ece(struct rdma_cm_id *listening, struct rdma_cm_id *id)
{
	struct rdma_conn_param p = parameters();

	check_ece(id, false);
	say_ece(id, false);
	p.qp_num = QPN_OF_NOBODY + (uint32_t)getpid() % 0x10000;
	need(rdma_accept(id, &p) == 0, "rdma_accept");
	expect_only(RDMA_CM_EVENT_ESTABLISHED);
	need(rdma_disconnect(id) == 0, "rdma_disconnect");
	expect_only(RDMA_CM_EVENT_DISCONNECTED);
	need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	need(rdma_destroy_id(listening) == 0, "rdma_destroy_id");
	return 0;
}

static int connect_ece(struct rdma_cm_id *id)
{
	struct rdma_conn_param p = parameters();

	say_ece(id, true);
	p.qp_num = QPN_OF_NOBODY + (uint32_t)getpid() % 0x10000;
	need(rdma_connect(id, &p) == 0, "rdma_connect");
	expect_only(RDMA_CM_EVENT_CONNECT_RESPONSE);
	check_ece(id, true);
	need(rdma_establish(id) == 0, "rdma_establish");
	expect_only(RDMA_CM_EVENT_DISCONNECTED);
	need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	return 0;
}

static void refuse(struct rdma_cm_id *id)
{
	need(rdma_reject(id, o.private_data, o.send) == 0, "rdma_reject");
	need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
}

static int serve(void)
{
	struct rdma_conn_param p = parameters();
	struct rdma_cm_id *listening = listener(8), *id;
	struct rdma_cm_event *e = expect(RDMA_CM_EVENT_CONNECT_REQUEST);

	check_private(e);
	id = e->id;
	rdma_ack_cm_event(e);
	if (o.reject) {
		refuse(id);
		return 0;
	}
	if (o.ece)
		return serve_ece(listening, id);
	give_qp(id);
	p.qp_num = id->qp->qp_num;
	need(rdma_accept(id, &p) == 0, "rdma_accept");
	if (o.space == RDMA_PS_TCP) {
		expect_only(RDMA_CM_EVENT_ESTABLISHED);
		say(id);
		expect_only(RDMA_CM_EVENT_DISCONNECTED);
		need(rdma_disconnect(id) == 0, "rdma_disconnect");
	}
	rdma_destroy_qp(id);
	need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	need(rdma_destroy_id(listening) == 0, "rdma_destroy_id");
	return 0;
}

static void check_rejection(void)
{
	struct rdma_cm_event *e =
		expect(o.space == RDMA_PS_TCP ? RDMA_CM_EVENT_REJECTED : RDMA_CM_EVENT_UNREACHABLE);

	printf("status %d\n", e->status);
	/* the status of a SIDR_REP is the peer's; 2 is a rejection */
	if (e->status != (o.space == RDMA_PS_TCP ? CONSUMER : 2)) {
		fprintf(stderr, "cm_peer: rejected with status %d\n", e->status);
		exit(1);
	}
	check_private(e);
	rdma_ack_cm_event(e);
}

static int connect_once(void)
{
	struct rdma_conn_param p = parameters();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	need(rdma_create_id(o.channel, &id, NULL, o.space) == 0, "rdma_create_id");
	need(rdma_resolve_addr(id, NULL, (struct sockaddr *)&o.address, LIMIT_MS) == 0,
	     "rdma_resolve_addr");
	expect_only(RDMA_CM_EVENT_ADDR_RESOLVED);
	need(rdma_resolve_route(id, LIMIT_MS) == 0, "rdma_resolve_route");
	expect_only(RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (o.ece)
		return connect_ece(id);
	give_qp(id);
	ready_to_hear(id);
	need(rdma_connect(id, &p) == 0, "rdma_connect");
	if (o.reject) {
		check_rejection();
	} else {
		e = expect(RDMA_CM_EVENT_ESTABLISHED);
		check_private(e);
		rdma_ack_cm_event(e);
		if (o.space == RDMA_PS_TCP) {
			hear(id);
			need(rdma_disconnect(id) == 0, "rdma_disconnect");
			expect_only(RDMA_CM_EVENT_DISCONNECTED);
		}
	}
	rdma_destroy_qp(id);
	need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
	return 0;
}

static int __attribute__((noreturn)) be_deaf(void)
{
	listener(16);
	printf("deaf\n");
	fflush(stdout);
	for (;;)
		pause();
}

static void begin_one(void)
{
	struct rdma_cm_id *id;

	need(rdma_create_id(o.channel, &id, NULL, o.space) == 0, "rdma_create_id");
	need(rdma_resolve_addr(id, NULL, (struct sockaddr *)&o.address, LIMIT_MS) == 0,
	     "rdma_resolve_addr");
}

/* True: the id has sent its request. */
static bool go_on(struct rdma_cm_id *id, enum rdma_cm_event_type type)
{
	static uint32_t qpn = 0x100000;
	struct rdma_conn_param p = parameters();

	if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
		need(rdma_resolve_route(id, LIMIT_MS) == 0, "rdma_resolve_route");
		return false;
	}
	p.qp_num = qpn++; /* not in use */
	need(rdma_connect(id, &p) == 0, "rdma_connect");
	return true;
}

static bool something_came(int ms)
{
	struct pollfd p = { .fd = o.channel->fd, .events = POLLIN };

	return poll(&p, 1, ms) > 0;
}

/* An id that is refused ends, one without an answer stays: each REQ has a new id and queue pair. */
static int flood(void)
{
	uint32_t open = 0, asked = 0, refused = 0;
	time_t end = time(NULL) + o.seconds;

	for (; open < AT_ONCE; open++)
		begin_one();
	while (time(NULL) < end) {
		struct rdma_cm_event *e;
		struct rdma_cm_id *id;
		enum rdma_cm_event_type type;

		if (!something_came(100))
			continue;
		need(rdma_get_cm_event(o.channel, &e) == 0, "rdma_get_cm_event");
		id = e->id;
		type = e->event;
		rdma_ack_cm_event(e);
		if (type != RDMA_CM_EVENT_ADDR_RESOLVED && type != RDMA_CM_EVENT_ROUTE_RESOLVED) {
			need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
			refused++;
			open--;
		} else if (!go_on(id, type)) {
			continue;
		} else {
			asked++;
		}
		if (open < FLOOD_MAX) {
			begin_one();
			open++;
		}
	}
	printf("asked %u times, refused %u times\n", asked, refused);
	return 0;
}

static void options(int argc, char **argv)
{
	int c;

	o.space = RDMA_PS_TCP;
	while ((c = getopt(argc, argv, "us:r:jet:")) != -1) {
		switch (c) {
		case 'u':
			o.space = RDMA_PS_UDP;
			break;
		case 's':
			o.send = (uint8_t)atoi(optarg);
			break;
		case 'r':
			o.receive = (uint8_t)atoi(optarg);
			break;
		case 'j':
			o.reject = true;
			break;
		case 'e':
			o.ece = true;
			break;
		case 't':
			o.seconds = (unsigned int)atoi(optarg);
			break;
		default:
			exit(2);
		}
	}
}

static void find_address(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found;

	need(getaddrinfo(host, port, &hints, &found) == 0, host);
	memcpy(&o.address, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} role[] = { { "serve", serve },
		     { "connect", connect_once },
		     { "deaf", be_deaf },
		     { "flood", flood } };

	options(argc, argv);
	if (argc - optind != 3)
		return 2;
	for (size_t i = 0; i < sizeof(o.private_data); i++)
		o.private_data[i] = octet(i);
	find_address(argv[optind + 1], argv[optind + 2]);
	o.channel = rdma_create_event_channel();
	need(o.channel != NULL, "rdma_create_event_channel");
	for (size_t i = 0; i < sizeof(role) / sizeof(role[0]); i++)
		if (strcmp(argv[optind], role[i].name) == 0)
			return role[i].run();
	return 2;
}
