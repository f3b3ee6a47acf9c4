/* SPDX-License-Identifier: BSD-3-Clause */
/* The last packets of a queue pair: which frames are its own, and what is left of many. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/capture/trace.h"
#include "loop_rig.h"

#define OWN   0x123456u
#define PEER  0x00abcdu
#define OTHER 0x777777u
#define SLOTS 8u

#define RC_SEND_ONLY  0x04
#define RC_WRITE_ONLY 0x0a
#define UD_SEND_ONLY  0x64

static struct rig *r;
static struct trace *t;
static struct traced_packet kept[SLOTS];

static void begin(void)
{
	r = rig_open();
	t = trace_make(OWN, PEER, SLOTS, 2);
	cr_assert_not_null(t);
}

static void end(void)
{
	trace_free(t);
	rig_close(r);
}

TestSuite(trace, .init = begin, .fini = end, .timeout = 60);

static void put_24(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 16);
	to[1] = (uint8_t)(value >> 8);
	to[2] = (uint8_t)value;
}

struct shape {
	bool v6, tagged;
	uint8_t opcode;
	uint32_t to, from; /* queue pairs; from: of UD */
	uint16_t port;
	bool bare; /* nothing between BTH and ICRC */
};

/* The headers of a frame, and zeros up to 200 octets, or no more than an ICRC. */
static struct rte_mbuf *frame(const struct shape *s)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->engine.pool);
	uint8_t *f = (uint8_t *)rte_pktmbuf_append(m, 200), *ip;

	memset(f, 0, 200);
	if (s->tagged) {
		f[12] = 0x81;
		f[15] = 5;
	}
	ip = f + (s->tagged ? 18 : 14);
	ip[-2] = s->v6 ? 0x86 : 0x08;
	ip[-1] = s->v6 ? 0xdd : 0x00;
	ip[0] = s->v6 ? 0x60 : 0x45;
	ip[s->v6 ? 6 : 9] = 17;
	ip += s->v6 ? 40 : 20;
	ip[2] = (uint8_t)(s->port >> 8);
	ip[3] = (uint8_t)s->port;
	ip[8] = s->opcode;
	put_24(ip + 8 + 5, s->to);
	put_24(ip + 8 + 12 + 5, s->from);
	if (s->bare)
		rte_pktmbuf_trim(m, (uint16_t)(200 - (ip + 8 + 12 + 4 - f)));
	return m;
}

static void pass(const struct shape *s, enum capture_way way, uint32_t lcore, nanotime at)
{
	struct rte_mbuf *m = frame(s);

	trace_frames(t, lcore, &m, 1, way, at);
	rte_pktmbuf_free(m);
}

static bool is_kept(const struct shape *s, enum capture_way way)
{
	uint64_t before = trace_seen(t);

	pass(s, way, 0, 1);
	return trace_seen(t) == before + 1;
}

Test(trace, packets_of_the_queue_pair_and_no_others)
{
	static const struct {
		struct shape shape;
		bool received, sent, here;
	} row[] = {
		{ { .opcode = RC_WRITE_ONLY, .to = OWN }, true, false, true },
		{ { .opcode = RC_WRITE_ONLY, .to = PEER }, false, true, true },
		{ { .opcode = RC_WRITE_ONLY, .to = OTHER }, false, false, false },
		/* of a datagram the source is known */
		{ { .opcode = UD_SEND_ONLY, .to = OTHER, .from = OWN }, false, true, true },
		{ { .opcode = UD_SEND_ONLY, .to = PEER, .from = OTHER }, false, false, false },
		{ { .opcode = UD_SEND_ONLY, .to = OWN, .from = OTHER }, true, false, true },
	};

	for (uint32_t i = 0; i < 4 * sizeof(row) / sizeof(row[0]); i++) {
		struct shape s = row[i / 4].shape;

		s.port = 4791;
		s.v6 = i & 1;
		s.tagged = i & 2;
		cr_expect_eq(is_kept(&s, CAPTURE_RECEIVED), row[i / 4].received, "row %u", i);
		cr_expect_eq(is_kept(&s, CAPTURE_SENT), row[i / 4].sent, "row %u", i);
		cr_expect_eq(is_kept(&s, CAPTURE_HERE), row[i / 4].here, "row %u", i);
	}
}

/* A SEND without payload ends with the BTH and the ICRC. A datagram that does is none. */
Test(trace, packets_without_further_headers)
{
	for (uint32_t i = 0; i < 4; i++) {
		struct shape s = { .opcode = RC_SEND_ONLY,
				   .to = OWN,
				   .port = 4791,
				   .v6 = i & 1,
				   .tagged = i & 2,
				   .bare = true };

		cr_expect(is_kept(&s, CAPTURE_RECEIVED), "row %u", i);
		s.to = PEER;
		cr_expect(is_kept(&s, CAPTURE_SENT), "row %u", i);
		s.opcode = UD_SEND_ONLY;
		s.to = OTHER;
		cr_expect_not(is_kept(&s, CAPTURE_SENT), "row %u", i);
	}
}

Test(trace, a_queue_pair_that_is_not_connected_sends_to_nobody)
{
	struct shape s = { .opcode = RC_WRITE_ONLY, .to = 0, .port = 4791 };

	t->peer_qpn = 0;
	cr_expect_not(is_kept(&s, CAPTURE_SENT));
}

/* Frames of any contents and lengths. */
Test(trace, frames_that_are_not_roce_are_not_kept)
{
	struct shape s = { .opcode = RC_WRITE_ONLY, .to = OWN, .port = 4790 };
	struct rte_mbuf *m;
	uint8_t *f;

	cr_expect_not(is_kept(&s, CAPTURE_RECEIVED), "another UDP port");
	s.port = 4791;
	m = frame(&s);
	f = rte_pktmbuf_mtod(m, uint8_t *);
	for (uint32_t length = 0; length <= 54 + 4; length++) {
		m->pkt_len = m->data_len = (uint16_t)length;
		trace_frames(t, 0, &m, 1, CAPTURE_RECEIVED, 1);
		cr_expect_eq(trace_seen(t), length == 54 + 4, "%u octets", length);
	}
	m->pkt_len = m->data_len = 200;
	f[14] = 0x4f; /* options up to octet 74: other octets are the UDP header */
	trace_frames(t, 0, &m, 1, CAPTURE_RECEIVED, 1);
	f[14] = 0x45;
	f[23] = 6; /* TCP */
	trace_frames(t, 0, &m, 1, CAPTURE_RECEIVED, 1);
	cr_expect_eq(trace_seen(t), 1);
	rte_pktmbuf_free(m);
}

Test(trace, the_last_ones_are_left_in_their_order)
{
	struct shape s = { .opcode = RC_WRITE_ONLY, .to = OWN, .port = 4791 };

	cr_expect_eq(trace_copy(t, 0, kept), 0);
	for (uint32_t i = 1; i <= 3; i++)
		pass(&s, CAPTURE_RECEIVED, 0, i);
	cr_assert_eq(trace_copy(t, 0, kept), 3);
	for (uint32_t i = 4; i <= 5 * SLOTS + 3; i++)
		pass(&s, CAPTURE_HERE, 0, i);
	cr_assert_eq(trace_copy(t, 0, kept), SLOTS);
	for (uint32_t i = 0; i < SLOTS; i++) {
		cr_expect_eq(kept[i].at, 4 * SLOTS + 4 + i);
		cr_expect_eq(kept[i].whole, 200);
		cr_expect_eq(kept[i].length, LIMIT_TRACE_SNAP);
		cr_expect_eq(kept[i].way, CAPTURE_HERE);
	}
	cr_expect_eq(trace_copy(t, 1, kept), 0, "the other lcore had none");
	cr_expect_eq(trace_seen(t), 5 * SLOTS + 3);
}

/* Headers may be in one piece and the payload in another. */
Test(trace, a_frame_in_pieces)
{
	struct shape s = { .opcode = RC_WRITE_ONLY, .to = OWN, .port = 4791 };
	struct rte_mbuf *m = frame(&s), *rest = rte_pktmbuf_alloc(r->engine.pool);

	rte_pktmbuf_trim(m, 130);
	memset(rte_pktmbuf_append(rest, 130), 0x5a, 130);
	cr_assert_eq(rte_pktmbuf_chain(m, rest), 0);
	trace_frames(t, 0, &m, 1, CAPTURE_RECEIVED, 1);
	cr_assert_eq(trace_copy(t, 0, kept), 1);
	cr_expect_eq(kept[0].octets[23], 17);
	for (uint32_t i = 70; i < LIMIT_TRACE_SNAP; i++)
		cr_assert_eq(kept[0].octets[i], 0x5a, "octet %u", i);
	rte_pktmbuf_free(m);
}

/* ---- a reader beside the lcore ---- */

static uint32_t stop;

static void *write_packets(void *arg)
{
	struct shape s = { .opcode = RC_WRITE_ONLY, .to = OWN, .port = 4791 };
	struct rte_mbuf *m = frame(&s);
	uint8_t *f = rte_pktmbuf_mtod(m, uint8_t *);

	for (uint32_t i = 1; __atomic_load_n(&stop, __ATOMIC_ACQUIRE) == 0; i++) {
		memset(f + 70, (int)(i & 0xff), 100);
		trace_frames(t, 0, &m, 1, CAPTURE_RECEIVED, i);
	}
	rte_pktmbuf_free(m);
	return NULL;
}

/* What is copied is one packet, never parts of two; and the packets are in order. */
Test(trace, a_copy_is_whole)
{
	uint32_t copies = 0;
	pthread_t writer;

	cr_assert_eq(pthread_create(&writer, NULL, write_packets, NULL), 0);
	while (trace_seen(t) < 200000 || copies == 0) {
		uint32_t n = trace_copy(t, 0, kept);

		cr_assert_leq(n, SLOTS);
		copies += n;
		for (uint32_t i = 0; i < n; i++) {
			for (uint32_t k = 70; k < LIMIT_TRACE_SNAP; k++)
				cr_assert_eq(kept[i].octets[k], (uint8_t)kept[i].at);
			cr_assert(i == 0 || kept[i].at > kept[i - 1].at);
		}
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(writer, NULL);
}
