/* SPDX-License-Identifier: BSD-3-Clause */
/* net_impair on a net_ring port that is connected to itself: what is sent comes back, impaired. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/ethdev/ethdev.h"
#include "drivers/net_impair/arguments.h"
#include "impair_rig.h"

#define FRAMES 20000u

static char lower[RTE_ETH_NAME_MAX_LEN];

static void begin(void)
{
	int id;

	impair_rig_begin();
	id = rte_eth_from_ring(
		rte_ring_create("loop", 1024, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ));
	cr_assert_geq(id, 0);
	rte_eth_dev_get_name_by_port((uint16_t)id, lower);
}

TestSuite(impair, .init = begin, .timeout = 60);

static struct port *open_impaired(const char *rules)
{
	struct ethdev_options o = { .name = "net_impair0",
				    .queues = 1,
				    .mtu = 1500,
				    .pool = pool,
				    .socket = SOCKET_ID_ANY };
	char arguments[256], why[256] = "";
	struct port *p;

	snprintf(arguments, sizeof(arguments), "port=%s,%s", lower, rules);
	cr_assert_eq(rte_vdev_init("net_impair0", arguments), 0, "%s", arguments);
	p = ethdev_open(&o, why, sizeof(why));
	cr_assert_not_null(p, "%s", why);
	return p;
}

/* The frames that came back. */
struct tally {
	uint32_t count, twice, overtaken, altered, ce;
	uint32_t furthest; /* how many frames overtook one, at most */
	uint64_t order; /* a sum that depends on their order */
	uint8_t seen[FRAMES];
};

static void tally_frame(struct tally *t, uint32_t *newest, const struct rte_mbuf *m)
{
	const uint8_t *o = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t sequence = load_be32(o + 40);
	struct rte_mbuf *fresh;

	t->count++;
	t->order = t->order * 31 + sequence;
	fresh = frame(sequence);
	if (o[15] == 0x03)
		t->ce++;
	else if (memcmp(o, rte_pktmbuf_mtod(fresh, void *), LENGTH) != 0)
		t->altered++;
	rte_pktmbuf_free(fresh);
	if (sequence >= FRAMES)
		return;
	t->twice += t->seen[sequence]++ != 0;
	if (sequence < *newest) {
		t->overtaken++;
		t->furthest = RTE_MAX(t->furthest, *newest - sequence);
	} else {
		*newest = sequence;
	}
}

static void receive(struct port *p, struct tally *t, uint32_t *newest)
{
	struct rte_mbuf *frames[32];
	uint16_t n = p->ops->rx_burst(p, 0, frames, 32);

	for (uint16_t i = 0; i < n; i++) {
		tally_frame(t, newest, frames[i]);
		rte_pktmbuf_free(frames[i]);
	}
}

/* Sends FRAMES frames through the port and receives until none is left. */
static void pass(struct port *p, struct tally *t)
{
	uint64_t end_at = rte_get_tsc_cycles() + 20 * rte_get_tsc_hz();
	uint32_t sent = 0, newest = 0;

	memset(t, 0, sizeof(*t));
	while (sent < FRAMES || rte_mempool_in_use_count(pool) != 0) {
		struct rte_mbuf *burst[16];
		uint16_t n = 0, k;

		while (n < 16 && sent + n < FRAMES) {
			burst[n] = frame(sent + n);
			n++;
		}
		k = n == 0 ? 0 : p->ops->tx_burst(p, 0, burst, n);
		sent += k;
		rte_pktmbuf_free_bulk(burst + k, n - k);
		receive(p, t, &newest);
		cr_assert_lt(rte_get_tsc_cycles(), end_at, "%u frames never came out",
			     rte_mempool_in_use_count(pool));
	}
}

static uint64_t counter(const char *name)
{
	uint64_t id, value = 0;
	uint16_t port;

	cr_assert_eq(rte_eth_dev_get_port_by_name("net_impair0", &port), 0);
	cr_assert_eq(rte_eth_xstats_get_id_by_name(port, name, &id), 0, "%s", name);
	cr_assert_eq(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	return value;
}

/* A binomial count must be within five standard deviations of its mean. */
static void expect_share(uint64_t count, double p, const char *what)
{
	double mean = FRAMES * p, five = 5 * sqrt(FRAMES * p * (1 - p));

	cr_expect(fabs((double)count - mean) <= five, "%s: %llu, not %.0f +- %.0f", what,
		  (unsigned long long)count, mean, five);
}

static struct tally t;

Test(impair, without_rules_everything_passes_in_order)
{
	struct port *p = open_impaired("seed=1");

	pass(p, &t);
	cr_expect_eq(t.count, FRAMES);
	cr_expect_eq(t.overtaken + t.twice + t.altered + t.ce, 0);
	p->ops->close(p);
}

Test(impair, drops_its_share_and_counts_it)
{
	struct port *p = open_impaired("drop=3%,dir=tx,seed=7");

	pass(p, &t);
	expect_share(FRAMES - t.count, 0.03, "dropped");
	cr_expect_eq(counter("tx_impair_dropped"), FRAMES - t.count);
	cr_expect_eq(counter("rx_impair_dropped"), 0);
	cr_expect_eq(counter("tx_impair_passed"), t.count);
	p->ops->close(p);
}

Test(impair, both_directions_are_impaired_by_default)
{
	struct port *p = open_impaired("drop=0.1,seed=7");

	pass(p, &t);
	expect_share(FRAMES - t.count, 0.19, "dropped twice");
	cr_expect_gt(counter("rx_impair_dropped"), 0);
	cr_expect_gt(counter("tx_impair_dropped"), 0);
	p->ops->close(p);
}

Test(impair, duplicates)
{
	struct port *p = open_impaired("duplicate=0.05,dir=rx");

	pass(p, &t);
	expect_share(t.twice, 0.05, "duplicated");
	cr_expect_eq(t.count, FRAMES + t.twice);
	cr_expect_eq(counter("rx_impair_duplicated"), t.twice);
	p->ops->close(p);
}

Test(impair, reorders_without_loss)
{
	struct port *p = open_impaired("reorder=0.05,dir=tx");

	pass(p, &t);
	cr_expect_eq(t.count, FRAMES);
	cr_expect_eq(t.twice + t.altered, 0);
	expect_share(counter("tx_impair_reordered"), 0.05, "reordered");
	expect_share(t.overtaken, 0.05, "overtaken");
	p->ops->close(p);
}

Test(impair, corrupts_one_bit)
{
	struct port *p = open_impaired("corrupt=0.02,dir=tx");

	pass(p, &t);
	cr_expect_eq(t.count, FRAMES);
	expect_share(counter("tx_impair_corrupted"), 0.02, "corrupted");
	/* one of these bits turns ECT(0) into a CE mark */
	cr_expect_eq(t.altered + t.ce, counter("tx_impair_corrupted"));
	p->ops->close(p);
}

Test(impair, marks_congestion)
{
	struct port *p = open_impaired("ce=0.25,dir=rx");

	pass(p, &t);
	expect_share(t.ce, 0.25, "marked");
	cr_expect_eq(t.altered, 0);
	p->ops->close(p);
}

Test(impair, delays)
{
	struct port *p = open_impaired("delay_us=2000,dir=tx");
	uint64_t begun = rte_get_tsc_cycles();
	struct rte_mbuf *m = frame(0);
	uint32_t newest = 0;

	memset(&t, 0, sizeof(t));
	cr_assert_eq(p->ops->tx_burst(p, 0, &m, 1), 1);
	while (t.count == 0 && rte_get_tsc_cycles() - begun < 10 * rte_get_tsc_hz())
		receive(p, &t, &newest);
	cr_assert_eq(t.count, 1, "the delayed frame never came");
	cr_expect_geq((rte_get_tsc_cycles() - begun) * 1000000 / rte_get_tsc_hz(), 1999);
	p->ops->close(p);
}

/* A time stamp counter seldom runs at whole MHz. */
Test(impair, a_delay_in_cycles)
{
	cr_expect_eq(impair_delay_cycles(0, 2399999999), 0);
	cr_expect_eq(impair_delay_cycles(1, 2399999999), 2399);
	cr_expect_eq(impair_delay_cycles(1000000, 2399999999), 2399999999);
	cr_expect_eq(impair_delay_cycles(60000000, 19200000), 60 * UINT64_C(19200000));
	cr_expect_eq(impair_delay_cycles(60000000, UINT64_C(10000000001)),
		     60 * UINT64_C(10000000001));
}

/* Closing the port frees frames under way. */
Test(impair, close_frees_what_waits)
{
	struct port *p = open_impaired("delay_us=60000000,dir=tx");
	struct rte_mbuf *m = frame(0);

	cr_assert_eq(p->ops->tx_burst(p, 0, &m, 1), 1);
	p->ops->close(p);
	cr_expect_eq(rte_mempool_in_use_count(pool), 0);
}

/*
 * A hash of the order in which frames come out; without reorder and delay it does not depend on
 * time.
 */
static uint64_t fate(const char *rules)
{
	struct port *p = open_impaired(rules);
	uint64_t order;

	pass(p, &t);
	order = t.order;
	p->ops->close(p);
	rte_vdev_uninit("net_impair0");
	return order;
}

static void again(void)
{
	struct rte_ring *ring = rte_ring_create("again", 1024, SOCKET_ID_ANY, 0);

	cr_assert_not_null(ring);
	rte_eth_dev_get_name_by_port((uint16_t)rte_eth_from_ring(ring), lower);
}

Test(impair, the_seed_decides)
{
	uint64_t first = fate("drop=0.1,duplicate=0.1,corrupt=0.01,dir=tx,seed=5");

	again();
	cr_expect_eq(fate("drop=0.1,duplicate=0.1,corrupt=0.01,dir=tx,seed=5"), first);
}

Test(impair, another_seed_decides_differently)
{
	uint64_t first = fate("drop=0.1,dir=tx,seed=5");

	again();
	cr_expect_neq(fate("drop=0.1,dir=tx,seed=6"), first);
}

/* The real port: 1000 frames of 60 octets at 4.8 Mbit/s take 100 ms. */
Test(impair, the_port_keeps_to_the_rate)
{
	struct port *p = open_impaired("rate=4.8M,queue=1M,dir=tx");
	uint64_t begun = rte_get_tsc_cycles();
	uint32_t newest = 0, sent = 0;

	memset(&t, 0, sizeof(t));
	while (t.count < 1000 && rte_get_tsc_cycles() - begun < 20 * rte_get_tsc_hz()) {
		struct rte_mbuf *m = sent < 1000 ? frame(sent) : NULL;

		if (m != NULL)
			sent += p->ops->tx_burst(p, 0, &m, 1);
		receive(p, &t, &newest);
	}
	cr_assert_eq(t.count, 1000);
	cr_expect_geq((rte_get_tsc_cycles() - begun) * 1000 / rte_get_tsc_hz(), 99);
	cr_expect_eq(counter("tx_impair_overflowed"), 0);
	cr_expect_eq(t.overtaken + t.altered + t.twice, 0);
	p->ops->close(p);
}

Test(impair, a_frame_may_be_overtaken_by_more)
{
	struct port *p = open_impaired("reorder=0.001,overtaken=32,dir=tx");

	pass(p, &t);
	cr_expect_eq(t.count, FRAMES);
	cr_expect_eq(t.twice + t.altered, 0);
	cr_expect_gt(t.furthest, 8, "no more than by default");
	cr_expect_leq(t.furthest, 33);
	p->ops->close(p);
}

Test(impair, a_small_chance_is_not_none)
{
	uint64_t threshold;

	cr_assert(impair_read_chance("1e-10", &threshold));
	cr_expect_eq(threshold, 1, "once in 2^32 frames");
	cr_assert(impair_read_chance("0.00000001%", &threshold));
	cr_expect_eq(threshold, 1);
	cr_assert(impair_read_chance("0", &threshold));
	cr_expect_eq(threshold, 0);
	cr_assert(impair_read_chance("100%", &threshold));
	cr_expect_eq(threshold, UINT64_C(1) << 32);
}

Test(impair, invalid_arguments_are_refused)
{
	static const char *const nonsense[] = {
		"drop=2",
		"drop=-1",
		"drop=x",
		"drop=101%",
		"delay_us=-5",
		"delay_us=60000001",
		"dir=up",
		"colour=red",
		"drop",
		"drop=0.1,drop=0.2",
		"rate=0",
		"rate=fast",
		"rate=-1G",
		"rate=1T",
		"rate=10Gbit",
		"rate=2000G",
		"rate=1G,queue=0",
		"rate=1G,queue=-1",
		"rate=1G,queue=17M",
		"rate=1G,queue=10x",
		"rate=1G,ecn=0",
		"rate=1G,queue=10k,ecn=10k",
		"queue=64k",
		"ecn=64k",
		"overtaken=0",
		"overtaken=2000",
		"overtaken=x",
	};
	char arguments[256];

	for (size_t i = 0; i < ARRAY_SIZE(nonsense); i++) {
		snprintf(arguments, sizeof(arguments), "port=%s,%s", lower, nonsense[i]);
		cr_expect_neq(rte_vdev_init("net_impair0", arguments), 0, "%s", nonsense[i]);
	}
	cr_expect_neq(rte_vdev_init("net_impair0", "drop=0.1"), 0, "no port");
	cr_expect_neq(rte_vdev_init("net_impair0", "port=nobody"), 0, "unknown port");
}

Test(impair, an_error_says_which_argument_to_raise)
{
	struct ethdev_options o = { .name = "net_memif0", .queues = 1, .mtu = 4200, .pool = pool };
	struct rte_mempool *large =
		rte_pktmbuf_pool_create("large", 255, 0, 0, 9000, SOCKET_ID_ANY);
	char arguments[128], why[256] = "";

	cr_assert_not_null(large);
	o.pool = large;
	snprintf(arguments, sizeof(arguments),
		 "role=server,socket=@uroce-test-%d,socket-abstract=yes", (int)getpid());
	cr_assert_eq(rte_vdev_init("net_memif0", arguments), 0);
	cr_expect_null(ethdev_open(&o, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "raise bsize="), "%s", why);
	o.name = "nobody";
	cr_expect_null(ethdev_open(&o, why, sizeof(why)));
	cr_expect_not_null(strstr(why, "no such port: nobody"), "%s", why);
}
