/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events as a program gets them: the right ones, all of them, and that no object is
 * destroyed before its events are acknowledged. Runs with an engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "rig/endpoint.h"
#include "rig/waiting.h"

static struct endpoint e;

static void open_endpoint(void)
{
	endpoint_open(&e);
}

static void close_endpoint(void)
{
	endpoint_close(&e);
}

TestSuite(events, .init = open_endpoint, .fini = close_endpoint, .timeout = 60);

static bool event_comes(struct ibv_async_event *event, int wait_ms)
{
	struct pollfd p = { .fd = e.context->async_fd, .events = POLLIN };

	return poll(&p, 1, wait_ms) == 1 && ibv_get_async_event(e.context, event) == 0;
}

/* The next event is this one, for that queue pair, and no other event waits. */
static void expect_event(enum ibv_event_type type, const struct ibv_qp *qp)
{
	struct ibv_async_event event;

	cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "no %s", ibv_event_type_str(type));
	cr_expect_eq(event.event_type, type, "%s, not %s", ibv_event_type_str(event.event_type),
		     ibv_event_type_str(type));
	cr_expect_eq(event.element.qp, qp);
	ibv_ack_async_event(&event);
	cr_expect_not(event_comes(&event, 0), "and %s", ibv_event_type_str(event.event_type));
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)e.buffer, 8, e.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)e.buffer + 4096;
	wr.wr.rdma.rkey = rkey;
	cr_assert_eq(ibv_post_send(qp, &wr, &bad), 0);
}

static enum ibv_wc_status completion(const char *what)
{
	struct ibv_wc wc;

	poll_completions(e.cq, &wc, 1, what);
	return wc.status;
}

static int change(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(qp, &attr, mask);
}

static int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	return change(qp, (struct ibv_qp_attr){ .qp_state = state }, IBV_QP_STATE);
}

static void to_rtr(struct ibv_qp *qp, uint32_t remote, uint8_t max_dest_rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = remote,
		.rq_psn = 0xfffffe, /* endpoint_connect's */
		.max_dest_rd_atomic = max_dest_rd_atomic,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = e.gid, .sgid_index = GID_INDEX, .hop_limit = 64 } },
	};

	cr_assert_eq(endpoint_to_init(qp), 0);
	cr_assert_eq(change(qp, attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
		     0);
}

/* protocol-map 73 */
Test(events, an_unknown_key_is_an_access_error_of_the_responder)
{
	post(e.qp[0], IBV_WR_RDMA_WRITE, e.mr->rkey ^ 0x5a5a00);
	cr_expect_eq(completion("a refused WRITE"), IBV_WC_REM_ACCESS_ERR);
	expect_event(IBV_EVENT_QP_ACCESS_ERR, e.qp[1]);
}

/* protocol-map 67, 72 */
Test(events, a_request_that_is_not_allowed_is_invalid_at_the_responder)
{
	struct ibv_qp *a = endpoint_create_qp(&e), *b = endpoint_create_qp(&e);

	to_rtr(b, a->qp_num, 0);
	cr_assert_eq(endpoint_connect(&e, a, b->qp_num), 0);
	post(a, IBV_WR_RDMA_WRITE, e.mr->rkey);
	cr_expect_eq(completion("a WRITE"), IBV_WC_SUCCESS);
	expect_event(IBV_EVENT_COMM_EST, b);
	post(a, IBV_WR_RDMA_READ, e.mr->rkey);
	cr_expect_eq(completion("a READ where there may be none"), IBV_WC_REM_INV_REQ_ERR);
	expect_event(IBV_EVENT_QP_REQ_ERR, b);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

/* protocol-map 149 */
Test(events, the_first_packet_in_rtr_establishes)
{
	struct ibv_qp *a = endpoint_create_qp(&e), *b = endpoint_create_qp(&e);

	to_rtr(b, a->qp_num, 1);
	cr_assert_eq(endpoint_connect(&e, a, b->qp_num), 0);
	for (int i = 0; i < 3; i++) {
		post(a, IBV_WR_RDMA_WRITE, e.mr->rkey);
		cr_expect_eq(completion("a WRITE"), IBV_WC_SUCCESS);
	}
	expect_event(IBV_EVENT_COMM_EST, b);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	cr_expect_eq(ibv_destroy_qp(b), 0);
}

/* protocol-map 147 */
Test(events, a_drained_send_queue_sends_an_event_if_asked)
{
	struct ibv_qp_attr sqd = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_async_event event;
	struct ibv_wc wc;

	post(e.qp[0], IBV_WR_RDMA_WRITE, e.mr->rkey);
	cr_expect_eq(completion("a WRITE"), IBV_WC_SUCCESS);
	cr_assert_eq(change(e.qp[0], sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	expect_event(IBV_EVENT_SQ_DRAINED, e.qp[0]);
	post(e.qp[0], IBV_WR_RDMA_WRITE, e.mr->rkey);
	cr_expect_eq(ibv_poll_cq(e.cq, 1, &wc), 0, "it waits");
	cr_assert_eq(to_state(e.qp[0], IBV_QPS_RTS), 0);
	cr_expect_eq(completion("what waited"), IBV_WC_SUCCESS);
	cr_assert_eq(to_state(e.qp[0], IBV_QPS_SQD), 0);
	cr_expect_not(event_comes(&event, 50), "it was not asked for");
	cr_assert_eq(to_state(e.qp[0], IBV_QPS_RTS), 0);
}

/* ---- a thread is cancelled while it waits for an acknowledgement ---- */

/* A queue pair whose event was taken. It is lost with everything that it uses, but not with `e`. */
static struct ibv_qp *unacknowledged(struct ibv_async_event *event)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(e.context);
	struct ibv_qp_init_attr init = { .send_cq = ibv_create_cq(e.context, 1, NULL, NULL, 0),
					 .cap = { 1, 0, 1, 0, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp;

	cr_assert(pd != NULL && init.send_cq != NULL, "%m");
	init.recv_cq = init.send_cq;
	init.srq = ibv_create_srq(pd, &srq_init);
	cr_assert_not_null(init.srq, "%m");
	qp = ibv_create_qp(pd, &init);
	cr_assert_not_null(qp, "%m");
	cr_assert_eq(endpoint_to_init(qp), 0);
	cr_assert_eq(to_state(qp, IBV_QPS_ERR), 0);
	cr_assert(event_comes(event, WAIT_SECONDS * 1000), "the last receive's event did not come");
	return qp;
}

static int destroy(void *qp)
{
	return ibv_destroy_qp(qp);
}

static int acknowledge(void *event)
{
	ibv_ack_async_event(event);
	return 0;
}

/* As in rdma_destroy_id. */
Test(events, a_thread_that_is_cancelled_while_it_destroys_keeps_no_lock)
{
	struct waiting destroyer, acknowledger;
	struct ibv_async_event event;

	waiting_begin(&destroyer, "ibv_destroy_qp", destroy, unacknowledged(&event));
	cr_assert_eq(pthread_cancel(destroyer.thread), 0);
	waiting_end(&destroyer);
	waiting_start(&acknowledger, "ibv_ack_async_event", acknowledge, &event);
	waiting_end(&acknowledger);
}

/* ---- many at once, while no thread reads ---- */

#define MANY 1500 /* more than a socket holds */

/* A message takes the only receive of an SRQ, which b has. */
static void reach_limit(struct ibv_srq *srq, struct ibv_qp *a, struct ibv_qp *b)
{
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_recv_wr recv = { .num_sge = 0 }, *bad;
	struct ibv_send_wr send = { .opcode = IBV_WR_SEND }, *bad_send;

	cr_assert(srq && a && b, "%m");
	cr_assert_eq(endpoint_connect(&e, a, b->qp_num), 0);
	cr_assert_eq(endpoint_connect(&e, b, a->qp_num), 0);
	cr_assert_eq(ibv_post_srq_recv(srq, &recv, &bad), 0);
	cr_assert_eq(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
	cr_assert_eq(ibv_post_send(a, &send, &bad_send), 0);
	cr_expect_eq(completion("the message"), IBV_WC_SUCCESS);
}

/*
 * The event of an SRQ comes last: as those before it, it finds the socket full.
 * hostile H-122: as many as allowed, and more.
 */
Test(events, no_event_is_lost)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_qp_init_attr init = { .send_cq = e.cq,
					 .recv_cq = e.cq,
					 .srq = ibv_create_srq(e.pd, &srq_init),
					 .cap = { 1, 0, 1, 0, 0 },
					 .qp_type = IBV_QPT_RC };
	static struct ibv_qp *qp[MANY];
	static bool heard[MANY];
	struct ibv_qp *a = endpoint_create_qp(&e), *b = ibv_create_qp(e.pd, &init);
	struct ibv_async_event event;
	uint32_t limits = 0;

	cr_assert_not_null(init.srq, "%m");
	for (int i = 0; i < MANY; i++) {
		init.qp_context = &heard[i];
		qp[i] = ibv_create_qp(e.pd, &init);
		cr_assert_not_null(qp[i], "%d: %m", i);
		cr_assert_eq(endpoint_to_init(qp[i]), 0);
		cr_assert_eq(to_state(qp[i], IBV_QPS_ERR), 0);
	}
	reach_limit(init.srq, a, b);
	for (int i = 0; i < MANY + 1; i++) {
		bool *once;

		cr_assert(event_comes(&event, WAIT_SECONDS * 1000), "%d of %d came", i, MANY + 1);
		if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
			limits += event.element.srq == init.srq;
			ibv_ack_async_event(&event);
			continue;
		}
		cr_assert_eq(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
		once = event.element.qp->qp_context;
		cr_assert_not(*once, "twice");
		*once = true;
		ibv_ack_async_event(&event);
	}
	cr_expect_not(event_comes(&event, 100));
	cr_expect_eq(limits, 1);
	cr_expect(ibv_destroy_qp(a) == 0 && ibv_destroy_qp(b) == 0);
	for (int i = 0; i < MANY; i++)
		cr_expect_eq(ibv_destroy_qp(qp[i]), 0);
	cr_expect_eq(ibv_destroy_srq(init.srq), 0);
}

/* ---- H-125: destroying waits for the acknowledgement of events ---- */

struct destroyer {
	int (*destroy)(void *object);
	void *object;
	int error, done; /* done: atomic */
};

static void *run(void *argument)
{
	struct destroyer *d = argument;

	d->error = d->destroy(d->object);
	__atomic_store_n(&d->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

static int destroy_qp(void *object)
{
	return ibv_destroy_qp(object);
}

static int destroy_cq(void *object)
{
	return ibv_destroy_cq(object);
}

static int destroy_srq(void *object)
{
	return ibv_destroy_srq(object);
}

/* Checks that the destroying verb waits while the engine serves; returns with it still waiting. */
static void expect_waiting(pthread_t *thread, struct destroyer *d)
{
	cr_assert_eq(pthread_create(thread, NULL, run, d), 0);
	for (int i = 0; i < 20; i++) {
		usleep(5000);
		cr_assert_not(__atomic_load_n(&d->done, __ATOMIC_ACQUIRE),
			      "destroyed with an event in hand");
	}
	post(e.qp[0], IBV_WR_RDMA_WRITE, e.mr->rkey);
	cr_expect_eq(completion("others go on"), IBV_WC_SUCCESS);
}

static void expect_destroyed(pthread_t thread, const struct destroyer *d)
{
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_expect_eq(d->error, 0);
}

/* hostile H-125: events that are never acknowledged. */
Test(events, a_queue_pair_waits_for_the_acknowledgement_of_its_event)
{
	struct ibv_qp *a = endpoint_create_qp(&e), *b = endpoint_create_qp(&e);
	struct destroyer d = { .destroy = destroy_qp, .object = b };
	struct ibv_async_event event;
	pthread_t thread;

	to_rtr(b, a->qp_num, 1);
	cr_assert_eq(endpoint_connect(&e, a, b->qp_num), 0);
	post(a, IBV_WR_RDMA_WRITE, e.mr->rkey);
	cr_expect_eq(completion("a WRITE"), IBV_WC_SUCCESS);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000));
	expect_waiting(&thread, &d);
	ibv_ack_async_event(&event);
	expect_destroyed(thread, &d);
	cr_expect_eq(ibv_destroy_qp(a), 0);
}

static bool readable(int fd)
{
	return poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 0) == 1;
}

/*
 * An event that the program has not fetched is dropped with its object, and the descriptor is not
 * readable any more. hostile H-125: events that are never acknowledged.
 */
Test(events, unfetched_events_do_not_block_destruction)
{
	struct ibv_qp *a = endpoint_create_qp(&e), *b = endpoint_create_qp(&e);
	struct ibv_async_event event;

	to_rtr(b, a->qp_num, 1);
	cr_assert_eq(endpoint_connect(&e, a, b->qp_num), 0);
	post(a, IBV_WR_RDMA_WRITE, e.mr->rkey);
	cr_expect_eq(completion("a WRITE"), IBV_WC_SUCCESS);
	cr_expect_eq(
		poll(&(struct pollfd){ e.context->async_fd, POLLIN, 0 }, 1, WAIT_SECONDS * 1000),
		1);
	cr_expect_eq(ibv_destroy_qp(b), 0);
	cr_expect_not(readable(e.context->async_fd));
	fcntl(e.context->async_fd, F_SETFL, O_NONBLOCK);
	cr_expect_eq(ibv_get_async_event(e.context, &event), -1);
	cr_expect_eq(errno, EAGAIN);
	cr_expect_eq(ibv_destroy_qp(a), 0);
}

/* hostile H-125: events that are never acknowledged. */
Test(events, an_srq_waits_for_the_acknowledgement_of_its_event)
{
	struct ibv_srq_init_attr srq_init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(e.pd, &srq_init);
	struct ibv_qp_init_attr init = { .send_cq = e.cq,
					 .recv_cq = e.cq,
					 .srq = srq,
					 .cap = { 4, 0, 1, 0, 0 },
					 .qp_type = IBV_QPT_RC };
	struct destroyer d = { .destroy = destroy_srq, .object = srq };
	struct ibv_qp *b = ibv_create_qp(e.pd, &init), *a = endpoint_create_qp(&e);
	struct ibv_async_event event;
	pthread_t thread;

	reach_limit(srq, a, b);
	cr_assert(event_comes(&event, WAIT_SECONDS * 1000));
	cr_expect_eq(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	cr_expect_eq(ibv_destroy_qp(b), 0);
	cr_expect_eq(ibv_destroy_qp(a), 0);
	expect_waiting(&thread, &d);
	ibv_ack_async_event(&event);
	expect_destroyed(thread, &d);
}

static struct ibv_cq *of_channel(struct ibv_qp **qp)
{
	struct ibv_cq *cq = ibv_create_cq(e.context, 8, NULL, e.channel, 0), *usual = e.cq;

	cr_assert_not_null(cq, "%m");
	e.cq = cq;
	*qp = endpoint_create_qp(&e);
	e.cq = usual;
	cr_assert_eq(endpoint_connect(&e, *qp, (*qp)->qp_num), 0);
	return cq;
}

static void make_event(struct ibv_cq *cq, struct ibv_qp *qp)
{
	struct ibv_wc wc;

	cr_assert_eq(ibv_req_notify_cq(cq, 0), 0);
	post(qp, IBV_WR_RDMA_WRITE, e.mr->rkey);
	poll_completions(cq, &wc, 1, "a WRITE");
}

/* hostile H-125: events that are never acknowledged. */
Test(events, a_completion_queue_waits_for_all_of_its_events)
{
	struct ibv_qp *qp;
	struct ibv_cq *cq = of_channel(&qp), *of;
	struct destroyer d = { .destroy = destroy_cq, .object = cq };
	pthread_t thread;
	void *context;

	for (int i = 0; i < 3; i++) {
		make_event(cq, qp);
		cr_assert_eq(ibv_get_cq_event(e.channel, &of, &context), 0);
		cr_assert_eq(of, cq);
	}
	cr_expect_eq(ibv_destroy_qp(qp), 0);
	ibv_ack_cq_events(cq, 2);
	expect_waiting(&thread, &d);
	ibv_ack_cq_events(cq, 1);
	expect_destroyed(thread, &d);
}

/* The program waits for the descriptor and then fetches, so the call must not block. */
Test(events, events_of_a_destroyed_cq_leave_the_channel)
{
	struct ibv_qp *qp[2];
	struct ibv_cq *gone = of_channel(&qp[0]), *stays = of_channel(&qp[1]), *of;
	void *context;

	make_event(gone, qp[0]); /* before and behind that of the other one */
	make_event(stays, qp[1]);
	make_event(gone, qp[0]);
	cr_assert_eq(ibv_destroy_qp(qp[0]), 0);
	cr_assert_eq(ibv_destroy_cq(gone), 0);
	cr_assert(readable(e.channel->fd));
	cr_assert_eq(ibv_get_cq_event(e.channel, &of, &context), 0);
	cr_expect_eq(of, stays);
	cr_expect_not(readable(e.channel->fd));
	ibv_ack_cq_events(stays, 1);
	cr_expect_eq(ibv_destroy_qp(qp[1]), 0);
	cr_expect_eq(ibv_destroy_cq(stays), 0);
}

#define MORE_THAN_FIT 1000u /* events into the socket of a channel */
#define ROUNDS	      5
#define RETRIED_MS    2000 /* the engine tries again every 100 ms */

static uint32_t fetch_cq_events(void)
{
	struct ibv_cq *cq;
	void *context;
	uint32_t n = 0;

	for (; ibv_get_cq_event(e.channel, &cq, &context) == 0; n++)
		cr_expect_eq(cq, e.cq);
	cr_expect_eq(errno, EAGAIN);
	return n;
}

/* Arms and completes until no event fits any more, then makes room. True: another one comes. */
static bool another_comes(uint32_t *events)
{
	struct pollfd p = { .fd = e.channel->fd, .events = POLLIN };
	bool comes;

	for (uint32_t i = 0; i < MORE_THAN_FIT; i++) {
		cr_assert_eq(ibv_req_notify_cq(e.cq, 0), 0);
		post(e.qp[0], IBV_WR_RDMA_WRITE, e.mr->rkey);
		cr_assert_eq(completion("a WRITE"), IBV_WC_SUCCESS);
	}
	*events += fetch_cq_events();
	cr_expect_lt(*events, MORE_THAN_FIT, "the socket has room for all of them");
	comes = poll(&p, 1, RETRIED_MS) == 1;
	*events += fetch_cq_events();
	return comes;
}

/*
 * A program that does not fetch the events of its CQ: one that finds the socket full comes when
 * there is room. In a round it may come between two fetches, so there are several.
 */
Test(events, an_event_of_a_cq_waits_for_room)
{
	bool comes = false;

	cr_assert_eq(fcntl(e.channel->fd, F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < ROUNDS && !comes; i++) {
		uint32_t events = 0;

		comes = another_comes(&events);
		ibv_ack_cq_events(e.cq, events);
	}
	cr_expect(comes, "the event that found the socket full is lost");
}

static void *is_free(void *mutex)
{
	bool is = pthread_mutex_trylock(mutex) == 0;

	if (is)
		pthread_mutex_unlock(mutex);
	return is ? mutex : NULL;
}

/*
 * Threads may acknowledge events of one object at once. This thread has the object's lock already, so an
 * acknowledgement that did not take it, but gives it back, leaves it free.
 */
Test(events, acknowledgements_take_the_lock_of_their_object)
{
	pthread_mutexattr_t attr;
	pthread_t thread;
	void *said;

	cr_assert_eq(pthread_mutexattr_init(&attr), 0);
	cr_assert_eq(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), 0);
	cr_assert_eq(pthread_mutex_destroy(&e.cq->mutex), 0);
	cr_assert_eq(pthread_mutex_init(&e.cq->mutex, &attr), 0);
	pthread_mutexattr_destroy(&attr);
	cr_assert_eq(pthread_mutex_lock(&e.cq->mutex), 0);
	ibv_ack_cq_events(e.cq, 3);
	cr_assert_eq(pthread_create(&thread, NULL, is_free, &e.cq->mutex), 0);
	cr_assert_eq(pthread_join(thread, &said), 0);
	cr_expect_null(said);
	cr_expect_eq(e.cq->comp_events_completed, 3);
	e.cq->comp_events_completed = 0; /* there was none */
	pthread_mutex_unlock(&e.cq->mutex);
}
