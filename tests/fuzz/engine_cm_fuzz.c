/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the engine's connection manager: datagrams of queue pair 1 from a host of
 * the link, commands of a program, and time. Datagrams take the whole way, port, lcore, ring and
 * control thread's tick. Half of them name the connection that the engine's last message was
 * about. Whatever happened, no connection is left at the end, and each has a bounded life.
 */
#include "base/bits.h"
#include "cm/mad.h"
#include "control/cm/cm_manager.h"
#include "engine_rig.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define PORT	 7471u
#define SERVICE	 (UINT64_C(0x0000000001060000) + PORT)
#define PEERS_ID 0xbbbbu
#define LONGEST	 400u /* ticks of ten minutes until the last connection is gone */

static struct cm_message last; /* of the engine's */
static bool has_last;
static nanotime now;

static void sent(const uint8_t *frame, uint32_t length)
{
	const struct decode_options options = { .check_icrc = true };
	struct packet p;
	struct cm_message m;

	if (packet_decode(&p, frame, length, &options) != REASON_NONE || p.dest_qpn != GSI_QPN)
		return;
	/* The engine understands its own messages. */
	demand(cm_message_decode(&m, p.payload, p.payload_length) == CM_DECODED);
	last = m;
	has_last = true;
}

static void tick(nanotime later)
{
	now += later;
	cm_manager_tick(rig, now);
	cm_flush(rig);
}

/* A datagram with its checksum, from the host to queue pair 1. */
static void receive(const uint8_t *mad, size_t length, uint8_t how)
{
	const struct address_vector av = { .src_gid = rig_address(how & 1 ? 2 : 3),
					   .dst_gid = rig_address(1),
					   .src_mac = rig_host_mac,
					   .dst_mac = rig_mac,
					   .hop_limit = 64,
					   .src_port = 0xc000 };
	const struct packet p = { .opcode = OPCODE(SERVICE_UD, OPB_SEND_ONLY),
				  .pkey = 0xffff,
				  .dest_qpn = GSI_QPN,
				  .qkey = GSI_QKEY,
				  .src_qpn = GSI_QPN,
				  .payload_length = (uint32_t)length };
	static uint8_t frame[PACKET_HEADER_MAX + MAD_OCTETS + 8];
	struct flow flow;
	size_t n;

	flow_init(&flow, &av);
	n = packet_encode(frame, &flow, &p, 1);
	memcpy(frame + n, mad, length);
	rig_frame(frame, packet_seal(frame, &flow, n, length));
	rig_poll();
}

static void give_ids(struct cm_message *m, uint8_t how)
{
	m->local_id = PEERS_ID + (how >> 6);
	if (!has_last)
		return;
	m->remote_id = last.local_id;
	m->transaction = last.transaction;
	if (m->attribute == CM_SIDR_REP || m->attribute == CM_SIDR_REQ)
		m->local_id = last.local_id;
	if (m->attribute == CM_DREQ || m->attribute == CM_LAP)
		m->qpn = last.qpn;
}

static void possible_request(struct cm_message *m)
{
	m->service_id = SERVICE;
	m->pkey = 0xffff;
	m->path_mtu = 3;
	m->transport = CM_TRANSPORT_RC;
	m->primary.local_gid = rig_address(2);
	m->primary.remote_gid = rig_address(1);
	m->primary.hop_limit = 64;
}

static void message(struct input *in)
{
	uint8_t how = input_8(in), mad[MAD_OCTETS] = { 0 };
	uint8_t attribute = input_8(in), octets = input_8(in);
	struct cm_message m;

	input_take(in, mad + 24, MIN_OF(octets, MAD_OCTETS - 24));
	mad[0] = 1; /* the general header: else it is nobody's message (tests/fuzz/cm_fuzz.c) */
	mad[1] = MAD_CLASS_CM;
	mad[2] = how & 2 ? MAD_CLASS_VERSION : 2u + (how >> 5);
	mad[3] = 3;
	mad[15] = how;
	mad[17] = (uint8_t)(CM_REQ + attribute % 11);
	if (cm_message_decode(&m, mad, sizeof(mad)) == CM_DECODED && how & 4) {
		give_ids(&m, how);
		if (how & 8 && (m.attribute == CM_REQ || m.attribute == CM_SIDR_REQ))
			possible_request(&m);
		cm_message_encode(&m, mad);
	}
	receive(mad, sizeof(mad), how);
}

static struct cm_address address(uint8_t host, uint16_t port)
{
	return (struct cm_address){ .ip = rig_address(host), .port = port, .family = 4 };
}

static uint32_t make_id(uint32_t channel)
{
	struct request_cm_create_id q = { .channel = channel,
					  .port_space = 0x0106,
					  .qp_type = QP_TYPE_RC };
	const struct command_reply *r;

	demand(rig_make(COMMAND_CM_CREATE_ID, &q, sizeof(q), &r) == 0);
	return ((const struct reply_handle *)(const void *)r)->handle;
}

/* A program that listens, and one that connects. */
static void preamble(void)
{
	struct request_empty q;
	struct request_cm_bind bind = { .address = address(1, PORT) };
	struct request_cm_listen listens = { .backlog = 3 };
	struct request_cm_resolve resolve = { .timeout = 1000, .destination = address(2, PORT) };
	struct request_cm_timeout route = { .timeout = 1000 };
	const struct command_reply *r;

	demand(rig_make(COMMAND_CM_CREATE_CHANNEL, &q, sizeof(q), &r) == 0);
	bind.id = listens.id = make_id(rig_made[OBJECT_CM_CHANNEL][0]);
	demand(rig_command(COMMAND_CM_BIND, &bind, sizeof(bind), NULL, NULL) == 0);
	demand(rig_command(COMMAND_CM_LISTEN, &listens, sizeof(listens), NULL, NULL) == 0);
	resolve.id = route.id = make_id(rig_made[OBJECT_CM_CHANNEL][0]);
	demand(rig_command(COMMAND_CM_RESOLVE_ADDR, &resolve, sizeof(resolve), NULL, NULL) == 0);
	tick(0);
	demand(rig_command(COMMAND_CM_RESOLVE_ROUTE, &route, sizeof(route), NULL, NULL) == 0);
	tick(0);
}

static void connect_id(struct input *in)
{
	struct request_cm_connect q = { .id = rig_made[OBJECT_CM_ID][1],
					.parameters = { .qpn = 0x10,
							.retry_count = input_8(in) & 7,
							.private_length = input_8(in) & 63 } };

	rig_command(COMMAND_CM_CONNECT, &q, sizeof(q), NULL, NULL);
}

/* The events that the program takes; ids of requests are named to later commands. */
static void take_event(void)
{
	struct request_handle q = { .handle = rig_made[OBJECT_CM_CHANNEL][0] };
	const struct command_reply *r;
	const struct reply_cm_event *e;

	if (rig_command(COMMAND_CM_GET_EVENT, &q, sizeof(q), NULL, &r) != 0)
		return;
	e = (const struct reply_cm_event *)(const void *)r;
	if (e->event == CM_TYPE_CONNECT_REQUEST && rig_mades[OBJECT_CM_ID] < RIG_OBJECTS)
		rig_made[OBJECT_CM_ID][rig_mades[OBJECT_CM_ID]++] = e->id;
}

static void step(struct input *in)
{
	uint8_t what = input_8(in);

	if (what < 0x70)
		message(in);
	else if (what < 0xb0)
		rig_random_command_of(in, COMMAND_CM_CREATE_CHANNEL, COMMAND_CM_LIST);
	else if (what < 0xc0)
		connect_id(in);
	else if (what < 0xd0)
		take_event();
	else
		tick((nanotime)1 << (what & 31) << 8);
	tick(0);
}

/* Every wait is bounded. */
static void expect_the_end(void)
{
	rig_end();
	rig_begin();
	for (uint32_t n = 0; cm_link_count(rig) > 0; n++) {
		demand(n < LONGEST);
		tick(600 * TIME_S);
	}
	rig_end();
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	rig_open();
	rig_sent = sent;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	rig_begin();
	has_last = false;
	now = clock_now();
	rig->control->cm->strays_at = 0;
	preamble();
	while (in.left > 0)
		step(&in);
	expect_the_end();
	return 0;
}
