/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair that is connected to itself: all that verbs need, and one RDMA WRITE. */
#ifndef SELF_H
#define SELF_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#define SELF_OCTETS 4096

struct self {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char from[SELF_OCTETS], to[SELF_OCTETS];
};

/* Opens the device of this name. False, with a message on stderr: something failed. */
bool self_open(struct self *s, const char *device);
/* Posts a WRITE of `from` to `to`. */
bool self_write(struct self *s);
/* Whether it has completed. *failed: not with success. */
bool self_written(struct self *s, bool *failed);
void self_close(struct self *s);

#endif
