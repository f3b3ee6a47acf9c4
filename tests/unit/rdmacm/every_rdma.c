/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rdma_* function from several threads at once. They share ids, channels, devices, groups and
 * listeners, and any thread takes the events of ids that another one began. What a call returns
 * depends on the other threads. The test is that it returns nothing unexpected, that every id
 * reaches its end, and (with the thread sanitizer) that no two threads race. A separate program,
 * because Criterion and the thread sanitizer do not work together. Runs with an engine at
 * $UROCE_SOCKET.
 * usage: every-rdma [THREADS [CALLS]]
 */
#include "every_rdma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 60

struct shared all;

int tolerate(struct thread *t, int status)
{
	static const int usual[] = { EINVAL, EAGAIN, EADDRNOTAVAIL, ECONNREFUSED, EADDRINUSE,
				     EBUSY,  ENOMEM, ENOSYS,	    EOPNOTSUPP };

	if (status == 0)
		return 0;
	if (status != -1)
		die("%s: answers %d", t->call, status);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (errno == usual[i])
			return -1;
	die("%s: %s", t->call, strerror(errno));
}

void must(struct thread *t, int status)
{
	if (status != 0)
		die("%s: %s", t->call, strerror(errno));
}

struct sockaddr *address(struct sockaddr_in *a, uint16_t port)
{
	memset(a, 0, sizeof(*a));
	a->sin_family = AF_INET;
	a->sin_port = htons(port);
	a->sin_addr.s_addr = inet_addr(OWN_ADDRESS);
	return (struct sockaddr *)a;
}

int give_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = id->qp_type,
		.sq_sig_all = 1,
	};

	return rdma_create_qp(id, NULL, &init);
}

static struct rdma_cm_id *make_id(struct rdma_event_channel *channel, enum rdma_port_space ps,
				  uint16_t port)
{
	struct rdma_cm_id *id;
	struct sockaddr_in a;

	if (rdma_create_id(channel, &id, NULL, ps) != 0 ||
	    rdma_bind_addr(id, address(&a, port)) != 0)
		die("no id: %s", strerror(errno));
	return id;
}

static struct rdma_cm_id *make_listener(struct rdma_event_channel *channel, enum rdma_port_space ps,
					uint16_t *port)
{
	struct rdma_cm_id *id = make_id(channel, ps, 0);

	if (rdma_listen(id, 0) != 0)
		die("no listener: %s", strerror(errno));
	*port = ntohs(rdma_get_src_port(id));
	return id;
}

static void make_all(void)
{
	for (uint32_t i = 0; i < CHANNELS; i++) {
		all.channel[i] = rdma_create_event_channel();
		if (all.channel[i] == NULL)
			die("no channel: is an engine at $UROCE_SOCKET?");
		fcntl(all.channel[i]->fd, F_SETFL, O_NONBLOCK);
	}
	all.listener = make_listener(all.channel[0], RDMA_PS_TCP, &all.port);
	all.service = make_listener(all.channel[1], RDMA_PS_UDP, &all.service_port);
	all.waiting = make_listener(NULL, RDMA_PS_TCP, &all.waiting_port);
	all.member = make_id(all.channel[2], RDMA_PS_UDP, 0);
	all.idle = make_id(all.channel[2], RDMA_PS_TCP, 0);
	if (give_qp(all.member) != 0)
		die("no queue pair: %s", strerror(errno));
	/* the thread that waits for requests checks now and then whether to end */
	fcntl(all.waiting->channel->fd, F_SETFL, O_NONBLOCK);
	all.memory = aligned_alloc(4096, 4096);
	memset(all.memory, 0, 4096);
	all.mr = rdma_reg_write(all.idle, all.memory, 4096);
	if (all.mr == NULL)
		die("no region: %s", strerror(errno));
}

/* Until the last id that ends by an event is gone. */
static void drain(void)
{
	struct thread t = { .call = "the end", .seed = 1 };
	time_t end = time(NULL) + PATIENCE_S;
	const struct timespec nap = { .tv_nsec = 1000000 };

	__atomic_store_n(&all.no_more, true, __ATOMIC_RELAXED);
	while (__atomic_load_n(&all.live, __ATOMIC_ACQUIRE) > 0) {
		if (time(NULL) > end)
			die("%u ids do not end", all.live);
		take_request(&t);
		if (!serve_event(&t))
			nanosleep(&nap, NULL);
	}
}

static void destroy_all(void)
{
	struct thread t = { .call = "the end" };

	rdma_destroy_ep(all.member);
	must(&t, rdma_destroy_id(all.listener));
	must(&t, rdma_destroy_id(all.service));
	must(&t, rdma_destroy_id(all.waiting));
	must(&t, rdma_dereg_mr(all.mr));
	must(&t, rdma_destroy_id(all.idle));
	for (uint32_t i = 0; i < CHANNELS; i++)
		rdma_destroy_event_channel(all.channel[i]);
	free(all.memory);
}

/* Takes as many events as it made calls, so that what was begun can end. */
static void serve_some(struct thread *t)
{
	while (serve_event(t) && draw(t, 4) != 0)
		;
}

int main(int argc, char **argv)
{
	struct crowd crowd = { .table = { { calls, calls_count },
					  { event_calls, event_calls_count } },
			       .threads = 8,
			       .rounds = 500,
			       .after = serve_some };

	crowd_arguments(&crowd, argc, argv);
	make_all();
	crowd_run(&crowd);
	drain();
	destroy_all();
	return 0;
}
