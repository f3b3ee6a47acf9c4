/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of a tag matching SRQ, as the commands of SRQs make and free it (cmd_tag.c). */
#ifndef CONTROL_TAG_CONTROL_H
#define CONTROL_TAG_CONTROL_H

#include "control/control.h"
#include "lcore/tag/tag.h"

int tags_check(struct call *call, const struct request_create_srq *r);
int tags_build(struct call *call, struct engine_srq *s, const struct request_create_srq *r);
void tags_unbuild(struct client *c, struct engine_srq *s);
void tags_describe(const struct engine_srq *s, struct reply_create_srq *reply);
/* Adds room for the engine's own requests on queue pairs of a tag matching SRQ. */
void tags_widen(struct qp_caps *caps);

#endif
