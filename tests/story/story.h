/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabulary of stories. Two queue pairs, a and b, are connected and in RTS. The story lets
 * packets pass or loses them, moves the time, injects packets made by hand, and states what it
 * expects. Each story is a process of its own (Criterion forks), so a and b are globals.
 *
 *	story(.retry_cnt = 1);
 *	post(a, .wr_id = 1, .opcode = WORK_SEND, .length = 10);
 *	lose(a, "RC SEND ONLY", A_PSN);
 *	at(ms(5));				the timer expires on the way
 *	pass(a, "RC SEND ONLY", A_PSN);
 *	pass_ack(b, A_PSN, 1);
 *	expect_completion(a, 1, STATUS_SUCCESS);
 */
#ifndef STORY_H
#define STORY_H

#include <criterion/criterion.h>

#include "base/bits.h"
#include "sim/node.h"
#include "transport/psn.h"
#include "wire/opcode.h"

#define A_PSN  0x000100u /* the first PSN that a sends */
#define B_PSN  0x500000u /* ... and b */
#define A_QPN  0x000a11u
#define B_QPN  0x000b22u
#define MTU    256u
#define MEMORY 0x40000u /* octets of a side's memory */
#define BASE   UINT64_C(0x7f0000000000) /* the address of its first octet */
#define LANDS  0x20000u /* offset: the default target of receive requests and remote operations */
#define PD     3u
#define SRQ    0x000333u /* XRC: b's first SRQ, the default of requests */
#define SRQ_2  0x000444u /* ... and another one, of protection domain PD_2 */
#define PD_2   4u
#define QKEY   0x11223344u /* of both sides */
#define GRH    40u /* octets before a datagram */
#define FRAME  1518u /* octets of the longest frame */

#define ACCESS_ALL                                                                              \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_FLUSH_GLOBAL | ACCESS_FLUSH_PERSISTENT)

struct side {
	struct node node;
	struct node_qp *q;
	struct side *peer;
	uint32_t key; /* covers the whole memory, with every right */
	struct packet packet; /* the last packet sent */
	uint8_t payload[NODE_PAYLOAD];
};

extern struct side *const a, *const b;
extern nanotime now;

struct story_options { /* 0: the default */
	uint32_t type; /* enum qp_type of both; RC */
	uint32_t port_mtu; /* ibv_mtu; 5 */
	uint32_t rate_limit; /* of a, kbit/s */
	bool hold_sent; /* the story itself reports what happened to packets: sent(), unsent() */
	uint32_t mtu; /* ibv_mtu; 1: 256 octets */
	uint32_t timeout; /* 10: 4.194304 ms */
	int retry_cnt; /* 3; -1: none */
	int rnr_retry; /* 3; -1: none */
	uint32_t min_rnr_timer; /* 12: 0.64 ms */
	int max_rd_atomic; /* 4; -1: none */
	int max_dest_rd_atomic; /* 4; -1: none */
	uint32_t sq_psn; /* A_PSN */
	uint32_t access; /* of the queue pairs; ACCESS_ALL */
	uint32_t no_access; /* ... without these rights */
	uint32_t max_send_wr; /* 8 */
	bool sq_sig_all;
	bool delay_copies; /* on both sides; settle() makes them */
	bool no_timeout;
	bool srq; /* receive requests come from an SRQ, number 7 */
	bool xrc; /* a is an XRC initiator, b its target; b's node has two SRQs */
	bool stay_in_init; /* neither side is connected */
	bool b_in_rtr;
	/*
	 * Both sides have a path, whose round trip is 20 us, and keep early packets. So losses are
	 * found without the retransmission timer.
	 */
	bool recovery;
	bool selective; /* ... and they know that both support selective acknowledgement */
	bool negotiates; /* ... or will learn it. Otherwise they are like peers of other makes */
};

/* Begins a story: both sides are connected as the options say. */
#define story(...) story_begin(&(struct story_options){ __VA_ARGS__ })
void story_begin(const struct story_options *options);

static inline nanotime us(uint64_t n)
{
	return n * TIME_US;
}

static inline nanotime ms(uint64_t n)
{
	return n * TIME_MS;
}

/* Moves the time to this instant; timers that are due on the way expire. */
void at(nanotime t);

/* Posting. */
struct request {
	uint64_t wr_id;
	uint8_t opcode;
	uint32_t length; /* of the one element (atomics: 8) */
	uint32_t from; /* offset of the local octets */
	uint32_t to; /* offset of the remote octets; LANDS */
	uint64_t remote_addr; /* ... or a remote address */
	uint32_t lkey, rkey; /* default: that of the whole memory */
	uint8_t flags; /* in addition to WORK_SIGNALED */
	bool unsignaled;
	bool no_sge;
	uint32_t imm; /* or the key to invalidate, or the new key */
	uint64_t compare_add, swap;
	uint32_t srqn; /* XRC; SRQ */
	uint32_t flush_type, flush_level, flush_length;
	uint32_t bind_access, bind_length; /* a window on the node's own memory at offset `to` */
	uint32_t ah, remote_qpn, remote_qkey; /* UD: 9, the peer's, QKEY */
	const char *header; /* TSO */
	uint16_t mss;
};

#define post(side, ...) story_post(side, &(struct request){ __VA_ARGS__ })
void story_post(struct side *s, const struct request *r);

/* A receive request for `length` octets at LANDS + wr_id * 0x1000. */
void post_receive(struct side *s, uint64_t wr_id, uint32_t length);

/* The same in an SRQ of an XRC target. */
void post_srq_receive(struct side *s, uint32_t srqn, uint64_t wr_id, uint32_t length);

/* This side has an operation to execute and sends nothing. Returns the operation. */
const struct key_operation *expect_operation(struct side *s);
/* Executes it and reports to the core. */
void operate(struct side *s, enum work_status status);

/* The next packet of this side must be this one. Returns the packet, which does not arrive. */
const struct packet *expect_packet(struct side *s, const char *name, uint32_t psn);
/* The same, but the packet arrives at the peer. */
const struct packet *pass(struct side *s, const char *name, uint32_t psn);
/* The same, but the packet is lost. */
static inline const struct packet *lose(struct side *s, const char *name, uint32_t psn)
{
	return expect_packet(s, name, psn);
}

/*
 * The next packet must be a selective acknowledgement of the packets before `next`, and of these
 * PSNs.
 */
#define ROUND_TRIP us(20) /* of a story with `recovery` */
const struct packet *expect_selection(struct side *s, uint32_t next, uint32_t count,
				      const uint32_t psn[]);

/* The packet that this side sent last arrives after all. */
void deliver(struct side *s);

/* The next packet must acknowledge this PSN (or be a NAK with this syndrome); it arrives. */
void pass_ack(struct side *s, uint32_t psn, uint32_t msn);
void pass_nak(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn);
void expect_ack(struct side *s, uint32_t psn, uint32_t msn);
void expect_nak(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn);

/* RAW_PACKET: the next frame of this side; it arrives at the peer. */
const struct packet *expect_frame(struct side *s);
const struct packet *pass_frame(struct side *s);

/* Unreliable services with hold_sent: reports what happened to a packet of this side. */
void sent(struct side *s, const struct packet *p);
void unsent(struct side *s, const struct packet *p);
void gather_failed(struct side *s, const struct packet *p);

/* This side has nothing to send at this time. */
void expect_silence(struct side *s);

/*
 * Delivers everything that both sides have to send, until both are silent. Returns the number of
 * packets.
 */
uint32_t exchange(void);

/*
 * A packet of the side's service arrives at this side. Unset fields are as its peer would set them.
 */
#define inject(side, opb, number, ...)                                                  \
	story_inject(side, &(struct packet){ .opcode = OPCODE(service_of_story(), opb), \
					     .psn = psn_add(number, 0),                 \
					     .pkey = 0xffff,                            \
					     .dest_qpn = (side)->q->caps.qpn,           \
					     ##__VA_ARGS__ })
enum reason story_inject(struct side *s, struct packet *p);
enum service service_of_story(void);
/* The network header of a datagram from this side. */
void grh_of(struct side *s, uint8_t grh[GRH]);
/* Fields of an injected request for memory of that side. */
#define at_memory(side, offset, octets) \
	.va = BASE + (offset), .rkey = (side)->key, .dma_length = (octets)

/* Makes the oldest delayed copy (delay_copies), or lets it fail. */
void settle(struct side *s, bool ok);

/* Completions. */
struct completion expect_completion(struct side *s, uint64_t wr_id, enum work_status status);
struct completion expect_receive(struct side *s, uint64_t wr_id, enum work_status status,
				 uint32_t byte_len);
void expect_no_completion(struct side *s);

/* A request of a to send a stream in segments, and its expected result. */
struct tso_row {
	uint32_t length;
	const char *header;
	uint16_t mss;
	uint8_t flags;
	enum work_status status;
};

/* One after the other: a request that succeeds becomes a frame, one that fails sends nothing. */
void expect_tso(const struct tso_row *row, uint32_t count);

/* WRITEs of eight octets each from a to b, one behind the other in memory; wr_id counts from 1. */
void post_writes(uint32_t n);
/* That many requests are complete, and no others; b's memory equals a's. */
void expect_written(uint32_t n);

void expect_state(struct side *s, enum qp_state state);
void expect_events(struct side *s, uint32_t events);

/* Memory. */
uint8_t *octets(struct side *s, uint32_t offset);
uint64_t word(struct side *s, uint32_t offset);
void set_word(struct side *s, uint32_t offset, uint64_t v);
/* `length` octets at x's offset equal those at y's. */
void expect_same(struct side *x, uint32_t offset, struct side *y, uint32_t from, uint32_t length);
/* The octets there are unchanged since the story began. */
void expect_untouched(struct side *s, uint32_t offset, uint32_t length);

int modify(struct side *s, uint32_t state, uint32_t mask, const struct qp_attributes *attributes);
/* Takes the side to RESET and back to RTS with its first attributes. */
void connect_again(struct side *s);
struct qp_attributes attributes_of(struct side *s);
const char *reason_text(enum reason r);

#define expect_reason(expression, wanted)                                                 \
	do {                                                                              \
		enum reason seen_ = (expression);                                         \
		cr_assert_eq(seen_, wanted, "%s is %s", #expression, reason_text(seen_)); \
	} while (0)

#endif
