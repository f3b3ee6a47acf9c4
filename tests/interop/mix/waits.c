/* SPDX-License-Identifier: BSD-3-Clause */
/* What a round that does not end waits for, at this end. */
#include "mix.h"

#include <stdio.h>

static void requests(struct mix *m, struct mix_qp *q)
{
	uint32_t end = (m->round + 1) * m->script.per_round;
	const struct mix_op *op = &q->ops[q->completed % MIX_WINDOW];

	if (q->completed != q->posted)
		fprintf(stderr, ", request %u (opcode %d, %u octets) is not completed",
			q->completed, op->opcode, op->length);
	fprintf(stderr, ", %u of %u are posted", q->posted, end);
}

static void messages(struct mix *m, struct mix_qp *q)
{
	struct mix_op op;
	uint32_t number;

	if (mix_end_of(m, q).how != MIX_NO_BREAK)
		fprintf(stderr, ", it is to break");
	else if (mix_missing(m, q, &op, &number))
		fprintf(stderr, ", the message of request %u (opcode %d, %u octets) did not come",
			number, op.opcode, op.length);
	fprintf(stderr, ", receive requests %u to %u wait", q->receives_done, q->receives_posted);
}

/* What the device itself would do next. */
static void device(struct mix_qp *q)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	if (ibv_query_qp(q->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init) == 0)
		fprintf(stderr, ", state %d, sends %#x next, expects %#x", a.qp_state, a.sq_psn,
			a.rq_psn);
}

void mix_say_wait(struct mix *m, struct mix_qp *q)
{
	fprintf(stderr, "mix: queue pair %u (%#x to %#x)", q->number, q->here.qpn, q->there.qpn);
	requests(m, q);
	if (mix_type(q->number) == IBV_QPT_RC)
		messages(m, q);
	device(q);
	fprintf(stderr, "\n");
}
