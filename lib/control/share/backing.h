/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a program that the engine maps: those in which the program's regions lie, and the file
 * of its promoted pages. A file is mapped once for all regions of the program, as a whole, or if it
 * is large in the parts that regions need.
 *
 * The kernel charges a page to the process that first touches it, so pages that packets touch first
 * count as the engine's. Therefore a program is charged for what its files hold, or for what is
 * registered in them if that is more. When the last region goes, the program's user stays charged until
 * the file is gone (left.h). A file that exceeds the limit is not mapped. Its memory is
 * peer memory, which is slower but charged to the program by the kernel.
 */
#ifndef CONTROL_BACKING_H
#define CONTROL_BACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "drivers/client_memory/direct.h"

struct client;

#define BACKING_BUCKETS 256u /* of a program's files, hashed by inode */

struct backing_file {
	struct direct_map map;
	dev_t device;
	ino_t inode;
	bool writable;
	bool whole; /* the whole file is mapped */
	uint32_t users; /* regions */
	uint64_t registered; /* octets of regions in it */
	uint64_t counted; /* ... of RESOURCE_FILES, and of address space */
	struct left_file *left; /* NULL: nothing stays charged */
	LIST_ENTRY(backing_file) link; /* client_objects.files */
};

/* The part of a file that a region uses. */
struct backing_use {
	struct backing_file *file;
	uint64_t octets;
};

/*
 * Maps that range of the file for one region; `fd` stays the caller's. *at is the address. False:
 * the file cannot be mapped, or the program or its user has reached its limit.
 */
bool backing_use(struct client *c, int fd, uint64_t offset, uint64_t length, bool writable,
		 struct backing_use *use, uint8_t **at);
void backing_leave(struct client *c, const struct backing_use *use);
/* Whether it is the file of promoted pages, and maps that address. */
bool backing_use_is_promoted(const struct client *c, const struct backing_use *use, const void *at);
/* Whether that address is in a mapping of the file of promoted pages. */
bool backing_maps_promoted(const struct client *c, const void *at);

/*
 * Passes the file of promoted pages, once for a program. Takes the descriptor on success. 0 or an
 * errno.
 */
int backing_promote(struct client *c, int fd);
/* Called after the last region. */
void backing_close(struct client *c);

#endif
