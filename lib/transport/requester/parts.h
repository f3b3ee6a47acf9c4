/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of READs. A READ asks for as much as the path's window and its own leave room for, and for
 * the rest later. The next part may follow when the first response of the one before has come, so
 * two are under way at most:
 *
 *	0      una_psn   asked_from      asked_to      packets
 *	|- - - - -|---------|===============|- - - - - - -|	(counted from first_psn)
 *	 answered   the part   the last part   not asked
 *	            before                     for yet
 *
 * If the next part waited for all responses, the path would be empty each time that a part is asked
 * for. The round trip of that request, which is the one that is timed, would never show the queue
 * that this READ causes for others (docs/decisions/0014-paths.md).
 */
#ifndef TRANSPORT_PARTS_H
#define TRANSPORT_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/psn.h"
#include "transport/qp.h"
#include "wire/opcode.h"

/* Where the part ends that packet `done` of the READ belongs to. */
static inline uint32_t part_end(const struct message *m, uint32_t done)
{
	return done < m->asked_from ? m->asked_from : m->asked_to;
}

/*
 * Whether any of the part that packet `done` belongs to has come. If not, its request may not have
 * arrived: then the peer would take each piece for a request of its own, more than
 * max_dest_rd_atomic. The part before the last one was answered before the last one was asked for.
 */
static inline bool part_answered(const struct requester *r, const struct message *m, uint32_t done)
{
	uint32_t begin = psn_add(m->first_psn, m->asked_from), n = m->asked_to - m->asked_from;

	return done < m->asked_from || psn_after(r->una_psn, begin) ||
	       (!r->board.clean && psn_set_first(board_set(&r->board, BOARD_HELD), begin, n) < n);
}

/* Two parts of the oldest message are under way. */
static inline bool parts_are_two(const struct requester *r)
{
	const struct message *m = message_at(r, r->una);

	return r->una != r->begun && m->kind == KIND_READ_REQUEST &&
	       ((r->una_psn - m->first_psn) & PSN_MASK) < m->asked_from;
}

/* Whether the peer has room for one more READ or atomic: each part takes some. */
static inline bool parts_leave_room(const struct qp *qp)
{
	const struct requester *r = &qp->req;
	uint32_t most = qp->attr.max_rd_atomic;

	return r->rd_atomic < most && (r->rd_atomic + 1 < most || !parts_are_two(r));
}

/*
 * Whether message nxt, a READ that has sent the request for its last part, may send the next one
 * before all responses have come. If one of this part has, the READ is the oldest message. Not if
 * something was lost, because a repetition may end a part early.
 */
static inline bool part_may_follow(const struct qp *qp, const struct message *m)
{
	const struct requester *r = &qp->req;

	return r->board.clean && !m->asked_again && qp->attr.max_rd_atomic > 1 &&
	       psn_after(r->una_psn, psn_add(m->first_psn, m->asked_from));
}

#endif
