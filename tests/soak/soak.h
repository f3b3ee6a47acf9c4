/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of two programs that load queue pairs of all types between them (load.c says how). Each of
 * their queue pairs is a lane: it sends in both directions, one message behind the other, and each
 * side knows from the lane's key and the message's number what the other one sends.
 */
#ifndef SOAK_H
#define SOAK_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind {
	KIND_RC,
	KIND_RC_SRQ, /* receives from the SRQ of all such lanes */
	KIND_UC,
	KIND_UD,
	KIND_XRC, /* an initiator and a target on each side, and one SRQ for all targets */
	KINDS
};

extern const char *const kind_names[KINDS];

#define LONGEST	    8192u /* octets of a message */
#define LONGEST_UD  1000u
#define HALF	    (LONGEST / 2) /* a WRITE that is read back takes both halves of a slot */
#define SLOTS	    4u /* operations of a lane under way, and receives of its own */
#define RING	    (SLOTS + 1) /* places for WRITEs with immediate data; see receive.c */
#define POOL	    1024u /* receives of an SRQ */
#define GRH	    40u
#define SLOT_OCTETS (LONGEST + 4096u) /* a receive of a datagram begins with the GRH */
#define INLINE_MOST 64u
#define STALL_S	    180 /* seconds without a completion although work was posted */
#define LOST_S	    60 /* seconds for the end of all that was posted when the other side is gone */
#define RETRY_TIME  18 /* 1.07 s, eight times: an interface that goes down is back by then */
#define QKEY	    0x11111111u

/* The memory of a lane; so many have one region. */
#define LANES_OF_REGION 32u
enum {
	AT_SEND = 0, /* SLOTS slots */
	AT_RECEIVE = AT_SEND + SLOTS * SLOT_OCTETS, /* SLOTS slots */
	AT_RING = AT_RECEIVE + SLOTS * SLOT_OCTETS, /* RING places that the other side writes */
	AT_SCRATCH = AT_RING + RING * LONGEST, /* ... that it writes and reads back */
	AT_CONSTANT = AT_SCRATCH + LONGEST, /* ... that it reads */
	AT_COUNTER = AT_CONSTANT + LONGEST, /* ... that its atomics count in */
	LANE_OCTETS = AT_COUNTER + 4096,
};

enum operation {
	OP_MESSAGE, /* SEND, with immediate data or without, or WRITE with immediate data */
	OP_WRITE, /* and a READ behind it */
	OP_READ,
	OP_FETCH_ADD,
	OP_COMPARE_SWAP,
};

/* One operation under way, in the slot of its number. */
struct flight {
	enum operation op;
	uint64_t number; /* of the message, or the counter's value before an atomic */
	uint32_t from, length; /* of what is read */
	uint32_t requests; /* work requests whose completions are missing */
};

/* What each side tells the other one of a lane. */
struct far_end {
	uint32_t qpn, psn; /* of the queue pair that receives; of the one that sends */
	uint32_t initiator; /* of XRC: the queue pair that sends, otherwise as qpn */
	uint32_t srqn; /* of XRC */
	uint32_t rkey;
	uint64_t address;
	union ibv_gid gid;
};

struct lane {
	enum kind kind;
	uint32_t index;
	uint64_t key, far_key; /* of what this side sends, and the other one */
	struct ibv_qp *qp, *target; /* what receives is `target`: another one for XRC only */
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t *memory;
	struct far_end far;
	/* Sending. Operations are numbered from 0 and end in their order. */
	uint64_t begun, done; /* operations */
	uint64_t asked, answered; /* work requests */
	uint64_t sent; /* messages */
	uint64_t counted; /* atomics */
	double since; /* the last completion, or the first operation after it */
	struct flight flight[SLOTS];
	/* Receiving. */
	uint64_t taken; /* receives of its own that completed */
	uint64_t expected; /* the number of the next message, of those that are not lost */
	uint64_t seen; /* of UC and UD: which of the last 64 numbers below `expected` arrived */
	uint64_t far_sent, far_counted; /* what the other side reports at its end */
};

struct options {
	bool server;
	const char *path; /* of the socket between the two programs */
	const char *name;
	uint32_t counts[KINDS];
	double seconds;
	uint64_t seed;
	uint32_t rate; /* operations a second */
	uint32_t gid_index;
	uint32_t fork_ms, register_ms; /* pauses between them; 0: none */
	bool orderly; /* nothing between the two sides reorders or repeats packets */
};

struct soak {
	struct options o;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq, *xrc_srq;
	struct ibv_mr *pool_mr;
	uint8_t *pool; /* the receives of both SRQs */
	bool in_pool[2 * POOL]; /* posted */
	union ibv_gid gid;
	enum ibv_mtu mtu;
	struct lane *lanes;
	uint32_t lane_count;
	uint32_t *by_qpn, by_qpn_mask; /* lanes + 1 by the number of `target` */
	uint64_t random;
	bool lost; /* the other program or an engine is gone: requests may fail */
	uint64_t operations, messages, octets, missing, overtaken;
	uint64_t registrations, forks; /* beside.c counts them */
};

/* How a check fails: one line, and exit status 1. */
void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...);
void __attribute__((noreturn, format(printf, 3, 4)))
lane_die(const struct soak *s, const struct lane *l, const char *format, ...);
double seconds_now(void);

/* pattern.c: what the octets are. */
uint64_t mix(uint64_t a, uint64_t b);
uint64_t random_next(struct soak *s);
uint32_t random_below(struct soak *s, uint32_t n);
void pattern_fill(void *at, uint64_t key, uint64_t number, uint32_t from, uint32_t length);
/* The first octet that differs, or `length`. */
uint32_t pattern_differs(const void *at, uint64_t key, uint64_t number, uint32_t from,
			 uint32_t length);
uint32_t message_length(const struct lane *l, uint64_t key, uint64_t number);
bool message_is_written(const struct lane *l, uint64_t key, uint64_t number);
bool message_has_number(const struct lane *l, uint64_t key, uint64_t number);
#define NUMBER_CONSTANT (UINT64_MAX - 1) /* of what is read */
#define NUMBER_SCRATCH	(UINT64_C(1) << 62) /* added to the operation that is read back */

/* objects.c: everything is made before the other side knows of it. */
void objects_make(struct soak *s);
void objects_connect(struct soak *s);
void objects_destroy(struct soak *s);
struct ibv_qp *loop_qp(struct soak *s, struct ibv_cq *cq);
void loop_connect(struct soak *s, struct ibv_qp *qp, struct ibv_qp *to);

struct lane *lane_of_qpn(struct soak *s, uint32_t qpn);

/* send.c */
bool lane_can_begin(const struct lane *l);
void lane_begin(struct soak *s, struct lane *l);
void sent(struct soak *s, const struct ibv_wc *wc);

/* receive.c */
void receives_post(struct soak *s);
void received(struct soak *s, const struct ibv_wc *wc);

/* mate.c: the other program, over a socket. */
void mate_meet(struct soak *s);
void mate_tell(struct soak *s, const void *what, size_t length);
void mate_hear(struct soak *s, void *what, size_t length);
int mate_socket(void);
/* A word from the other side, 0 if there is none; sets `lost` if it or an engine is gone. */
char mate_word(struct soak *s);
/* A request failed: either something is lost, which shows soon, or the run ends. */
void mate_must_be_lost(struct soak *s, const struct lane *l, const char *what);
/* A call failed that fails only if this side's engine is gone. */
void engine_must_be_gone(struct soak *s, const char *what, int error);

#define WORD_STOP   'S'
#define WORD_COUNTS 'C'
#define WORD_DONE   'D'
#define WORD_LOST   'L'

/* beside.c: threads that register memory, use it and give it back, and that fork. */
void beside_begin(struct soak *s);
void beside_end(struct soak *s);

#endif
