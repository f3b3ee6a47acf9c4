/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and datagram services: connect, accept, reject, disconnect. */
#include <string.h>

#include "rdmacm/types.h"

#define REJECT_CONSUMER	     28u /* protocol-map 193 */
#define REJECT_VENDOR_OPTION 35u
#define RETRIES_DEFAULT	     7u

/* The device's attributes limit the parameters (rdma_connect(3)). */
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

/* `known`: what the peer's request says, or UINT8_MAX. */
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

/* The private data of rdma_getaddrinfo comes before the program's. 0, or EINVAL: too long. */
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

/*
 * Another thread may take the events that the next command causes, and uses what this thread has
 * stored in the id and its queue pair. Events come through memory that the engine writes, so the two
 * threads have nothing in common but this lock.
 */
static void show_to_takers(void)
{
	pthread_mutex_lock(&cm_lock);
	pthread_mutex_unlock(&cm_lock);
}

/*
 * rdma_connect(3): asks for a connection, or looks up a datagram service. `conn_param` may be NULL
 * if the id has a queue pair. Causes ESTABLISHED (CONNECT_RESPONSE if the id has none), REJECTED,
 * UNREACHABLE or CONNECT_ERROR; a synchronous id waits for it. The engine moves the queue pair to RTS
 * when the peer accepts.
 */
EXPORT int rdma_connect(struct rdma_cm_id *rdma, struct rdma_conn_param *conn_param)
{
	struct request_cm_connect request = { 0 };
	struct id *id = id_of(rdma);
	struct reply_empty reply;
	int error = 0;

	if (rdma == NULL)
		return result(EINVAL);
	/* No queue pair is needed to look up a datagram service. */
	if (conn_param != NULL || !is_datagram(id))
		error = check_parameters(id, conn_param);
	if (error != 0)
		return result(error);
	id->responder_resources = RDMA_MAX_RESP_RES;
	id->initiator_depth = RDMA_MAX_INIT_DEPTH;
	choose_resources(id, conn_param);
	request.id = id->handle;
	request.steps = id->rdma.qp != NULL && !is_datagram(id) ? id_steps_to_rts(id) : 0;
	error = fill_parameters(&request.parameters, id, conn_param);
	if (error != 0)
		return result(error);
	show_to_takers();
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
	/* As in rdma-core, the answer carries the vendor of the request. */
	request.parameters.ece_vendor = id->remote_ece.vendor_id;
	if (moves)
		id_qp_moves(id->rdma.qp, request.steps);
	show_to_takers();
	error = COMMAND(id->device, CM_ACCEPT, &request, &reply);
	if (moves && error != 0)
		id_qp_moved_in_part(id->rdma.qp);
	return error;
}

/*
 * rdma_accept(3): accepts the request of an id that came with CONNECT_REQUEST, and moves its queue
 * pair to RTS. A synchronous id waits for ESTABLISHED. For datagrams no event comes, but the event
 * of the request is acknowledged, too, because rdma_destroy_id of the listener waits for that.
 */
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
	if (!is_datagram(id))
		return id_complete(id);
	if (id->sync)
		id_drop_event(id);
	return 0;
}

static int say_ready(struct id *id)
{
	struct request_handle request = { .handle = id->handle };
	struct reply_empty reply;

	return COMMAND(id->device, CM_ESTABLISH, &request, &reply);
}

/*
 * rdma_establish(3): completes a connection whose queue pair the program moved itself. EINVAL if
 * the id has a queue pair.
 */
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
		length = 0; /* as in rdma-core; requests do the same */
	request.private_length = length;
	if (length > 0)
		memcpy(request.private_data, data, length);
	return COMMAND(id->device, CM_REJECT, &request, &reply);
}

/* rdma_reject(3): rejects a request. The private data is copied. */
EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data, uint8_t private_data_len)
{
	if (id == NULL)
		return result(EINVAL);
	return result(id_reject(id_of(id), REJECT_CONSUMER, private_data, private_data_len));
}

/* rdma_reject_ece(3): rejects a request because of its ECE options. */
EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			   uint8_t private_data_len)
{
	if (id == NULL)
		return result(EINVAL);
	return result(id_reject(id_of(id), REJECT_VENDOR_OPTION, private_data, private_data_len));
}

static int disconnect(struct id *id, bool is_known)
{
	struct request_handle request = { .handle = id->handle };
	struct reply_empty reply;

	return is_known ? POST(id->device, CM_DISCONNECT, &request)
			: COMMAND(id->device, CM_DISCONNECT, &request, &reply);
}

static int disconnect_with_qp(struct id *id, struct ibv_qp *qp, bool is_known)
{
	struct request_cm_modify_qp request = {
		.id = id->handle,
		.qp = qp->handle,
		.steps = CM_QP_ERR,
		.then = CM_THEN_DISCONNECT,
	};
	struct reply_modify_qp reply;
	int error;

	id_qp_moves(qp, CM_QP_ERR);
	if (is_known)
		return POST(id->device, CM_MODIFY_QP, &request);
	error = COMMAND(id->device, CM_MODIFY_QP, &request, &reply);
	if (error != 0)
		id_qp_moved_in_part(qp);
	return error;
}

/*
 * rdma_disconnect(3): moves the id's queue pair to the error state and ends the connection. Causes
 * DISCONNECTED at both ends; a synchronous id waits for it.
 */
EXPORT int rdma_disconnect(struct rdma_cm_id *rdma)
{
	struct id *id = id_of(rdma);
	bool is_known;
	int error;

	if (rdma == NULL)
		return result(EINVAL);
	pthread_mutex_lock(&cm_lock);
	is_known = id->is_connected;
	pthread_mutex_unlock(&cm_lock);
	if (rdma->qp != NULL && !is_datagram(id))
		error = disconnect_with_qp(id, rdma->qp, is_known);
	else
		error = disconnect(id, is_known);
	return error != 0 ? result(error) : id_complete(id);
}

/*
 * rdma_notify(3): reports an asynchronous event of the program's own queue pair to the connection
 * manager.
 */
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
 * rdma_set_local_ece(3): only for programs that make their own queue pairs, because ours have no
 * options. The wire has 24 bits for the vendor.
 */
EXPORT int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id == NULL || id->qp != NULL || ece == NULL || ece->vendor_id == 0 ||
	    ece->comp_mask != 0)
		return result(EINVAL);
	id_of(id)->local_ece = *ece;
	return 0;
}

/* rdma_get_remote_ece(3): the peer's options, for programs that make their own queue pairs. */
EXPORT int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	if (id == NULL || id->qp != NULL || ece == NULL)
		return result(EINVAL);
	*ece = id_of(id)->remote_ece;
	return 0;
}
