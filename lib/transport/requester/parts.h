/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of READs. To the peer, each part is a READ of its own. Several are under way at once, as many
 * as the peer has room for (max_rd_atomic) and the path's window allows:
 *
 *	0      una_psn            base           asked_to      packets
 *	|- - - - -|----|----|----|----|========|========|- - - - - - -|	(counted from first_psn)
 *	 answered   parts of the size   parts of this      not asked
 *	            before                  size            for yet
 *
 * The last part ends with the READ. The others have a power of two of packets, so that nothing has to be
 * remembered of each. Their size follows the path's window, and changes again when all parts of the size
 * before are answered.
 *
 * One request for all that the window has room for would be one burst of responses, which a short queue
 * does not hold. And the request is what is timed: it must meet the queue that its own READ causes for
 * others (docs/decisions/0014-paths.md).
 */
#ifndef TRANSPORT_PARTS_H
#define TRANSPORT_PARTS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "transport/psn.h"
#include "transport/qp.h"
#include "wire/opcode.h"

struct part {
	uint32_t begin, end; /* packets of the READ */
};

/* The part that packet `done` of the READ belongs to. */
static inline struct part part_of(const struct message *m, uint32_t done)
{
	uint32_t n;

	assert(done < m->packets);
	if (done < m->base) {
		n = (m->base - done - 1) >> m->part_before;
		return (struct part){ .begin = m->base - ((n + 1) << m->part_before),
				      .end = m->base - (n << m->part_before) };
	}
	n = (done - m->base) >> m->part;
	return (struct part){ .begin = m->base + (n << m->part),
			      .end = MIN_OF(m->base + ((n + 1) << m->part), m->packets) };
}

/*
 * Whether any of the part that packet `done` belongs to has come. If not, its request may not have
 * arrived: then the peer would take each piece for a request of its own, more than
 * max_dest_rd_atomic.
 */
static inline bool part_answered(const struct requester *r, const struct message *m, uint32_t done)
{
	struct part p = part_of(m, done);
	uint32_t begin = psn_add(m->first_psn, p.begin), n = p.end - p.begin;

	return psn_after(r->una_psn, begin) ||
	       (!r->board.clean && psn_set_first(board_set(&r->board, BOARD_HELD), begin, n) < n);
}

/* una_psn goes on over packets [done, to) of the READ: parts that end before it does leave room at the peer. */
static inline void parts_passed(struct requester *r, const struct message *m, uint32_t done,
				uint32_t to)
{
	assert(done < to && to <= m->packets);
	while (done < to) {
		done = part_of(m, done).end;
		if (done <= to && done < m->packets)
			r->more_parts--;
	}
}

/* Whether the peer has room for one more READ or atomic: each part takes some. */
static inline bool parts_leave_room(const struct qp *qp)
{
	const struct requester *r = &qp->req;

	assert((int32_t)r->rd_atomic + r->more_parts >= 0);
	return (int32_t)r->rd_atomic + r->more_parts < qp->attr.max_rd_atomic;
}

/* Whether all parts of the size before are answered. */
static inline bool parts_may_change(const struct requester *r, const struct message *m)
{
	return !psn_after(psn_add(m->first_psn, m->base), r->una_psn);
}

#endif
