/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a client that the engine maps itself. A file that a program can shorten could raise
 * SIGBUS in the engine, so the engine maps only files that are sealed against shrinking. For all
 * others the caller uses peer memory (peer.h).
 */
#ifndef CLIENT_MEMORY_DIRECT_H
#define CLIENT_MEMORY_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct direct_map {
	uint8_t *base; /* the mapped octet at file_offset */
	uint64_t file_offset; /* octets, a multiple of the page size */
	uint64_t length;
};

/* The current state of a file that can be mapped. */
struct direct_file {
	dev_t device;
	ino_t inode;
	uint64_t size;
	uint64_t allocated; /* octets of pages that it holds */
};

/* 0; EOPNOTSUPP: the file is not sealed or not plain memory; or an errno of fstat(2). */
int direct_look(int fd, struct direct_file *out);

/*
 * Maps [file_offset, file_offset + length) of fd; length 0: up to the end. The caller keeps fd. 0;
 * EOPNOTSUPP: the file is not sealed or not plain memory; EINVAL: the range is outside the file; or
 * an errno of mmap(2). direct_close unmaps it.
 */
int direct_open(struct direct_map *d, int fd, uint64_t file_offset, uint64_t length, bool writable);
void direct_close(struct direct_map *d);

/* The address of [file_offset, file_offset + length); NULL: it is not inside the mapping. */
void *direct_at(const struct direct_map *d, uint64_t file_offset, uint64_t length);

#endif
