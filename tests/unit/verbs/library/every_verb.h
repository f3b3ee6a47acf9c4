/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the threads of every_verb.c, with the table of the calls that they make. */
#ifndef TESTS_VERBS_EVERY_VERB_H
#define TESTS_VERBS_EVERY_VERB_H

#include <infiniband/verbs.h>
#include <stdint.h>

#include "rig/crowd.h"

#define MEMORY (256u << 10)

struct shared {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_pd *domain; /* a parent domain of pd */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex;
	struct ibv_srq *srq;
	struct ibv_qp *qp; /* connected to itself, as the others are */
	struct ibv_qp *restless; /* its state changes all the time */
	struct ibv_qp *of_srq;
	struct ibv_qp *extended; /* with the extended send calls, on cq_ex */
	struct ibv_mr *mr; /* the first page of memory */
	struct ibv_ah_attr path; /* to ourselves */
	uint8_t *memory;
};

extern struct shared all;

extern const struct call verbs[];
extern const uint32_t verbs_count;
/* every_verb_more.c: its own objects and calls. */
extern const struct call more_verbs[];
extern const uint32_t more_verbs_count;
void more_make(void);
void more_destroy(void);
/* every_verb_rest.c: the same. */
extern const struct call rest_verbs[];
extern const uint32_t rest_verbs_count;
void rest_make(void);
void rest_destroy(void);

/* Ends the program if other threads cannot have caused the error. */
void tolerate(struct thread *t, int error);
/* The same for a verb that returns a pointer, which it passes on. */
void *made(struct thread *t, void *object);
void must(struct thread *t, int error);
int modify(struct ibv_qp *qp, enum ibv_qp_state to, uint32_t remote_qpn);
struct ibv_qp *new_qp(struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_srq *srq);

#endif
