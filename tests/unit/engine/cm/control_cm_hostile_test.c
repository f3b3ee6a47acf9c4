/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of peers that follow no rule: other connections are not affected, and nothing of the
 * messages is kept.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "cm_rig.h"
#include "control/cm/cm_manager.h"
#include "lcore/inside.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define PORT 7471u

static struct party server;
static const struct gid stranger = { { [10] = 0xff, [11] = 0xff, 192, 0, 2, 9 } };
static struct gid own;

static void open_server(void)
{
	control_rig_open();
	party_begin(&server);
	own = address_of(own_address(), 0).ip;
}

static void close_server(void)
{
	party_end(&server);
	control_rig_close();
}

TestSuite(control_cm_hostile, .init = open_server, .fini = close_server, .timeout = 60);

/* A message from the wire, as the control thread decodes it. */
static void throw_message(const struct gid *source, const struct cm_message *m, bool wrong_version)
{
	struct engine *e = (struct engine *)engine;
	struct cm_input in = {
		.source = *source, .destination = own, .has_mac = true, .message = *m
	};

	pthread_mutex_lock(&e->control_lock);
	if (wrong_version)
		cm_input_wrong_version(e, &in, clock_now());
	else
		cm_input(e, &in, clock_now());
	cm_done(e);
	pthread_mutex_unlock(&e->control_lock);
}

static uint32_t links(void)
{
	struct engine *e = (struct engine *)engine;
	uint32_t n;

	pthread_mutex_lock(&e->control_lock);
	n = e->control->cm->link_count;
	pthread_mutex_unlock(&e->control_lock);
	return n;
}

static struct cm_message good_req(uint32_t id, uint32_t qpn)
{
	const struct cm_ip_header h = {
		.ip_version = 4, .source_port = 1000, .source = stranger, .destination = own
	};
	struct cm_message m = {
		.attribute = CM_REQ,
		.transaction = id,
		.local_id = id,
		.service_id = cm_service_id(CM_SPACE_TCP, PORT),
		.ca_guid = 0x1122334455667788,
		.qpn = qpn,
		.remote_response_timeout = 24, /* a minute: */
		.local_response_timeout = 24, /* none goes while a slow test makes many */
		.max_cm_retries = 15,
		.pkey = 0xffff,
		.path_mtu = 1,
		.primary = { .local_gid = stranger, .remote_gid = own, .ack_timeout = 14 }
	};

	cm_ip_header_encode(&h, m.private_data);
	return m;
}

/* H-66, H-67: requests that may not be, one thing wrong with each. */
Test(control_cm_hostile, requests_that_may_not_be)
{
	const struct cm_message good = good_req(1, 0x77);
	struct cm_message bad[16];
	struct reply_cm_event e;
	uint32_t n = 0;

	listener_at(&server, TCP, PORT, 5);
	for (uint32_t i = 0; i < ARRAY_SIZE(bad); i++)
		bad[i] = good;
	bad[n++].qpn = 0;
	bad[n++].qpn = 1;
	bad[n++].qpn = 0xffffff;
	bad[n++].path_mtu = 0;
	bad[n++].path_mtu = 6;
	bad[n++].path_mtu = 15;
	bad[n++].transport = CM_TRANSPORT_RD;
	bad[n++].transport = CM_TRANSPORT_UC;
	bad[n++].pkey = 0x1234;
	bad[n++].primary.remote_gid = stranger;
	bad[n++].primary.local_gid = own;
	memset(&bad[n++].primary.local_gid, 0, 16);
	bad[n++].service_id |= UINT64_C(1) << 40;
	bad[n++].service_id ^= 1;
	bad[n++].private_data[1] = 0x50; /* IP version 5 */
	memset(bad[n++].private_data, 0, CM_IP_HEADER);
	cr_assert_eq(n, ARRAY_SIZE(bad));
	for (uint32_t i = 0; i < n; i++) {
		throw_message(&stranger, &bad[i], false);
		cr_assert_eq(links(), 0, "row %u left something", i);
	}
	throw_message(&stranger, &good, true);
	expect_no_event(&server);
	throw_message(&stranger, &good, false);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(e.parameters.qpn, 0x77);
}

/* H-80: depths of zero and of everything. */
Test(control_cm_hostile, depths)
{
	static const uint8_t depth[] = { 0, 255 };
	struct reply_cm_qp_attr a;
	struct reply_cm_event e;

	listener_at(&server, TCP, PORT, 5);
	for (uint32_t i = 0; i < ARRAY_SIZE(depth); i++) {
		struct cm_message m = good_req(1 + i, 0x77 + i);

		m.initiator_depth = m.responder_resources = depth[i];
		throw_message(&stranger, &m, false);
		expect_event(&server, CONNECT_REQUEST, 0, &e);
		cr_assert_eq(cm_attributes_of(&server, e.id, QP_STATE_RTR, &a), 0);
		cr_expect_eq(a.attributes.max_dest_rd_atomic, MIN_OF(depth[i], LIMIT_RD_ATOMIC));
		cr_assert_eq(cm_attributes_of(&server, e.id, QP_STATE_INIT, &a), 0);
		cr_expect_eq((a.attributes.access_flags & ACCESS_REMOTE_READ) != 0, depth[i] != 0);
	}
}

/* H-69: a request that comes again is the same one. */
Test(control_cm_hostile, repetitions)
{
	struct cm_message m = good_req(1, 0x77);
	struct reply_cm_event e;

	listener_at(&server, TCP, PORT, 5);
	for (int i = 0; i < 5; i++)
		throw_message(&stranger, &m, false);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	expect_no_event(&server);
	cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, NULL), 0);
	for (int i = 0; i < 5; i++)
		throw_message(&stranger, &m, false);
	expect_no_event(&server);
	cr_expect_eq(links(), 1);
	/* H-71: another one with its id is a peer that began anew. */
	m.starting_psn = 5;
	throw_message(&stranger, &m, false);
	expect_no_event(&server);
	cr_expect_eq(links(), 1);
}

/*
 * H-68: the number of requests that no program accepts is bounded by the backlog, and they go with
 * the listener.
 */
Test(control_cm_hostile, a_flood_of_requests)
{
	enum {
		FLOOD = 20000,
		BACKLOG = 16
	};
	uint32_t listener = listener_at(&server, TCP, PORT, BACKLOG), other;
	struct reply_cm_event e;
	struct party p;

	party_begin(&p);
	for (uint32_t i = 1; i <= FLOOD; i++) {
		struct cm_message m = good_req(i, 0x1000 + i);
		struct gid from = stranger;

		store_be32(from.octet + 12, 0x0a000000 + i);
		m.primary.local_gid = from;
		throw_message(&from, &m, false);
	}
	cr_expect_eq(links(), BACKLOG);
	listener_at(&p, TCP, PORT + 1, 5);
	other = id_towards(&p, TCP, PORT + 1);
	cr_assert_eq(cm_connect_as(&p, COMMAND_CM_CONNECT, other, 0x55, NULL), 0);
	expect_event(&p, CONNECT_REQUEST, 0, &e);
	for (int i = 0; i < BACKLOG; i++)
		expect_event(&server, CONNECT_REQUEST, 0, &e);
	expect_no_event(&server);
	cr_assert_eq(cm_destroy(&server, listener, NULL), 0);
	party_end(&p);
}

static uint32_t longest(const struct cm_link_list *list, size_t next)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < CM_BUCKETS; i++) {
		const char *l = (const char *)LIST_FIRST(&list[i]);
		uint32_t n = 0;

		for (; l != NULL; l = *(const char *const *)(l + next))
			n++;
		most = MAX_OF(most, n);
	}
	return most;
}

/* How far a message looks, at the most. */
static uint32_t longest_chain(void)
{
	struct engine *e = (struct engine *)engine;
	const struct cm_manager *cm = e->control->cm;
	uint32_t most;

	pthread_mutex_lock(&e->control_lock);
	most = longest(cm->remote, offsetof(struct cm_link, remote_link));
	most = MAX_OF(most, longest(cm->remote_qpn, offsetof(struct cm_link, remote_qpn_link)));
	most = MAX_OF(most, longest(cm->local, offsetof(struct cm_link, local_link)));
	pthread_mutex_unlock(&e->control_lock);
	return most;
}

/* A request that the program takes, and rejects. */
static void throw_and_reject(const struct gid *source, const struct cm_message *m)
{
	struct reply_cm_event e;

	throw_message(source, m, false);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_assert_eq(cm_reject_with(&server, e.id, "no"), 0);
	cr_assert_eq(cm_destroy(&server, e.id, NULL), 0);
}

/* H-82 in spirit: numbers chosen so that all would lie in one place, and each be looked through. */
Test(control_cm_hostile, numbers_of_one_kind)
{
	enum {
		MANY = 3000
	};

	listener_at(&server, TCP, PORT, 5);
	for (uint32_t i = 0; i < MANY; i++) {
		struct cm_message m = good_req(1, 0x77);

		m.starting_psn = i; /* the same id: one takes the place of the last */
		throw_and_reject(&stranger, &m);
	}
	cr_expect_eq(links(), 1);
	for (uint32_t i = 0; i < MANY; i++) {
		struct cm_message m = good_req(i + 2, 0x77); /* the same queue pair */

		throw_and_reject(&stranger, &m);
		m = good_req(1, 0x77);
		m.ca_guid = i; /* the same id of many hosts in one */
		throw_and_reject(&stranger, &m);
	}
	cr_expect_eq(links(), 2 * MANY + 1);
	cr_expect_leq(longest_chain(), 32, "%u", longest_chain());
}

/*
 * Likewise numbers that make good what others of them change, and those of many addresses.
 * hostile H-82: numbers that lie in one chain.
 */
Test(control_cm_hostile, numbers_of_one_sum)
{
	enum {
		MANY = 3000
	};
	struct gid from = stranger;

	listener_at(&server, TCP, PORT, 5);
	for (uint32_t i = 1; i <= MANY; i++) {
		struct cm_message m = good_req(i, 0x1000 + i);

		m.ca_guid = (uint64_t)i << 32 | i;
		throw_and_reject(&stranger, &m);
		m = good_req(1, 0x77);
		store_be32(from.octet + 12, 0x0a000000 + i);
		m.primary.local_gid = from;
		throw_and_reject(&from, &m);
	}
	cr_expect_eq(links(), 2 * MANY);
	cr_expect_leq(longest_chain(), 32, "%u", longest_chain());
}

/* And requests for a datagram service, which have no id of ours. */
Test(control_cm_hostile, datagram_services_of_one_number)
{
	enum {
		MANY = 3000
	};
	struct cm_message m = good_req(1, 0x77);
	struct gid from = stranger;

	listener_at(&server, UDP, PORT, 5);
	m.attribute = CM_SIDR_REQ;
	m.service_id = cm_service_id(CM_SPACE_UDP, PORT);
	for (uint32_t i = 1; i <= MANY; i++) {
		store_be32(from.octet + 12, 0x0a000000 + i);
		throw_and_reject(&from, &m);
	}
	cr_expect_eq(links(), MANY);
	cr_expect_leq(longest_chain(), 32, "%u", longest_chain());
}

/* H-68: a host that fills its room leaves that of the others. Before the test it had all but its last connections. */
Test(control_cm_hostile, one_host_is_not_all)
{
	enum {
		LAST = 1000
	};
	struct engine *e = (struct engine *)engine;
	struct gid other = stranger;
	struct reply_cm_event event;
	struct cm_message m;

	/* hosts share counters by chance: one that has its own */
	while (cm_source_count(e, &other) == cm_source_count(e, &stranger))
		other.octet[15]++;
	listener_at(&server, TCP, PORT, 5);
	pthread_mutex_lock(&e->control_lock);
	*cm_source_count(e, &stranger) = CM_SOURCE_MAX - LAST;
	pthread_mutex_unlock(&e->control_lock);
	for (uint32_t i = 1; i <= LAST; i++) {
		m = good_req(i, 0x1000 + i);
		throw_and_reject(&stranger, &m);
	}
	cr_assert_eq(links(), LAST);
	m = good_req(LAST + 1, 0x77);
	throw_message(&stranger, &m, false);
	cr_expect_eq(links(), LAST);
	expect_no_event(&server);
	m.primary.local_gid = other;
	throw_message(&other, &m, false);
	expect_event(&server, CONNECT_REQUEST, 0, &event);
	cr_expect_eq(event.parameters.qpn, 0x77);
}

/*
 * Messages with the right numbers from the wrong address belong to no connection. hostile H-71: a
 * peer that restarted.
 */
Test(control_cm_hostile, the_connections_of_others)
{
	static const uint8_t kind[] = { CM_REJ, CM_DREQ, CM_RTU, CM_MRA, CM_DREP, CM_LAP };
	struct cm_message m = good_req(1, 0x77);
	struct gid elsewhere = stranger;
	struct reply_cm_event e;
	struct cm_link *l;

	elsewhere.octet[15] ^= 1;
	listener_at(&server, TCP, PORT, 5);
	throw_message(&stranger, &m, false);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456, NULL), 0);
	l = LIST_FIRST(&((struct engine *)engine)->control->cm->links);
	for (uint32_t i = 0; i < ARRAY_SIZE(kind); i++) {
		struct cm_message forged = { .attribute = kind[i],
					     .local_id = 1,
					     .remote_id = l->core.local_id,
					     .qpn = 0x456,
					     .reason = 28 };

		throw_message(&elsewhere, &forged, false);
	}
	m.primary.local_gid = elsewhere;
	m.starting_psn = 9;
	m.service_id ^= 1;
	throw_message(&elsewhere, &m, false);
	expect_no_event(&server);
	cr_expect_eq(cm_state(&l->core), CM_REP_SENT);
}

/* protocol-map 194: data before the RTU says as much as the RTU. */
Test(control_cm_hostile, an_rtu_that_is_lost)
{
	struct cm_message m = good_req(1, 0x77);
	const struct engine_qp q = { .qpn = 0x456 }, another = { .qpn = 0x457 };
	struct reply_cm_event e, established;

	listener_at(&server, TCP, PORT, 5);
	throw_message(&stranger, &m, false);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_assert_eq(cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, q.qpn, NULL), 0);
	cm_rx_established((struct engine *)engine, &another);
	cm_rx_established((struct engine *)engine, &q);
	expect_event(&server, ESTABLISHED, 0, &established);
	cr_expect_eq(established.id, e.id);
	m = (struct cm_message){
		.attribute = CM_RTU,
		.local_id = 1,
		.remote_id =
			LIST_FIRST(&((struct engine *)engine)->control->cm->links)->core.local_id
	};
	throw_message(&stranger, &m, false);
	expect_no_event(&server);
}

/* A frame for queue pair 1 as it should be. */
static const struct packet for_qp1 = { .opcode = SERVICE_UD << 5 | OPB_SEND_ONLY,
				       .pkey = 0xffff,
				       .dest_qpn = 1,
				       .qkey = GSI_QKEY,
				       .src_qpn = 1,
				       .payload_length = MAD_OCTETS };

/* A frame for queue pair 1 as an lcore sees it, with this packet and message. */
static void throw_frame(const struct packet *wanted, const struct cm_message *message)
{
	struct engine *e = (struct engine *)engine;
	const struct decode_options options = { .check_icrc = true };
	struct rte_mbuf *b = rte_pktmbuf_alloc(e->pool);
	uint8_t *frame = rte_pktmbuf_mtod(b, uint8_t *);
	struct address_vector av = { .src_gid = stranger, .dst_gid = own, .hop_limit = 64 };
	struct flow flow;
	struct packet p;
	size_t n;

	flow_init(&flow, &av);
	n = packet_encode(frame, &flow, wanted, 0);
	cm_message_encode(message, frame + n);
	b->data_len = (uint16_t)packet_seal(frame, &flow, n, wanted->payload_length);
	b->pkt_len = b->data_len;
	cr_assert_eq(packet_decode(&p, frame, b->data_len, &options), REASON_NONE);
	cm_rx(&e->lcore[0], &p, b);
}

/* H-57, H-65: datagrams for queue pair 1 that are not messages end on the lcore. */
Test(control_cm_hostile, frames_for_queue_pair_1)
{
	static const enum reason why[] = { REASON_QKEY, REASON_PKEY, REASON_LENGTH_PAYLOAD,
					   REASON_LENGTH_PAYLOAD, REASON_SERVICE_MISMATCH };
	const struct cm_message m = good_req(1, 0x77);
	struct packet bad[ARRAY_SIZE(why)] = { for_qp1, for_qp1, for_qp1, for_qp1, for_qp1 };
	struct reply_statistics before, after;
	struct reply_cm_event e;

	bad[0].qkey = 0x11111111;
	bad[1].pkey = 0x1234;
	bad[2].payload_length = 255;
	bad[3].payload_length = 260;
	bad[4].opcode = SERVICE_UC << 5 | OPB_SEND_ONLY;
	listener_at(&server, TCP, PORT, 5);
	for (uint32_t i = 0; i < ARRAY_SIZE(why); i++) {
		statistics(&before);
		throw_frame(&bad[i], &m);
		statistics(&after);
		cr_expect_eq(after.by_reason[why[i]], before.by_reason[why[i]] + 1, "row %u", i);
	}
	throw_frame(&for_qp1, &m);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	cr_expect_eq(e.parameters.qpn, 0x77);
	expect_no_event(&server);
}

/* H-83: one that comes before there is anybody to read it is dropped, and counted. */
Test(control_cm_hostile, frames_before_there_is_a_ring)
{
	struct engine *e = (struct engine *)engine;
	unsigned int buffers = rte_mempool_avail_count(e->pool);
	const struct cm_message m = good_req(1, 0x77);
	struct reply_statistics before, after;
	struct rte_ring *ring;

	listener_at(&server, TCP, PORT, 5);
	statistics(&before);
	pthread_mutex_lock(&e->control_lock);
	ring = e->mads;
	e->mads = NULL;
	throw_frame(&for_qp1, &m);
	e->mads = ring;
	pthread_mutex_unlock(&e->control_lock);
	statistics(&after);
	cr_expect_eq(after.by_reason[REASON_BUSY], before.by_reason[REASON_BUSY] + 1);
	cr_expect_eq(rte_mempool_avail_count(e->pool), buffers);
	throw_frame(&for_qp1, &m);
	expect_event(&server, CONNECT_REQUEST, 0, NULL);
}

/*
 * More than the ring holds: buffers come back, and a request after it is heard.
 * hostile H-57: floods.
 */
Test(control_cm_hostile, a_flood_of_frames)
{
	struct engine *engine_inside = (struct engine *)engine;
	const struct cm_message noise = { .attribute = CM_DREQ, .local_id = 5, .remote_id = 6 };
	struct cm_message m = good_req(1, 0x77);
	unsigned int buffers = rte_mempool_avail_count(engine_inside->pool);

	listener_at(&server, TCP, PORT, 5);
	for (uint32_t i = 0; i < 5000; i++)
		throw_frame(&for_qp1, &noise);
	for (int ms = 0; !rte_ring_empty(engine_inside->mads); ms++) {
		cr_assert_lt(ms, ENOUGH_MS, "the control thread does not take what waits");
		poll(NULL, 0, 1);
	}
	throw_frame(&for_qp1, &m);
	expect_event(&server, CONNECT_REQUEST, 0, NULL);
	/* The control thread is through with it. */
	cr_assert_eq(links(), 1);
	cr_expect_eq(rte_mempool_avail_count(engine_inside->pool), buffers);
}

static void random_octets(uint8_t *to, size_t n)
{
	while (n-- > 0)
		*to++ = (uint8_t)rand();
}

/* H-65: octets that are nearly messages, with the numbers of one connection in them now and then. */
Test(control_cm_hostile, noise)
{
	uint8_t mad[MAD_OCTETS], good[MAD_OCTETS];
	struct cm_message m = good_req(1, 0x77);
	struct reply_cm_event e;
	uint32_t local_id;

	srand(4711);
	listener_at(&server, TCP, PORT, 5);
	throw_message(&stranger, &m, false);
	expect_event(&server, CONNECT_REQUEST, 0, &e);
	local_id = LIST_FIRST(&((struct engine *)engine)->control->cm->links)->core.local_id;
	cm_message_encode(&m, good);
	for (int i = 0; i < 100000; i++) {
		enum cm_decode what;

		memcpy(mad, good, sizeof(mad));
		random_octets(mad + rand() % 200, (size_t)(rand() % 56));
		mad[17] = (uint8_t)(0x10 + rand() % 11); /* the attribute */
		if (rand() % 2)
			store_be32(mad + 24, 1);
		if (rand() % 2)
			store_be32(mad + 28, local_id);
		what = cm_message_decode(&m, mad, sizeof(mad));
		if (what == CM_DECODED || what == CM_WRONG_VERSION)
			throw_message(&stranger, &m, what == CM_WRONG_VERSION);
	}
	cr_expect_leq(links(), 64, "what asked for a connection, and no more than the backlog");
	expect_serving();
}

/*
 * H-75, H-79: an id ends while anything of it is under way.
 * hostile H-156: requests that end at any time.
 */
Test(control_cm_hostile, ids_that_end_at_any_time)
{
	uint32_t listener = listener_at(&server, TCP, PORT, 50), id;
	struct reply_cm_event e;

	for (uint32_t i = 1; i <= 200; i++) {
		struct cm_message m = good_req(i, 0x1000 + i);

		throw_message(&stranger, &m, false);
		if (i % 2)
			expect_event(&server, CONNECT_REQUEST, 0, &e);
		if (i % 4 == 1)
			cr_assert_eq(
				cm_connect_as(&server, COMMAND_CM_ACCEPT, e.id, 0x456 + i, NULL),
				0);
		if (i % 2)
			cr_assert_eq(cm_destroy(&server, e.id, NULL), 0);
		cr_assert_eq(cm_create(&server, TCP, &id), 0);
		cr_assert_eq(cm_resolve(&server, id, "192.0.2.1", 1, 1000), 0);
		cr_assert_eq(cm_destroy(&server, id, NULL), 0);
		if (i % 40 == 0) {
			cr_assert_eq(cm_destroy(&server, listener, NULL), 0);
			listener = listener_at(&server, TCP, PORT, 50);
		}
	}
	cr_assert_eq(cm_destroy(&server, listener, NULL), 0);
	expect_no_event(&server);
	cr_assert_eq(cm_handle(&server, COMMAND_CM_DESTROY_CHANNEL, server.channel), 0,
		     "no id is left");
}
