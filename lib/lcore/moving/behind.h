/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that came ahead of others: requests behind a gap, and responses of atomics behind one. They
 * wait at their queue pair, in the order of their PSNs, and go on when the gap closes. See behind.c.
 */
#ifndef LCORE_BEHIND_H
#define LCORE_BEHIND_H

#include "lcore/lcore.h"

struct behind_far *behind_far_create(void); /* NULL: no memory; free() it */

/* Keeps a packet that the core cannot take yet, and the mbuf with it. False: no room. */
bool behind_keep(struct lcore *l, struct engine_qp *q, const struct packet *p, struct rte_mbuf *m,
		 nanotime now);
/* Passes on the packets that no longer wait, in order. */
void behind_release(struct lcore *l, struct engine_qp *q, nanotime now);
/* Drops the kept packets: the queue pair is in ERR, is reset or is destroyed. */
void behind_forget(struct lcore *l, struct engine_qp *q);

static inline bool behind_any(const struct engine_qp *q)
{
	return q->behind_count > 0;
}

#endif
