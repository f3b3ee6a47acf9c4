/* SPDX-License-Identifier: BSD-3-Clause */
#include "session.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "table.h"

struct session {
	struct rdma_cm_id *id;
	struct ibv_mr *table_mr, *mr;
	struct kv_request request;
	struct kv_reply reply;
};

static bool await_request(struct session *s)
{
	return rdma_post_recv(s->id, NULL, &s->request, sizeof(s->request), s->mr) == 0;
}

/* One request is under way at a time: the client waits for the reply. */
static bool answer(struct session *s, const struct ibv_wc *received)
{
	struct ibv_wc wc;

	if (received->status != IBV_WC_SUCCESS || received->byte_len != sizeof(s->request))
		return false;
	s->reply.error = table_apply(&s->request);
	return await_request(s) &&
	       rdma_post_send(s->id, NULL, &s->reply, sizeof(s->reply), s->mr, IBV_SEND_SIGNALED) ==
		       0 &&
	       rdma_get_send_comp(s->id, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
}

/* Asks to be woken by the next request, and answers those that are there already. */
static bool answer_all(struct session *s)
{
	struct ibv_wc wc;

	if (ibv_req_notify_cq(s->id->recv_cq, 0) != 0)
		return false;
	while (ibv_poll_cq(s->id->recv_cq, 1, &wc) == 1)
		if (!answer(s, &wc))
			return false;
	return true;
}

static bool take_wakeup(struct session *s)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(s->id->recv_cq_channel, &cq, &context) != 0)
		return false;
	ibv_ack_cq_events(cq, 1);
	return true;
}

/* Waits for a request or for the end of the connection. */
static void *serve(void *session)
{
	struct session *s = session;
	struct pollfd p[2] = { { .fd = s->id->recv_cq_channel->fd, .events = POLLIN },
			       { .fd = s->id->channel->fd, .events = POLLIN } };

	while (answer_all(s) && poll(p, 2, -1) > 0 && p[1].revents == 0 && take_wakeup(s))
		;
	rdma_disconnect(s->id);
	ibv_dereg_mr(s->table_mr);
	rdma_dereg_mr(s->mr);
	rdma_destroy_ep(s->id);
	free(s);
	return NULL;
}

static bool open_session(struct session *s)
{
	size_t octets;
	void *table = table_memory(&octets);
	struct kv_place place = { .table = (uintptr_t)table, .buckets = KV_BUCKETS };
	struct rdma_conn_param p = { .private_data = &place,
				     .private_data_len = sizeof(place),
				     .responder_resources = 16,
				     .rnr_retry_count = 7 };

	s->table_mr = rdma_reg_read(s->id, table, octets);
	s->mr = rdma_reg_msgs(s->id, s, sizeof(*s));
	if (s->table_mr == NULL || s->mr == NULL || !await_request(s))
		return false;
	place.rkey = s->table_mr->rkey;
	return rdma_accept(s->id, &p) == 0;
}

static void begin(struct rdma_cm_id *id)
{
	struct session *s = calloc(1, sizeof(*s));
	pthread_t thread;

	if (s != NULL)
		s->id = id;
	if (s == NULL || !open_session(s) || pthread_create(&thread, NULL, serve, s) != 0) {
		perror("a client is refused");
		rdma_destroy_ep(id);
		free(s);
		return;
	}
	pthread_detach(thread);
}

static struct rdma_cm_id *listen_for_clients(void)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1
	};
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP },
			     *any;
	struct rdma_cm_id *id = NULL;

	if (rdma_getaddrinfo(NULL, KV_SERVICE, &hints, &any) != 0)
		return NULL;
	if (rdma_create_ep(&id, any, NULL, &init) == 0 && rdma_listen(id, 16) != 0) {
		rdma_destroy_ep(id);
		id = NULL;
	}
	rdma_freeaddrinfo(any);
	return id;
}

int sessions_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

int sessions_serve(int signals)
{
	struct rdma_cm_id *listener = listen_for_clients(), *id;
	struct pollfd p[2] = { { .fd = signals, .events = POLLIN }, { .events = POLLIN } };

	if (listener == NULL) {
		perror("cannot listen");
		return EXIT_FAILURE;
	}
	p[1].fd = listener->channel->fd;
	printf("ready\n");
	fflush(stdout);
	while (poll(p, 2, -1) > 0 && p[0].revents == 0)
		if (rdma_get_request(listener, &id) == 0)
			begin(id);
	rdma_destroy_ep(listener);
	close(signals);
	return EXIT_SUCCESS;
}
