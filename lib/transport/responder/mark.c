/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "config/limits.h"
#include "transport/responder/mark.h"
#include "wire/opcode.h"
#include "wire/packet.h"

void mark_seen(struct qp *qp, const struct packet *p, nanotime now)
{
	struct responder *r = &qp->resp;
	uint8_t kind = opcode_table[p->opcode].kind;

	if (now < r->cnp_at || kind == KIND_ACK || kind == KIND_SELECTIVE_ACK)
		return;
	r->cnp_due = true;
	r->cnp_at = now + LIMIT_CNP_US * TIME_US;
	if (kind == KIND_READ_RESPONSE && qp->path != NULL)
		path_cnp(qp->path, now);
}

void mark_notify(struct qp *qp, struct packet *p)
{
	assert(qp->resp.cnp_due && !qp_type_unreliable(qp->type));
	qp->resp.cnp_due = false;
	path_count(qp->path, PATH_CNP_SENT);
	p->opcode = OPCODE_CNP;
	p->psn = 0;
	p->becn = true;
	/* All other bits are 0, as hardware sends them. */
	p->mig_req = false;
	p->selective = false;
}
