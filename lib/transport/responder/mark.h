/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Marks of the network. A switch whose queue is long sets CE in the IP header instead of dropping
 * the packet (RFC 3168). The receiver of a connection's packet with CE sends a congestion
 * notification (CNP, IBTA A17.9) to the other end, at most one in LIMIT_CNP_US, as hardware does.
 * READ responses count like requests, because they fill queues, too. How many of them are on the way is
 * up to the requester, so its window shrinks as if a notification had come.
 */
#ifndef TRANSPORT_MARK_H
#define TRANSPORT_MARK_H

#include "transport/qp.h"
#include "wire/header.h"

struct packet;

/* This packet of the connection came with CE. A mere acknowledgement has no effect. */
void mark_seen(struct qp *qp, const struct packet *p, nanotime now);
/* Makes the notification that is due. */
void mark_notify(struct qp *qp, struct packet *p);

#endif
