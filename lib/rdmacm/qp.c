/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queue pair of an id. It is created with defaults for what the program left out, and moved
 * through its states.
 */
#include <fcntl.h>
#include <string.h>

#include "rdmacm/types.h"

struct ibv_pd *id_default_pd_locked(struct id *id)
{
	struct cm_device *d = id->device;

	if (id->rdma.pd != NULL)
		return id->rdma.pd;
	if (d->pd == NULL)
		d->pd = ibv_alloc_pd(d->context);
	return d->pd;
}

struct ibv_pd *id_default_pd(struct id *id)
{
	struct ibv_pd *pd;

	pthread_mutex_lock(&cm_lock);
	pd = id_default_pd_locked(id);
	pthread_mutex_unlock(&cm_lock);
	return pd;
}

struct ibv_xrcd *id_default_xrcd(struct id *id)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct cm_device *d = id->device;

	pthread_mutex_lock(&cm_lock);
	if (d->xrcd == NULL)
		d->xrcd = ibv_open_xrcd(d->context, &init);
	pthread_mutex_unlock(&cm_lock);
	return d->xrcd;
}

/* ---- completion queues ---- */

/* rdma_verbs.h relies on the CQ's context being the id. */
static int make_cq(struct id *id, uint32_t size, struct ibv_comp_channel **channel,
		   struct ibv_cq **cq)
{
	if (*cq != NULL || size == 0)
		return 0;
	*channel = ibv_create_comp_channel(id->rdma.verbs);
	if (*channel == NULL)
		return errno;
	*cq = ibv_create_cq(id->rdma.verbs, (int)size, id, *channel, 0);
	return *cq != NULL ? 0 : errno;
}

static void destroy_cq(struct ibv_comp_channel **channel, struct ibv_cq **cq)
{
	if (*cq != NULL)
		ibv_destroy_cq(*cq);
	if (*channel != NULL)
		ibv_destroy_comp_channel(*channel);
	*cq = NULL;
	*channel = NULL;
}

void id_destroy_cqs(struct id *id)
{
	destroy_cq(&id->rdma.send_cq_channel, &id->rdma.send_cq);
	destroy_cq(&id->rdma.recv_cq_channel, &id->rdma.recv_cq);
}

struct id_cqs id_cqs_of(const struct id *id)
{
	return (struct id_cqs){ id->rdma.send_cq, id->rdma.recv_cq };
}

void id_cqs_restore(struct id *id, struct id_cqs before)
{
	if (before.send == NULL)
		destroy_cq(&id->rdma.send_cq_channel, &id->rdma.send_cq);
	if (before.recv == NULL)
		destroy_cq(&id->rdma.recv_cq_channel, &id->rdma.recv_cq);
}

int id_make_cqs(struct id *id, uint32_t send_size, uint32_t recv_size)
{
	struct id_cqs before = id_cqs_of(id);
	int error = make_cq(id, recv_size, &id->rdma.recv_cq_channel, &id->rdma.recv_cq);

	if (error == 0)
		error = make_cq(id, send_size, &id->rdma.send_cq_channel, &id->rdma.send_cq);
	if (error != 0)
		id_cqs_restore(id, before);
	return error;
}

/* ---- states ---- */

int id_qp_attributes(struct id *id, struct ibv_qp_attr *attr, int *mask)
{
	struct request_cm_init_qp_attr request = { .id = id->handle, .state = attr->qp_state };
	struct reply_cm_qp_attr reply;
	int error = COMMAND(id->device, CM_INIT_QP_ATTR, &request, &reply);

	if (error != 0)
		return error;
	uroce_attributes_from_engine(attr, &reply.attributes);
	*mask = (int)reply.mask;
	return 0;
}

/* rdma_init_qp_attr(3): the attributes to move a queue pair to qp_attr->qp_state. */
EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	if (id == NULL || qp_attr == NULL || qp_attr_mask == NULL)
		return result(EINVAL);
	return result(id_qp_attributes(id_of(id), qp_attr, qp_attr_mask));
}

/* The state after all these steps, which are taken in this order. */
static enum ibv_qp_state state_after(uint32_t steps)
{
	if ((steps & CM_QP_ERR) != 0)
		return IBV_QPS_ERR;
	if ((steps & CM_QP_RTS) != 0)
		return IBV_QPS_RTS;
	return (steps & CM_QP_RTR) != 0 ? IBV_QPS_RTR : IBV_QPS_INIT;
}

void id_qp_moves(struct ibv_qp *qp, uint32_t steps)
{
	__atomic_store_n(&qp->state, state_after(steps), __ATOMIC_RELAXED);
}

void id_qp_moved_in_part(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) != 0)
		__atomic_store_n(&qp->state, IBV_QPS_ERR,
				 __ATOMIC_RELAXED); /* the engine is gone */
}

int id_move_qp(struct id *id, struct ibv_qp *qp, uint32_t steps)
{
	struct request_cm_modify_qp request = {
		.id = id->handle,
		.qp = qp->handle,
		.steps = steps,
	};
	struct reply_modify_qp reply;
	int error;

	id_qp_moves(qp, steps);
	error = COMMAND(id->device, CM_MODIFY_QP, &request, &reply);
	if (error != 0)
		id_qp_moved_in_part(qp);
	return error;
}

uint32_t id_steps_to_rts(const struct id *id)
{
	return CM_QP_RTR | CM_QP_RTS | (id->rdma.qp->state != IBV_QPS_INIT ? CM_QP_INIT : 0);
}

void id_qp_to_error(struct id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (id->rdma.qp != NULL && !is_datagram(id))
		ibv_modify_qp(id->rdma.qp, &attr, IBV_QP_STATE);
}

/* ---- queue pairs ---- */

static int check_init(const struct id *id, const struct ibv_qp_init_attr_ex *init)
{
	const struct rdma_cm_id *r = &id->rdma;

	if (r->verbs == NULL || r->qp != NULL)
		return EINVAL;
	if ((init->comp_mask & IBV_QP_INIT_ATTR_PD) && init->pd != NULL &&
	    init->pd->context != r->verbs)
		return EINVAL;
	if (init->qp_type != r->qp_type)
		return EINVAL;
	if ((r->recv_cq != NULL && init->recv_cq != NULL && r->recv_cq != init->recv_cq) ||
	    (r->send_cq != NULL && init->send_cq != NULL && r->send_cq != init->send_cq))
		return EINVAL;
	return 0;
}

static int fill_domain(struct id *id, struct ibv_qp_init_attr_ex *init)
{
	if (init->qp_type == IBV_QPT_XRC_RECV) {
		if (!(init->comp_mask & IBV_QP_INIT_ATTR_XRCD) || init->xrcd == NULL)
			init->xrcd = id_default_xrcd(id);
		init->comp_mask =
			(init->comp_mask & ~(uint32_t)IBV_QP_INIT_ATTR_PD) | IBV_QP_INIT_ATTR_XRCD;
		return init->xrcd != NULL ? 0 : errno;
	}
	if (!(init->comp_mask & IBV_QP_INIT_ATTR_PD) || init->pd == NULL)
		init->pd = id_default_pd(id);
	init->comp_mask |= IBV_QP_INIT_ATTR_PD;
	return init->pd != NULL ? 0 : errno;
}

/* Even a queue without requests needs a CQ. */
static uint32_t cq_size(const struct ibv_cq *given, uint32_t requests)
{
	return given != NULL ? 0 : MAX_OF(requests, 1u);
}

static int fill_queues(struct id *id, struct ibv_qp_init_attr_ex *init)
{
	bool sends = init->qp_type != IBV_QPT_XRC_RECV;
	bool receives = sends && init->qp_type != IBV_QPT_XRC_SEND;
	uint32_t requests = init->cap.max_recv_wr;
	int error;

	if (init->srq == NULL)
		init->srq = receives ? id->rdma.srq : NULL;
	if (init->srq != NULL && init->srq == id->rdma.srq)
		requests = MAX_OF(requests, id->srq_wr);
	error = id_make_cqs(id, sends ? cq_size(init->send_cq, init->cap.max_send_wr) : 0,
			    receives ? cq_size(init->recv_cq, requests) : 0);
	if (error != 0)
		return error;
	if (sends && init->send_cq == NULL)
		init->send_cq = id->rdma.send_cq;
	if (receives && init->recv_cq == NULL)
		init->recv_cq = id->rdma.recv_cq;
	return 0;
}

/*
 * A datagram queue pair does not depend on its peers, so it goes to RTS at once. Usually the
 * command that created it has already done that.
 */
static int start(struct id *id, struct ibv_qp *qp)
{
	if (qp->state != IBV_QPS_RESET)
		return 0;
	return id_move_qp(id, qp, is_datagram(id) ? CM_QP_TO_RTS : CM_QP_INIT);
}

/*
 * rdma_create_qp_ex(3): uses the id's domain, and makes CQs where `init` has none. errno also:
 * ENOMEM, and what ibv_create_qp_ex fails with. Free it with rdma_destroy_qp.
 */
EXPORT int rdma_create_qp_ex(struct rdma_cm_id *rdma, struct ibv_qp_init_attr_ex *init)
{
	struct ibv_cq *send_cq, *recv_cq;
	struct id *id = id_of(rdma);
	struct ibv_qp *qp = NULL;
	struct id_cqs before;
	int error;

	if (rdma == NULL || init == NULL)
		return result(EINVAL);
	before = id_cqs_of(id);
	error = check_init(id, init);
	if (error == 0)
		error = fill_domain(id, init);
	if (error != 0)
		return result(error);
	send_cq = init->send_cq;
	recv_cq = init->recv_cq;
	error = fill_queues(id, init);
	if (error == 0) {
		qp = uroce_create_qp_of(rdma->verbs, init, id->handle);
		error = qp != NULL ? start(id, qp) : errno;
	}
	if (error != 0) {
		if (qp != NULL)
			ibv_destroy_qp(qp);
		id_cqs_restore(id, before);
		/* Programs retry with smaller sizes and the same struct. */
		init->send_cq = send_cq;
		init->recv_cq = recv_cq;
		return result(error);
	}
	if (qp->pd != NULL)
		rdma->pd = qp->pd;
	rdma->qp = qp;
	return 0;
}

/* rdma_create_qp(3): does what rdma_create_qp_ex does. `pd` NULL: the id's domain. */
EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *init)
{
	struct ibv_qp_init_attr_ex extended = { 0 };
	int status;

	if (id == NULL || init == NULL)
		return result(EINVAL);
	memcpy(&extended, init, sizeof(*init)); /* the first members are the same (verbs.h) */
	extended.comp_mask = IBV_QP_INIT_ATTR_PD;
	extended.pd = pd != NULL ? pd : id->pd;
	status = rdma_create_qp_ex(id, &extended);
	memcpy(init, &extended, sizeof(*init));
	return status;
}

/* rdma_destroy_qp(3): frees the queue pair and the CQs that rdma_create_qp made. */
EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	struct ibv_qp *qp;

	/* An event of the id may be on its way to the program, in another thread (event.c). */
	pthread_mutex_lock(&cm_lock);
	qp = id->qp;
	id->qp = NULL;
	pthread_mutex_unlock(&cm_lock);
	if (qp == NULL)
		return;
	ibv_destroy_qp(qp);
	if (id->srq == NULL || id->qp_type != IBV_QPT_XRC_RECV)
		id_destroy_cqs(id_of(id));
}
