/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two queue pairs back to back, for tests of the core alone. Packets go from one to the other
 * unchanged, copies are made at once (or held back), and time stands still unless the test moves
 * it.
 */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include "base/bits.h"
#include "transport/requester/kind.h"
#include "transport/psn.h"
#include "transport/qp.h"
#include "transport/transport.h"

#define PAIR_MEMORY   (4u << 20)
#define PAIR_RECEIVES 256u
#define PAIR_SGE      4u /* of each request */
#define PAIR_DONE     8192u
#define PAIR_QUEUE    2048u
#define PAIR_IOVA     UINT64_C(0x7f0000000000)
#define PAIR_PD	      7u

/* The options of a new end; pair_options() has the usual values. */
struct pair_options {
	uint32_t mtu; /* ibv_mtu */
	uint32_t psn; /* both directions begin here */
	uint32_t max_send_wr, own_wr;
	uint32_t tickets; /* 0: the most possible */
	uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint32_t access; /* queue pair */
	bool has_srq, sig_all;
	bool xrc; /* a is an XRC initiator, b its target; SRQs are those with an odd number */
	uint32_t octets; /* of registered memory, PAIR_MEMORY at most */
};

struct carried { /* a packet under way, with its payload */
	struct packet p;
	uint8_t payload[4096];
};

struct end {
	struct qp *qp;
	uint8_t *memory; /* PAIR_MEMORY octets, registered at PAIR_IOVA */
	uint32_t key;
	struct region *region;
	struct region *window;
	struct recv_work *receive; /* posted receive requests, a ring of PAIR_RECEIVES */
	uint32_t receive_head, receive_tail;
	struct carried *queue; /* packets to this end, a ring of PAIR_QUEUE */
	uint32_t queue_head, queue_tail;
	struct completion *done; /* PAIR_DONE */
	bool done_receive[PAIR_DONE]; /* done[i] is a receive completion */
	uint32_t done_count;
	uint32_t events;
	enum reason reason; /* of the last packet that was not accepted */
	bool hold; /* copies are not reported until pair_settle */
	uint64_t held_ticket; /* the last that was held back */
	uint64_t first_held;
};

struct pair {
	struct end a, b;
	struct key_table keys;
	void *key_memory;
	nanotime now;
	/* Returns false to lose a packet; may change it. NULL: all pass. */
	bool (*pass)(struct pair *pair, struct end *to, struct packet *p);
	uint32_t packets; /* packets carried and lost so far */
	uint32_t seen; /* for the test's own use */
};

struct pair_options pair_options(void);
void pair_init(struct pair *pair, const struct pair_options *o);
void pair_close(struct pair *pair);

/* The attributes that bring an end from RESET to RTS, for tests that go their own way. */
void pair_attributes(const struct pair_options *o, struct qp_attributes *a);

/* Runs until nothing moves at this instant. */
void pair_run(struct pair *pair);
/* Advances to the earliest deadline, and runs until nothing moves. False: there is no deadline. */
bool pair_wait(struct pair *pair);
/* Runs pair_run and pair_wait until this end has `count` completions, with at most `waits` waits.
 */
void pair_until(struct pair *pair, struct end *e, uint32_t count, uint32_t waits);

/* Passes a packet straight into an end. */
enum reason pair_inject(struct pair *pair, struct end *to, struct packet *p);
/* The next packet that an end would send, not delivered. */
bool pair_next(struct pair *pair, struct end *from, struct packet *p);
/* BTH and addresses of a packet for this end. */
struct packet pair_packet(const struct pair *pair, const struct end *to, uint8_t base,
			  uint32_t psn);

/* One element (local_offset, length), nothing inline. */
void pair_post(struct pair *pair, struct end *e, enum work_opcode opcode, uint8_t flags,
	       uint32_t local_offset, uint32_t length, uint32_t remote_offset);
void pair_post_work(struct pair *pair, struct end *e, const struct send_work *w,
		    const struct work_sge *sge);
void pair_post_receive(struct end *e, uint32_t offset, uint32_t length);
/* A window of the end's memory that answers to its queue pair; one at a time. */
uint32_t pair_window(struct pair *pair, struct end *e);
/* Reports what was held back. */
void pair_settle(struct pair *pair, struct end *e, bool ok);
void pair_fill(uint8_t *at, uint32_t length, uint32_t seed);

#endif
