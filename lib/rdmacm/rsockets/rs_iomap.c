/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Buffers into which the peer writes directly. riomap() registers one. The next message with data
 * (rsocket(7)) first announces it in the peer's table.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "rdmacm/rsockets/rs.h"

/* ---- the peer's table ---- */

/* Announces one mapping. This takes a credit and a place in the send queue, as data does. */
static int tell(struct rs_socket *s, struct rs_mapping *m)
{
	struct rs_stream *t = &s->stream;
	struct rs_iomap entry = { .offset = m->offset,
				  .sge = { .address = (uintptr_t)m->mr->addr,
					   .key = m->mr->rkey,
					   .length = (uint32_t)m->mr->length } };
	struct rs_write w = {
		.sge = { { .addr = (uintptr_t)&entry, .length = sizeof(entry) } },
		.pieces = 1,
		.address = t->peer_iomap + (uint64_t)m->entry * sizeof(entry),
		.key = t->peer_table.key,
		.is_inline = true,
		.has_message = true,
		.message = rs_message(RS_IOMAP, (uint32_t)m->entry),
		.what = RS_POSTED_DATA,
	};

	entry = rs_iomap_for(&entry, t->swap);
	t->out.sent++;
	rs_outflow_sent(&t->out, 0);
	return rs_stream_write(s, &w);
}

static struct rs_mapping *next_untold(const struct rs_socket *s)
{
	struct rs_mapping *m = s->stream.mappings;

	while (m != NULL && m->told)
		m = m->next;
	return m;
}

int rs_tell_mappings(struct rs_socket *s, int flags)
{
	struct rs_mapping *m;
	int error = 0;

	while (error == 0 && (m = next_untold(s)) != NULL) {
		error = rs_may_send(s)
				? 0
				: rs_wait(s, rs_may_send_or_gone, rs_must_not_wait(s, flags));
		if (error == 0 && !s->writable)
			error = rs_error_of_end(s);
		/* Another thread may have unmapped it while this one waited. */
		if (error != 0 || next_untold(s) != m)
			continue;
		m->told = true;
		error = tell(s, m);
	}
	return error;
}

/* ---- our table ---- */

static int free_entry(const struct rs_socket *s)
{
	for (int entry = 0; entry < s->stream.peer_iomap_entries; entry++) {
		const struct rs_mapping *m = s->stream.mappings;

		while (m != NULL && m->entry != entry)
			m = m->next;
		if (m == NULL)
			return entry;
	}
	return -1;
}

/* Mappings are announced to the peer in this order, the order of riomap(). */
static void append(struct rs_socket *s, struct rs_mapping *m)
{
	struct rs_mapping **link = &s->stream.mappings;

	while (*link != NULL)
		link = &(*link)->next;
	*link = m;
}

static int map(struct rs_socket *s, void *buf, size_t length, bool remote, uint64_t offset)
{
	int access = IBV_ACCESS_LOCAL_WRITE | (remote ? IBV_ACCESS_REMOTE_WRITE : 0);
	int entry = remote ? free_entry(s) : -1;
	struct rs_mapping *m;

	if (remote && entry < 0)
		return ENOMEM;
	m = calloc(1, sizeof(*m));
	if (m == NULL)
		return ENOMEM;
	m->mr = ibv_reg_mr(s->stream.id->pd, buf, length, access);
	if (m->mr == NULL) {
		free(m);
		return errno;
	}
	m->offset = offset;
	m->entry = entry;
	m->told = !remote;
	append(s, m);
	return 0;
}

static int check_map(const struct rs_socket *s, size_t length, int prot)
{
	if (!rs_is_stream(s))
		return EOPNOTSUPP;
	if ((prot & ~PROT_WRITE) || length == 0 || length > UINT32_MAX)
		return EINVAL;
	return s->state == RS_CONNECTED ? 0 : ENOTCONN;
}

EXPORT off_t riomap(int socket, void *buf, size_t len, int prot, int flags, off_t offset)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	(void)flags;
	if (s == NULL)
		return -1;
	if (offset == -1)
		offset = (off_t)(uintptr_t)buf;
	pthread_mutex_lock(&s->lock);
	error = check_map(s, len, prot);
	if (error == 0)
		error = map(s, buf, len, prot & PROT_WRITE, (uint64_t)offset);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return error != 0 ? result(error) : offset;
}

static void unmap(struct rs_mapping **link)
{
	struct rs_mapping *m = *link;

	*link = m->next;
	ibv_dereg_mr(m->mr);
	free(m);
}

void rs_free_mappings(struct rs_socket *s)
{
	while (s->stream.mappings != NULL)
		unmap(&s->stream.mappings);
}

static int find_and_unmap(struct rs_socket *s, const void *buf, size_t length)
{
	if (!rs_is_stream(s))
		return EOPNOTSUPP;
	for (struct rs_mapping **m = &s->stream.mappings; *m != NULL; m = &(*m)->next) {
		if ((*m)->mr->addr == buf && (*m)->mr->length == length) {
			unmap(m);
			return 0;
		}
	}
	return EINVAL;
}

EXPORT int riounmap(int socket, void *buf, size_t len)
{
	struct rs_socket *s = rs_get(socket);
	int error;

	if (s == NULL)
		return -1;
	pthread_mutex_lock(&s->lock);
	error = find_and_unmap(s, buf, len);
	pthread_mutex_unlock(&s->lock);
	rs_put(s);
	return result(error);
}

/* ---- writing into the peer's buffers ---- */

/* The peer may write its entries into our memory at any time, in our byte order. */
bool rs_find_mapped(const struct rs_socket *s, uint64_t offset, struct rs_sge *left)
{
	const volatile struct rs_iomap *entry =
		(const volatile struct rs_iomap *)(void *)(s->stream.table.octets +
							   RS_SGL_ENTRIES * sizeof(struct rs_sge));

	for (uint16_t i = 0; i < s->sizes.iomap_entries; i++) {
		uint64_t begin = entry[i].offset;
		uint32_t length = entry[i].sge.length;

		if (offset < begin || offset - begin >= length)
			continue;
		left->address = entry[i].sge.address + (offset - begin);
		left->key = entry[i].sge.key;
		left->length = length - (uint32_t)(offset - begin);
		return true;
	}
	return false;
}

EXPORT size_t riowrite(int socket, const void *buf, size_t count, off_t offset, int flags)
{
	struct iovec iov = { .iov_base = (void *)buf, .iov_len = count };
	struct rs_socket *s = rs_get(socket);
	ssize_t sent;

	if (s == NULL)
		return (size_t)-1;
	if (!rs_is_stream(s))
		sent = result(EOPNOTSUPP);
	else
		sent = rs_stream_send_to(s, &iov, (uint64_t)offset, flags);
	rs_put(s);
	return (size_t)sent;
}
