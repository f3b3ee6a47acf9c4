/* SPDX-License-Identifier: BSD-3-Clause */
/* The two queue pairs of the target transport, and the packets between them. */
#ifndef FUZZ_TRANSPORT_SIDES_H
#define FUZZ_TRANSPORT_SIDES_H

#include "base/bits.h"
#include "input.h"
#include "sim/node.h"
#include "wire/decode.h"
#include "wire/opcode.h"

#define MEMORY	   8192u
#define REGISTERED 2048u /* from here on, */
#define LENGTH	   4096u /* so many octets */
#define IOVA	   UINT64_C(0x700000000000)
#define SGE	   2u
#define INLINE_MAX 32u
#define WIRE	   32u /* packets under way */
#define TYPES	   5u /* pairs of services */
#define ACCESS_ALL                                                                              \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_FLUSH_GLOBAL)

struct carried {
	struct packet p;
	bool to_b;
	uint8_t octets[GRH_LENGTH + NODE_PAYLOAD];
};

struct side {
	struct node node;
	struct node_qp *qp;
	uint32_t key, window;
	uint64_t posted, completed; /* send requests; wr_id counts from 0 */
	uint64_t received, returned; /* receive requests */
};

enum fate {
	LEAVES,
	UNSENT,
	NOT_GATHERED,
	REFUSED
};

extern struct side *side; /* the two of this input */
extern struct carried wire[WIRE];
extern uint32_t on_wire;
extern nanotime now;
extern uint8_t how; /* bits of the first octets: delayed copies, PSN at the wrap ... */

uint32_t type_of(const struct side *s);
struct gid gid_of(const struct side *s);
uint32_t qpn_of(const struct side *s);
struct side *other(const struct side *s);

/* The two sides of the type, as they were made. */
void open_sides(uint8_t type);
void close_side(struct side *s);
/* RESET to RTS. */
void connect_side(struct side *s, uint8_t tune);

/* Takes its completions and events, and checks them. */
void take(struct side *s);
/* A packet as the other side's decoder would make it; false: it would refuse it. */
bool travel(const struct side *from, struct packet *p, const uint8_t *payload, uint32_t length,
	    struct carried *c);
/* Stores the next packet; the oldest is lost if there is no room. */
struct carried *wire_slot(void);
/* False: there was nothing to send. */
bool send_one(struct side *s, enum fate fate);
/* keep: it may come again. */
void deliver(uint32_t i, bool keep);
/* Does the operation that the side waits for, if there is one. */
void operate(struct side *s, bool well);

/* At the end: a queue pair in ERR gives everything back, and no octet outside of the region changed. */
void expect_all_back(struct side *s);
void expect_guards(const struct side *s);

#endif
