/* SPDX-License-Identifier: BSD-3-Clause */
/* Which operations a queue pair's transport carries: the table of ibv_post_send(3). */
#ifndef VERBS_CARRIES_H
#define VERBS_CARRIES_H

#include "verbs/types.h"

/* Of headers newer than Debian 12's: ibv_qp_create_send_ops_flags. */
#define QP_EX_WITH_FLUSH (1u << 11)

bool transport_carries(enum ibv_qp_type type, enum ibv_wr_opcode opcode);
/* The send operations (enum ibv_qp_create_send_ops_flags) that a queue pair may be made for. */
uint64_t transport_send_ops(enum ibv_qp_type type);

#endif
