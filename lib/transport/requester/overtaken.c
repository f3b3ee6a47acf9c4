/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bits.h"
#include "transport/requester/kind.h"
#include "transport/requester/overtaken.h"
#include "transport/requester/parts.h"

/* Repetitions, in one of the two sets, that are lost. */
static bool repetitions_in(struct requester *r, enum board_set which, uint32_t from, uint32_t count,
			   bool asked)
{
	struct board *b = &r->board;
	struct psn_set set = board_set(b, which), held = board_set(b, BOARD_HELD);

	if (!psn_set_would_move(set, from, count, held))
		return false;
	if (!asked) {
		psn_set_move(board_set(b, BOARD_LOST), set, from, count, held);
		b->twice = r->top_psn;
	}
	return true;
}

/*
 * Moves packets of [from, from + count) to `lost` that were overtaken by something sent at `by` or
 * later. True: there were some. `asked`: only answers, and moves nothing.
 */
static bool overtaken_in(struct requester *r, uint32_t from, uint32_t count, uint32_t by,
			 bool asked)
{
	const struct board *b = &r->board;
	const struct psn_set except[] = { board_set(b, BOARD_HELD), board_set(b, BOARD_OLD),
					  board_set(b, BOARD_YOUNG) };
	struct psn_set lost = board_set(b, BOARD_LOST);
	uint32_t begin = ahead(r, from), end = ahead(r, by), n = end - MIN_OF(begin, end);
	bool any = false;

	n = MIN_OF(n, count);
	if (n > 0)
		any |= asked ? psn_set_would_fill(lost, from, n, except, 3)
			     : psn_set_fill(lost, from, n, except, 3);
	if (end > 0 && ahead(r, b->old_mark) <= end)
		any |= repetitions_in(r, BOARD_OLD, from, count, asked);
	if (end > 0 && ahead(r, b->young_mark) <= end)
		any |= repetitions_in(r, BOARD_YOUNG, from, count, asked);
	return any;
}

uint32_t overtaken_part(const struct requester *r, uint32_t i, uint32_t until, uint32_t *from)
{
	const struct message *m = message_at(r, i);
	uint32_t begin, rest;

	*from = i == r->una ? r->una_psn : m->first_psn;
	begin = ahead(r, *from);
	rest = (message_end(m) - *from) & PSN_MASK;
	return until > begin ? MIN_OF(rest, until - begin) : 0;
}

/*
 * A response may only be late because its request waits behind a gap at the peer. What is missing is the
 * request at the gap: an atomic, a READ or a part of it.
 */
static bool overtaken_gap(struct requester *r, const struct message *m, uint32_t data, bool asked)
{
	struct part part = part_of(m, (r->board.gap - m->first_psn) & PSN_MASK);
	uint32_t begin = psn_add(m->first_psn, part.begin), end = psn_add(m->first_psn, part.end);

	if (psn_after(r->una_psn, begin))
		begin = r->una_psn;
	return psn_after(end, begin) &&
	       overtaken_in(r, begin, (end - begin) & PSN_MASK, data, asked);
}

/* All messages are READs or atomics. Only what is at the gap has another limit, a later one. */
static bool overtaken_fetching(struct requester *r, uint32_t all, uint32_t data, bool asked)
{
	uint32_t gap = r->board.gap, first = message_at(r, r->una)->first_psn;
	bool any = overtaken_in(r, r->una_psn, on_its_way(r), all, asked);

	if (!psn_within(gap, first, (r->top_psn - first) & PSN_MASK))
		return any;
	return overtaken_gap(r, message_at(r, message_of(r, gap)), data, asked) || any;
}

static bool overtaken_message(struct requester *r, uint32_t i, uint32_t all, uint32_t data,
			      bool asked)
{
	const struct message *m = message_at(r, i);
	bool fetches = kind_is_fetching(m->kind), any;
	uint32_t from, n = overtaken_part(r, i, on_its_way(r), &from);

	if (n == 0)
		return false;
	any = overtaken_in(r, from, n, fetches ? all : data, asked);
	if (fetches && psn_within(r->board.gap, m->first_psn, m->packets))
		any |= overtaken_gap(r, m, data, asked);
	return any;
}

/* This runs for each packet that comes behind a gap, so it looks at messages only if they differ.
 */
bool overtaken(struct requester *r, uint32_t all, uint32_t data, bool asked)
{
	bool any = false, data_is_later = ahead(r, data) > ahead(r, all);

	if (r->rd_atomic == 0 || !data_is_later)
		return overtaken_in(r, r->una_psn, on_its_way(r), data_is_later ? data : all,
				    asked);
	if (r->rd_atomic == r->begun - r->una)
		return overtaken_fetching(r, all, data, asked);
	for (uint32_t i = r->una; i != r->begun; i++)
		any |= overtaken_message(r, i, all, data, asked);
	return any;
}

bool overtaken_again(struct requester *r, uint32_t from, uint32_t count)
{
	bool any = repetitions_in(r, BOARD_OLD, from, count, false);

	return repetitions_in(r, BOARD_YOUNG, from, count, false) || any;
}

bool overtaken_by_none(const struct qp *qp, uint32_t psn)
{
	const struct requester *r = &qp->req;
	const struct board *b = &r->board;

	return !b->clean && b->probes == 0 && r->rnr_until == TIME_NEVER && ahead(r, psn) > 0 &&
	       psn_set_has(board_set(b, BOARD_HELD), psn) &&
	       further(r, b->passed, b->passed_data) == psn_add(psn, 1);
}

uint32_t overtaken_all_sent_once(const struct requester *r, uint32_t psn, uint32_t psns)
{
	assert(ahead(r, psn) + psns <= on_its_way(r));
	for (uint32_t i = 0; i < BOARD_SETS; i++)
		psns = psn_set_first(board_set(&r->board, i), psn, psns);
	return psns;
}

static bool was_repeated(const struct board *b, uint32_t psn)
{
	return psn_set_has(board_set(b, BOARD_OLD), psn) ||
	       psn_set_has(board_set(b, BOARD_YOUNG), psn);
}

bool overtaken_sent_once(const struct board *b, uint32_t psn)
{
	return !was_repeated(b, psn) && !psn_set_has(board_set(b, BOARD_LOST), psn);
}

/*
 * Whether a repeated packet may arrive ahead of packets sent before it. Its older repetition may.
 * And a peer answers the oldest READ first, whatever was asked before.
 */
static bool may_be_early(const struct requester *r, uint32_t psn, uint32_t top)
{
	const struct board *b = &r->board;

	return psn != b->again || ahead(r, b->twice) > 0 || r->rd_atomic > 0 ||
	       ahead(r, further(r, top, b->told)) + LIMIT_REORDER_FIRST >= ahead(r, b->young_mark);
}

/*
 * `top` is the PSN behind the newest packet that came, which may be this one. Also if the packet was sent again: a
 * repetition does not overtake earlier packets, so the first copy came.
 */
void overtaken_arrived(struct qp *qp, uint32_t psn, nanotime now)
{
	const struct requester *r = &qp->req;
	const struct board *b = &r->board;
	uint32_t top = further(r, b->passed, b->passed_data), places = (top - psn) & PSN_MASK;
	bool lost = psn_set_has(board_set(b, BOARD_LOST), psn) && ahead(r, b->twice) > 0;

	if (qp->path == NULL || places <= 1 || places > board_window(b) || lost ||
	    psn_set_has(board_set(b, BOARD_HELD), psn) ||
	    (was_repeated(b, psn) && may_be_early(r, psn, top)))
		return;
	path_reordered(qp->path, places, now);
}

void overtaken_first_response(struct qp *qp, uint32_t psn, nanotime now)
{
	const struct requester *r = &qp->req;
	const struct board *b = &r->board;
	uint32_t places = (further(r, b->passed, b->passed_data) - psn) & PSN_MASK;

	if (qp->path == NULL || b->clean || places <= 1 || places > board_window(b) ||
	    psn != b->again || !b->again_is_one || ahead(r, b->twice) > 0 || !was_repeated(b, psn))
		return;
	path_reordered(qp->path, places, now);
}
