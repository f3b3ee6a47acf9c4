/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that are not RoCE wait in a ring, and the control thread is woken for them: by whichever of
 * several lcores that put one there at once.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "base/bits.h"
#include "drivers/port.h"
#include "loop_rig.h"
#include "queue/pointers.h"

#define LCORES 3u
#define SLOTS  16u

static uint32_t arriving; /* frames at the port */
static struct rig *rig;

static struct rte_mbuf *make_frame(void)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(rig->engine.pool);
	uint8_t *frame = (uint8_t *)rte_pktmbuf_append(m, 60);

	memset(frame, 0, 60);
	store_be16(frame + 12, 0x0806);
	return m;
}

static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	uint16_t i;

	for (i = 0; i < n && arriving > 0; i++, arriving--)
		frames[i] = make_frame();
	return i;
}

static uint16_t tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	return 0;
}

static const struct port_ops ops = { .rx_burst = rx_burst, .tx_burst = tx_burst };
static struct port port = { .ops = &ops, .name = "test", .queues = 1 };

static void begin(void)
{
	struct engine *e;

	rig = rig_open();
	e = &rig->engine;
	e->port = &port;
	e->lcore->queue = 0;
	e->strangers = rte_ring_create("strangers", SLOTS, SOCKET_ID_ANY, RING_F_SC_DEQ);
	e->control_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	cr_assert(e->strangers != NULL && e->control_fd >= 0);
}

static uint32_t take_all(void)
{
	uint32_t n = 0;
	void *m;

	for (; pointer_take(rig->engine.strangers, &m); n++)
		rte_pktmbuf_free(m);
	return n;
}

static void end(void)
{
	take_all();
	rte_ring_free(rig->engine.strangers);
	close(rig->engine.control_fd);
	rig->engine.port = NULL;
	rig->engine.strangers = NULL;
	rig_close(rig);
}

static bool is_woken(void)
{
	struct pollfd p = { .fd = rig->engine.control_fd, .events = POLLIN };
	uint64_t count;

	return poll(&p, 1, 0) == 1 && read(p.fd, &count, sizeof(count)) == sizeof(count);
}

/*
 * The others have put theirs there and not yet looked: when they do, they see ours, as we see
 * theirs, and somebody must have woken the control thread then.
 */
Test(stranger, one_of_several_lcores_at_once_wakes)
{
	begin();
	for (uint32_t others = 0; others < LCORES; others++) {
		rig->engine.lcores = others + 1;
		for (uint32_t i = 0; i < others; i++)
			cr_assert(pointer_put(rig->engine.strangers, make_frame()));
		arriving = 1;
		rig_poll(rig);
		cr_assert_eq(arriving, 0);
		cr_assert(is_woken(), "nobody is told of %u frames", others + 1);
		cr_assert_eq(take_all(), others + 1);
	}
	rig->engine.lcores = 1;
	end();
}

/* hostile H-60: a flood costs few system calls, and what finds no room is dropped. */
Test(stranger, a_flood_wakes_once)
{
	begin();
	arriving = 10 * SLOTS;
	for (uint32_t i = 0; i < 10 * SLOTS && arriving > 0; i++) {
		rig_poll(rig);
		cr_assert_eq(is_woken(), i == 0, "poll %u", i);
	}
	cr_assert_eq(arriving, 0);
	cr_assert_eq(take_all(), rte_ring_get_capacity(rig->engine.strangers));
	end();
}
