/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies between a program's vectors and contiguous memory. */
#include <limits.h>

#include "rdmacm/rsockets/rs.h"

static size_t piece_of(const struct rs_cursor *c, size_t length)
{
	return MIN_OF(length, c->iov->iov_len - c->at);
}

static void advance(struct rs_cursor *c, size_t length)
{
	c->at += length;
	while (c->count > 0 && c->at == c->iov->iov_len) {
		c->iov++;
		c->count--;
		c->at = 0;
	}
}

void rs_copy_from(struct rs_cursor *c, void *to, size_t length)
{
	advance(c, 0);
	while (length > 0) {
		size_t n = piece_of(c, length);

		memcpy(to, (const uint8_t *)c->iov->iov_base + c->at, n);
		to = (uint8_t *)to + n;
		length -= n;
		advance(c, n);
	}
}

void rs_copy_to(struct rs_cursor *c, const void *from, size_t length)
{
	advance(c, 0);
	while (length > 0) {
		size_t n = piece_of(c, length);

		memcpy((uint8_t *)c->iov->iov_base + c->at, from, n);
		from = (const uint8_t *)from + n;
		length -= n;
		advance(c, n);
	}
}

ssize_t rs_iov_length(const struct iovec *iov, size_t count)
{
	size_t length = 0;

	if (count > IOV_MAX || (iov == NULL && count > 0))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (iov[i].iov_len > SSIZE_MAX - length)
			return -1;
		length += iov[i].iov_len;
	}
	return (ssize_t)length;
}
