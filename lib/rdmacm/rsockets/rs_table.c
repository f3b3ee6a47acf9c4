/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds sockets by descriptor. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/loading.h"
#include "rdmacm/rsockets/rs.h"

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct rs_socket **table;
static int slots;

/* Whether its number is not another file's by now. */
static bool has_its_file(const struct rs_socket *s)
{
	struct stat st;

	return fstat(s->fd, &st) == 0 && st.st_dev == s->datagrams.device &&
	       st.st_ino == s->datagrams.inode;
}

/*
 * Called in the child of a fork, which cannot use its parent's sockets. rdma_cm closes the
 * descriptors of streams there. Those of datagram sockets would keep their ports, so they are
 * closed here.
 */
static void forget_all(void)
{
	pthread_mutex_init(&table_lock, NULL);
	for (int i = 0; i < slots; i++) {
		if (table[i] != NULL && !rs_is_stream(table[i]) && has_its_file(table[i]))
			close(i);
		table[i] = NULL;
	}
}

static void lock_table(void)
{
	pthread_mutex_lock(&table_lock);
}

static void unlock_table(void)
{
	pthread_mutex_unlock(&table_lock);
}

static AT_LOAD(LOAD_RSOCKETS) void prepare_for_forks(void)
{
	pthread_atfork(lock_table, unlock_table, forget_all);
}

static int grow(int wanted)
{
	int count = MAX_OF(64, wanted * 2);
	struct rs_socket **larger = realloc(table, (size_t)count * sizeof(table[0]));

	if (larger == NULL)
		return ENOMEM;
	for (int i = slots; i < count; i++)
		larger[i] = NULL;
	table = larger;
	slots = count;
	return 0;
}

int rs_enter(struct rs_socket *s)
{
	int error = 0;

	pthread_mutex_lock(&table_lock);
	if (s->fd >= slots)
		error = grow(s->fd + 1);
	if (error == 0)
		table[s->fd] = s;
	pthread_mutex_unlock(&table_lock);
	return error;
}

/* The caller holds table_lock. */
static struct rs_socket *find(int fd)
{
	return fd >= 0 && fd < slots ? table[fd] : NULL;
}

struct rs_socket *rs_get(int fd)
{
	struct rs_socket *s;

	pthread_mutex_lock(&table_lock);
	s = find(fd);
	if (s != NULL)
		s->references++;
	pthread_mutex_unlock(&table_lock);
	if (s == NULL)
		errno = EBADF;
	return s;
}

void rs_hold(struct rs_socket *s)
{
	pthread_mutex_lock(&table_lock);
	s->references++;
	pthread_mutex_unlock(&table_lock);
}

void rs_put(struct rs_socket *s)
{
	int before = errno;
	bool last;

	pthread_mutex_lock(&table_lock);
	last = --s->references == 0;
	pthread_mutex_unlock(&table_lock);
	if (last)
		rs_free(s);
	errno = before;
}

struct rs_socket *rs_leave(int fd)
{
	struct rs_socket *s;

	pthread_mutex_lock(&table_lock);
	s = find(fd);
	if (s != NULL)
		table[fd] = NULL;
	pthread_mutex_unlock(&table_lock);
	if (s == NULL)
		errno = EBADF;
	return s;
}
