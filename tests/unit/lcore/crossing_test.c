/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that arrived at another lcore than their queue pair's, where that one's inbox is full: none is lost,
 * none overtakes another, the port waits, and an lcore that nobody polls stops the others for a bound.
 * The lcores that get them are not polled: the test looks into their inboxes.
 */
#include <criterion/criterion.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "loop_rig.h"
#include "lcore/moving/crossing.h"
#include "queue/pointers.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define LCORES 3u

static struct rig *rig; /* for its EAL and its packet buffers */
static struct engine engine;
static struct lcore *lcore;
static uint32_t asked; /* the port, how often */
static struct rte_mbuf *arriving; /* at the port */

static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	asked++;
	if (arriving == NULL)
		return 0;
	frames[0] = arriving;
	arriving = NULL;
	return 1;
}

static const struct port_ops ops = { .rx_burst = rx_burst };
static struct port port = { .ops = &ops, .name = "test", .queues = LCORES };

static void begin(void)
{
	rig = rig_open();
	engine.pool = rig->engine.pool;
	engine.keys = rig->engine.keys;
	engine.lcores = LCORES;
	engine.port = &port;
	engine.lcore = lcore = aligned_alloc(64, LCORES * sizeof(*lcore));
	engine.id = 1; /* the rig's rings have names, too */
	for (uint32_t i = 0; i < LCORES; i++)
		cr_assert_eq(lcore_init(&engine, &lcore[i], i), 0);
}

static void end(void)
{
	for (uint32_t i = 0; i < LCORES; i++)
		lcore_destroy(&lcore[i]);
	free(lcore);
	rig_close(rig);
}

TestSuite(crossing, .init = begin, .fini = end, .timeout = 60);

static struct rte_mbuf *frame(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(engine.pool);

	cr_assert_not_null(m);
	return m;
}

static uint32_t available(void)
{
	return rte_mempool_avail_count(engine.pool);
}

/* Puts the same frame in as often as there is room. */
static void fill(struct lcore *l)
{
	struct rte_mbuf *m = frame();
	uint32_t n = 0;

	while (pointer_put(l->inbox, m))
		n++;
	cr_assert_gt(n, 1);
	rte_mbuf_refcnt_set(m, (uint16_t)n); /* each is freed */
}

static struct rte_mbuf *take(struct lcore *l)
{
	void *m = NULL;

	cr_assert(pointer_take(l->inbox, &m), "its inbox is empty");
	return m;
}

static void make_room(struct lcore *l, uint32_t n)
{
	while (n-- > 0)
		rte_pktmbuf_free(take(l));
}

static uint64_t dropped(void)
{
	return lcore[0].stats.by_reason[REASON_HAND_OVER_FULL];
}

Test(crossing, a_frame_goes_over_at_once)
{
	struct rte_mbuf *m = frame();

	hand_over(&lcore[0], &lcore[1], m, 77);
	cr_expect_not(crossing_waits(&lcore[0]));
	cr_expect_eq(take(&lcore[1]), m);
	cr_expect_eq(m->hash.usr, 77);
	rte_pktmbuf_free(m);
}

Test(crossing, nothing_is_lost_and_the_port_waits)
{
	struct rte_mbuf *m[8];

	fill(&lcore[1]);
	rx_poll(&lcore[0], 1);
	cr_expect_eq(asked, 1);
	for (uint32_t i = 0; i < 8; i++)
		hand_over(&lcore[0], &lcore[1], m[i] = frame(), i);
	cr_assert(crossing_waits(&lcore[0]));
	cr_expect_eq(rx_poll(&lcore[0], 2), 0);
	cr_expect_eq(asked, 1, "the port was asked for more");
	make_room(&lcore[1], 3);
	cr_expect_eq(rx_poll(&lcore[0], 3), 3);
	cr_expect_eq(asked, 1);
	make_room(&lcore[1], rte_ring_count(lcore[1].inbox) - 3);
	cr_expect_eq(rx_poll(&lcore[0], 4), 5);
	cr_expect_not(crossing_waits(&lcore[0]));
	cr_expect_eq(asked, 2, "the port is asked again");
	for (uint32_t i = 0; i < 8; i++) {
		cr_expect_eq(take(&lcore[1]), m[i], "frame %u is not in its order", i);
		cr_expect_eq(m[i]->hash.usr, i);
		rte_pktmbuf_free(m[i]);
	}
	cr_expect_eq(dropped(), 0);
}

/* A full inbox does not hold up frames for another, and a later frame does not overtake. */
Test(crossing, each_lcore_has_its_order)
{
	struct rte_mbuf *m[4];

	fill(&lcore[1]);
	for (uint32_t i = 0; i < 4; i++)
		hand_over(&lcore[0], &lcore[i % 2 == 0 ? 1 : 2], m[i] = frame(), i);
	cr_expect_eq(crossing_flush(&lcore[0], 1), 2);
	cr_expect_eq(take(&lcore[2]), m[1]);
	cr_expect_eq(take(&lcore[2]), m[3]);
	make_room(&lcore[1], 1);
	cr_expect_eq(crossing_flush(&lcore[0], 2), 1);
	make_room(&lcore[1], rte_ring_count(lcore[1].inbox) - 1);
	cr_expect_eq(take(&lcore[1]), m[0]);
	cr_expect_eq(crossing_flush(&lcore[0], 3), 1);
	cr_expect_eq(take(&lcore[1]), m[2]);
	for (uint32_t i = 0; i < 4; i++)
		rte_pktmbuf_free(m[i]);
}

/* They wait for each other: both read what they have, and both get rid of their frames. */
Test(crossing, two_that_wait_for_each_other_go_on)
{
	nanotime now = 1;

	fill(&lcore[0]);
	fill(&lcore[1]);
	for (uint32_t i = 0; i < 100; i++) {
		hand_over(&lcore[0], &lcore[1], frame(), frame_mark(FRAME_TRUSTED, 1));
		hand_over(&lcore[1], &lcore[0], frame(), frame_mark(FRAME_TRUSTED, 1));
	}
	for (; now < 1000 &&
	       (rte_ring_count(lcore[0].inbox) > 0 || rte_ring_count(lcore[1].inbox) > 0);
	     now++)
		for (uint32_t i = 0; i < 2; i++)
			rx_poll(&lcore[i], now);
	cr_expect_not(crossing_waits(&lcore[0]));
	cr_expect_not(crossing_waits(&lcore[1]));
	cr_expect_eq(rte_ring_count(lcore[0].inbox), 0, "it is not read");
	cr_expect_eq(rte_ring_count(lcore[1].inbox), 0, "it is not read");
	cr_expect_eq(dropped(), 0);
}

Test(crossing, an_lcore_that_is_not_polled_has_a_bound)
{
	const nanotime bound = LIMIT_STUCK_MS * TIME_MS;
	uint32_t before;
	struct rte_mbuf *m;

	fill(&lcore[1]);
	before = available();
	for (uint32_t i = 0; i < 5; i++)
		hand_over(&lcore[0], &lcore[1], frame(), 0);
	rx_poll(&lcore[0], 1);
	rx_poll(&lcore[0], bound);
	cr_expect_eq(dropped(), 0, "too early");
	cr_expect_eq(asked, 0);
	rx_poll(&lcore[0], bound + 1);
	cr_expect_eq(dropped(), 5);
	cr_expect_eq(asked, 1, "the others' frames come in again");
	/* From now on frames for it are dropped at once, until it takes one. */
	hand_over(&lcore[0], &lcore[1], frame(), 0);
	cr_expect_eq(dropped(), 6);
	cr_expect_eq(available(), before, "buffers are lost");
	make_room(&lcore[1], 1);
	hand_over(&lcore[0], &lcore[1], frame(), 0);
	hand_over(&lcore[0], &lcore[1], m = frame(), 0);
	cr_expect_eq(dropped(), 6);
	cr_expect(crossing_waits(&lcore[0]), "it waits again");
	make_room(&lcore[1], 1);
	cr_expect_eq(crossing_flush(&lcore[0], 2 * bound), 1);
	make_room(&lcore[1], rte_ring_count(lcore[1].inbox) - 1);
	cr_expect_eq(take(&lcore[1]), m);
	rte_pktmbuf_free(m);
}

static void cross(struct lcore *l, void *arg, nanotime now)
{
	hand_over(l, &lcore[1], frame(), 0);
}

/* The control path receives for an lcore that sleeps. Nobody else tries those frames again. */
Test(crossing, an_lcore_that_sleeps_is_woken_for_what_waits)
{
	struct lcore *l = &lcore[0];

	l->sleeping = 1;
	l->asleep_until = clock_now() + TIME_S;
	lcore_call(l, cross, NULL);
	cr_expect_not(l->summoned, "nothing waits");
	fill(&lcore[1]);
	lcore_call(l, cross, NULL);
	cr_assert(crossing_waits(l));
	cr_expect(l->summoned);
}

Test(crossing, what_waits_is_bounded)
{
	fill(&lcore[1]);
	for (uint32_t i = 0; i < LIMIT_CROSSING; i++)
		hand_over(&lcore[0], &lcore[1], frame(), 0);
	cr_expect_eq(dropped(), 0);
	hand_over(&lcore[0], &lcore[1], frame(), 0);
	cr_expect_eq(dropped(), 1);
}

/* A SEND for this queue pair, as from a wire. */
static struct rte_mbuf *send_to(const struct engine_qp *q)
{
	struct address_vector av = { .hop_limit = 64, .src_port = 0xc000 };
	struct packet p = { .opcode = SERVICE_RC << 5 | OPB_SEND_ONLY,
			    .pkey = 0xffff,
			    .dest_qpn = q->qpn,
			    .payload_length = 8 };
	struct rte_mbuf *m = frame();
	uint8_t *at = rte_pktmbuf_mtod(m, uint8_t *);
	struct flow flow;
	size_t n;

	flow_init(&flow, &av);
	n = packet_encode(at, &flow, &p, 0);
	memset(at + n, 0, p.payload_length);
	m->data_len = (uint16_t)packet_seal(at, &flow, n, p.payload_length);
	m->pkt_len = m->data_len;
	return m;
}

/* It goes over as it came, and is decoded where its queue pair is: there its wrong ICRC counts. */
Test(crossing, a_frame_of_the_port_is_decoded_once)
{
	struct engine_qp q = { .lcore = &lcore[1] };
	uint32_t before = available();
	struct rte_mbuf *m;

	cr_assert_eq(directory_init(&engine), 0);
	cr_assert_neq(directory_reserve(&engine, 1, &q), 0);
	directory_publish(&engine, &q);
	arriving = m = send_to(&q);
	rte_pktmbuf_mtod(m, uint8_t *)[m->data_len - 1] ^= 1;
	cr_expect_eq(rx_poll(&lcore[0], 1), 1);
	cr_expect_eq(lcore[0].stats.crossed, 1);
	cr_expect_eq(lcore[0].stats.by_reason[REASON_ICRC], 0,
		     "the lcore that received it decoded it");
	cr_expect_eq(rte_ring_count(lcore[1].inbox), 1);
	cr_expect_eq(m->hash.usr, frame_mark(FRAME_RECEIVED, 0), "it counts as checked");
	rx_poll(&lcore[1], 2);
	cr_expect_eq(lcore[1].stats.by_reason[REASON_ICRC], 1);
	cr_expect_eq(lcore[1].stats.crossed, 0);
	cr_expect_eq(available(), before, "buffers are lost");
	directory_destroy(&engine);
}

Test(crossing, a_frame_at_its_lcore_or_of_nobody_stays)
{
	struct engine_qp q = { .lcore = &lcore[0] }, none = { .qpn = 0x77770 };

	cr_assert_eq(directory_init(&engine), 0);
	cr_assert_neq(directory_reserve(&engine, 0, &q), 0);
	directory_publish(&engine, &q);
	arriving = send_to(&none);
	cr_expect_eq(rx_poll(&lcore[0], 1), 1);
	cr_expect_eq(lcore[0].stats.by_reason[REASON_QPN_UNKNOWN], 1);
	arriving = send_to(&q);
	rte_pktmbuf_mtod(arriving, uint8_t *)[arriving->data_len - 1] ^= 1;
	cr_expect_eq(rx_poll(&lcore[0], 1), 1);
	cr_expect_eq(lcore[0].stats.by_reason[REASON_ICRC], 1);
	cr_expect_eq(lcore[0].stats.crossed, 0);
	directory_destroy(&engine);
}
