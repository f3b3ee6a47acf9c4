/* SPDX-License-Identifier: BSD-3-Clause */
/* UD queue pairs of an endpoint, and small buffers for them. */
#ifndef TESTS_VERBS_UD_H
#define TESTS_VERBS_UD_H

#include "endpoint.h"

#define UD_QKEY	 0x1234u
#define UD_DEPTH 16
#define GRH	 40u

/* A queue pair of this type in RESET; NULL with errno. */
struct ibv_qp *ud_create(struct endpoint *e, enum ibv_qp_type type);
/* RESET to RTS. 0, or the errno of the step that failed. */
int ud_ready(struct ibv_qp *qp, uint32_t qkey);
/* A UD queue pair in RTS; fails the test if there is none. */
struct ibv_qp *ud_open(struct endpoint *e, uint32_t qkey);
/* Posts one receive of the endpoint's buffer. */
void ud_receive(struct endpoint *e, struct ibv_qp *qp, uint32_t offset, uint32_t length);
/* Posts one signaled SEND of the endpoint's buffer. 0 or the errno. */
int ud_send(struct endpoint *e, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	    uint32_t offset, uint32_t length);
/* Nothing completes for a time that is long for an engine on this host. */
void ud_silent(struct ibv_cq *cq, const char *what);

/* One SEND succeeds, and nothing else completes. */
void ud_sent_alone(struct ibv_cq *cq, const char *what);

/* One SEND from the first to the second queue pair; *received is the completion of the second. */
void ud_one_datagram(struct endpoint *e, struct ibv_ah *ah, struct ibv_qp *from, struct ibv_qp *to,
		     struct ibv_wc *received);

/* Towards ourselves, by GID_INDEX. */
struct ibv_ah_attr ud_to_self(const struct endpoint *e);
/* Towards ourselves, by the GID of that index. */
struct ibv_ah *ud_self(struct endpoint *e, uint8_t sgid_index);
union ibv_gid ipv4_gid(uint8_t a, uint8_t b, uint8_t c, uint8_t d);

#endif
