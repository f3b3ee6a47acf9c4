/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What librdmacm.so.1 needs of libibverbs.so.1 of the same release besides the verbs: the version
 * node UROCE_PRIVATE_1.
 */
#ifndef VERBS_PRIVATE_NODE_H
#define VERBS_PRIVATE_NODE_H

#include <infiniband/verbs.h>

#include "protocol/carrier.h"

/* A command of the client that the context belongs to: as attachment_command. */
int uroce_context_command(struct ibv_context *context, enum command what,
			  struct command_request *request, size_t request_bytes,
			  struct command_reply *reply, size_t reply_bytes,
			  struct carrier_descriptors *out);

/* The engine is gone, or this process is the child of who attached to it. */
bool uroce_context_gone(struct ibv_context *context);

/* The descriptor has ended, and the engine with it: as events_end. */
int uroce_silence(struct ibv_context *context, int fd, int *idle_fd);

void uroce_attributes_from_engine(struct ibv_qp_attr *a, const struct qp_attributes *from);
void uroce_path_from_engine(struct ibv_ah_attr *a, const struct qp_path *p);

#endif
