/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of verbs with an engine begin with: the device of the engine that $UROCE_SOCKET
 * names, and two queue pairs of this process, connected to each other through it.
 */
#ifndef TESTS_VERBS_ENDPOINT_H
#define TESTS_VERBS_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define DEPTH		  16
#define BUFFER		  65536u
#define GID_INDEX	  1 /* the first IPv4 address */
#define WAIT_SECONDS	  20 /* for what must come */
/*
 * Local ACK Timeouts. Nothing is lost inside an engine, but an lcore or a mover that gets no processor
 * answers late: the retries of an ordinary queue pair here last 8.6 s. With the other, of who is to find
 * out that nobody answers, they last half a second.
 */
#define PATIENT_TIMEOUT	  18
#define IMPATIENT_TIMEOUT 14

struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	uint8_t *buffer; /* BUFFER octets */
	union ibv_gid gid;
};

/* The only device there is; fails the test when there is none. */
struct ibv_context *open_only_device(void);

/* Everything above, the queue pairs in RTS. */
void endpoint_open(struct endpoint *e);
void endpoint_close(struct endpoint *e);

/* A queue pair in RESET as endpoint_open makes them. */
struct ibv_qp *endpoint_create_qp(struct endpoint *e);
/* To RTS, towards the queue pair of that number at our own address. 0 or the errno. */
int endpoint_connect(struct endpoint *e, struct ibv_qp *qp, uint32_t remote_qpn);
int endpoint_connect_for(struct endpoint *e, struct ibv_qp *qp, uint32_t remote_qpn,
			 uint8_t timeout);
int endpoint_to_init(struct ibv_qp *qp);

/* Polls until n completions came; fails the test with `what` when they do not. */
void poll_completions(struct ibv_cq *cq, struct ibv_wc *wc, int n, const char *what);

#endif
