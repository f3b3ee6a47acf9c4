/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain case of receiving: the questions of respond.c, asked at once for nearly all requests.
 */
#ifndef TRANSPORT_EXPECTED_H
#define TRANSPORT_EXPECTED_H

#include <stdbool.h>

struct key_table;
struct opcode_info;
struct outcome;
struct packet;
struct qp;
struct recv_work;

/*
 * Takes the packet if it is the expected one and well formed (all of a WRITE or SEND, the middle of
 * a longer one, or a READ), and no NAK waits for it. The caller looks for other gaps then
 * (respond_passed). False: another case; only out->place has changed, and respond.c finds out what
 * to do. The packet was checked as far as it can be without the responder (check_arrival).
 */
bool expected_received(struct qp *qp, const struct packet *p, const struct opcode_info *op,
		       const struct recv_work *offer, const struct key_table *keys,
		       struct outcome *out);

#endif
