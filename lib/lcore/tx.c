/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending. Queue pairs with something to send stand in line (turns.h) and take turns of
 * LIMIT_TURN packets, or of a few more that end a message. Frames of a round are staged in the order in which they were made. If
 * payloads lie in peer memory, one batch of copies completes the frames before anything leaves.
 * Frames that the port (or another lcore) does not take wait in their outlet, and go first.
 */
#include <rte_branch_prediction.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "base/prefetch.h"
#include "lcore/frame.h"
#include "lcore/moving/moving.h"
#include "lcore/moving/outlet.h"
#include "lcore/paths.h"
#include "lcore/raw/raw.h"
#include "lcore/turns/ahead.h"
#include "lcore/window.h"
#include "wire/opcode.h"

#define BLANK_AHEAD 4u /* frames before a buffer is filled */

void ready_add(struct lcore *l, struct engine_qp *q)
{
	turns_add(&l->turns, q);
	q->is_ready = true;
}

void ready_remove(struct lcore *l, struct engine_qp *q)
{
	if (!q->is_ready)
		return;
	turns_leave(&l->turns, q);
	q->is_ready = false;
}

/*
 * Buffers are taken from the pool for a whole turn. Most turns have one or two packets, so those that
 * are left stay for the next one. False: the pool is empty.
 */
static bool blank_ready(struct lcore *l)
{
	struct rte_mempool *pool = l->engine->pool;
	void **more = (void **)&l->blank[l->blank_count];

	if (l->blank_count >= LIMIT_TURN)
		return true;
	if (rte_mempool_get_bulk(pool, more, LIMIT_TURN) == 0)
		l->blank_count += LIMIT_TURN;
	else if (l->blank_count == 0 && rte_mempool_get(pool, more) == 0)
		l->blank_count = 1;
	return l->blank_count > 0;
}

/*
 * A buffer that another core freed is in that core's cache. It is asked for some frames before it is
 * filled. Its address is computed, because reading it would mean waiting for the buffer.
 */
static void blank_ahead(const struct lcore *l)
{
	struct rte_mbuf *m;
	const uint8_t *frame;

	if (l->blank_count < BLANK_AHEAD)
		return;
	m = l->blank[l->blank_count - BLANK_AHEAD];
	frame = (const uint8_t *)rte_mbuf_buf_addr(m, l->engine->pool) + RTE_PKTMBUF_HEADROOM;
	prefetch_to_write(m);
	prefetch_to_write(&m->next); /* its second line */
	prefetch_to_write(frame);
	prefetch_to_write(frame + 64);
}

static struct rte_mbuf *blank_take(struct lcore *l)
{
	struct rte_mbuf *m = l->blank[--l->blank_count];

	blank_ahead(l);
	rte_pktmbuf_reset(m);
	return m;
}

void blanks_return(struct lcore *l)
{
	if (l->blank_count > 0)
		rte_mempool_put_bulk(l->engine->pool, (void **)l->blank, l->blank_count);
	l->blank_count = 0;
}

/* An lcore that sends nothing for a while keeps no buffers, and one that sleeps neither (idle.c). */
static void blanks_age(struct lcore *l, bool sent)
{
	if (sent)
		l->blank_age = 0;
	else if (l->blank_count > 0 && ++l->blank_age >= LIMIT_BLANK_POLLS)
		blanks_return(l);
}

static void count_unusual(struct lcore *l, struct engine_qp *q, const struct packet *p)
{
	l->stats.retransmitted += p->again;
	q->again += p->again;
	if (p->again)
		q->wary = LIMIT_WARY;
	l->stats.cnps_sent += p->opcode == OPCODE_CNP;
}

/* The middle of a large message: packets like the one that was staged last, at most `most`. Returns how many. */
static __attribute__((noinline)) uint32_t turn_goes_on(struct lcore *l, struct engine_qp *q,
						       uint32_t most, nanotime now)
{
	const struct staged_frame *before = &l->stage[l->staged - 1];
	const uint8_t *payload;
	struct icrc_pattern pattern;
	uint32_t n;

	stage_switch(l->stages, STAGE_TRANSPORT);
	n = qp_next_alike(q->core, &before->packet, &l->keys, MIN_OF(most, l->blank_count), now,
			  &l->gather);
	if (n == 0)
		return 0;
	stage_switch(l->stages, STAGE_COPY_SUM);
	pattern = icrc_pattern(rte_pktmbuf_mtod_offset(before->mbuf, const uint8_t *, before->l3),
			       before->header_length - before->l3);
	payload = l->gather.span[0].direct;
	for (uint32_t i = 0; i < n; i++, before++) {
		struct staged_frame *s = &l->stage[l->staged++];

		s->mbuf = blank_take(l);
		frame_build_alike(q, s, before, &pattern, payload);
		payload += before->packet.payload_length;
	}
	q->sent += n;
	return n;
}

/*
 * How many packets a turn of LIMIT_TURN goes on: to the end of its message, if that is near. Otherwise one packet that is sent
 * again shifts all turns behind it, and each message of LIMIT_TURN packets leaves, and arrives, in two parts from then on.
 * A mover's job holds one turn.
 */
static uint32_t turn_rest(const struct lcore *l, const struct engine_qp *q)
{
	uint32_t rest = qp_message_rest(q->core, &l->stage[l->staged - 1].packet);

	return rest < LIMIT_TURN && client_mover(q->client) == NULL
		       ? MIN_OF(rest, LIMIT_STAGE - l->staged)
		       : 0;
}

/* One turn of a queue pair, which leaves the list if it has no more. Returns the packets staged. */
static uint32_t qp_turn(struct lcore *l, struct engine_qp *q, nanotime now)
{
	uint32_t room = moving_room(l, q->client);
	uint32_t copies = q->raw ? RAW_COPIES : LIMIT_SPANS;
	uint32_t most = MIN_OF(LIMIT_TURN, LIMIT_STAGE - l->staged), n;
	nanotime not_before;

	for (n = 0; n < most && l->gather_count + copies <= room; n++) {
		struct staged_frame *s = &l->stage[l->staged];

		if (!blank_ready(l)) {
			count_reason(l, REASON_NO_BUFFER);
			return n;
		}
		stage_switch(l->stages, STAGE_TRANSPORT);
		switch (qp_next_packet(q->core, &l->keys, now, &s->packet, &l->gather,
				       &not_before)) {
		case NEXT_PACKET:
			s->mbuf = blank_take(l);
			q->sent++;
			if (unlikely(s->packet.again || s->packet.opcode == OPCODE_CNP))
				count_unusual(l, q, &s->packet);
			frame_build(l, q, s);
			l->staged++;
			if (unlikely(s->packet.payload_length >= ALIKE_LEAST)) {
				if (frame_is_pattern(s))
					n += turn_goes_on(l, q, most - n - 1, now);
				if (n + 1 == LIMIT_TURN)
					most += turn_rest(l, q);
			}
			stage_switch(l->stages, STAGE_TX);
			continue;
		case NEXT_NOT_BEFORE:
			wheel_set(&l->wheel, q, not_before);
			break;
		case NEXT_HELD:
			paths_park(l, q);
			break;
		case NEXT_OPERATION:
			operation_begin(l, q);
			break;
		case NEXT_NOTHING:
			break;
		}
		stage_switch(l->stages, STAGE_TX);
		ready_remove(l, q);
		/* A request may have failed while its packet was made: a key of its own was wrong. */
		qp_settled(l, q, now);
		return n;
	}
	/* A reply whose key is gone takes the queue pair to ERR with the NAK that was just made. */
	qp_settled(l, q, now);
	return n;
}

/*
 * Reads the peer spans of all staged frames, in one batch for each client, and seals the frames.
 * Frames of clients whose copies may block go to their movers, and are sent when they come back.
 */
static void stage_gather(struct lcore *l, nanotime now)
{
	struct copy_breaks none;
	uint32_t kept = 0;

	none.count = 0;
	for (uint32_t i = 0; i < l->staged;) {
		uint32_t first = i, copies = 0, at = l->stage[i].peer_first;
		struct client *c = l->stage[i].qp->client;

		for (; i < l->staged && l->stage[i].qp->client == c; i++) {
			if (copies == 0)
				at = l->stage[i].peer_first;
			copies += l->stage[i].peer_count;
		}
		if (copies > 0 && client_mover(c) != NULL) {
			kept = moving_frames(l, first, i, kept, now);
			continue;
		}
		if (copies > 0)
			peer_memory_copy_chained(c->memory, &l->gather_copy[at], copies, &none);
		for (; first < i; first++) {
			frame_seal(&l->stage[first], l->gather_copy);
			if (kept != first)
				l->stage[kept] = l->stage[first];
			kept++;
		}
	}
	l->staged = kept;
}

static void stage_leave(struct lcore *l, nanotime now)
{
	if (l->staged == 0)
		return;
	if (l->gather_count > 0) {
		stage_switch(l->stages, STAGE_COPY_SUM);
		stage_gather(l, now);
		stage_switch(l->stages, STAGE_TX);
	}
	frames_send(l, l->stage, l->staged, now);
	l->staged = 0;
	l->gather_count = 0;
}

/*
 * Sends frames that were not taken before, and makes queue pairs ready whose paths have room again.
 * Returns how many frames left.
 */
static uint32_t what_waits(struct lcore *l, nanotime now)
{
	uint32_t left = outlets_rest(l) ? 0 : outlets_flush(l, now);

	if (!TAILQ_EMPTY(&l->held_paths))
		paths_release(l, now);
	return left;
}

void tx_of_client(struct lcore *l, const struct client *c, nanotime now)
{
	struct ready_list *ready = turns_of(&l->turns, c);
	struct engine_qp *q, *next, *last;

	what_waits(l, now);
	last = TAILQ_LAST(ready, ready_list);
	for (q = TAILQ_FIRST(ready); q != NULL && outlets_have_room(l); q = next) {
		next = q != last ? TAILQ_NEXT(q, ready_link) : NULL;
		if (!outlet_is_open(l, outlet_of(q)))
			continue;
		qp_turn(l, q, now);
		stage_leave(l, now);
	}
}

/* The first queue pair that may have its turn. Looks at few of those that may not. */
static struct engine_qp *next_sender(struct lcore *l)
{
	struct engine_qp *q;

	for (uint32_t i = 0; i < LIMIT_ROUND && (q = turns_next(&l->turns)) != NULL; i++) {
		if (!outlet_is_open(l, outlet_of(q)))
			outlet_block(l, q);
		else if (!moving_can_send(l, q->client))
			moving_starve(l, q);
		else
			return q;
	}
	return NULL;
}

/*
 * What these packets of a queue pair use of LIMIT_ROUND. What follows a lost packet has to wait at the receiver, so the lcore
 * looks for answers twice as often while packets are lost.
 */
static uint32_t share_of_round(struct engine_qp *q, uint32_t packets)
{
	if (likely(q->wary == 0))
		return packets;
	q->wary -= MIN_OF(q->wary, packets);
	return 2 * packets;
}

/* A queue pair whose turns went on for a whole turn's packets loses one: in the end all turns are equal. */
static bool turn_was_taken(struct engine_qp *q)
{
	if (likely(q->overdrawn < LIMIT_TURN))
		return false;
	q->overdrawn -= LIMIT_TURN;
	return true;
}

uint32_t tx_poll(struct lcore *l, nanotime now)
{
	uint32_t left = what_waits(l, now), staged = 0, shares = 0;
	struct engine_qp *q;

	while (shares < LIMIT_ROUND && outlets_have_room(l) && (q = next_sender(l)) != NULL) {
		uint32_t n;

		if (turn_was_taken(q))
			continue;
		if (ahead_helps(l))
			ahead_of_turn(q);
		n = qp_turn(l, q, now);
		if (unlikely(n > LIMIT_TURN))
			q->overdrawn += n - LIMIT_TURN;
		staged += n;
		shares += share_of_round(q, n);
		if (!q->is_ready)
			continue;
		if (n < LIMIT_TURN || client_mover(q->client) != NULL)
			break; /* no buffer, or the stage is full; a mover's job holds one turn */
	}
	stage_leave(l, now);
	blanks_age(l, staged > 0);
	return left + staged + outlets_wait(l);
}
