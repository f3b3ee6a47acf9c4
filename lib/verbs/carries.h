/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The send requests that a queue pair of each type takes: the table of ibv_post_send(3). The table
 * is read when a queue pair is created, and struct qp keeps the answers.
 */
#ifndef VERBS_CARRIES_H
#define VERBS_CARRIES_H

#include "verbs/types.h"

/* enum ibv_qp_create_send_ops_flags of headers newer than Debian 12's */
#define QP_EX_WITH_FLUSH (1u << 11)

/* The set of opcodes: bit n for enum ibv_wr_opcode n. */
uint32_t transport_opcodes(enum ibv_qp_type type);
/* The set of operations that ibv_create_qp_ex accepts (enum ibv_qp_create_send_ops_flags). */
uint64_t transport_send_ops(enum ibv_qp_type type);
/* The set of send flags (enum ibv_send_flags). */
uint32_t transport_send_flags(enum ibv_qp_type type);

#endif
