/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory behind a part of a registered region, as a program describes it to its engine
 * (REG_MR).
 */
#ifndef MEMORY_MR_BACKING_H
#define MEMORY_MR_BACKING_H

#include <stdint.h>

/* A part of a region whose pages the engine can map itself: a shared file mapping of the client. */
struct mr_backing {
	uint64_t offset; /* in the region, octets */
	uint64_t length;
	uint64_t file_offset;
	/* index into the message's descriptors; BACKING_PROMOTED: the client's promoted file */
	int32_t fd;
	uint32_t writable;
};

#define BACKING_PROMOTED (-1)
#define BACKING_MAX	 64u

#endif
