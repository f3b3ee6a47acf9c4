/* SPDX-License-Identifier: BSD-3-Clause */
/* The programs, queue pairs and peers of a look, by how much they send and receive. */
#ifndef APPS_TOP_RANKS_H
#define APPS_TOP_RANKS_H

#include "look.h"

/* Packets a second. */
struct rates {
	double sends, receives;
};

struct ranked_qp {
	struct rates rates; /* first in all three, for one order */
	struct listed_qp qp;
};

struct ranked_program {
	struct rates rates;
	struct listed_program program;
};

/* All queue pairs that are connected to one address. */
struct ranked_peer {
	struct rates rates;
	struct gid gid;
	uint32_t qps;
	uint8_t way; /* enum listed_way, of one of them */
};

struct ranks {
	struct ranked_qp *qp;
	struct ranked_program *program;
	struct ranked_peer *peer;
	uint32_t qps, programs, peers;
	struct rates all;
};

/*
 * The counts of `seconds` (0: none yet). `program`: the existing ones. False: no memory,
 * and *r is empty.
 */
bool ranks_make(struct ranks *r, const struct look *l, double seconds,
		const struct listed_program *program, uint32_t programs);
void ranks_free(struct ranks *r);

#endif
