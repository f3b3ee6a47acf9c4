/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain case of READ responses: what answer.c asks of each, asked for nearly all of them at once. */
#ifndef TRANSPORT_PLAIN_ANSWER_H
#define TRANSPORT_PLAIN_ANSWER_H

#include <stdbool.h>

#include "base/time.h"

struct key_table;
struct opcode_info;
struct outcome;
struct packet;
struct qp;

/*
 * Takes the packet if it is the READ response that comes next, as it should be, while nothing is lost, was
 * sent again or fails. False: it is not so; nothing is changed then, and answer.c finds out what to do.
 */
bool plain_answer_received(struct qp *qp, const struct packet *p, const struct opcode_info *op,
			   const struct key_table *keys, nanotime now, struct outcome *out);

#endif
