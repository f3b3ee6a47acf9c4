/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery in round trips (RACK-TLP, RFC 8985, for packets that have numbers of their own).
 *
 * A packet is lost when something sent later has arrived: at once if LIMIT_REORDER places later,
 * else when a reordering window has passed, because the network may have changed their order.
 * Acknowledgements, responses and selective acknowledgements show what arrived.
 *
 * A probe breaks a silence of about two round trips. It is the oldest unacknowledged packet once
 * more: IBTA 9.7.5.1.4 lets a requester repeat it at any time. Each probe doubles the wait and
 * takes no retry: the program's ACK timeout stays the last resort. If exactly the probe is
 * acknowledged then, what was sent before it did not arrive, and is lost. So a lost last packet,
 * acknowledgement, NAK or repetition costs round trips.
 *
 * A peer that drops what is behind a gap (go-back-N) says so by a NAK: then all packets in flight
 * are lost. A lost packet is sent again when the cursor comes to it: nxt_psn stands at the first
 * lost packet, or at top_psn.
 */
#include <assert.h>

#include "base/bits.h"
#include "transport/qp.h"
#include "transport/requester/flight.h"
#include "transport/requester/kind.h"
#include "transport/requester/overtaken.h"
#include "transport/requester/recovery.h"
#include "transport/requester/request.h"
#include "transport/requester/sample.h"

void recovery_reset(struct qp *qp)
{
	struct board *b = &qp->req.board;

	uint64_t *bits = board_bits(b);
	uint8_t words = b->words;

	memset(b, 0, sizeof(*b));
	b->words = words;
	if (words != PSN_SET_WORDS)
		b->more = memset(bits, 0, BOARD_SETS * words * sizeof(*bits));
	b->clean = true;
	b->late_at = TIME_NEVER;
	b->probe_at = TIME_NEVER;
}

/* Something is to be noted. */
static void open_board(struct requester *r)
{
	struct board *b = &r->board;

	if (!b->clean)
		return;
	b->clean = false;
	b->old_mark = b->young_mark = r->top_psn;
	b->passed = b->passed_data = b->passed_probe = b->gap = b->acked = r->una_psn;
	b->probe_psn = b->probe_mark = b->episode = b->twice = r->una_psn;
}

/* PSNs behind una_psn move with it, so that none goes stale. */
static void follow(const struct requester *r, uint32_t *psn)
{
	*psn = psn_add(r->una_psn, ahead(r, *psn));
}

/* The sets may be much larger than the part in flight. */
static bool is_empty(const struct requester *r, enum board_set which)
{
	uint32_t n = on_its_way(r);

	return psn_set_first(board_set(&r->board, which), r->una_psn, n) == n;
}

static bool all_are_empty(const struct requester *r)
{
	return is_empty(r, BOARD_HELD) && is_empty(r, BOARD_LOST) && is_empty(r, BOARD_OLD) &&
	       is_empty(r, BOARD_YOUNG);
}

static void close_board(struct requester *r)
{
	struct board *b = &r->board;

	if (ahead(r, b->passed) == 0 && ahead(r, b->passed_data) == 0 &&
	    ahead(r, b->passed_probe) == 0 && ahead(r, b->probe_mark) == 0 && all_are_empty(r)) {
		b->clean = true;
		b->late_at = TIME_NEVER;
		return;
	}
	follow(r, &b->old_mark);
	follow(r, &b->young_mark);
	follow(r, &b->passed);
	follow(r, &b->passed_data);
	follow(r, &b->passed_probe);
	follow(r, &b->acked);
	follow(r, &b->probe_mark);
	follow(r, &b->episode);
	follow(r, &b->twice);
}

static void forget(const struct board *b, uint32_t from, uint32_t count)
{
	uint32_t words = b->words;
	uint64_t *bits = board_bits(b), mask;

	count = MIN_OF(count, board_window(b));
	while (count > 0) {
		uint32_t n = psn_range_word(from, count, &mask), at = from / 64 & (words - 1);

		for (uint32_t i = 0; i < BOARD_SETS; i++)
			bits[at + i * words] &= ~mask;
		from = psn_add(from, n);
		count -= n;
	}
}

/* New repetitions are younger than earlier ones. Two ages are told apart. */
static void begin_young(struct requester *r, bool must)
{
	struct board *b = &r->board;
	struct psn_set old = board_set(b, BOARD_OLD), young = board_set(b, BOARD_YOUNG);

	if (!is_empty(r, BOARD_YOUNG) &&
	    (must || (b->young_mark != r->top_psn && is_empty(r, BOARD_OLD)))) {
		psn_set_move(old, young, r->una_psn, on_its_way(r), board_set(b, BOARD_HELD));
		b->old_mark = b->young_mark;
	}
	b->young_mark = r->top_psn;
}

void recovery_sent(struct qp *qp, uint32_t psn, uint32_t psns)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	const struct psn_set none[1] = { board_set(b, BOARD_HELD) };

	open_board(r);
	b->rounds += !psn_after(psn, b->again) && b->rounds < LIMIT_ROUNDS;
	psn_set_clear(board_set(b, BOARD_LOST), psn, psns);
	psn_set_clear(board_set(b, BOARD_OLD), psn, psns);
	begin_young(r, !psn_after(psn, b->again));
	psn_set_fill(board_set(b, BOARD_YOUNG), psn, psns, none, 1);
	b->again = psn;
	b->again_is_one = psns == 1;
}

void recovery_unsent_from(struct qp *qp, uint32_t psn)
{
	struct requester *r = &qp->req;

	assert(ahead(r, psn) <= on_its_way(r));
	if (r->board.clean)
		return;
	forget(&r->board, psn, (r->top_psn - psn) & PSN_MASK);
	/* a probe asked for packets that did not leave after all */
	if (ahead(r, r->board.probe_mark) > ahead(r, psn))
		r->board.probe_mark = psn;
}

void recovery_lost(struct qp *qp, uint32_t psn, uint32_t psns)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	const struct psn_set except[1] = { board_set(b, BOARD_HELD) };
	uint32_t from = ahead(r, psn),
		 n = MIN_OF(psns, on_its_way(r) - MIN_OF(from, on_its_way(r)));

	open_board(r);
	psn_set_fill(board_set(b, BOARD_LOST), psn, n, except, 1);
	psn_set_clear(board_set(b, BOARD_OLD), psn, n);
	psn_set_clear(board_set(b, BOARD_YOUNG), psn, n);
}

void recovery_start_over(struct qp *qp)
{
	struct requester *r = &qp->req;

	r->board.rounds = 0;
	psn_set_clear(board_set(&r->board, BOARD_HELD), r->una_psn, on_its_way(r));
	recovery_all_lost(qp);
}

/* The oldest is missing, whatever the peer said before, so there is always something to send. */
void recovery_all_lost(struct qp *qp)
{
	struct requester *r = &qp->req;

	psn_set_remove(board_set(&r->board, BOARD_HELD), r->una_psn);
	recovery_lost(qp, r->una_psn, on_its_way(r));
}

/* A peer that drops what is behind a gap pays a window for each loss, so towards it all losses count. */
static void found_lost(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;

	if (ahead(r, b->episode) == 0) {
		if (qp->path != NULL)
			path_lost(qp->path, !qp->selective, now);
		b->episode = r->top_psn;
		path_count(qp->path, PATH_OVERTAKEN);
	}
	request_resume(qp);
}

/*
 * How many places. A peer that does not tell what came behind a gap cannot show a change of order,
 * so one is assumed.
 */
static uint32_t places_of(const struct qp *qp, nanotime now)
{
	if (qp->path == NULL)
		return 0;
	return qp->selective ? path_places(qp->path, now) : LIMIT_REORDER;
}

/*
 * How long reordering may take. A network that kept the order, and loses packets as a bad cable
 * does, is trusted to keep it. Then the last packets, which too few others overtake, need not wait
 * long. But before a full network shows its delay, haste would take its loss for a bad cable's.
 *
 * `waits`: only READs or atomics that the peer holds show that a packet is late. The peer executes
 * nothing behind that packet, and no count of places finds it, because a READ has many PSNs. If the
 * packet comes after all, haste cost one repetition and its answer.
 */
static nanotime reorder_time(const struct qp *qp, bool waits, nanotime now)
{
	nanotime srtt = path_srtt(qp->path), least = LIMIT_REORDER_US * TIME_US;

	if (waits && srtt != 0)
		return srtt / LIMIT_REORDER_HELD;
	if (srtt != 0)
		least = MIN_OF(least, 2 * srtt);
	if (srtt != 0 && path_losses_are_lone(qp->path) &&
	    places_of(qp, now) <= LIMIT_REORDER_FIRST)
		least = 0;
	return MAX_OF(srtt / 4, least);
}

/*
 * A repetition has arrived. Repetitions are sent in the order of their PSNs, and one that goes back
 * is younger than all before it. So repetitions from `from` on, before this one, are not still to
 * come: they were lost once more, which no new packet tells while the window is full. This only
 * holds in a network that keeps the order.
 */
static void repetition_arrived(struct qp *qp, uint32_t from, uint32_t psn, nanotime now)
{
	struct requester *r = &qp->req;
	uint32_t begin = ahead(r, from), end = ahead(r, psn), n = end - MIN_OF(begin, end);

	if (!psn_set_has(board_set(&r->board, BOARD_YOUNG), psn) || n == 0 ||
	    r->rnr_until != TIME_NEVER || qp->path == NULL || r->board.rounds == LIMIT_ROUNDS ||
	    places_of(qp, now) > LIMIT_REORDER_FIRST)
		return;
	if (overtaken_again(r, from, n))
		found_lost(qp, now);
}

/*
 * Something arrived: what that says of packets sent before it.
 *
 * A peer that answers later packets only would cause repetitions of the oldest without end. It has
 * fewer resources for READs and atomics than it was said to have, or it is hostile. So after
 * LIMIT_ROUNDS only probes and the timer repeat, and the timer costs retries.
 */
static void look(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	uint32_t places = places_of(qp, now), all = b->passed, data;
	bool waits;

	if (b->clean || qp->state == QP_STATE_ERR || r->rnr_until != TIME_NEVER ||
	    b->rounds == LIMIT_ROUNDS)
		return;
	if (overtaken(r, less(r, b->passed, places), less(r, b->passed_data, places), false))
		found_lost(qp, now);
	/* A peer that holds packets may hold a READ: its response is not due then. */
	data = further(r, b->passed_data, b->passed_probe);
	if (!qp->selective)
		all = further(r, all, b->passed_probe);
	if (b->late_at != TIME_NEVER || !overtaken(r, all, data, true))
		return;
	b->late = all;
	b->late_data = data;
	waits = qp->selective && r->rd_atomic > 0 && !overtaken(r, b->passed, b->passed_data, true);
	b->late_at = now + reorder_time(qp, waits, now);
	if (qp->path == NULL)
		recovery_expired(qp, b->late_at);
}

static void raise(const struct requester *r, uint32_t *psn, uint32_t to)
{
	if (ahead(r, to) > ahead(r, *psn))
		*psn = to;
}

void recovery_heard(struct qp *qp)
{
	flight_heard(qp);
	if (qp->req.board.probes > 0)
		path_answered(qp->path, qp->req.board.quiet_at);
}

/* What it probed for is answered. */
static void end_probes(struct qp *qp)
{
	struct board *b = &qp->req.board;

	if (qp->path != NULL)
		path_doubt(qp->path, b->probes);
	b->probes = 0;
}

/*
 * What left before the last probe may be answered later than the probe was patient: a queue makes
 * round trips longer. But packets that arrived behind a gap show that the probe was needed.
 */
static bool nobody_had_to_ask(const struct requester *r)
{
	const struct board *b = &r->board;

	return b->clean || psn_after(r->una_psn, b->probe_mark) || !is_empty(r, BOARD_HELD);
}

void recovery_advanced(struct qp *qp, uint32_t from, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	bool is_probe;

	b->rounds = 0;
	if (b->probes > 0)
		end_probes(qp);
	else if (qp->path != NULL && nobody_had_to_ask(r))
		qp->path->doubt = 0;
	if (b->clean)
		return;
	overtaken_arrived(qp, from, now);
	/* Exactly the probe, and what was sent before it is still missing. */
	is_probe = r->una_psn == psn_add(b->probe_psn, 1) && from == b->probe_psn;
	if (is_probe)
		raise(r, &b->passed_probe, b->probe_mark);
	forget(b, from, (r->una_psn - from) & PSN_MASK);
	close_board(r);
	/* A packet older than all in flight says nothing of them. */
	if (is_probe)
		look(qp, now);
}

void recovery_stopped(struct qp *qp, uint32_t end, uint32_t by, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	bool once = b->clean || overtaken_sent_once(b, psn_add(by, PSN_MASK));
	uint32_t at, n;

	open_board(r);
	raise(r, &b->acked, end);
	for (uint32_t i = r->una; i != r->begun && r->rd_atomic < r->begun - r->una; i++) {
		n = overtaken_part(r, i, ahead(r, end), &at);
		if (kind_is_fetching(message_at(r, i)->kind) || n == 0)
			continue;
		forget(b, at, n);
		psn_set_fill(board_set(b, BOARD_HELD), at, n, NULL, 0);
	}
	if (once)
		raise(r, &b->passed, by);
	request_resume(qp);
	look(qp, now);
}

/* What it overtook is known: recovery_stopped was told. */
void recovery_response_held(struct qp *qp, uint32_t psn, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	bool was_lost;

	open_board(r);
	overtaken_arrived(qp, psn, now);
	was_lost = psn_set_has(board_set(b, BOARD_LOST), psn);
	repetition_arrived(qp, r->una_psn, psn, now);
	forget(b, psn, 1);
	psn_set_add(board_set(b, BOARD_HELD), psn);
	recovery_wait(qp, now);
	if (was_lost)
		request_resume(qp);
}

/* The places come first: what a packet of the run overtook is not a packet of the run. */
void recovery_run_held(struct qp *qp, uint32_t psn, uint32_t psns, nanotime now)
{
	struct board *b = &qp->req.board;

	assert(psns > 0 && overtaken_by_none(qp, psn_add(psn, PSN_MASK)));
	psn_set_fill(board_set(b, BOARD_HELD), psn, psns, NULL, 0);
	recovery_stopped(qp, psn_add(psn, psns - 1), psn_add(psn, psns), now);
	recovery_wait(qp, now);
}

/* The first selected one of [from, to); `to`: there is none. */
static uint32_t next_selected(const uint64_t selection[], uint32_t from, uint32_t to)
{
	for (; from < to; from = from / 64 * 64 + 64) {
		uint64_t rest = selection[from / 64] >> (from % 64);

		if (rest != 0)
			return MIN_OF(from + (uint32_t)__builtin_ctzll(rest), to);
	}
	return to;
}

/*
 * The packets of a message that the peer has. The peer executes nothing behind a gap, so a READ or
 * atomic that it has may lack its response. But, as with a probe, what was sent before did not
 * arrive. Only time tells whether that was lost, because a request has many PSNs.
 */
static void note_selected(struct qp *qp, uint32_t psn, uint32_t first, bool fetches, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;

	if (psn_set_has(board_set(b, BOARD_HELD), psn))
		return;
	overtaken_arrived(qp, psn, now);
	if (overtaken_sent_once(b, psn)) {
		raise(r, fetches ? &b->passed_probe : &b->passed_data, psn_add(psn, 1));
		if (!fetches)
			sample_selected(qp, psn, now);
	}
	if (fetches)
		return;
	repetition_arrived(qp, first, psn, now);
	forget(b, psn, 1);
	psn_set_add(board_set(b, BOARD_HELD), psn);
}

/* The PSNs of a message, or of all if all fetch or none does: [at, at + count). */
static void note_part(struct qp *qp, uint32_t at, uint32_t count, bool fetches, uint32_t first,
		      const uint64_t selection[], nanotime now)
{
	const struct requester *r = &qp->req;
	uint32_t from = ahead(r, at), begin = ahead(r, first),
		 to = MIN_OF(from + count, begin + SELECTION_BITS), n;

	if (to <= begin)
		return;
	to -= begin;
	n = next_selected(selection, MAX_OF(from, begin) - begin, to);
	for (; n < to; n = next_selected(selection, n + 1, to))
		note_selected(qp, psn_add(r->una_psn, begin + n), first, fetches, now);
}

void recovery_selected(struct qp *qp, uint32_t next, uint32_t first, const uint64_t selection[],
		       nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;
	uint32_t at, count;

	open_board(r);
	b->gap = next;
	if (ahead(r, next) > ahead(r, b->probe_psn) && ahead(r, b->probe_mark) > 0)
		raise(r, &b->passed_probe, b->probe_mark);
	if (r->rd_atomic == 0 || r->rd_atomic == r->begun - r->una) {
		note_part(qp, r->una_psn, on_its_way(r), r->rd_atomic > 0, first, selection, now);
	} else {
		for (uint32_t i = r->una; i != r->begun; i++) {
			count = overtaken_part(r, i, on_its_way(r), &at);
			note_part(qp, at, count, kind_is_fetching(message_at(r, i)->kind), first,
				  selection, now);
		}
	}
	recovery_wait(qp, now);
	end_probes(qp);
	request_resume(qp);
	look(qp, now);
}

/*
 * What late hosts add to a round trip. After losses only a probe finds a repetition that is lost
 * again, so each would wait for the most that hosts were late lately. A part of that must do.
 */
static nanotime lateness(const struct qp *qp)
{
	const struct path *path = qp->path;
	nanotime late = path_late(path) + path->peer_late;

	return qp->req.board.clean ? late : MIN_OF(late, path->srtt / 2);
}

/* How long silence may last after so many probes. */
static nanotime patience(const struct qp *qp, uint32_t probes)
{
	const struct path *path = qp->path;
	nanotime wait = LIMIT_PROBE_START_US * TIME_US;

	if (path_srtt(path) != 0)
		wait = MAX_OF(MAX_OF(2 * path->srtt, path->srtt + 4 * path->rttvar),
			      LIMIT_PROBE_MIN_US * TIME_US) +
		       lateness(qp);
	return wait << MAX_OF(probes, path != NULL ? path->doubt : 0);
}

void recovery_wait(struct qp *qp, nanotime now)
{
	struct board *b = &qp->req.board;

	if (qp->path != NULL)
		b->probe_at = (b->quiet_at = now) + patience(qp, b->probes);
}

void recovery_stop(struct qp *qp)
{
	qp->req.board.probe_at = TIME_NEVER;
	qp->req.board.late_at = TIME_NEVER;
}

/*
 * The oldest packet once more. The peer may say that it holds it, but has not acknowledged it. A
 * response that is held waits for its copy, not for the peer.
 */
static void probe(struct qp *qp)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;

	assert(r->una != r->begun && r->una_psn != r->top_psn);
	open_board(r);
	if (psn_set_has(board_set(b, BOARD_HELD), r->una_psn) &&
	    kind_is_fetching(message_at(r, r->una)->kind))
		return;
	if (!overtaken_sent_once(b, r->una_psn))
		b->twice = r->top_psn;
	psn_set_remove(board_set(b, BOARD_HELD), r->una_psn);
	begin_young(r, true);
	path_probed(qp->path);
	b->probe_psn = r->una_psn;
	b->probe_mark = r->top_psn;
	b->probes = (uint8_t)MIN_OF(b->probes + 1u, LIMIT_PROBE_DOUBLINGS);
	recovery_lost(qp, r->una_psn, 1);
	request_resume(qp);
}

/*
 * No packet in flight asks for an acknowledgement. The next one will; it waits for its turn or for
 * the port.
 */
static bool nobody_asked(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	return r->unasked > 0 && r->unasked >= ((r->nxt_psn - r->una_psn) & PSN_MASK) &&
	       request_ready(qp);
}

void recovery_expired(struct qp *qp, nanotime now)
{
	struct requester *r = &qp->req;
	struct board *b = &r->board;

	if (now >= b->late_at) {
		b->late_at = TIME_NEVER;
		if (overtaken(r, b->late, b->late_data, false))
			found_lost(qp, now);
		look(qp, now);
	}
	if (now < b->probe_at)
		return;
	b->probe_at = TIME_NEVER;
	if (r->una_psn == r->top_psn || r->rnr_until != TIME_NEVER)
		return;
	/*
	 * The next packet is not new: the path or the port holds it back. But what the path waits
	 * for may be lost itself, and only a packet behind it tells.
	 */
	if (nobody_asked(qp)) {
		recovery_wait(qp, now);
		return;
	}
	if (r->una_psn != r->nxt_psn || (r->held && r->flying_psns > 0)) {
		nanotime until = now + patience(qp, r->alone ? 0 : b->probes),
			 at = path_ask(qp->path, r->alone, b->quiet_at, now, until);

		if (at > now) {
			b->probe_at = at;
			return;
		}
		if (b->probes >= LIMIT_PROBES_ALONE)
			flight_alone(qp);
		probe(qp);
	}
	recovery_wait(qp, now);
}
