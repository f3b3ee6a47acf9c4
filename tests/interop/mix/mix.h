/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random traffic of two programs of libibverbs over reliable and unreliable queue pairs, in both directions at
 * once. Each end checks every octet that it receives or reads, the order of its completions and the result of
 * every atomic. The same executable runs on the engine and, in the guest, on Linux's rdma_rxe.
 *
 *	mix PORT ADDRESS|- SEED ROUNDS REQUESTS MTU GID-INDEX [unordered]
 *
 * "-" waits for the other end at this TCP port. REQUESTS are those of one queue pair in one round and direction.
 * With "unordered" the network may lose, repeat and reorder packets, so messages of UC and UD may come in any order,
 * and rxe's end makes neither READs nor atomics, whose results it confuses then.
 */
#ifndef UROCE_TESTS_INTEROP_MIX_H
#define UROCE_TESTS_INTEROP_MIX_H

#include "script.h"

#define MIX_WINDOW   12 /* requests of a queue pair that are not completed */
#define MIX_GAP	     16 /* octets behind each element of a list, which must not change */
#define MIX_SLOT     (MIX_LARGEST + (MIX_PIECES + 4) * MIX_GAP)
#define MIX_SMALL    65536 /* the longest READ of what requests change */
#define MIX_DEPTH    8 /* receive requests of a queue pair, at most */
#define MIX_POOL     12 /* receive requests of the shared queue */
#define MIX_SHARING  2 /* the queue pairs from this one to MIX_RC share a receive queue */
#define MIX_QKEY     0x11223344u
/* Seconds without a word of the other end. It may report a silence first. */
#define MIX_PATIENCE 90

/* Memory for one message, in a list of elements with gaps between them. */
struct mix_list {
	uint8_t *memory;
	uint32_t n, part[MIX_PIECES];
	uint32_t guarded_from; /* a message of this length is followed by guards */
};

struct mix_told { /* to the other end, over TCP; both ends have the same byte order */
	uint32_t qpn, psn, rkey, window_rkey;
	uint64_t area;
};

struct mix_note { /* during a round */
	uint32_t what, qp;
};

struct mix_qp {
	unsigned int number;
	struct ibv_qp *qp;
	struct ibv_mw *mw;
	struct ibv_mr *area_mr;
	uint8_t *area; /* the other end writes here */
	struct mix_told here, there;
	struct mix_way out, ahead, got, in; /* posted; receives posted; received; in memory */
	uint32_t posted, completed; /* requests */
	struct mix_op ops[MIX_WINDOW];
	struct mix_list landing[MIX_WINDOW], room[MIX_DEPTH];
	uint8_t *expected[MIX_WINDOW];
	uint64_t shared_seen; /* the largest value of the shared word so far, and one more */
	uint32_t depth, receives_posted, receives_done;
	bool send_failed, receive_failed, renew;
	struct mix_op *all; /* unreliable: all requests of the other end */
	uint32_t n_all, low;
	uint64_t arrived;
};

struct mix {
	struct mix_script script;
	unsigned int role, gid_index;
	bool unordered;
	bool is_ours; /* the device is not rxe */
	int tcp;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *sends, *receives;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	union ibv_gid gid, peer_gid;
	struct ibv_mr *source_mr, *slots_mr;
	uint8_t *source, *scratch; /* the shared word is behind the source */
	uint8_t *slots, *slots_end;
	uint32_t source_rkey, round;
	uint64_t source_there;
	struct mix_list pool[MIX_POOL];
	struct mix_qp qps[MIX_QPS];
	uint64_t shared_sure,
		shared_maybe; /* additions to the other end's word: completed; flushed */
	uint64_t dice, received, completions;
	bool told_done, other_done;
	struct mix_note last; /* of the other end in this round */
};

#define mix_fail(m, q, ...) \
	(warnx("round %u, queue pair %u:", (m)->round, (q)->number), errx(1, __VA_ARGS__))

static inline uint32_t mix_roll(struct mix *m, uint32_t sides)
{
	m->dice++;
	return (uint32_t)(mix_random(m->script.seed, 99 + m->role, m->dice, 0) >> 33) % sides;
}

/* ends.c */
void mix_open(struct mix *m);
void mix_tell(struct mix *m, const void *what, size_t length);
void mix_hear(struct mix *m, void *what, size_t length);
void mix_prepare_round(struct mix *m);
void mix_to_state(struct mix *m, struct mix_qp *q, enum ibv_qp_state state);

/* traffic.c */
void mix_run_round(struct mix *m);

/* receive.c */
void mix_post_receives(struct mix *m, struct mix_qp *q);
void mix_fill_pool(struct mix *m);
void mix_received(struct mix *m, const struct ibv_wc *wc);
bool mix_all_received(struct mix *m, struct mix_qp *q);
/* The first message of this round that did not come. */
bool mix_missing(struct mix *m, struct mix_qp *q, struct mix_op *op, uint32_t *number);
void mix_check_memory(struct mix *m);
void mix_check_end(struct mix *m);

/* waits.c */
void mix_say_wait(struct mix *m, struct mix_qp *q);

/* list.c */
void mix_divide(struct mix *m, struct mix_list *l, uint32_t length);
int mix_elements(const struct mix_list *l, uint32_t lkey, struct ibv_sge *sges);
void mix_guard(struct mix_list *l, uint32_t used);
/* Names the first octet that differs, in `text`; NULL: `length` octets are right, and nothing else changed. */
const char *mix_wrong(const struct mix_list *l, const uint8_t *wanted, uint32_t length);

static inline struct mix_end mix_end_of(struct mix *m, struct mix_qp *q)
{
	return mix_end(&m->script, q->number, m->round);
}

#endif
