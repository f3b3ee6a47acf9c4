/* SPDX-License-Identifier: BSD-3-Clause */
/* The plain case of READ responses: the questions of answer.c, asked at once for nearly all of
 * them.
 */
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
 * Takes the packet if it is the next READ response, well formed, while nothing is lost, repeated or
 * failing. False: another case; nothing has changed, and answer.c finds out what to do.
 */
bool plain_answer_received(struct qp *qp, const struct packet *p, const struct opcode_info *op,
			   const struct key_table *keys, nanotime now, struct outcome *out);

#endif
