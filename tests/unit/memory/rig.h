/* SPDX-License-Identifier: BSD-3-Clause */
/* A key table and regions of it, for the tests of lib/memory. */
#ifndef TESTS_MEMORY_RIG_H
#define TESTS_MEMORY_RIG_H

#include "base/work.h"
#include "memory/check.h"

#define PD   3u
#define USER ((struct key_user){ PD, 5 })
#define RW   (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE)

extern struct key_table table;

void make_table(uint32_t slots, uint8_t seed);
void drop_table(void);

/* Published, of client 9; the caller frees it. */
struct region *make_region(uint32_t pieces, uint64_t iova, uint64_t length, uint32_t access);
/* A window on it from this offset on; qpn: 0 of type 1. */
struct region *make_window(struct region *parent, uint64_t offset, uint64_t length, uint32_t access,
			   uint32_t qpn);

#endif
