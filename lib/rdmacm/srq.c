/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "rdmacm/types.h"

static int check_init(const struct rdma_cm_id *id, const struct ibv_srq_init_attr_ex *init)
{
	if (id->verbs == NULL || id->srq != NULL)
		return EINVAL;
	if ((init->comp_mask & IBV_SRQ_INIT_ATTR_PD) && init->pd != NULL &&
	    init->pd->context != id->verbs)
		return EINVAL;
	return 0;
}

static bool is_xrc(const struct ibv_srq_init_attr_ex *init)
{
	return (init->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) && init->srq_type == IBV_SRQT_XRC;
}

/* An XRC SRQ needs a domain and a CQ. */
static int fill_xrc(struct id *id, struct ibv_srq_init_attr_ex *init)
{
	int error;

	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || init->xrcd == NULL)
		init->xrcd = id_default_xrcd(id);
	if (init->xrcd == NULL)
		return errno;
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || init->cq == NULL) {
		error = id_make_cqs(id, 0, init->attr.max_wr);
		if (error != 0)
			return error;
		init->cq = id->rdma.recv_cq;
	}
	init->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	return 0;
}

/*
 * rdma_create_srq_ex(3): uses the id's domain, and for XRC its CQ. Free it with rdma_destroy_srq.
 */
EXPORT int rdma_create_srq_ex(struct rdma_cm_id *rdma, struct ibv_srq_init_attr_ex *init)
{
	struct id *id = id_of(rdma);
	struct id_cqs before;
	uint32_t comp_mask;
	struct ibv_cq *cq;
	int error;

	if (rdma == NULL || init == NULL)
		return result(EINVAL);
	before = id_cqs_of(id);
	error = check_init(rdma, init);
	if (error != 0)
		return result(error);
	if (!(init->comp_mask & IBV_SRQ_INIT_ATTR_PD) || init->pd == NULL)
		init->pd = id_default_pd(id);
	if (init->pd == NULL)
		return -1;
	comp_mask = init->comp_mask;
	init->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
	cq = init->cq;
	error = is_xrc(init) ? fill_xrc(id, init) : 0;
	if (error == 0) {
		rdma->srq = ibv_create_srq_ex(rdma->verbs, init);
		error = rdma->srq != NULL ? 0 : errno;
	}
	if (error != 0) {
		id_cqs_restore(id, before);
		init->comp_mask = comp_mask;
		init->cq = cq;
		return result(error);
	}
	if (rdma->pd == NULL)
		rdma->pd = init->pd;
	id->srq_wr = init->attr.max_wr;
	return 0;
}

/* rdma_create_srq(3): does what rdma_create_srq_ex does. `pd` NULL: the id's domain. */
EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	struct ibv_srq_init_attr_ex extended = { 0 };
	int status;

	if (id == NULL || init == NULL)
		return result(EINVAL);
	memcpy(&extended, init, sizeof(*init)); /* the first members are the same (verbs.h) */
	extended.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
	extended.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
	extended.pd = pd;
	status = rdma_create_srq_ex(id, &extended);
	memcpy(init, &extended, sizeof(*init));
	return status;
}

/* rdma_destroy_srq(3): frees the SRQ and the CQs made for it. */
EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	if (id->srq == NULL)
		return;
	ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (id->qp == NULL)
		id_destroy_cqs(id_of(id));
}
