/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The version node UROCE_PRIVATE_1: the functions besides the verbs that librdmacm.so.1 needs from
 * libibverbs.so.1 of the same release. Any thread.
 */
#ifndef VERBS_PRIVATE_NODE_H
#define VERBS_PRIVATE_NODE_H

#include <infiniband/verbs.h>

#include "protocol/carrier.h"

/* Sends a command to the engine of this context, as attachment_command does. */
int uroce_context_command(struct ibv_context *context, enum command what,
			  struct command_request *request, size_t request_bytes,
			  struct command_reply *reply, size_t reply_bytes,
			  struct carrier_descriptors *out);

/* Sends a command without an answer, as attachment_post does. */
int uroce_context_post(struct ibv_context *context, enum command what,
		       struct command_request *request, size_t request_bytes);

/* Whether the engine is gone, or this process is a child of the one that attached to the engine. */
bool uroce_context_gone(struct ibv_context *context);

/*
 * ibv_create_qp_ex. Unless the queue pair is an XRC target, the engine also moves it to its first
 * state, as this id of rdma_cm says. qp->state says whether it did.
 */
struct ibv_qp *uroce_create_qp_of(struct ibv_context *context, struct ibv_qp_init_attr_ex *init,
				  uint32_t cm_id);

/*
 * The address of something in the memory that this program shares with the engine (queue/arena.h).
 */
void *uroce_arena_at(struct ibv_context *context, uint64_t offset);

/* For a descriptor at end of file, whose engine is therefore gone: does what events_end does. */
int uroce_silence(struct ibv_context *context, int fd, int *idle_fd);

/* Convert the engine's attributes to the attributes of verbs.h. */
void uroce_attributes_from_engine(struct ibv_qp_attr *a, const struct qp_attributes *from);
void uroce_path_from_engine(struct ibv_ah_attr *a, const struct qp_path *p);

#endif
