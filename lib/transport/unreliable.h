/* SPDX-License-Identifier: BSD-3-Clause */
/* The services without acknowledgements, as the rest of the core uses them. */
#ifndef TRANSPORT_UNRELIABLE_H
#define TRANSPORT_UNRELIABLE_H

#include "transport/outcomes.h"
#include "transport/ticket.h"

enum reason unreliable_received(struct qp *qp, const struct packet *p,
				const struct recv_work *offer, const struct key_table *keys,
				struct outcome *out);
bool unreliable_wants_receive(const struct qp *qp, const struct packet *p);
void unreliable_copy_failed(struct qp *qp, const struct ticket *t, enum reason why);
void enter_sq_error(struct qp *qp); /* to SQE: the rest of the window is flushed */

#endif
