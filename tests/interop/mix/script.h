/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each end sends, as a function of the seed. Both ends compute it, so the receiver knows every octet that
 * must come without being told.
 *
 * Requests of one queue pair in one direction are numbered from 0. They are divided into rounds of the same number
 * of requests. `mix_op` must be called for each number in its order, because later requests depend on the words
 * that earlier atomics left.
 */
#ifndef UROCE_TESTS_INTEROP_MIX_SCRIPT_H
#define UROCE_TESTS_INTEROP_MIX_SCRIPT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define MIX_LARGEST ((size_t)1 << 20) /* the longest message */
#define MIX_SOURCE  ((size_t)3 << 20) /* octets from which all messages are gathered */
#define MIX_AREA    (MIX_LARGEST + 4096) /* what one queue pair of the peer writes */
#define MIX_WORDS   16 /* behind the area: words for the atomics of this queue pair */
#define MIX_PIECES  32
#define MIX_RC	    4
#define MIX_UC	    2
#define MIX_UD	    2
#define MIX_QPS	    (MIX_RC + MIX_UC + MIX_UD)

enum mix_target {
	MIX_OF_AREA,
	MIX_OF_SOURCE,
	MIX_OF_WORDS,
	MIX_OF_SHARED
};

struct mix_script {
	uint64_t seed;
	uint32_t mtu, per_round, rounds, most_pieces;
	bool plain[2]; /* this end makes neither READs nor atomics */
};

struct mix_op {
	enum ibv_wr_opcode opcode;
	enum mix_target target;
	uint64_t offset; /* in the target */
	uint32_t length, pieces;
	uint32_t from[MIX_PIECES], part[MIX_PIECES]; /* offsets in the source, lengths */
	uint64_t compare_add, swap, before; /* of atomics; `before` is the word's value */
	bool signaled, fence, use_inline, window, consumes;
};

/* One direction of one queue pair: everything that a request leaves behind. */
struct mix_way {
	unsigned int role, qp; /* of the requester */
	uint32_t next; /* number of the next request */
	bool read_open; /* a READ of what requests change: the next of them needs a fence */
	bool invalidated; /* the window, in this round */
	uint64_t words[MIX_WORDS];
	uint8_t *area; /* contents after all requests up to `next`; NULL: nobody asks */
};

enum mix_break {
	MIX_NO_BREAK,
	MIX_BAD_REQUEST,
	MIX_OWN_ERROR
};

/* How a round of a queue pair ends early: at request `at` of the round, by the end `role`. */
struct mix_end {
	enum mix_break how;
	unsigned int role;
	uint32_t at;
	bool again; /* with a new queue pair, not by RESET */
};

uint64_t mix_random(uint64_t seed, uint64_t a, uint64_t b, uint64_t c);
enum ibv_qp_type mix_type(unsigned int qp);
struct mix_end mix_end(const struct mix_script *s, unsigned int qp, uint32_t round);
/* The request `way->next`; its effect on the words and the area is in `way` afterwards. */
void mix_op(const struct mix_script *s, struct mix_way *way, const uint8_t *source,
	    struct mix_op *op);
void mix_fresh(struct mix_way *way, const uint8_t *source);
/* True if `memory` is the message of this request. */
bool mix_is(const struct mix_op *op, const uint8_t *source, const uint8_t *memory);
void mix_copy(const struct mix_op *op, const uint8_t *source, uint8_t *memory);

#endif
