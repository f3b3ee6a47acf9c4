/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The octets of one message in a node's memory: pieces with guard octets between and around them,
 * which show if an octet is written in the wrong place.
 */
#ifndef SIM_EXTENT_H
#define SIM_EXTENT_H

#include "limits.h"
#include "node.h"
#include "prng.h"

#define GUARD	     0xa5
#define GUARD_OCTETS 64u /* before the first and after the last piece of a slot */

/* Pieces of one slot. */
struct extent {
	uint32_t at; /* offset of the slot */
	uint32_t used; /* octets of the slot in use, including guards */
	uint32_t pieces;
	uint32_t offset[LIMIT_SGE]; /* within the slot */
	uint32_t length[LIMIT_SGE];
};

uint8_t *memory_of(const struct node_qp *q, uint32_t offset);
/* Writes the octets of the message with this seed. */
void pattern_make(uint8_t *to, uint32_t length, uint64_t seed);

/* Cuts `length` octets into at most `most` pieces with gaps; some pieces are empty. */
void extent_cut(struct prng *r, struct extent *e, uint32_t at, uint32_t length, uint32_t most);
void extent_fill(const struct node_qp *q, const struct extent *e, const uint8_t *from);
bool extent_equals(const struct node_qp *q, const struct extent *e, const uint8_t *wanted,
		   uint32_t length);
/* Overwrites the message's octets with guards. False: an octet beside the message had changed. */
bool extent_release(const struct node_qp *q, const struct extent *e);
/* The pieces as scatter/gather elements; returns how many. */
uint32_t extent_elements(const struct extent *e, uint64_t base, uint32_t key, struct work_sge *sge);

#endif
