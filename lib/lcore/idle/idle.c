/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dedicated thread and its lcore. With --idle=adaptive, an idle thread spins a moment, then
 * yields the core after every look, then sleeps:
 *
 *	work           idle: SPIN       YIELD                      asleep
 *	|--------------|---- 5 us ------|------ to 200 us ---------|=== until a bell or a deadline
 *
 * An lcore whose port has no bell yields for 1 ms, because frames that arrive while it sleeps wait. An lcore whose last
 * yield was late does so, too.
 *
 * If programs keep its core busy, it sleeps instead of yielding (urgency.h).
 *
 * A bell may ring before its frame can be received (port.rings_early). If the lcore does not find the frame, nothing
 * rings for it again. So it looks again soon after such a bell, then ever later:
 *
 *	bell  0.1 ms  0.4     1.6                     6.4 ms
 *	|-----|-------|-------|-----------------------|------ ... at most SLEEP_MOST
 *
 * A sleeping thread is woken by its eventfd (the control path, other lcores, movers), by the
 * eventfds of clients, by the port's bell, and by the next deadline. A thread that has work for it
 * looks at `sleeping` after publishing the work. This thread looks at everything once more after
 * setting `sleeping`. Each side has a full fence in between, so one of the two sees the other
 * (queue/doorbell.h). A sleeping thread leaves its seat. The control path then runs messages to the
 * lcore itself (lcore.c), and wakes the thread only for what follows from them.
 */
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <rte_pause.h>

#include "base/bits.h"
#include "drivers/log.h"
#include "lcore/inside.h"
#include "lcore/moving/crossing.h"
#include "lcore/moving/moving.h"
#include "lcore/moving/outlet.h"
#include "lcore/paths.h"
#include "queue/fence.h"

#define SPIN_FOR   (LIMIT_SPIN_US * TIME_US)
#define SLEEP_MOST (LIMIT_SLEEP_MS * TIME_MS)
#define LOOK_AGAIN (LIMIT_LOOK_AGAIN_US * TIME_US)
#define TRY_AGAIN  (LIMIT_ATOMIC_AGAIN_MS * TIME_MS) /* an atomic whose word was busy */

static void tell_clients(struct lcore *l, uint32_t sleeping)
{
	for (uint32_t i = 0; i < l->clients; i++)
		__atomic_store_n(&l->client[i]->page->lcore[l->index].sleeping, sleeping,
				 __ATOMIC_RELAXED);
}

/* Programs that poll there let this thread run: client/offer.h. */
static void tell_processor(struct lcore *l, uint32_t here)
{
	if (here == l->processor)
		return;
	l->processor = here;
	for (uint32_t i = 0; i < l->clients; i++)
		__atomic_store_n(&l->client[i]->page->lcore[l->index].processor, here,
				 __ATOMIC_RELAXED);
}

static int bell_of(struct lcore *l)
{
	struct port *p = l->engine->port;

	return p != NULL && l->queue != UINT16_MAX ? p->ops->bell_fd(p, l->queue) : -1;
}

/* Whether the lcore has a port whose frames do not wake it. */
static bool naps(const struct lcore *l, int bell)
{
	return l->engine->port != NULL && l->queue != UINT16_MAX && bell < 0;
}

/* A frame that comes late after its bell waits at most three times as long again. */
static nanotime look_again(const struct lcore *l, nanotime now)
{
	nanotime since = now > l->rung_at ? now - l->rung_at : 0;

	return l->rung_at != 0 ? MAX_OF(LOOK_AGAIN, 3 * since) : TIME_NEVER;
}

static nanotime sleep_for(struct lcore *l, int bell, nanotime now)
{
	nanotime next = time_earlier(wheel_next(&l->wheel), moderate_next(l));
	nanotime most = time_earlier(SLEEP_MOST, look_again(l, now));

	next = time_earlier(next, paths_next(l, now));
	if (naps(l, bell))
		most = time_earlier(most, l->engine->port->nap);
	if (moving_tries(l))
		most = time_earlier(most, TRY_AGAIN);
	if (next == TIME_NEVER)
		return most;
	return next > now ? time_earlier(most, next - now) : 0;
}

/* The eventfds are watched edge-triggered, so taking the events is enough. They are never read. */
static void take_kicks(int wait_fd)
{
	struct epoll_event event[16];

	if (epoll_wait(wait_fd, event, 16, 0) < 0)
		return;
}

static void drain_bell(struct lcore *l)
{
	struct port *p = l->engine->port;

	p->ops->bell_drain(p, l->queue);
	if (p->rings_early)
		l->rung_at = clock_now();
}

static void wait_for_bell(struct lcore *l, int bell, nanotime now)
{
	int wait_fd = l->wait_fd;
	struct pollfd p[2] = { { .fd = wait_fd, .events = POLLIN },
			       { .fd = bell, .events = POLLIN } };
	nanotime left = sleep_for(l, bell, now);
	struct timespec t = { .tv_sec = (time_t)(left / TIME_S), .tv_nsec = (long)(left % TIME_S) };
	int n;

	l->stats.sleeps++;
	l->asleep_until = now + left;
	l->napped = naps(l, bell);
	blanks_return(l); /* others may need them while it sleeps */
	lcore_rise(l);
	n = ppoll(p, bell >= 0 ? 2 : 1, &t, NULL);
	while (!lcore_sit(l))
		sched_yield();
	l->summoned = false;
	if (!l->napped)
		paths_woken(l, clock_now());
	if (n <= 0)
		return;
	if (p[0].revents != 0)
		take_kicks(wait_fd);
	if (bell >= 0 && p[1].revents != 0)
		drain_bell(l);
}

/* True: there was something to do, so the thread did not sleep. */
static bool sleep_once(struct lcore *l)
{
	int bell = bell_of(l);
	bool busy;

	__atomic_store_n(&l->sleeping, 1, __ATOMIC_RELAXED);
	tell_clients(l, 1);
	queue_fence(); /* pairs with doorbell_ring, lcore_call and crossing.c */
	busy = lcore_poll(l) != 0 || !turns_none(&l->turns) || !drains_none(&l->drains) ||
	       outlets_wait(l) || crossing_waits(l);
	if (!busy && !__atomic_load_n(&l->engine->stopping, __ATOMIC_ACQUIRE))
		wait_for_bell(l, bell, clock_now());
	tell_clients(l, 0);
	__atomic_store_n(&l->sleeping, 0, __ATOMIC_RELAXED);
	return busy;
}

static void yield_core(struct lcore *l, nanotime now)
{
	sched_yield();
	crowd_yielded(&l->crowd, now, clock_now());
}

static void be_idle(struct lcore *l)
{
	nanotime now = clock_now();

	if (!__atomic_load_n(&l->engine->adaptive, __ATOMIC_RELAXED)) {
		rte_pause();
		return;
	}
	if (l->idle_since == 0)
		l->idle_since = now;
	if (now - l->idle_since < SPIN_FOR)
		rte_pause();
	else if (now - l->idle_since < crowd_yields_for(&l->crowd, l->napped) &&
		 !crowd_is_there(&l->crowd, now))
		yield_core(l, now);
	else if (sleep_once(l))
		l->idle_since = 0;
}

/* Only the first lcore logs a refusal, for all of them. */
static void take_urgency(struct lcore *l)
{
	enum urgency u = l->engine->urgent ? urgency_take() : URGENCY_NORMAL;

	__atomic_store_n(&l->urgency, u, __ATOMIC_RELAXED);
	if (l->index == 0 && u > URGENCY_SLICE)
		LOG(NOTICE,
		    "an lcore that wakes may wait for programs that keep its core busy: "
		    "no short time slice (%s)",
		    urgency_name(u));
}

static void leave_urgency(struct lcore *l)
{
	urgency_leave(l->urgency);
	__atomic_store_n(&l->urgency, URGENCY_NORMAL, __ATOMIC_RELAXED);
}

int lcore_loop(void *lcore)
{
	struct lcore *l = lcore;

	take_urgency(l);
	while (!lcore_sit(l))
		sched_yield();
	while (!__atomic_load_n(&l->engine->stopping, __ATOMIC_ACQUIRE)) {
		tell_processor(l, (uint32_t)sched_getcpu() + 1);
		if (lcore_poll(l) != 0)
			l->idle_since = 0;
		else
			be_idle(l);
	}
	tell_processor(l, 0); /* the program may poll it from now on */
	lcore_rise(l);
	leave_urgency(l);
	return 0;
}
