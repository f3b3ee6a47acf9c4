/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Some programs close descriptors that they do not know. The number may then be another file's,
 * which must stay open in the child of a fork.
 */
#ifndef CLIENT_OWN_FILE_H
#define CLIENT_OWN_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

/* Names a file with an inode of its own, such as a socket. Zeros name none: no file has inode 0. */
struct own_file {
	ino_t inode;
	dev_t device;
};

static inline struct own_file own_file_of(int fd)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return (struct own_file){ 0 };
	return (struct own_file){ st.st_ino, st.st_dev };
}

/* Whether the descriptor still is of that file. */
static inline bool own_file_is(const struct own_file *f, int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == f->inode && st.st_dev == f->device;
}

/* Closes the descriptor if it is. */
static inline void own_file_close(const struct own_file *f, int fd)
{
	if (own_file_is(f, fd))
		close(fd);
}

#endif
