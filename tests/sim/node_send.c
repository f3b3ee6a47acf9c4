/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node sends: packets with their payloads, and requests that need none. */
#include <stdio.h>
#include <string.h>

#include "node.h"
#include "transport/psn.h"

static void gather(const struct node *n, const struct span_list *from, uint8_t *to)
{
	for (uint32_t i = 0; i < from->count; i++) {
		memcpy(to, node_at(n, &from->span[i]), from->span[i].length);
		to += from->span[i].length;
	}
}

bool node_operate(struct node_qp *q, enum work_status status, nanotime now)
{
	const struct key_operation *o = qp_operation(q->core);

	if (o == NULL)
		return false;
	if (status == STATUS_SUCCESS && o->bind)
		node_bind(q->node, o);
	else if (status == STATUS_SUCCESS)
		key_withdraw(&q->node->keys, o->key);
	qp_operation_done(q->core, status, REASON_KEY_ACCESS);
	node_collect(q, now);
	return true;
}

bool node_next(struct node_qp *q, nanotime now, struct packet *p, uint8_t *payload)
{
	struct span_list spans;
	nanotime not_before = 0;

	span_list_clear(&spans);
	if (!qp_has_packet(q->core))
		return false;
	switch (qp_next_packet(q->core, &q->node->keys, now, p, &spans, &not_before)) {
	case NEXT_PACKET:
		break;
	case NEXT_NOT_BEFORE:
		node_collect(q, now);
		q->not_before = not_before;
		return false;
	case NEXT_HELD:
		node_collect(q, now);
		return false;
	case NEXT_OPERATION:
		if (q->node->hold_operations)
			return false;
		node_operate(q, STATUS_SUCCESS, now);
		return node_next(q, now, p, payload);
	default:
		node_collect(q, now);
		return false;
	}
	if (p->payload == NULL && p->payload_length > 0) {
		if (spans.length != p->payload_length)
			snprintf(q->node->fault, sizeof(q->node->fault),
				 "psn %06x: %u octets of payload, %u to be gathered", p->psn,
				 p->payload_length, spans.length);
		gather(q->node, &spans, payload);
		p->payload = payload;
	}
	if (qp_state(q->core) == QP_STATE_ERR)
		node_collect(q, now); /* it may have failed while it searched for the packet */
	q->deadline = qp_deadline(q->core);
	return true;
}

bool node_next_alike(struct node_qp *q, nanotime now, const struct packet *before, struct packet *p,
		     uint8_t *payload)
{
	struct span_list spans;

	if (qp_next_alike(q->core, before, &q->node->keys, 1, now, &spans) == 0)
		return false;
	*p = *before;
	p->psn = psn_add(before->psn, 1);
	p->ack_req = false;
	gather(q->node, &spans, payload);
	p->payload = payload;
	q->deadline = qp_deadline(q->core);
	return true;
}
