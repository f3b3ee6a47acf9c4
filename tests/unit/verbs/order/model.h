/* SPDX-License-Identifier: BSD-3-Clause */
/* What any_order.c remembers of the objects that it made, and what its parts share. */
#ifndef TESTS_VERBS_ORDER_MODEL_H
#define TESTS_VERBS_ORDER_MODEL_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PDS	 2u
#define MRS	 12u
#define MWS	 4u
#define CQS	 6u
#define SRQS	 4u
#define QPS	 10u
#define AHS	 4u
#define XRCDS	 2u
#define DEPTH	 32u /* of a queue */
#define MOST	 512u /* requests of a queue that the program has not seen complete */
#define CQ_DEPTH 8192u /* all that any queues hold, so that no CQ overruns */
#define MEMORY	 (1u << 20)
#define LONGEST	 16384u /* message */
#define QKEY	 5u

/* A request that the library took and that has not completed. */
struct posted {
	uint64_t wr_id;
	bool signaled;
};

struct fifo {
	struct posted entry[MOST];
	uint32_t head, count;
};

struct model_pd {
	struct ibv_pd *pd;
	uint32_t users;
};

struct model_mr {
	struct ibv_mr *mr;
	struct model_pd *pd;
	uint8_t *own; /* mapped for this region alone; NULL: a part of world.memory, or unmapped */
	bool maybe_bound; /* a window was asked to be bound to it */
	int access;
};

struct model_mw {
	struct ibv_mw *mw;
	struct model_pd *pd;
	struct ibv_mw_bind_info
		info; /* as it was bound last, perhaps in vain; length 0: not at all */
};

struct model_xrcd {
	struct ibv_xrcd *xrcd;
	uint32_t users;
};

struct model_cq {
	struct ibv_cq *cq;
	uint32_t users;
	uint32_t events; /* taken and not acknowledged */
	bool has_channel, extended;
};

struct model_srq {
	struct ibv_srq *srq;
	struct model_pd *pd;
	struct model_xrcd *xrcd; /* NULL: it is a basic one */
	struct model_cq *cq; /* XRC: receives complete there, whoever takes them */
	uint32_t number; /* XRC */
	uint32_t users;
	struct fifo posted; /* queue pairs take them in turns, so they complete in any order */
};

struct model_qp {
	struct ibv_qp *qp;
	struct model_pd *pd; /* NULL: it is an XRC target, which has an XRC domain only */
	struct model_xrcd *xrcd;
	struct model_cq *send_cq, *recv_cq; /* NULL: it completes nothing there */
	struct model_srq *srq;
	const struct model_qp *peer; /* with which it was connected last, so mostly now */
	enum ibv_qp_type type;
	enum ibv_qp_state state; /* as the program set it; it may be in ERR or SQE meanwhile */
	bool all_signaled;
	bool extended; /* made for ibv_wr_start */
	bool failed; /* a completion said so: all later ones must */
	bool broken; /* something failed, so it may be in ERR */
	struct fifo sends, receives;
};

struct model_ah {
	struct ibv_ah *ah;
	struct model_pd *pd;
};

struct world {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	uint8_t *memory;
	struct model_pd pd[PDS];
	struct model_mr mr[MRS];
	struct model_mw mw[MWS];
	struct model_cq cq[CQS];
	struct model_srq srq[SRQS];
	struct model_qp qp[QPS];
	struct model_ah ah[AHS];
	struct model_xrcd xrcd[XRCDS];
	uint64_t seed, random, step, last_id;
	uint64_t ended_id; /* up to here, requests may be of an XRC SRQ that was destroyed */
	uint64_t succeeded, failed;
	const char *call; /* for messages */
};

extern struct world w;

/* Ends the program with a line that names the seed, the step and the call. */
void wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
/* A number below `below`; 0 if that is 0. */
uint32_t draw(uint32_t below);
/* One of the slots of an array of the world. */
#define ANY(array) (&(array)[draw((uint32_t)(sizeof(array) / sizeof((array)[0])))])
/* The call returned an errno that it must return. */
void expect(int got, int wanted);

bool fifo_push(struct fifo *f, struct posted p, uint32_t most);
struct posted fifo_pop(struct fifo *f);
bool fifo_has(const struct fifo *f, uint64_t wr_id);
/* Takes it out wherever it is. False: it is not there. */
bool fifo_take(struct fifo *f, uint64_t wr_id);

/* ---- steps ---- */

/* objects.c */
void pd_step(void);
void mr_step(void);
void mw_step(void);
void cq_step(void);
void srq_step(void);
void ah_step(void);
void xrcd_step(void);
void event_step(void);
void async_step(void);
void objects_end(void);
/* A region of this PD, mostly; NULL: there is none. */
struct model_mr *mr_of(const struct model_pd *pd);

/* queue_pairs.c */
void qp_step(void);
void connect_step(void);
void query_step(void);
void qps_to_error(void);
void qps_end(void);

/* extended.c */
void extended_step(void);

/* requests.c */
bool rarely(void);
/* One that works, as far as is known, mostly. */
struct model_qp *some_sender(void);
struct model_qp *some_receiver(void);
bool works(const struct model_qp *q);
/* A part of a region, mostly of the right PD and with the right key. */
struct ibv_sge part(const struct model_pd *pd, uint32_t length);
/* Up to 3 parts, of memory to which the request may go. Returns their octets. */
uint32_t parts(const struct model_pd *pd, struct ibv_sge sge[3], uint32_t count);
/* Where a request of so many octets goes: mostly to memory of the peer. */
struct ibv_sge target(const struct model_qp *q, uint32_t length);
enum ibv_wr_opcode some_opcode(const struct model_qp *q);
unsigned some_flags(void);
/* XRC: the SRQ for a request. False: there is none in the peer's domain, so it would fail. */
bool has_srq(const struct model_qp *q, uint32_t *number);
/* UD: to whom. NULL: a library may look into a missing address handle, so it cannot be posted. */
struct ibv_ah *some_address(uint32_t *qpn);

/* traffic.c */
void send_step(void);
void bind_step(void);
void recv_step(void);
void srq_recv_step(void);
void poll_step(void);
bool poll_all(void); /* false: there were no completions */

#endif
