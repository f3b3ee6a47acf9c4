/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An lcore's life, and the control path's way into it: messages that the lcore runs between bursts.
 *
 * The thread that polls an lcore has its seat. A dedicated thread has it unless it sleeps. A
 * program with a loop of its own has it during one uroce_poll(). If the seat is empty, the control
 * path runs its message itself. So a program may call verbs from the very thread that polls, and
 * what programs set up does not wake an lcore that has no work yet.
 */
#include <errno.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_pause.h>
#include <rte_ring.h>

#include "drivers/log.h"
#include "lcore/cycles.h"
#include "lcore/inside.h"
#include "lcore/moving/behind.h"
#include "lcore/moving/crossing.h"
#include "lcore/moving/hold.h"
#include "lcore/moving/moving.h"
#include "lcore/moving/slots.h"
#include "lcore/moving/outlet.h"
#include "lcore/paths.h"
#include "lcore/srq.h"
#include "lcore/tag/tag.h"
#include "lcore/window.h"
#include "queue/doorbell.h"
#include "queue/pointers.h"

static struct rte_ring *lcore_ring(const struct lcore *l, const char *what, uint32_t slots,
				   unsigned int flags)
{
	char name[RTE_RING_NAMESIZE];

	/* The low half of the engine's id keeps the names of several engines apart. */
	snprintf(name, sizeof(name), "%s%u-%08x", what, l->index, (uint32_t)l->engine->id);
	return rte_ring_create(name, slots,
			       l->engine->port ? l->engine->port->socket : SOCKET_ID_ANY, flags);
}

/* The descriptors that wake it beside its port: its own eventfd, and later the clients'. */
static bool make_bells(struct lcore *l)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET };

	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	return l->wake_fd >= 0 && l->wait_fd >= 0 &&
	       epoll_ctl(l->wait_fd, EPOLL_CTL_ADD, l->wake_fd, &event) == 0;
}

static_assert(LIMIT_BEHIND + LIMIT_HELD < LIMIT_POOL_WAITS, "what ends a wait needs a buffer, too");

/* The packets that may wait, `most` of them in a large pool: all that wait leave a tenth of any pool. */
static uint32_t places(const struct engine *e, uint32_t most)
{
	return (uint32_t)((uint64_t)most * MIN_OF(e->buffers, LIMIT_POOL_WAITS) / LIMIT_POOL_WAITS);
}

int lcore_init(struct engine *e, struct lcore *l, uint32_t index)
{
	memset(l, 0, sizeof(*l));
	l->engine = e;
	l->index = index;
	l->queue = e->port != NULL && index < e->port->queues ? (uint16_t)index : UINT16_MAX;
	l->tx_queue = e->port != NULL ? (uint16_t)(index % e->port->queues) : 0;
	l->wake_fd = l->wait_fd = -1; /* lcore_destroy closes what there is */
	l->keys = key_table_reader(&e->keys, &l->key_memo);
	TAILQ_INIT(&l->moderated);
	TAILQ_INIT(&l->operations);
	TAILQ_INIT(&l->held_paths);
	wheel_init(&l->wheel, clock_now());
	l->stage = calloc(LIMIT_STAGE, sizeof(*l->stage));
	l->gather_copy = calloc(LIMIT_GATHER, sizeof(*l->gather_copy));
	l->loop = calloc(LIMIT_LOOP, sizeof(*l->loop));
	l->copies = copy_batch_create();
	l->outlets = outlets_create();
	l->crossing = crossing_create();
	l->paths = paths_create();
	l->cycles = cycles_make();
	l->moving = moving_create();
	l->holding = holding_create(places(e, LIMIT_HELD));
	l->behind = slots_create(places(e, LIMIT_BEHIND), LIMIT_BEHIND_KEPT, LIMIT_BEHIND_FEW,
				 LIMIT_SHARE);
	l->far = behind_far_create();
	l->inbox = lcore_ring(l, "ui", LIMIT_INBOX, RING_F_SC_DEQ);
	l->messages = lcore_ring(l, "um", LIMIT_LCORE_MESSAGES, RING_F_SC_DEQ);
	if (!turns_open(&l->turns) || !drains_open(&l->drains) || !make_bells(l) ||
	    l->stage == NULL || l->loop == NULL || l->gather_copy == NULL || l->outlets == NULL ||
	    l->crossing == NULL || l->paths == NULL || l->moving == NULL || l->holding == NULL ||
	    l->behind == NULL || l->far == NULL || l->copies == NULL || l->cycles == NULL ||
	    l->inbox == NULL || l->messages == NULL) {
		lcore_destroy(l);
		return ENOMEM;
	}
	return 0;
}

static void loop_drop(struct lcore *l)
{
	for (; l->loop != NULL && l->loop_tail != l->loop_head; l->loop_tail++)
		rte_pktmbuf_free(l->loop[l->loop_tail % LIMIT_LOOP]);
}

void lcore_destroy(struct lcore *l)
{
	blanks_return(l);
	loop_drop(l);
	pointers_free_frames(l->inbox);
	rte_ring_free(l->messages);
	if (l->copies != NULL)
		copy_batch_destroy(l->copies);
	outlets_destroy(l->outlets);
	crossing_destroy(l->crossing);
	paths_destroy(l->paths);
	turns_close(&l->turns);
	drains_close(&l->drains);
	moving_destroy(l->moving);
	holding_destroy(l->holding);
	slots_destroy(l->behind);
	free(l->far);
	free(l->cycles);
	free(l->stage);
	free(l->gather_copy);
	free(l->loop);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	if (l->wait_fd >= 0)
		close(l->wait_fd);
	memset(l, 0, sizeof(*l));
	l->wake_fd = l->wait_fd = -1;
}

bool lcore_sit(struct lcore *l)
{
	/* Acquire: sees what the previous holder of the seat wrote. Pairs with lcore_rise. */
	return __atomic_exchange_n(&l->seat, 1, __ATOMIC_ACQUIRE) == 0;
}

void lcore_rise(struct lcore *l)
{
	__atomic_store_n(&l->seat, 0, __ATOMIC_RELEASE);
}

void lcore_wake(struct lcore *l)
{
	uint64_t one = 1;

	if (write(l->wake_fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
		LOG(ERR, "cannot wake lcore %u: %s", l->index, strerror(errno));
}

uint32_t messages_poll(struct lcore *l, nanotime now)
{
	void *p;
	uint32_t work = 0;

	while (work < LIMIT_LCORE_MESSAGES && pointer_take(l->messages, &p)) {
		struct lcore_message *m = p;

		m->run(l, m->arg, now);
		/* Release: the caller sees what `run` wrote, and owns the message again. */
		__atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
		work++;
	}
	return work;
}

/* There is work before asleep_until, so a sleeping thread must be woken. Caller has the seat. */
static bool is_wanted(const struct lcore *l)
{
	nanotime next = time_earlier(wheel_next(&l->wheel), moderate_next(l));

	next = time_earlier(next, paths_next(l, l->asleep_until));
	return !turns_none(&l->turns) || !TAILQ_EMPTY(&l->operations) || !drains_none(&l->drains) ||
	       next < l->asleep_until || l->loop_head != l->loop_tail || moving_under_way(l) ||
	       outlets_wait(l) || crossing_waits(l);
}

/* Runs the messages of an lcore that no thread polls. False: a thread polls it, or is about to. */
static bool stand_in(struct lcore *l)
{
	bool sleeps;

	if (!lcore_sit(l))
		return false;
	if (l->summoned) {
		lcore_rise(l);
		return false;
	}
	l->stood_in = true;
	messages_poll(l, clock_now());
	l->stood_in = false;
	sleeps = __atomic_load_n(&l->sleeping, __ATOMIC_RELAXED) != 0;
	l->summoned = sleeps && is_wanted(l);
	if (l->summoned)
		lcore_wake(l);
	lcore_rise(l);
	return true;
}

void lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg)
{
	struct lcore_message m = { .run = run, .arg = arg };
	uint32_t spins = 0;

	while (!pointer_put(l->messages, &m))
		rte_pause();
	while (__atomic_load_n(&m.done, __ATOMIC_ACQUIRE) == 0) {
		if (stand_in(l))
			continue;
		/* The lcore sets the flag before it looks at its rings for the last time (idle.c). */
		if (spins % LIMIT_CALL_WAKES == 0 &&
		    __atomic_load_n(&l->sleeping, __ATOMIC_SEQ_CST))
			lcore_wake(l);
		if (++spins < LIMIT_CALL_SPINS)
			rte_pause();
		else if (spins < LIMIT_CALL_YIELDS)
			sched_yield(); /* its thread may be waiting for this core */
		else
			usleep(20);
	}
}

static void nothing(struct lcore *l, void *arg, nanotime now)
{
}

void engine_grace_period(struct engine *e)
{
	/* A message is run between bursts, where an lcore holds no pointer into shared tables. */
	for (uint32_t i = 0; i < e->lcores; i++)
		lcore_call(&e->lcore[i], nothing, NULL);
}

/* One queue pair more or less. Relaxed: the count may be a little late. */
static void qps_change(struct lcore *l, int change)
{
	__atomic_fetch_add(&l->qps, change, __ATOMIC_RELAXED);
}

void lcore_qp_attach(struct lcore *l, struct engine_qp *q, nanotime now)
{
	q->lcore = l;
	qps_change(l, 1);
	q->is_ready = false;
	q->in_wheel = false;
	q->unsettled = false;
	q->drains = NULL;
	q->waiting = 0;
	q->detached = false;
	STAILQ_INIT(&q->held);
	TAILQ_INIT(&q->behind[0]);
	TAILQ_INIT(&q->behind[1]);
	q->behind_count = 0;
	directory_publish(l->engine, q);
}

/* After this nothing of the lcore leads to the queue pair. Only the directory still does. */
static void qp_forget(struct lcore *l, struct engine_qp *q)
{
	assert(!q->unsettled && "a burst is over when a message runs");
	ready_remove(l, q);
	wheel_remove(&l->wheel, q);
	place_forget(l, q);
	hold_forget(l, q);
	behind_forget(l, q);
	operation_forget(l, q);
	drains_remove(&l->drains, q);
	outlets_forget(l, q);
	paths_leave(l, q);
}

void lcore_qp_detach(struct lcore *l, struct engine_qp *q, nanotime now)
{
	directory_remove(l->engine, q, now);
	qp_forget(l, q);
	if (q->srq != NULL && q->srq->tags != NULL)
		tags_forget(q);
	q->detached = true;
	qps_change(l, -1);
}

/*
 * Before RTR nothing of the queue pair is under way, and the program posts no sends. The old lcore
 * may still have a doorbell that the program rang in an earlier life of the queue pair. It ignores
 * that doorbell, so its mark is cleared.
 */
void lcore_qp_move(struct lcore *l, void *move, nanotime now)
{
	struct qp_move *m = move;
	struct engine_qp *q = m->qp;

	if (qp_state(q->core) > QP_STATE_INIT || qp_has_copies(q) || q->waiting > 0)
		return;
	qp_forget(l, q);
	qps_change(l, -1);
	qps_change(m->to, 1);
	doorbell_clear(&q->page->doorbell);
	__atomic_store_n(&q->page->lcore, m->to->index, __ATOMIC_RELAXED);
	/* Release: the new lcore sees what this one left. Pairs with qp_lcore. */
	__atomic_store_n(&q->lcore, m->to, __ATOMIC_RELEASE);
}

void lcore_qp_touch(struct lcore *l, struct engine_qp *q, nanotime now)
{
	__atomic_store_n(&q->page->state, qp_state(q->core), __ATOMIC_RELEASE);
	if (qp_state(q->core) == QP_STATE_RESET)
		outlets_forget(l, q);
	paths_follow(l, q);
	qp_drain_rings(l, q, now);
	qp_settled(l, q, now);
}

void lcore_client_attach(struct lcore *l, struct client *c)
{
	if (l->clients < LIMIT_CLIENTS)
		l->client[l->clients++] = c;
}

void lcore_client_detach(struct lcore *l, struct client *c)
{
	moving_detach(l, c);
	for (uint32_t i = 0; i < l->clients; i++) {
		if (l->client[i] != c)
			continue;
		l->client[i] = l->client[--l->clients];
		return;
	}
}
