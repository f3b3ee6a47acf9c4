/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a client that the engine maps itself. A mapping of a file that somebody can shorten is
 * a SIGBUS waiting for the engine, so only files sealed against shrinking are taken; for all
 * others the caller falls back to peer memory.
 */
#ifndef CLIENT_MEMORY_DIRECT_H
#define CLIENT_MEMORY_DIRECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct direct_map {
	uint8_t *base; /* where file_offset is */
	uint64_t file_offset; /* octets, a multiple of the page size */
	uint64_t length;
};

/* A file that can be mapped, as it is now. */
struct direct_file {
	dev_t device;
	ino_t inode;
	uint64_t size;
	uint64_t allocated; /* octets of pages that it holds */
};

/* 0, EOPNOTSUPP for a file that is not sealed or not plain memory, or what fstat said. */
int direct_look(int fd, struct direct_file *out);

/*
 * Maps [file_offset, file_offset + length) of fd, which stays the caller's; length 0: to the end.
 * 0, or an errno: EOPNOTSUPP for a file that is not sealed or not plain memory, EINVAL for a range
 * outside it, or what mmap said.
 */
int direct_open(struct direct_map *d, int fd, uint64_t file_offset, uint64_t length, bool writable);
void direct_close(struct direct_map *d);

/* The address of [file_offset, file_offset + length) in it, NULL if it is not inside. */
void *direct_at(const struct direct_map *d, uint64_t file_offset, uint64_t length);

#endif
