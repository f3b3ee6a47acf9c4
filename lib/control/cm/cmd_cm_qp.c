/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Moves a connection's queue pair through its states in the engine, which knows the attributes: in
 * one step, together with the connection's next action.
 */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"

/*
 * Adds the access flags that INIT would set now. The queue pair was created and moved to INIT
 * before the negotiation, and need not go through INIT again.
 */
static void let_peer_in(struct qp_attributes *a, uint32_t *mask)
{
	a->access_flags = ACCESS_REMOTE_WRITE;
	if ((*mask & QP_ATTR_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > 0)
		a->access_flags |= ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	*mask |= QP_ATTR_ACCESS_FLAGS;
}

static void choose(struct qp_step *s, uint32_t state, const struct cm_connect_parameters *p)
{
	if (state == QP_STATE_RTR && p->responder_resources != UINT8_MAX)
		s->attributes.max_dest_rd_atomic = p->responder_resources;
	if (state == QP_STATE_RTS && p->initiator_depth != UINT8_MAX)
		s->attributes.max_rd_atomic = p->initiator_depth;
}

static int make_step(struct call *call, struct cm_id *id, uint32_t state,
		     const struct cm_connect_parameters *chosen, struct qp_step *s)
{
	if (state == QP_STATE_ERR) {
		s->attributes.state = state;
		s->mask = QP_ATTR_STATE;
		return 0;
	}
	if (cm_attributes(call->engine, id, state, &s->attributes, &s->mask) != 0)
		return call_fail(call, EINVAL, "the id's connection has no attributes for state %u",
				 state);
	if (id->qp_type == QP_TYPE_UD)
		return 0;
	if (state == QP_STATE_RTR)
		let_peer_in(&s->attributes, &s->mask);
	if (chosen != NULL)
		choose(s, state, chosen);
	return 0;
}

int cm_move_qp(struct call *call, struct cm_id *id, uint32_t handle, uint32_t steps,
	       const struct cm_connect_parameters *chosen, uint32_t *state)
{
	static const uint32_t states[QP_STEPS_MAX] = { QP_STATE_INIT, QP_STATE_RTR, QP_STATE_RTS,
						       QP_STATE_ERR };
	struct qp_step step[QP_STEPS_MAX] = { 0 };
	struct engine_qp *q = qp_of_handle(call->client, handle);
	uint32_t n = 0;

	if (q == NULL || q->type != id->qp_type)
		return call_fail(call, EINVAL,
				 "no such queue pair, or it has another type than the id");
	for (uint32_t i = 0; i < QP_STEPS_MAX; i++) {
		int error = 0;

		if (steps & 1u << i)
			error = make_step(call, id, states[i], chosen, &step[n++]);
		if (error != 0)
			return error;
	}
	return qp_take_steps(call, q, step, n, state);
}

void cm_start_qp(struct call *call, uint32_t handle, uint32_t qp, uint32_t *state)
{
	struct cm_id *id = object_find(call->client, OBJECT_CM_ID, handle);
	uint32_t steps = CM_QP_INIT;

	if (id == NULL)
		return;
	if (id->qp_type == QP_TYPE_UD)
		steps |= CM_QP_RTR | CM_QP_RTS;
	if (cm_move_qp(call, id, qp, steps, NULL, state) != 0)
		call->reply.why[0] = '\0';
}

int cmd_cm_modify_qp(struct call *call)
{
	const struct request_cm_modify_qp *r = (const struct request_cm_modify_qp *)call->request;
	struct reply_modify_qp *reply = (struct reply_modify_qp *)&call->reply;
	struct cm_id *id = cm_id_of_call(call, r->id);
	int error;

	if (id == NULL)
		return EINVAL;
	if (r->steps == 0 || r->steps >= 1u << QP_STEPS_MAX || r->then > CM_THEN_DISCONNECT)
		return call_fail(call, EINVAL, "unknown steps 0x%x or action %u", r->steps,
				 r->then);
	error = cm_move_qp(call, id, r->qp, r->steps, NULL, &reply->state);
	if (r->then == CM_THEN_DISCONNECT) {
		call->reply.why[0] = '\0'; /* a disconnect is allowed in any state */
		return cm_id_disconnect(call, id);
	}
	return error;
}
