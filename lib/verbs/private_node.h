/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The version node UROCE_PRIVATE_1: what librdmacm.so.1 needs from libibverbs.so.1 of the same
 * release besides the verbs. Any thread.
 */
#ifndef VERBS_PRIVATE_NODE_H
#define VERBS_PRIVATE_NODE_H

#include <infiniband/verbs.h>

#include "protocol/carrier.h"

/* A command to the engine of this context: as attachment_command. */
int uroce_context_command(struct ibv_context *context, enum command what,
			  struct command_request *request, size_t request_bytes,
			  struct command_reply *reply, size_t reply_bytes,
			  struct carrier_descriptors *out);

/* Whether the engine is gone, or this process is the child of the one that attached to it. */
bool uroce_context_gone(struct ibv_context *context);

/*
 * ibv_create_qp_ex. The engine also moves the queue pair to its first state, as this id of rdma_cm says,
 * if it is not an XRC target: qp->state says whether it did.
 */
struct ibv_qp *uroce_create_qp_of(struct ibv_context *context, struct ibv_qp_init_attr_ex *init,
				  uint32_t cm_id);

/* What lies in the memory that this program shares with the engine (queue/arena.h). */
void *uroce_arena_at(struct ibv_context *context, uint64_t offset);

/* For a descriptor at end of file, whose engine is therefore gone: as events_end. */
int uroce_silence(struct ibv_context *context, int fd, int *idle_fd);

/* Convert the engine's attributes to the attributes of verbs.h. */
void uroce_attributes_from_engine(struct ibv_qp_attr *a, const struct qp_attributes *from);
void uroce_path_from_engine(struct ibv_ah_attr *a, const struct qp_path *p);

#endif
