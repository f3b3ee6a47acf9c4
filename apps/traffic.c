/* SPDX-License-Identifier: BSD-3-Clause */
#include "traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#include "base/bits.h"
#include "base/time.h"
#include "devices.h"

#define DEPTH	 256u
#define BATCH	 32u
#define GRH	 40u /* octets before a datagram */
#define WAIT_MS	 20 /* until the thread checks whether it should end */
#define PORT	 1
#define GIDS	 17
#define SLOT	 (GRH + TRAFFIC_SIZE_MOST)
#define CATCH_UP (10 * TIME_MS) /* of a rate that was missed; the rest is given up */

struct traffic {
	const struct traffic_settings *settings; /* atomic: the prompt changes them */
	bool source;
	uint32_t size;
	uint32_t to_qpn;
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* of a source */
	uint8_t *buffer; /* DEPTH slots */
	pthread_t thread;
	nanotime begun;
	uint32_t stop; /* atomic: the prompt writes it */
	uint64_t messages, octets, failed; /* atomic: the thread writes them */

	/* the thread's */
	uint32_t free[DEPTH], frees; /* slots of a source that are not under way */
	nanotime due; /* when the next message may leave */
	nanotime next_line; /* a line about the traffic; 0: none is wanted */
	struct traffic_counts last_line;
};

static nanotime now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (nanotime)t.tv_sec * TIME_S + (nanotime)t.tv_nsec;
}

static void count(uint64_t *counter, uint64_t n)
{
	/* relaxed: one thread counts, and nothing is ordered by it */
	__atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

static uint32_t setting(const uint32_t *value)
{
	return __atomic_load_n(value, __ATOMIC_RELAXED);
}

/* ---- objects ---- */

/* NULL, or what failed, with errno. */
static const char *make_objects(struct traffic *t, const char *device)
{
	struct ibv_qp_init_attr init = { .cap = { .max_send_wr = DEPTH,
						  .max_recv_wr = DEPTH,
						  .max_send_sge = 1,
						  .max_recv_sge = 1 },
					 .qp_type = IBV_QPT_UD };

	t->context = device_open(device);
	if (t->context == NULL)
		return "ibv_open_device";
	t->channel = ibv_create_comp_channel(t->context);
	t->pd = ibv_alloc_pd(t->context);
	if (t->channel == NULL || t->pd == NULL)
		return "ibv_alloc_pd";
	t->cq = ibv_create_cq(t->context, DEPTH, NULL, t->channel, 0);
	if (t->cq == NULL)
		return "ibv_create_cq";
	init.send_cq = init.recv_cq = t->cq;
	t->qp = ibv_create_qp(t->pd, &init);
	if (t->qp == NULL)
		return "ibv_create_qp";
	errno = posix_memalign((void **)&t->buffer, 4096, DEPTH * SLOT);
	if (errno != 0)
		return "memory";
	memset(t->buffer, 0, DEPTH * SLOT);
	t->mr = ibv_reg_mr(t->pd, t->buffer, DEPTH * SLOT, IBV_ACCESS_LOCAL_WRITE);
	return t->mr == NULL ? "ibv_reg_mr" : NULL;
}

static const char *to_rts(struct traffic *t)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
				 .port_num = PORT,
				 .qkey = TRAFFIC_Q_KEY };

	errno = ibv_modify_qp(t->qp, &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	a.qp_state = IBV_QPS_RTR;
	if (errno == 0)
		errno = ibv_modify_qp(t->qp, &a, IBV_QP_STATE);
	a.qp_state = IBV_QPS_RTS;
	if (errno == 0)
		errno = ibv_modify_qp(t->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN);
	return errno != 0 ? "ibv_modify_qp" : NULL;
}

/* An address as a GID. False: it is not an address. */
static bool gid_of(const char *text, union ibv_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (inet_pton(AF_INET6, text, gid->raw) == 1)
		return true;
	gid->raw[10] = gid->raw[11] = 0xff;
	return inet_pton(AF_INET, text, gid->raw + 12) == 1;
}

static bool is_mapped(const union ibv_gid *g)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(g->raw, mapped, sizeof(mapped)) == 0;
}

static bool is_link_local(const union ibv_gid *g)
{
	return g->raw[0] == 0xfe && (g->raw[1] & 0xc0) == 0x80;
}

/* The first own address of the same kind; -1: there is none. */
static int own_gid(struct traffic *t, const union ibv_gid *to)
{
	static const union ibv_gid none;
	union ibv_gid own;

	for (int i = 0; i < GIDS; i++)
		if (ibv_query_gid(t->context, PORT, i, &own) == 0 &&
		    memcmp(&own, &none, sizeof(own)) != 0 && is_mapped(&own) == is_mapped(to) &&
		    is_link_local(&own) == is_link_local(to))
			return i;
	return -1;
}

static const char *aim(struct traffic *t, const char *to)
{
	static char text[128]; /* one thread makes traffic */
	/* ECT(0), as packets of connections have it, so that a network may mark them */
	struct ibv_ah_attr a = { .is_global = 1,
				 .port_num = PORT,
				 .grh = { .hop_limit = 64, .traffic_class = 2 } };
	struct ibv_port_attr port;
	int index;

	errno = EINVAL;
	if (!gid_of(to, &a.grh.dgid))
		return "must be an IPv4 or IPv6 address";
	index = own_gid(t, &a.grh.dgid);
	if (index < 0)
		return "the engine has no address of this family";
	if (ibv_query_port(t->context, PORT, &port) != 0)
		return "cannot query the port";
	if (t->size > 128u << port.active_mtu) {
		snprintf(
			text, sizeof(text),
			"messages of %u octets: must be 1 .. %u, to fit into a packet; lower it with "
			"set traffic size",
			t->size, 128u << port.active_mtu);
		errno = EMSGSIZE;
		return text;
	}
	a.grh.sgid_index = (uint8_t)index;
	t->ah = ibv_create_ah(t->pd, &a);
	return t->ah == NULL ? "the address cannot be reached" : NULL;
}

/* ---- the thread ---- */

static int receive(struct traffic *t, uint32_t slot)
{
	struct ibv_sge sge = { (uintptr_t)t->buffer + slot * SLOT, SLOT, t->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(t->qp, &wr, &bad);
}

static int post(struct traffic *t, uint32_t n)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];

	memset(wr, 0, sizeof(wr));
	for (uint32_t i = 0; i < n; i++) {
		uint32_t slot = t->free[--t->frees];

		sge[i] = (struct ibv_sge){ (uintptr_t)t->buffer + slot * SLOT, t->size,
					   t->mr->lkey };
		wr[i] = (struct ibv_send_wr){ .wr_id = slot,
					      .next = i + 1 < n ? &wr[i + 1] : NULL,
					      .sg_list = &sge[i],
					      .num_sge = 1,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED };
		wr[i].wr.ud.ah = t->ah;
		wr[i].wr.ud.remote_qpn = t->to_qpn;
		wr[i].wr.ud.remote_qkey = TRAFFIC_Q_KEY;
	}
	return n == 0 ? 0 : ibv_post_send(t->qp, wr, &bad);
}

/* How many messages may leave now. */
static uint32_t allowed(struct traffic *t, nanotime now)
{
	uint32_t rate = setting(&t->settings->rate), n = 0;
	nanotime gap;

	if (rate == 0)
		return MIN_OF(t->frees, BATCH);
	gap = MAX_OF(TIME_S / rate, 1u);
	if (t->due + CATCH_UP < now)
		t->due = now - CATCH_UP;
	while (n < MIN_OF(t->frees, BATCH) && t->due <= now) {
		t->due += gap;
		n++;
	}
	return n;
}

/* Takes completions. Returns how many, or -1: the queue pair can no longer be used. */
static int take(struct traffic *t)
{
	struct ibv_wc wc[BATCH];
	int n = ibv_poll_cq(t->cq, BATCH, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			return -1;
		count(&t->messages, 1);
		count(&t->octets, t->source ? t->size : wc[i].byte_len - GRH);
		if (t->source)
			t->free[t->frees++] = (uint32_t)wc[i].wr_id;
		else if (receive(t, (uint32_t)wc[i].wr_id) != 0)
			return -1;
	}
	return n;
}

/* Sleeps until a completion comes, or a message is due, or a moment has passed. */
static void wait_for_more(struct traffic *t, nanotime now)
{
	struct pollfd p = { .fd = t->channel->fd, .events = POLLIN };
	struct timespec longest = { .tv_nsec = WAIT_MS * (long)TIME_MS };
	struct ibv_cq *cq;
	void *context;

	if (t->source && t->frees > 0 && t->due > now)
		longest.tv_nsec = (long)MIN_OF(t->due - now, WAIT_MS * TIME_MS);
	if (ppoll(&p, 1, &longest, NULL) > 0 && ibv_get_cq_event(t->channel, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
}

static void print_line(struct traffic *t, nanotime now)
{
	uint32_t period = setting(&t->settings->period);
	struct traffic_counts c, between;
	char text[160];

	if (period == 0)
		t->next_line = 0;
	if (period == 0 || now < t->next_line)
		return;
	traffic_count(t, &c);
	between = (struct traffic_counts){ c.messages - t->last_line.messages,
					   c.octets - t->last_line.octets, c.failed,
					   c.seconds - t->last_line.seconds };
	traffic_text(&between, text, sizeof(text));
	if (t->next_line != 0) /* the period was set before this one began */
		printf("%s: %s\n", t->source ? "tx" : "rx", text);
	t->last_line = c;
	t->next_line = now + period * TIME_S;
}

static void *run(void *arg)
{
	struct traffic *t = arg;
	int n = 0;

	while (n >= 0 && __atomic_load_n(&t->stop, __ATOMIC_ACQUIRE) == 0) {
		nanotime now = now_ns();

		print_line(t, now);
		n = t->source && post(t, allowed(t, now)) != 0 ? -1 : take(t);
		if (n != 0)
			continue;
		/* armed, then checked once more: completions in between do not ring */
		n = ibv_req_notify_cq(t->cq, 0) != 0 ? -1 : take(t);
		if (n == 0)
			wait_for_more(t, now_ns());
	}
	if (n < 0)
		count(&t->failed, 1);
	return NULL;
}

/* ---- begin and end ---- */

static void release(struct traffic *t)
{
	if (t->qp != NULL)
		ibv_destroy_qp(t->qp);
	if (t->ah != NULL)
		ibv_destroy_ah(t->ah);
	if (t->mr != NULL)
		ibv_dereg_mr(t->mr);
	if (t->cq != NULL)
		ibv_destroy_cq(t->cq);
	if (t->pd != NULL)
		ibv_dealloc_pd(t->pd);
	if (t->channel != NULL)
		ibv_destroy_comp_channel(t->channel);
	if (t->context != NULL)
		ibv_close_device(t->context);
	free(t->buffer);
	free(t);
}

static const char *fill(struct traffic *t)
{
	for (uint32_t i = 0; i < DEPTH; i++) {
		if (t->source) {
			t->free[t->frees++] = i;
			continue;
		}
		errno = receive(t, i);
		if (errno != 0)
			return "ibv_post_recv";
	}
	return NULL;
}

struct traffic *traffic_start(const char *device, const char *to, uint32_t qpn,
			      const struct traffic_settings *settings, char *why, size_t why_size)
{
	struct traffic *t = calloc(1, sizeof(*t));
	const char *failed = t == NULL ? "memory" : NULL;

	if (failed == NULL) {
		t->settings = settings;
		t->source = to != NULL;
		t->size = settings->size;
		t->to_qpn = qpn;
		failed = make_objects(t, device);
	}
	if (failed == NULL)
		failed = to_rts(t);
	if (failed == NULL && to != NULL)
		failed = aim(t, to);
	if (failed == NULL)
		failed = fill(t);
	if (failed == NULL) {
		t->begun = t->due = now_ns();
		errno = pthread_create(&t->thread, NULL, run, t);
		failed = errno != 0 ? "pthread_create" : NULL;
	}
	if (failed == NULL)
		return t;
	snprintf(why, why_size, "%s (%s)", failed, strerror(errno));
	if (t != NULL)
		release(t);
	return NULL;
}

uint32_t traffic_qpn(const struct traffic *t)
{
	return t->qp->qp_num;
}

void traffic_count(const struct traffic *t, struct traffic_counts *c)
{
	*c = (struct traffic_counts){
		.messages = __atomic_load_n(&t->messages, __ATOMIC_RELAXED),
		.octets = __atomic_load_n(&t->octets, __ATOMIC_RELAXED),
		.failed = __atomic_load_n(&t->failed, __ATOMIC_RELAXED),
		.seconds = (double)(now_ns() - t->begun) / 1e9,
	};
}

void traffic_stop(struct traffic *t, struct traffic_counts *counts)
{
	__atomic_store_n(&t->stop, 1, __ATOMIC_RELEASE);
	pthread_join(t->thread, NULL);
	traffic_count(t, counts);
	release(t);
}

void traffic_text(const struct traffic_counts *c, char *text, size_t size)
{
	double seconds = c->seconds > 0 ? c->seconds : 1;

	snprintf(text, size,
		 "%" PRIu64 " messages, %" PRIu64 " octets in %.1f s: %.0f messages/s, %.3f "
		 "Gbit/s%s",
		 c->messages, c->octets, c->seconds, (double)c->messages / seconds,
		 (double)c->octets * 8e-9 / seconds, c->failed > 0 ? "; it failed" : "");
}
