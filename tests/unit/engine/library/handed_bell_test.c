/* SPDX-License-Identifier: BSD-3-Clause */
/* The bell of a handed port: it wakes an lcore that sleeps, and costs nothing while none does. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "engine/inside.h"
#include "rig/control_rig.h"
#include "../drivers/neighbour_frames.h"

#define ROUNDS 20

static struct uroce_port *handed;
static struct port *port;
static struct rte_mempool *pool;

static void begin(void)
{
	struct uroce_handed_options o = { .size = sizeof(o),
					  .mac = { 2, 0, 0, 0, 0, 1 },
					  .mtu = 1500 };
	char why[256];

	snprintf(path, sizeof(path), "/tmp/uroce-handed-bell-test-%d.sock", getpid());
	control_rig_make();
	pool = rte_pktmbuf_pool_create("handed", 1023, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE,
				       SOCKET_ID_ANY);
	handed = uroce_port_handed(&o, why, sizeof(why));
	cr_assert(pool != NULL && handed != NULL, "%s", why);
	port = port_of_program(handed);
}

static void end(void)
{
	rte_mempool_free(pool);
	control_rig_close();
}

TestSuite(handed_bell, .init = begin, .fini = end, .timeout = 60);

static void hand_in(const void *octets, uint16_t length)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	cr_assert_not_null(m);
	memcpy(rte_pktmbuf_append(m, length), octets, length);
	cr_assert_eq(uroce_hand_in(handed, 0, &m, 1), 1);
}

static void hand_in_any(void)
{
	static const uint8_t octets[60];

	hand_in(octets, sizeof(octets));
}

static uint16_t receive(void)
{
	struct rte_mbuf *m[8];
	uint16_t n = port->ops->rx_burst(port, 0, m, 8);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

static bool rings(int bell)
{
	struct pollfd p = { .fd = bell, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

Test(handed_bell, rings_only_for_an_lcore_that_sleeps)
{
	int bell = port->ops->bell_fd(port, 0);

	port->ops->bell_drain(port, 0);
	hand_in_any();
	cr_expect_not(rings(bell), "before the lcore sleeps");
	cr_expect_eq(receive(), 1);

	cr_assert_eq(port->ops->bell_fd(port, 0), bell);
	cr_expect_not(rings(bell), "no frame waits");
	hand_in_any();
	cr_expect(rings(bell), "the lcore sleeps on");
	port->ops->bell_drain(port, 0);
	cr_expect_not(rings(bell));
	hand_in_any();
	cr_expect_not(rings(bell), "the lcore is awake");
	cr_expect_eq(receive(), 2);
	cr_assert_eq(uroce_port_close(handed), 0);
}

/* The lcore looked at the queue before, and the frame came in between. */
Test(handed_bell, rings_for_a_frame_that_waits_when_the_lcore_goes_to_sleep)
{
	int bell;

	hand_in_any();
	bell = port->ops->bell_fd(port, 0);
	cr_expect(rings(bell));
	port->ops->bell_drain(port, 0);
	cr_expect_not(rings(bell));
	cr_expect_eq(receive(), 1);
	cr_assert_eq(uroce_port_close(handed), 0);
}

/* A program's doorbell woke the lcore, so nobody drained the bell. */
Test(handed_bell, rests_once_the_lcore_receives)
{
	int bell = port->ops->bell_fd(port, 0);

	hand_in_any();
	cr_expect_eq(receive(), 1);
	cr_expect(rings(bell));
	cr_assert_eq(read(bell, &(uint64_t){ 0 }, sizeof(uint64_t)), sizeof(uint64_t));
	hand_in_any();
	cr_expect_not(rings(bell), "a system call for each burst, although the lcore is awake");
	cr_expect_eq(receive(), 1);
	cr_assert_eq(uroce_port_close(handed), 0);
}

/* ---- an engine that sleeps ---- */

static struct uroce_engine *start_engine(void)
{
	struct uroce_options o = { .size = sizeof(o),
				   .name = "handed",
				   .port = handed,
				   .lcores = 1,
				   .lcore_ids = { rte_get_main_lcore() },
				   .addresses = 1,
				   .address = { { { [10] = 0xff, 0xff, 10, 0, 0, 1 }, 24 } },
				   .adaptive = true,
				   .socket_gid = -1,
				   .pool_size = 1024 };
	char why[256];
	struct uroce_engine *e = uroce_create(&o, why, sizeof(why));

	cr_assert_not_null(e, "%s", why);
	cr_assert_eq(uroce_start(e), 0);
	return e;
}

static uint16_t take_out(void)
{
	struct rte_mbuf *m[8];
	uint16_t n = uroce_take_out(handed, 0, m, 8);

	rte_pktmbuf_free_bulk(m, n);
	return n;
}

/* Asks for the engine's MAC address as soon as the lcore sleeps again. The time until it answers. */
static nanotime answers_after(const struct lcore *l, uint64_t sleeps)
{
	nanotime asked, until = clock_now() + ENOUGH_MS * TIME_MS;

	while (__atomic_load_n(&l->stats.sleeps, __ATOMIC_RELAXED) == sleeps) {
		cr_assert_lt(clock_now(), until, "the lcore does not sleep");
		take_out();
	}
	asked = clock_now();
	hand_in(arp_request, sizeof(arp_request));
	while (take_out() == 0)
		cr_assert_lt(clock_now(), asked + ENOUGH_MS * TIME_MS, "no answer");
	return clock_now() - asked;
}

/* An lcore that does not hear the bell answers when it looks for work by itself. */
Test(handed_bell, wakes_an_engine_that_sleeps)
{
	struct uroce_engine *e = start_engine();
	const struct lcore *l = &((struct engine *)e)->lcore[0];
	nanotime least = TIME_NEVER;

	for (uint32_t i = 0; i < ROUNDS; i++)
		least = time_earlier(least, answers_after(l, l->stats.sleeps));
	cr_expect_lt(least, LIMIT_SLEEP_MS * TIME_MS / 2, "%lu us",
		     (unsigned long)(least / TIME_US));
	cr_expect_not(l->napped, "it yields as if frames could not wake it");
	take_out();
	cr_assert_eq(uroce_destroy(e), 0);
}
