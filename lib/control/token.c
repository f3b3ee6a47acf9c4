/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The token of a context: a sealed memfd that programs may duplicate and pass on (context->cmd_fd).
 * A program that shows it to the engine may import from the context. The engine recognises the file
 * by its inode and by a secret in it, since an inode number may be reused after the file is gone.
 * So it keeps no descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control.h"

#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static int fill_file(int fd, const struct context_token *t)
{
	ssize_t n = write(fd, t, sizeof(*t));

	if (n != sizeof(*t))
		return n < 0 ? errno : ENOSPC;
	return fcntl(fd, F_ADD_SEALS, SEALS) == 0 ? 0 : errno;
}

static void enter(struct engine *e, struct context *x, const struct stat *st)
{
	x->token_device = st->st_dev;
	x->token_inode = st->st_ino;
	LIST_INSERT_HEAD(&e->control->tokens[st->st_ino % CONTROL_BUCKETS], x, token_link);
}

int token_create(struct engine *e, struct context *x)
{
	struct context_token t = { .magic = COMMAND_MAGIC,
				   .version = COMMAND_VERSION,
				   .engine_id = e->id };
	int fd = memfd_create("uroce-context", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct stat st;
	int error;

	if (fd < 0)
		return -1;
	if (getrandom(t.secret, sizeof(t.secret), 0) != sizeof(t.secret))
		error = EAGAIN;
	else
		error = fstat(fd, &st) == 0 ? 0 : errno;
	if (e->control->listener.shown)
		memcpy(t.path, e->control->listener.path, sizeof(t.path));
	if (error == 0)
		error = fill_file(fd, &t);
	if (error != 0) {
		close(fd);
		errno = error;
		return -1;
	}
	memcpy(x->token_secret, t.secret, sizeof(t.secret));
	enter(e, x, &st);
	return fd;
}

void token_forget(struct context *x)
{
	struct context *i;

	LIST_REMOVE(x, token_link);
	if (x->exporter != NULL)
		LIST_REMOVE(x, import_link);
	while ((i = LIST_FIRST(&x->importers)) != NULL) {
		LIST_REMOVE(i, import_link);
		i->exporter = NULL;
	}
}

static struct context *find(struct engine *e, const struct stat *st, const uint8_t secret[16])
{
	struct context *x;

	LIST_FOREACH(x, &e->control->tokens[st->st_ino % CONTROL_BUCKETS], token_link)
	if (x->token_inode == st->st_ino && x->token_device == st->st_dev &&
	    memcmp(x->token_secret, secret, sizeof(x->token_secret)) == 0)
		return x;
	return NULL;
}

struct context *token_find(struct engine *e, int fd)
{
	struct context_token t;
	struct stat st;

	/*
	 * Seals first: only memory files have them, and memory files answer the rest without
	 * blocking.
	 */
	if (fcntl(fd, F_GET_SEALS) != SEALS || fstat(fd, &st) != 0 || st.st_size != sizeof(t) ||
	    pread(fd, &t, sizeof(t), 0) != sizeof(t))
		return NULL;
	return find(e, &st, t.secret);
}
