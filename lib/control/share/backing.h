/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a program that the engine maps: what regions of the program lie in, and the file of its
 * promoted pages. A file is mapped once, whole, for all regions of the program in it; of a large one
 * what a region needs.
 *
 * Pages that a packet is the first to touch are the engine's account in the kernel. So a program
 * counts with what its files hold, or with what is registered in them if that is more, and what
 * would be too much is not mapped. Such memory is peer memory, which is slower and pays for itself.
 */
#ifndef CONTROL_BACKING_H
#define CONTROL_BACKING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "drivers/client_memory/direct.h"

struct client;

#define BACKING_BUCKETS 256u /* of a program's files, by inode */

struct backing_file {
	struct direct_map map;
	dev_t device;
	ino_t inode;
	bool writable;
	bool whole; /* all of the file is mapped */
	uint32_t users; /* regions */
	uint64_t registered; /* octets of regions in it */
	uint64_t counted; /* ... of RESOURCE_FILES, and of addresses */
	LIST_ENTRY(backing_file) link; /* client_objects.files */
};

/* A part of a file that a region has. */
struct backing_use {
	struct backing_file *file;
	uint64_t octets;
};

/*
 * Maps that range of the file, which stays the caller's, for one region. *at is where it is. False:
 * it is no file that can be mapped, or the program or its user has his share.
 */
bool backing_use(struct client *c, int fd, uint64_t offset, uint64_t length, bool writable,
		 struct backing_use *use, uint8_t **at);
void backing_leave(struct client *c, const struct backing_use *use);

/* The file of promoted pages, once for a program. The descriptor is taken on success. 0 or an errno. */
int backing_promote(struct client *c, int fd);
/* After the last region. */
void backing_close(struct client *c);

#endif
