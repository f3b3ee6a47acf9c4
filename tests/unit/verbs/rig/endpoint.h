/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of verbs with an engine begin with: the device of the engine at $UROCE_SOCKET, and two
 * queue pairs of this process that are connected to each other.
 */
#ifndef TESTS_VERBS_ENDPOINT_H
#define TESTS_VERBS_ENDPOINT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define DEPTH		  16
#define BUFFER		  65536u
#define GID_INDEX	  1 /* the first IPv4 address */
#define WAIT_SECONDS	  60 /* until something that must come counts as missing */
/*
 * Local ACK Timeouts. Nothing is lost inside an engine, but an lcore or mover that gets no
 * processor answers late. So the retries of an ordinary queue pair here last 8.6 s. The other
 * value, for a queue pair that is to find out that nobody answers, makes them last 1.7 s.
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

/* The only device; fails the test if there is none. */
struct ibv_context *open_only_device(void);

/* Everything above, the queue pairs in RTS. */
void endpoint_open(struct endpoint *e);
/* The same for a process that a test has forked. NULL, or what failed, with errno. */
const char *endpoint_try(struct endpoint *e);
void endpoint_close(struct endpoint *e);

/* A queue pair in RESET as endpoint_open makes them. */
struct ibv_qp *endpoint_create_qp(struct endpoint *e);
/*
 * Brings it to RTS, connected to the queue pair of that number at our own address. 0 or the errno.
 */
int endpoint_connect(struct endpoint *e, struct ibv_qp *qp, uint32_t remote_qpn);
int endpoint_connect_for(struct endpoint *e, struct ibv_qp *qp, uint32_t remote_qpn,
			 uint8_t timeout);
/* ... to one at another address. */
int endpoint_connect_far(struct ibv_qp *qp, const union ibv_gid *remote, uint32_t remote_qpn);
int endpoint_to_init(struct ibv_qp *qp);

/* The bound of a command beside an attack. */
#define ENDPOINT_COMMAND_S 0.2

/* Polls until n completions have come; else fails the test with `what`. */
void poll_completions(struct ibv_cq *cq, struct ibv_wc *wc, int n, const char *what);

#endif
