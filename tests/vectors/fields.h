/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a decoded packet says, under the names that tshark gives the same fields: the columns in
 * which our decoder and tshark are compared. Also a reader of classic pcap files.
 */
#ifndef TESTS_VECTORS_FIELDS_H
#define TESTS_VECTORS_FIELDS_H

#include <stdio.h>

#include "wire/packet.h"

struct field {
	const char *name; /* tshark's */
	unsigned int flags; /* enum opcode_flag: the opcodes that have it; 0: all */
	uint64_t (*value)(const struct packet *p);
};

extern const struct field fields[];
extern const unsigned int field_count;

static inline int field_present(const struct field *f, uint16_t opcode_flags)
{
	return f->flags == 0 || (opcode_flags & f->flags) != 0;
}

/* Opens a little-endian microsecond pcap file of Ethernet frames; NULL if it is none. */
FILE *pcap_open(const char *path);

/* Octets of the next frame, 0 at the end or where the file is damaged. */
size_t pcap_next(FILE *f, uint8_t *frame, size_t room);

#endif
