/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of libibverbs that executes commands received over TCP: one line per command, one line
 * per answer. The same executable runs on the engine and, in the guest, on Linux's rdma_rxe.
 *
 *	COMMAND KEY=VALUE...		"ok KEY=VALUE..." or "error WHAT: strerror"
 *
 * Objects are named by small numbers. The sender of the commands is trusted; a number out of range
 * or a missing key ends the program with a message.
 */
#ifndef UROCE_TESTS_INTEROP_PEER_H
#define UROCE_TESTS_INTEROP_PEER_H

#include <infiniband/verbs.h>
#include <stdint.h>

#define PEER_OBJECTS 64
#define PEER_ANSWER  16384

struct peer_mr {
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t length;
};

struct peer_qp {
	struct ibv_qp *qp;
	struct ibv_cq *send, *recv;
	uint64_t posted_ns; /* time of the last `send` */
};

struct peer {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_device_attr device;
	struct peer_mr mrs[PEER_OBJECTS];
	struct peer_qp qps[PEER_OBJECTS];
	struct ibv_mw *mws[PEER_OBJECTS];
	struct ibv_ah *ahs[PEER_OBJECTS];
	unsigned int n_mrs, n_qps, n_mws, n_ahs;
	char *words; /* of the present command, each ended by a zero, then an empty one */
	char answer[PEER_ANSWER];
};

struct peer_command {
	const char *name;
	void (*run)(struct peer *p);
};

extern const struct peer_command peer_object_commands[];
extern const struct peer_command peer_work_commands[];

/* The value of a key of the present command. The program ends if a required key is missing. */
const char *peer_text(struct peer *p, const char *key, const char *otherwise);
uint64_t peer_number(struct peer *p, const char *key);
uint64_t peer_number_or(struct peer *p, const char *key, uint64_t otherwise);

struct peer_mr *peer_mr(struct peer *p);
struct peer_qp *peer_qp(struct peer *p);
void peer_gid(struct peer *p, union ibv_gid *gid);

void peer_say(struct peer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void peer_result(struct peer *p, const char *what, int error);
uint64_t peer_now_ns(void);

#endif
