/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and datagram services: asked for, accepted, refused, ended. */
#include <string.h>

#include "rdmacm/types.h"

#define REJECT_CONSUMER	     28u /* protocol-map 193 */
#define REJECT_VENDOR_OPTION 35u
#define RETRIES_DEFAULT	     7u

/* rdma_connect(3): what a connected id's device can do is the limit. */
static int check_parameters(const struct id *id, const struct rdma_conn_param *p)
{
	if (id->rdma.qp == NULL && p == NULL)
		return EINVAL;
	if (p == NULL || is_datagram(id))
		return 0;
	if (p->responder_resources != RDMA_MAX_RESP_RES &&
	    p->responder_resources > id->device->max_responder_resources)
		return EINVAL;
	if (p->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    p->initiator_depth > id->device->max_initiator_depth)
		return EINVAL;
	return 0;
}

/* `known`: what the peer asked for, or no limit. */
static uint8_t choose(const uint8_t *wanted, uint8_t known, uint8_t limit)
{
	if (wanted == NULL || *wanted == UINT8_MAX)
		return MIN_OF(known, limit);
	return *wanted;
}

static void choose_resources(struct id *id, const struct rdma_conn_param *p)
{
	id->responder_resources =
		choose(p != NULL ? &p->responder_resources : NULL, id->responder_resources,
		       id->device->max_responder_resources);
	id->initiator_depth = choose(p != NULL ? &p->initiator_depth : NULL, id->initiator_depth,
				     id->device->max_initiator_depth);
}

/* What rdma_getaddrinfo found out goes before what the program says. 0 or EINVAL: too much. */
static int fill_private_data(struct cm_connect_parameters *to, const struct id *id,
			     const struct rdma_conn_param *p)
{
	size_t own = p != NULL && p->private_data != NULL ? p->private_data_len : 0;

	if (id->greeting_length + own > UINT8_MAX)
		return EINVAL;
	if (id->greeting_length > 0)
		memcpy(to->private_data, id->greeting, id->greeting_length);
	if (own > 0)
		memcpy(to->private_data + id->greeting_length, p->private_data, own);
	to->private_length = (uint8_t)(id->greeting_length + own);
	return 0;
}

static int fill_parameters(struct cm_connect_parameters *to, const struct id *id,
			   const struct rdma_conn_param *p)
{
	const struct ibv_qp *qp = id->rdma.qp;

	to->qp = qp != NULL ? qp->handle : 0;
	to->qpn = qp != NULL ? qp->qp_num : p != NULL ? p->qp_num : 0;
	to->srq = qp != NULL ? qp->srq != NULL : p != NULL && p->srq;
	to->ece_vendor = id->local_ece.vendor_id;
	to->ece_options = id->local_ece.options;
	to->responder_resources = id->responder_resources;
	to->initiator_depth = id->initiator_depth;
	to->flow_control = p != NULL ? p->flow_control : 0;
	to->retry_count = p != NULL ? p->retry_count : RETRIES_DEFAULT;
	to->rnr_retry_count = p != NULL ? p->rnr_retry_count : RETRIES_DEFAULT;
	return fill_private_data(to, id, p);
}

EXPORT int rdma_connect(struct rdma_cm_id *rdma, struct rdma_conn_param *conn_param)
{
	struct request_cm_connect request = { 0 };
	struct id *id = id_of(rdma);
	struct reply_empty reply;
	int error = 0;

	if (rdma == NULL)
		return result(EINVAL);
	/* a datagram service is looked up without a queue pair */
	if (conn_param != NULL || !is_datagram(id))
		error = check_parameters(id, conn_param);
	if (error != 0)
		return result(error);
	id->responder_resources = RDMA_MAX_RESP_RES;
	id->initiator_depth = RDMA_MAX_INIT_DEPTH;
	choose_resources(id, conn_param);
	request.id = id->handle;
	error = fill_parameters(&request.parameters, id, conn_param);
	if (error == 0)
		error = COMMAND(id->device, CM_CONNECT, &request, &reply);
	return error != 0 ? result(error) : id_complete(id);
}

static int accept_in_engine(struct id *id, const struct rdma_conn_param *p)
{
	bool moves = id->rdma.qp != NULL && !is_datagram(id);
	struct request_cm_connect request = {
		.id = id->handle,
		.steps = moves ? id_steps_to_rts(id) : 0,
	};
	struct reply_modify_qp reply;
	int error = fill_parameters(&request.parameters, id, p);

	if (error != 0)
		return error;
	/* the answer is of the vendor that asked, as rdma-core has it, and of no other */
	request.parameters.ece_vendor = id->remote_ece.vendor_id;
	if (moves)
		id_qp_moves(id->rdma.qp, request.steps);
	error = COMMAND(id->device, CM_ACCEPT, &request, &reply);
	if (moves && error != 0)
		id_qp_moved_in_part(id->rdma.qp);
	return error;
}

EXPORT int rdma_accept(struct rdma_cm_id *rdma, struct rdma_conn_param *conn_param)
{
	struct id *id = id_of(rdma);
	int error;

	if (rdma == NULL)
		return result(EINVAL);
	error = check_parameters(id, conn_param);
	if (error != 0)
		return result(error);
	choose_resources(id, conn_param);
	error = accept_in_engine(id, conn_param);
	if (error != 0)
		return result(error);
	return is_datagram(id) ? 0 : id_complete(id);
}

static int say_ready(struct id *id)
{
	struct request_handle request = { .handle = id->handle };
	struct reply_empty reply;

	return COMMAND(id->device, CM_ESTABLISH, &request, &reply);
}

/* For ids whose queue pair is the program's own: it is ready to receive. */
EXPORT int rdma_establish(struct rdma_cm_id *id)
{
	if (id == NULL || id->qp != NULL)
		return result(EINVAL);
	return result(say_ready(id_of(id)));
}

int id_reject(struct id *id, uint32_t reason, const void *data, uint8_t length)
{
	struct request_cm_reject request = { .id = id->handle, .reason = reason };
	struct reply_empty reply;

	if (data == NULL)
		length = 0; /* as rdma-core has it; likewise what goes with a request */
	request.private_length = length;
	if (length > 0)
		memcpy(request.private_data, data, length);
	return COMMAND(id->device, CM_REJECT, &request, &reply);
}

EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	if (id == NULL)
		return result(EINVAL);
	return result(id_reject(id_of(id), REJECT_CONSUMER, private_data, private_data_len));
}

EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			   uint8_t private_data_len)
{
	if (id == NULL)
		return result(EINVAL);
	return result(id_reject(id_of(id), REJECT_VENDOR_OPTION, private_data, private_data_len));
}

static int disconnect(struct id *id)
{
	struct request_handle request = { .handle = id->handle };
	struct reply_empty reply;

	if (id->rdma.qp != NULL && !is_datagram(id))
		return id_move_qp(id, id->rdma.qp, CM_QP_ERR, CM_THEN_DISCONNECT);
	return COMMAND(id->device, CM_DISCONNECT, &request, &reply);
}

EXPORT int rdma_disconnect(struct rdma_cm_id *rdma)
{
	struct id *id = id_of(rdma);
	int error;

	if (rdma == NULL)
		return result(EINVAL);
	error = disconnect(id);
	return error != 0 ? result(error) : id_complete(id);
}

EXPORT int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	struct request_cm_notify request = { .event = event };
	struct reply_empty reply;

	if (id == NULL)
		return result(EINVAL);
	request.id = id_of(id)->handle;
	return result(COMMAND(id_of(id)->device, CM_NOTIFY, &request, &reply));
}

/*
 * ECE is what programs with queue pairs of their own agree on; ours have no such options. On the
 * wire a vendor has 24 bits.
 */
EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id == NULL || id->qp != NULL || ece == NULL || ece->vendor_id == 0 ||
	    ece->comp_mask != 0)
		return result(EINVAL);
	id_of(id)->local_ece = *ece;
	return 0;
}

EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id == NULL || id->qp != NULL || ece == NULL)
		return result(EINVAL);
	*ece = id_of(id)->remote_ece;
	return 0;
}
