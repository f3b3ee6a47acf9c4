/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery in round trips: which packets are lost, and what is sent again. The rules stand in
 * recovery.c; they hold towards every peer.
 *
 * A queue pair without a path (path.h) knows no time between its packets. It sends no probes, and
 * takes overtaken packets for lost at once.
 */
#ifndef TRANSPORT_RECOVERY_H
#define TRANSPORT_RECOVERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct qp;

void recovery_reset(struct qp *qp);
/* A packet of `psns` PSNs was made that was sent before. */
void recovery_sent(struct qp *qp, uint32_t psn, uint32_t psns);
/* Nothing from this PSN on was sent after all. */
void recovery_unsent_from(struct qp *qp, uint32_t psn);
/* These packets are to be sent again. */
void recovery_lost(struct qp *qp, uint32_t psn, uint32_t psns);
/* The oldest, and all in flight that the peer is not known to have, are to be sent again. */
void recovery_all_lost(struct qp *qp);
/* Those that the peer said it has, too: nothing is believed any more. */
void recovery_start_over(struct qp *qp);

/* An acknowledgement or a response in its window came: if it was probed, the path is not silent. */
void recovery_heard(struct qp *qp);
/* una_psn was `from` until now. */
void recovery_advanced(struct qp *qp, uint32_t from, nanotime now);
/*
 * The peer acknowledges everything before `end`, but una_psn belongs to a READ or atomic whose
 * response is missing: what was sent before the packet with PSN `by` was overtaken.
 */
void recovery_stopped(struct qp *qp, uint32_t end, uint32_t by, nanotime now);
/* The response with this PSN came before others: it has its place, or waits with the caller. */
void recovery_response_held(struct qp *qp, uint32_t psn, nanotime now);

/*
 * So many responses, all sent once, came in their order behind the newest one (overtaken_by_none): all have their places.
 */
void recovery_run_held(struct qp *qp, uint32_t psn, uint32_t psns, nanotime now);

/*
 * The peer has all before `next`, and what the selection names, whose bits begin at `first`
 * (packet.h). The caller has checked that all this was sent.
 */
void recovery_selected(struct qp *qp, uint32_t next, uint32_t first, const uint64_t selection[],
		       nanotime now);

/* The clocks, as the retransmission timer is set and stopped. */
void recovery_wait(struct qp *qp, nanotime now);
void recovery_stop(struct qp *qp);
void recovery_expired(struct qp *qp, nanotime now);

#endif
