/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attributes and masks for a connection's queue pair on its way to RTS, as Linux gives them
 * (rdma_init_qp_attr).
 */
#include <errno.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"

/*
 * How many of the peer's READs and atomics the responder serves at once. Before the negotiation: as
 * many as the peer asks for.
 */
static uint8_t responder_resources(const struct cm_link *l)
{
	uint8_t n = cm_state(&l->core) == CM_REQ_RECEIVED
			    ? cm_peer_message(&l->core)->initiator_depth
			    : l->core.responder_resources;

	return MIN_OF(n, LIMIT_RD_ATOMIC);
}

static uint8_t initiator_depth(const struct cm_link *l)
{
	uint8_t n = cm_state(&l->core) == CM_REQ_RECEIVED
			    ? cm_peer_message(&l->core)->responder_resources
			    : l->core.initiator_depth;

	return MIN_OF(n, LIMIT_RD_ATOMIC);
}

static void to_init(const struct cm_id *id, struct qp_attributes *a, uint32_t *mask)
{
	const struct cm_link *l = id->connection;

	a->port_num = 1;
	a->pkey_index = 0;
	*mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT;
	if (id->qp_type == QP_TYPE_UD) {
		a->qkey = CM_UDP_QKEY;
		*mask |= QP_ATTR_QKEY;
		return;
	}
	*mask |= QP_ATTR_ACCESS_FLAGS;
	if (l == NULL)
		return;
	a->access_flags = ACCESS_REMOTE_WRITE;
	if (responder_resources(l) != 0)
		a->access_flags |= ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
}

static void to_rtr(const struct engine *e, const struct cm_id *id, struct qp_attributes *a,
		   uint32_t *mask)
{
	const struct cm_link *l = id->connection;

	a->path = l->path;
	a->path_mtu = MIN_OF(id->path_mtu, e->active_mtu);
	a->dest_qpn = l->core.remote_qpn;
	a->rq_psn = l->own_psn;
	*mask = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
	if (id->qp_type != QP_TYPE_RC && id->qp_type != QP_TYPE_XRC_RECV)
		return;
	a->max_dest_rd_atomic = responder_resources(l);
	a->min_rnr_timer = 0;
	*mask |= QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
}

/* The REQ says how long the peer's acknowledgements may take. An option of the id overrides it. */
static uint8_t ack_timeout(const struct cm_id *id)
{
	const struct cm_message *m = cm_peer_message(&id->connection->core);

	if (id->connection->passive && id->ack_timeout == 0 && m->attribute == CM_REQ &&
	    m->primary.ack_timeout != 0)
		return m->primary.ack_timeout;
	return cm_ack_timeout(id);
}

static void to_rts(const struct cm_id *id, struct qp_attributes *a, uint32_t *mask)
{
	const struct cm_link *l = id->connection;
	bool requests = id->qp_type == QP_TYPE_RC || id->qp_type == QP_TYPE_XRC_SEND;

	a->sq_psn = l->core.remote_psn;
	*mask = QP_ATTR_STATE | QP_ATTR_SQ_PSN;
	if (requests || id->qp_type == QP_TYPE_XRC_RECV) {
		a->timeout = ack_timeout(id);
		*mask |= QP_ATTR_TIMEOUT;
	}
	if (!requests)
		return;
	a->retry_cnt = l->passive ? cm_peer_message(&l->core)->retry_count : l->retry_count;
	a->rnr_retry = cm_peer_message(&l->core)->rnr_retry_count;
	a->max_rd_atomic = initiator_depth(l);
	*mask |= QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_RD_ATOMIC;
}

/* Whether the peer's parameters are known. */
static bool knows_peer(const struct cm_link *l)
{
	switch (cm_state(&l->core)) {
	case CM_REQ_RECEIVED:
	case CM_REP_SENT:
	case CM_REP_RECEIVED:
	case CM_ESTABLISHED:
		return true;
	default:
		return false;
	}
}

int cm_attributes(const struct engine *e, struct cm_id *id, uint32_t state, struct qp_attributes *a,
		  uint32_t *mask)
{
	struct cm_link *l = id->connection;

	a->state = state;
	if (state == QP_STATE_INIT &&
	    (l == NULL || l->datagram || knows_peer(l) || cm_state(&l->core) == CM_REQ_SENT)) {
		to_init(id, a, mask);
		return 0;
	}
	if (id->qp_type == QP_TYPE_UD) {
		*mask = QP_ATTR_STATE | (state == QP_STATE_RTS ? QP_ATTR_SQ_PSN : 0);
		return state == QP_STATE_RTR || state == QP_STATE_RTS ? 0 : EINVAL;
	}
	if (l == NULL || !knows_peer(l))
		return EINVAL;
	if (state == QP_STATE_RTR)
		to_rtr(e, id, a, mask);
	else if (state == QP_STATE_RTS)
		to_rts(id, a, mask);
	else
		return EINVAL;
	return 0;
}
