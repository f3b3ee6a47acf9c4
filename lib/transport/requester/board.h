/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requester knows about each packet in flight, beside struct requester. */
#ifndef TRANSPORT_BOARD_H
#define TRANSPORT_BOARD_H

#include "base/time.h"
#include "transport/psn_set.h"

/*
 * Sets over [una_psn, top_psn), as large as the window may become. A packet is in at most one of
 * the four. A packet in none of them was sent once, and nothing is known of it.
 *
 * Order of sending. New packets are sent in the order of their PSNs, so a PSN stands for the
 * instant at which it was first sent. Each set of repetitions has a mark: the next new PSN when the
 * last of the set was sent. New packets from the mark on were sent later.
 */
enum board_set {
	BOARD_HELD, /* the peer has it; READ: the response is placed; atomic: it waits with the caller */
	BOARD_LOST, /* it is to be sent again */
	BOARD_OLD, /* sent again before old_mark, */
	BOARD_YOUNG, /* ... or before young_mark, which is later */
	BOARD_SETS,
};

struct board {
	uint32_t old_mark, young_mark;
	uint32_t again; /* the last repetition */
	uint32_t twice; /* some packets before this PSN were repeated more than once */
	uint32_t told; /* all before it came or is lost, as the answer at hand says */

	uint32_t passed; /* all sent before this PSN was overtaken by an arrival */
	uint32_t passed_data; /* ... of SENDs and WRITEs, as the peer holds packets behind a gap */
	uint32_t passed_probe; /* ... perhaps, as an answered probe says */
	uint32_t late, late_data; /* what these were when late_at was set */
	nanotime late_at; /* then the overtaken counts as lost */
	uint32_t gap; /* the PSN that the peer misses, as its last selective acknowledgement says */
	uint32_t acked; /* the peer acknowledged all before it, except READs and atomics */

	nanotime quiet_at; /* nothing was heard or probed since; */
	nanotime probe_at; /* ... the silence is too long then */
	uint32_t probe_psn, probe_mark; /* the last probe, and the next new PSN when it was sent */
	uint32_t episode; /* losses before this PSN are one event for the window */
	uint8_t words; /* of one set */
	uint8_t probes; /* probes without an answer: each doubles the wait */
	uint8_t rounds; /* of repetitions since the last progress, at most LIMIT_ROUNDS */
	bool clean : 1; /* the sets are empty, and the PSNs above mean nothing */
	bool again_is_one : 1; /* the last repetition has one PSN */

	union { /* the bits of all sets, one behind the other */
		uint64_t own[BOARD_SETS * PSN_SET_WORDS];
		uint64_t *more; /* for a larger window: in memory of the queue pair */
	};
};

static inline uint64_t *board_bits(const struct board *board)
{
	return board->words == PSN_SET_WORDS ? (uint64_t *)(uintptr_t)board->own : board->more;
}

static inline struct psn_set board_set(const struct board *board, enum board_set which)
{
	return (struct psn_set){ .word = board_bits(board) + which * board->words,
				 .words = board->words };
}

/* Packets that may be in flight: there are bits for no more. */
static inline uint32_t board_window(const struct board *board)
{
	return 64 * board->words;
}

#endif
