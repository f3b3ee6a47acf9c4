/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `waiting` begins at 1 in the lcore that took the arming, and goes back to 0 in exactly one place
 * at a time (an exchange). The thread that takes it there sends the event. A CQ leaves its list in
 * two steps: `is_listed` becomes 0, then the lcore looks whether something was owed meanwhile. So a
 * completion that found the CQ listed is not forgotten.
 *
 * The order is sequentially consistent where that completion and the lcore that takes the CQ out
 * look at each other's word. Limits are relaxed, because moderate_set() sends whatever the old ones
 * still owe.
 */
#include "lcore/inside.h"
#include "queue/fence.h"

static bool is_owed(const struct moderation *m)
{
	return __atomic_load_n(&m->waiting, __ATOMIC_SEQ_CST) != 0;
}

static bool pay(struct engine_cq *cq)
{
	if (__atomic_exchange_n(&cq->moderation.waiting, 0, __ATOMIC_SEQ_CST) == 0)
		return false;
	cq_send_event(cq);
	return true;
}

/*
 * Counts a completion. The first counts only if the CQ is armed. Returns the count; 0: no event is
 * owed.
 */
static uint32_t count_up(struct moderation *m, bool taken)
{
	uint32_t waiting = __atomic_load_n(&m->waiting, __ATOMIC_RELAXED);

	do {
		if (waiting == 0 && !taken)
			return 0;
	} while (!__atomic_compare_exchange_n(&m->waiting, &waiting, waiting + 1, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return waiting + 1;
}

/* A number that is too large only brings an early event. */
static uint32_t unpolled(const struct engine_cq *cq)
{
	const struct rte_ring *shared = (const void *)cq_rings_now(&cq->rings)->shared;

	return cq_ring_unpolled(shared);
}

/*
 * A completion between the end of the arming and the first count is not counted: its lcore finds
 * neither. Without a period that event might never come. But then its completions are unpolled, as
 * the program waits for it. The fence pairs with that of cq_ring_take_arming: we see the completion
 * in the ring, or its lcore sees our count.
 */
static bool is_enough(const struct engine_cq *cq, uint32_t waiting, uint32_t limit, uint32_t period)
{
	if (limit == 0)
		return period == 0;
	if (waiting >= limit || period != 0)
		return waiting >= limit;
	queue_fence();
	return unpolled(cq) >= limit;
}

static void enlist(struct lcore *l, struct engine_cq *cq)
{
	struct moderation *m = &cq->moderation;

	if (__atomic_exchange_n(&m->is_listed, 1, __ATOMIC_SEQ_CST) != 0)
		return; /* the lcore that has it sees the new instant */
	m->lcore = l;
	TAILQ_INSERT_TAIL(&l->moderated, cq, moderation.link);
}

void moderate_completion(struct lcore *l, struct engine_cq *cq, bool taken, nanotime now)
{
	struct moderation *m = &cq->moderation;
	uint32_t limit = __atomic_load_n(&m->count, __ATOMIC_RELAXED);
	uint32_t period = __atomic_load_n(&m->period, __ATOMIC_RELAXED);
	uint32_t waiting = count_up(m, taken);

	if (waiting == 0)
		return;
	if (is_enough(cq, waiting, limit, period)) {
		pay(cq);
		return;
	}
	if (waiting != 1 || period == 0)
		return;
	__atomic_store_n(&m->due, now + period * TIME_US, __ATOMIC_SEQ_CST);
	enlist(l, cq);
}

static void delist(struct lcore *l, struct engine_cq *cq)
{
	TAILQ_REMOVE(&l->moderated, cq, moderation.link);
	__atomic_store_n(&cq->moderation.is_listed, 0, __ATOMIC_SEQ_CST);
	if (is_owed(&cq->moderation) &&
	    __atomic_load_n(&cq->moderation.period, __ATOMIC_RELAXED) != 0)
		enlist(l, cq);
}

uint32_t moderate_poll(struct lcore *l, nanotime now)
{
	struct engine_cq *last = TAILQ_LAST(&l->moderated, moderated_list);
	uint32_t paid = 0;

	for (uint32_t i = 0; i < LIMIT_MODERATED && last != NULL; i++) {
		struct engine_cq *cq = TAILQ_FIRST(&l->moderated);
		bool end = cq == last;

		if (is_owed(&cq->moderation) &&
		    __atomic_load_n(&cq->moderation.due, __ATOMIC_SEQ_CST) > now) {
			TAILQ_REMOVE(&l->moderated, cq, moderation.link);
			TAILQ_INSERT_TAIL(&l->moderated, cq, moderation.link);
		} else {
			paid += pay(cq);
			delist(l, cq);
		}
		if (end)
			break;
	}
	return paid;
}

nanotime moderate_next(const struct lcore *l)
{
	nanotime next = TIME_NEVER;
	const struct engine_cq *cq;

	TAILQ_FOREACH(cq, &l->moderated, moderation.link)
	next = time_earlier(next, __atomic_load_n(&cq->moderation.due, __ATOMIC_RELAXED));
	return next;
}

void moderate_set(struct engine_cq *cq, uint32_t count, uint32_t period)
{
	__atomic_store_n(&cq->moderation.count, count, __ATOMIC_RELAXED);
	__atomic_store_n(&cq->moderation.period, period, __ATOMIC_RELAXED);
	/* An lcore may still use the old limits, under which the event might never be due. */
	engine_grace_period(cq->client->engine);
	pay(cq);
}

static void forget(struct lcore *l, void *arg, nanotime now)
{
	struct engine_cq *cq = arg;

	/* The lcore may have removed it meanwhile. */
	if (cq->moderation.is_listed == 0)
		return;
	TAILQ_REMOVE(&l->moderated, cq, moderation.link);
	cq->moderation.is_listed = 0;
}

/*
 * An lcore that takes a CQ out of its list looks at it once more (delist). So the lcore that had it
 * last is asked even if it stands in no list now: then that look is over.
 */
void moderate_forget(struct engine_cq *cq)
{
	if (cq->moderation.lcore == NULL)
		return;
	cq->moderation.waiting = 0;
	lcore_call(cq->moderation.lcore, forget, cq);
}
