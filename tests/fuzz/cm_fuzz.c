/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the connection manager: a life of one connection. Each step is an octet that
 * says what happens (a call of the program, time that passes, a MAD) and, for a MAD, as many octets
 * as it is given. A MAD that decodes is encoded again and must decode to the same message; half of
 * them are given the ids that the connection knows. Whatever happened, an abandoned connection is
 * gone in the end.
 *
 *	cm-fuzz -max_len=4096
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "cm/cm.h"

#define OUR_ID	   0xaaaau
#define PEERS_ID   0xbbbbu
#define PEERS_GUID 0xb0b0u
#define QPN	   0x123u
#define CALLS	   12u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cm_connection connection;
static nanotime now;

static void demand(bool condition)
{
	if (!condition)
		abort();
}

static void take_all(void)
{
	uint8_t mad[MAD_OCTETS];
	struct cm_message m;

	for (int n = 0; cm_take_message(&connection, &m); n++) {
		demand(n < 5);
		cm_message_encode(&m, mad);
		demand(cm_message_decode(&m, mad, sizeof(mad)) == CM_DECODED);
	}
	cm_take_events(&connection);
}

static void encode_again(const struct cm_message *m)
{
	uint8_t mad[MAD_OCTETS];
	struct cm_message again;

	cm_message_encode(m, mad);
	demand(cm_message_decode(&again, mad, sizeof(mad)) == CM_DECODED);
	demand(memcmp(m, &again, sizeof(again)) == 0);
}

static void without_connection(const struct cm_message *m)
{
	const struct cm_port_view port = { true, true, true, 5 };
	struct cm_message answer, never;
	struct cm_ip_header ip;

	cm_check_ip_header(m, &ip);
	if (m->attribute == CM_REQ && cm_check_request(m, &port) == 0)
		cm_requested(&connection, m, OUR_ID);
	else if (m->attribute == CM_SIDR_REQ)
		cm_sidr_requested(&connection, m);
	else if (cm_stray(m, &answer))
		demand(!cm_stray(&answer, &never));
}

static void give_ids(struct cm_message *m)
{
	m->local_id = m->attribute == CM_SIDR_REP ? OUR_ID : PEERS_ID;
	m->remote_id = OUR_ID;
	m->ca_guid = PEERS_GUID;
	if (m->attribute == CM_DREQ)
		m->qpn = QPN;
}

static void receive(const uint8_t *octets, size_t length, bool known)
{
	struct cm_message m, answer;
	enum cm_decode result = cm_message_decode(&m, octets, length);

	if (result == CM_WRONG_VERSION)
		cm_wrong_version(&m, &answer);
	if (result != CM_DECODED)
		return;
	encode_again(&m);
	if (known)
		give_ids(&m);
	if (cm_state(&connection) == CM_IDLE)
		without_connection(&m);
	else
		cm_received(&connection, &m, now);
}

static void call(uint8_t which)
{
	struct cm_message m = { .local_id = OUR_ID, .qpn = QPN, .max_cm_retries = which >> 4 };

	switch (which % CALLS) {
	case 0:
		m.attribute = CM_REQ;
		cm_connect(&connection, &m, now);
		break;
	case 1:
		cm_accept(&connection, &m, now);
		break;
	case 2:
		cm_ready(&connection, NULL, 0, now);
		break;
	case 3:
		cm_establish(&connection, now);
		break;
	case 4:
		cm_reject(&connection, &(struct cm_rejection){ .reason = 28 }, now);
		break;
	case 5:
		cm_delay(&connection, which >> 3, now);
		break;
	case 6:
		cm_disconnect(&connection, "x", 1, now);
		break;
	case 7:
		m.attribute = CM_SIDR_REQ;
		cm_sidr_connect(&connection, &m, which >> 3, 3, now);
		break;
	case 8:
		cm_sidr_reply(&connection, &m, now);
		break;
	case 9:
		cm_abandon(&connection, now);
		break;
	case 10:
		now += (nanotime)which * TIME_S;
		cm_expired(&connection, now);
		break;
	default:
		if (cm_deadline(&connection) != TIME_NEVER)
			now = cm_deadline(&connection);
		cm_expired(&connection, now);
	}
}

/* Every wait is bounded, and so is their number. */
static void expect_the_end(void)
{
	cm_abandon(&connection, now);
	take_all();
	for (int n = 0; cm_state(&connection) != CM_IDLE; n++) {
		demand(n < 260);
		demand(cm_deadline(&connection) <= now + 600 * TIME_S);
		now = cm_deadline(&connection);
		cm_expired(&connection, now);
		demand(cm_take_events(&connection) == 0);
		take_all();
	}
	demand(cm_deadline(&connection) == TIME_NEVER);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	memset(&connection, 0, sizeof(connection));
	now = TIME_S;
	while (size > 0) {
		size_t length = MIN_OF(size - 1, (size_t)MAD_OCTETS);
		uint8_t what = data[0];

		if (what < 128) {
			call(what);
			length = 0;
		} else {
			receive(data + 1, length, what & 1);
		}
		take_all();
		data += 1 + length;
		size -= 1 + length;
	}
	expect_the_end();
	return 0;
}
