/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The copies that an lcore makes for a capture: each frame once, with its direction, truncated to
 * the snap length. The port is a program's own, as with embedding.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "lcore/capture/capture.h"
#include "lcore/exception/exception.h"
#include "lcore/raw/raw.h"
#include "loop_rig.h"
#include "loop_wire.h"
#include "queue/pointers.h"

#define RING  (1u << 17)
#define POLLS 20000
#define WAYS  3u

static struct rig *r;
static struct capture capture;
static struct capture_reader reader;
static void *file;
static uint8_t octets[RING];
static uint32_t seen[WAYS]; /* records, by way */

static void begin(void)
{
	r = rig_open();
	file = aligned_alloc(4096, capture_octets(1, RING));
	cr_assert_not_null(file);
	memset(file, 0, capture_octets(1, RING));
	capture_ring_init(&capture.ring[0], file, 0, RING);
	capture_reader_init(&reader, file, 0, RING);
	capture.snap = LIMIT_CAPTURE_SNAP;
}

static void end(void)
{
	r->engine.capture = NULL;
	rig_close(r);
	free(file);
}

TestSuite(capture, .init = begin, .fini = end, .timeout = 60);

/* The next record; its octets in `octets`. */
static struct capture_record next(void)
{
	struct capture_record record;

	cr_assert(capture_reader_peek(&reader, &record), "there is no record");
	capture_reader_take(&reader, &record, octets, sizeof(octets));
	return record;
}

static void expect_no_more(void)
{
	struct capture_record record;

	cr_expect_not(capture_reader_peek(&reader, &record));
}

/* All that there are. */
static void count_records(void)
{
	struct capture_record record;

	memset(seen, 0, sizeof(seen));
	while (capture_reader_peek(&reader, &record)) {
		record = next();
		cr_assert_lt(record.way, WAYS);
		seen[record.way]++;
	}
}

/* One octet each, counting from 0, in pieces of these lengths. */
static struct rte_mbuf *frame(uint16_t first, uint16_t second)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->engine.pool), *rest;
	uint8_t *p;

	cr_assert_not_null(m);
	p = (uint8_t *)rte_pktmbuf_append(m, first);
	for (uint16_t i = 0; i < first; i++)
		p[i] = (uint8_t)i;
	if (second == 0)
		return m;
	rest = rte_pktmbuf_alloc(r->engine.pool);
	cr_assert_not_null(rest);
	p = (uint8_t *)rte_pktmbuf_append(rest, second);
	for (uint16_t i = 0; i < second; i++)
		p[i] = (uint8_t)(first + i);
	cr_assert_eq(rte_pktmbuf_chain(m, rest), 0);
	return m;
}

static void expect_frame(uint32_t whole, uint32_t length)
{
	struct capture_record record = next();

	cr_expect_eq(record.whole, whole);
	cr_assert_eq(record.length, length);
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(octets[i], (uint8_t)i, "octet %u", i);
}

/* Whole, cut in its first piece, where the pieces meet, and in the second one. */
Test(capture, a_frame_is_cut_to_the_snap_length)
{
	static const uint32_t snap[] = { 64, 99, 100, 101, 149, 150, 151, LIMIT_CAPTURE_SNAP };
	struct rte_mbuf *m = frame(100, 50);

	for (uint32_t i = 0; i < sizeof(snap) / sizeof(snap[0]); i++) {
		capture.snap = snap[i];
		capture_copy(&capture, r->engine.lcore, &m, 1, CAPTURE_SENT);
		expect_frame(150, snap[i] < 150 ? snap[i] : 150);
	}
	expect_no_more();
	rte_pktmbuf_free(m);
}

Test(capture, a_burst_is_a_record_each)
{
	struct rte_mbuf *m[] = { frame(60, 0), frame(70, 10), frame(80, 0) };
	nanotime before = clock_now();
	struct capture_record record;

	capture_copy(&capture, r->engine.lcore, m, 3, CAPTURE_RECEIVED);
	for (uint32_t i = 0; i < 3; i++) {
		record = next();
		cr_expect_eq(record.whole, m[i]->pkt_len);
		cr_expect_eq(record.way, CAPTURE_RECEIVED);
		cr_expect(record.at >= before && record.at <= clock_now());
		rte_pktmbuf_free(m[i]);
	}
	expect_no_more();
}

/* The lcore never waits for the reader. */
Test(capture, what_finds_no_room_is_lost_and_counted)
{
	struct rte_mbuf *m = frame(2000, 0);
	uint32_t kept = 0, tries = 2 * RING / 2000;

	for (uint32_t i = 0; i < tries; i++)
		capture_copy(&capture, r->engine.lcore, &m, 1, CAPTURE_SENT);
	for (struct capture_record record; capture_reader_peek(&reader, &record); kept++)
		expect_frame(2000, 2000);
	cr_expect_gt(kept, 32);
	cr_expect_eq(capture_reader_lost(&reader), tries - kept);
	rte_pktmbuf_free(m);
}

static void write_once(uint32_t completions)
{
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (int i = 0; i < POLLS && r->side[0].completions < completions; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, completions);
	cr_assert_eq(r->side[0].last.status, STATUS_SUCCESS);
}

/* A WRITE and its acknowledgement, that go round inside the engine. */
Test(capture, a_frame_that_stays_here_is_one_record)
{
	write_once(1);
	count_records();
	cr_expect_eq(seen[CAPTURE_HERE], 0, "nobody captured");
	__atomic_store_n(&r->engine.capture, &capture, __ATOMIC_RELEASE);
	write_once(2);
	count_records();
	cr_expect_eq(seen[CAPTURE_HERE], 2);
	cr_expect_eq(seen[CAPTURE_SENT] + seen[CAPTURE_RECEIVED], 0);
}

/* ---- with a port ---- */

static bool port_takes;

static uint16_t port_tx(struct port *p, uint16_t queue, struct rte_mbuf **m, uint16_t n)
{
	uint16_t i = 0;

	for (; port_takes && i < n && wire_head - wire_tail < WIRE; i++)
		wire[wire_head++ % WIRE] = m[i];
	return i;
}

static const struct port_ops ops = { .rx_burst = wire_rx, .tx_burst = port_tx };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };

/* Also one that the port took only when it was asked again. */
Test(capture, a_frame_by_the_port_is_sent_once_and_received_once)
{
	rig_use_port(r, &port);
	__atomic_store_n(&r->engine.capture, &capture, __ATOMIC_RELEASE);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, 8, WORK_SIGNALED));
	for (nanotime until = clock_now() + 100 * TIME_US; clock_now() < until;)
		rig_poll(r);
	count_records();
	cr_expect_eq(seen[CAPTURE_SENT], 1, "it was to leave");
	port_takes = true;
	for (int i = 0; i < POLLS && r->side[0].completions == 0; i++)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, 1);
	count_records();
	cr_expect_eq(seen[CAPTURE_SENT], 1, "the acknowledgement");
	cr_expect_eq(seen[CAPTURE_RECEIVED], 2);
	cr_expect_eq(seen[CAPTURE_HERE], 0);
}

/* ---- frames that are tried again ---- */

#define TRIES 3

static struct rte_mbuf *stranger(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(r->engine.pool);

	cr_assert_not_null(m);
	memset(rte_pktmbuf_append(m, 60), 2, 60); /* to a unicast address that is not ours */
	return m;
}

static void free_sent(void)
{
	while (wire_tail != wire_head)
		rte_pktmbuf_free(wire[wire_tail++ % WIRE]);
}

/* Two segments. Each is captured once, however often the port refuses it. */
Test(capture, segments_of_a_raw_frame_that_wait)
{
	struct staged_frame s = { .qp = &r->side[0].qp, .raw = true };
	struct lcore *l = r->engine.lcore;

	rig_use_port(r, &port);
	__atomic_store_n(&r->engine.capture, &capture, __ATOMIC_RELEASE);
	s.mbuf = stranger();
	s.mbuf->next = stranger();
	for (int i = 0; i < TRIES; i++)
		cr_assert_not(raw_send(l, &s));
	count_records();
	cr_expect_eq(seen[CAPTURE_SENT], 1, "the first one was to leave: %u", seen[CAPTURE_SENT]);
	port_takes = true;
	cr_assert(raw_send(l, &s));
	count_records();
	cr_expect_eq(seen[CAPTURE_SENT], 1, "the second one: %u", seen[CAPTURE_SENT]);
	free_sent();
}

/* A frame of the kernel's interface beside the port. */
Test(capture, a_frame_of_the_kernel_that_waits)
{
	struct lcore *l = r->engine.lcore;
	struct exception x = { .engine = &r->engine };

	rig_use_port(r, &port);
	port.link_up = true;
	x.down = rte_ring_create("down", 8, SOCKET_ID_ANY, 0);
	cr_assert_not_null(x.down);
	r->engine.exception = &x;
	__atomic_store_n(&r->engine.capture, &capture, __ATOMIC_RELEASE);
	cr_assert(pointer_put(x.down, stranger()));
	for (int i = 0; i < TRIES; i++)
		cr_assert_eq(exception_poll(l), 1);
	port_takes = true;
	exception_poll(l);
	count_records();
	cr_expect_eq(seen[CAPTURE_SENT], 1, "%u", seen[CAPTURE_SENT]);
	r->engine.exception = NULL;
	rte_ring_free(x.down);
	free_sent();
}

/* A frame for another lcore, whose inbox is full. */
Test(capture, a_frame_for_another_lcore_that_waits)
{
	struct lcore *first = r->engine.lcore, *both = aligned_alloc(64, 2 * sizeof(*both));
	struct rte_ring *inbox = rte_ring_create("full", 8, SOCKET_ID_ANY, 0);
	struct rte_mbuf *m = stranger();

	cr_assert(both != NULL && inbox != NULL);
	memset(both, 0, 2 * sizeof(*both));
	both[0] = *first; /* it is not polled here */
	both[1].inbox = inbox;
	r->engine.lcore = both;
	r->engine.lcores = 2;
	__atomic_store_n(&r->engine.capture, &capture, __ATOMIC_RELEASE);
	while (pointer_put(inbox, m))
		;
	for (int i = 0; i < TRIES; i++)
		cr_assert_not(loop_output(both, m, 2, 17, FRAME_TRUSTED));
	count_records();
	cr_expect_eq(seen[CAPTURE_HERE], 0, "%u", seen[CAPTURE_HERE]);
	pointers_take(inbox, (void **)wire, 7);
	cr_assert(loop_output(both, m, 2, 17, FRAME_TRUSTED));
	count_records();
	cr_expect_eq(seen[CAPTURE_HERE], 1, "%u", seen[CAPTURE_HERE]);
	r->engine.lcore = first;
	r->engine.lcores = 1;
	rte_pktmbuf_free(m);
	rte_ring_free(inbox);
	free(both);
}
