/* SPDX-License-Identifier: BSD-3-Clause */
/* The common reply, made without asking what else it might be. */
#ifndef TRANSPORT_PLAIN_REPLY_H
#define TRANSPORT_PLAIN_REPLY_H

#include <stdbool.h>

struct key_table;
struct packet;
struct qp;
struct span_list;

/* False: the next reply is another one, or must wait; nothing has changed then. reply_next() makes it. */
bool plain_reply(struct qp *qp, const struct key_table *keys, struct packet *p,
		 struct span_list *gather);

#endif
