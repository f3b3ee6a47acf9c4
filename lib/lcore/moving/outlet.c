/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/log.h"
#include "lcore/moving/outlet.h"
#include "lcore/paths.h"

#define STALL (LIMIT_STALL_US * TIME_US)
#define STUCK (LIMIT_STUCK_MS * TIME_MS)

static_assert((LIMIT_WAITING & (LIMIT_WAITING - 1)) == 0, "a ring is masked");
static_assert(LIMIT_WAITING >= 2 * (LIMIT_STAGE + OUTLET_FROM_MOVERS), "there is room to wait in");

static struct staged_frame *waiting_at(const struct outlet *o, uint32_t index)
{
	return &o->frame[index & (LIMIT_WAITING - 1)];
}

struct outlets *outlets_create(void)
{
	struct outlets *all = calloc(1, sizeof(*all));
	bool ok = all != NULL;

	for (uint32_t i = 0; ok && i < OUTLETS; i++) {
		struct outlet *o = &all->outlet[i];

		TAILQ_INIT(&o->blocked);
		o->frame = calloc(LIMIT_WAITING, sizeof(*o->frame));
		ok = o->frame != NULL;
	}
	if (ok)
		return all;
	outlets_destroy(all);
	return NULL;
}

void outlets_destroy(struct outlets *all)
{
	for (uint32_t i = 0; all != NULL && i < OUTLETS; i++) {
		struct outlet *o = &all->outlet[i];

		for (; o->frame != NULL && o->tail != o->head; o->tail++)
			rte_pktmbuf_free(waiting_at(o, o->tail)->mbuf);
		free(o->frame);
	}
	free(all);
}

void outlet_block(struct lcore *l, struct engine_qp *q)
{
	struct outlet *o = &l->outlets->outlet[outlet_of(q)];

	assert(q->is_ready && q->stands_in != &o->blocked && "it was to have a turn");
	turns_leave(&l->turns, q);
	TAILQ_INSERT_TAIL(&o->blocked, q, ready_link);
	q->stands_in = &o->blocked;
}

static void drop(struct lcore *l, const struct outlet *o, const struct staged_frame *s)
{
	bool port = o == &l->outlets->outlet[OUTLET_PORT];

	count_reason(l, port ? REASON_PORT_STUCK : REASON_HAND_OVER_FULL);
	rte_pktmbuf_free(s->mbuf);
}

/*
 * The packet left, or was lost on the way out. An unreliable service is done with it. For other
 * services the time that the peer has to answer begins here.
 */
static void left(struct lcore *l, const struct staged_frame *s, nanotime now)
{
	struct engine_qp *q = s->qp;

	if (q == NULL)
		return;
	assert(q->waiting > 0);
	q->waiting--;
	qp_delayed(q->core, now - q->waiting_since);
	q->waiting_since = now;
	if (q->unreliable)
		qp_sent(q->core, &s->packet);
	else
		qp_left(q->core, &s->packet, now);
	qp_settled(l, q, now);
}

bool outlet_keep(struct lcore *l, const struct staged_frame *s, nanotime now)
{
	struct engine_qp *q = s->qp;
	struct outlet *o = &l->outlets->outlet[q->waiting > 0 ? q->outlet : outlet_of_frame(s)];

	if (o->stuck) {
		drop(l, o, s);
		return false;
	}
	assert(outlet_waiting(o) < LIMIT_WAITING && "outlets_have_room");
	if (outlet_waiting(o) == 0) {
		o->since = now;
		o->again_at = now + STALL;
	}
	if (q->waiting++ == 0) {
		q->outlet = (uint8_t)(o - l->outlets->outlet);
		q->waiting_since = now;
		ready_remove(l, q);
	}
	*waiting_at(o, o->head++) = *s;
	count_reason(l, REASON_TX_FULL);
	return true;
}

/* Sends the oldest frames in one burst, up to the first one that does not go to the port. */
static uint32_t port_run(struct lcore *l, struct outlet *o)
{
	struct staged_frame *s[LIMIT_BURST];
	uint32_t n = 0;

	while (n < LIMIT_BURST && o->tail + n != o->head) {
		s[n] = waiting_at(o, o->tail + n);
		if (s[n]->qp == NULL || !frame_goes_to_port(s[n]))
			break;
		n++;
	}
	return n > 0 ? frames_burst(l, s, n) : 0;
}

/* Returns how many of the oldest frames left. */
static uint32_t outlet_try(struct lcore *l, struct outlet *o)
{
	struct staged_frame *s = waiting_at(o, o->tail);

	if (s->qp == NULL) {
		rte_pktmbuf_free(s->mbuf);
		return 1;
	}
	if (frame_goes_to_port(s))
		return port_run(l, o);
	return frame_send_one(l, s);
}

/* Logs one warning each time the port gets stuck, so the cost of the message does not matter. */
static void get_stuck(struct lcore *l, struct outlet *o, nanotime now)
{
	if (o == &l->outlets->outlet[OUTLET_PORT])
		LOG(WARNING,
		    "%s has taken no frame for %u ms: frames are dropped until it does (%s)",
		    l->engine->port->name, LIMIT_STUCK_MS, reason_name(REASON_PORT_STUCK));
	o->stuck = true;
	while (o->tail != o->head) {
		struct staged_frame s = *waiting_at(o, o->tail++);

		drop(l, o, &s);
		left(l, &s, now);
	}
}

static uint32_t outlet_flush(struct lcore *l, struct outlet *o, nanotime now)
{
	uint32_t total = 0, n;

	if (outlet_waiting(o) == 0 || now < o->again_at)
		return 0;
	while (outlet_waiting(o) > 0 && (n = outlet_try(l, o)) > 0) {
		for (; n > 0; n--, total++) {
			struct staged_frame s = *waiting_at(o, o->tail++);

			left(l, &s, now);
		}
	}
	if (total > 0) {
		if (o == &l->outlets->outlet[OUTLET_PORT])
			paths_stalled(l, now - o->since, now);
		o->since = now;
		o->stuck = false;
	}
	if (outlet_waiting(o) > 0) {
		o->again_at = now + STALL;
		if (now - o->since >= STUCK)
			get_stuck(l, o, now);
	}
	return total;
}

uint32_t outlets_flush(struct lcore *l, nanotime now)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < OUTLETS; i++) {
		struct outlet *o = &l->outlets->outlet[i];

		total += outlet_flush(l, o, now);
		if (outlet_is_open(l, i))
			turns_return(&l->turns, &o->blocked);
	}
	return total;
}

void outlets_forget(struct lcore *l, struct engine_qp *q)
{
	struct outlet *o = &l->outlets->outlet[q->outlet];

	for (uint32_t i = o->tail; q->waiting > 0 && i != o->head; i++) {
		if (waiting_at(o, i)->qp != q)
			continue;
		waiting_at(o, i)->qp = NULL;
		q->waiting--;
	}
	assert(q->waiting == 0 && "they are all in one place");
}

void outlets_each_sender(const struct lcore *l, void (*visit)(struct engine_qp *q, void *arg),
			 void *arg)
{
	for (uint32_t i = 0; i < OUTLETS; i++) {
		const struct outlet *o = &l->outlets->outlet[i];
		struct engine_qp *q;

		for (uint32_t at = o->tail; at != o->head; at++)
			if (waiting_at(o, at)->qp != NULL)
				visit(waiting_at(o, at)->qp, arg);
		TAILQ_FOREACH(q, &o->blocked, ready_link)
		visit(q, arg);
	}
}
