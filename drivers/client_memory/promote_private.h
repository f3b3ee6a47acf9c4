/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of promotion share: promote.c, promote_parts.c, promote_move.c. */
#ifndef CLIENT_MEMORY_PROMOTE_PRIVATE_H
#define CLIENT_MEMORY_PROMOTE_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "drivers/client_memory/maps.h"
#include "drivers/client_memory/promote.h"

#define PAGE ((uintptr_t)4096)

/* A part of the promoted file that regions use; sorted by offset, not overlapping. */
struct part {
	uint64_t offset, length;
	uint32_t users;
};

/* All of it is one object: it must not move itself. */
struct promote_state {
	pthread_mutex_t lock;
	bool ready; /* fork handlers are in place */
	bool refused; /* this process does not promote */
	int fd;
	ino_t inode;
	dev_t device;
	uint32_t small; /* regions that were: it does not go down */
	uint32_t parts;
	struct part part[PROMOTE_RANGES_MAX];
	struct mapping found[PROMOTE_RANGES_MAX];
	int fork_pipe[2];
	int fork_cancel; /* base/cancel.h */
};

extern struct promote_state promote_state;

/* promote_parts.c */

/* False: there are as many parts as may be. */
bool promote_insert_part(uint32_t at, struct part p);
void promote_remove_part(uint32_t at);
/* First part that ends behind offset. */
uint32_t promote_part_at(uint64_t offset);
/* Cuts the part that goes across `offset` in two. */
bool promote_split_part(uint64_t offset);
/* One more user of [offset, offset + length), all of which is in parts. */
bool promote_use_parts(uint64_t offset, uint64_t length);
/* The lowest free range of the file, UINT64_MAX if there is none. */
uint64_t promote_find_free(uint64_t length);

/* promote_move.c: [start, start + length) and the file from offset on. False: nothing changed. */

bool promote_move_into_file(uintptr_t start, uint64_t length, uint64_t offset);
/* Private memory with the file's octets takes the place of its mapping; nobody may write it. */
bool promote_replace_by_copy(uintptr_t start, uint64_t length, uint64_t offset);
bool promote_move_out_of_file(uintptr_t start, uint64_t length, uint64_t offset);

#endif
