/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of one packet: UD and RAW_PACKET. */
#ifndef TRANSPORT_SINGLE_H
#define TRANSPORT_SINGLE_H

#include <stdint.h>

#include "base/reason.h"
#include "base/work.h"

struct key_table;
struct outcome;
struct packet;
struct qp;

/* A request of that many octets: STATUS_SUCCESS, or the status with which it fails in its turn. */
enum work_status single_check(const struct qp *qp, const struct send_work *w, uint64_t length);
/* These octets are the whole message, for one receive request. */
enum reason single_received(struct qp *qp, const struct packet *p, const uint8_t *octets,
			    uint32_t length, const struct recv_work *offer,
			    const struct key_table *keys, struct outcome *out);

#endif
