/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/netlink.h"
#include "config/limits.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANNOUNCEMENTS 8192 /* octets of a datagram */

/* ---- sockets ---- */

struct mnl_socket *netlink_open(bool waits)
{
	struct mnl_socket *s =
		mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK));
	/* The kernel answers inside sendto(). The timeout only guards against a lost message. */
	struct timeval patience = { .tv_usec = 100 * 1000 };

	if (s != NULL && waits)
		setsockopt(mnl_socket_get_fd(s), SOL_SOCKET, SO_RCVTIMEO, &patience,
			   sizeof(patience));
	return s;
}

struct mnl_socket *netlink_listen(uint32_t groups)
{
	struct mnl_socket *s = netlink_open(false);
	int error;

	if (s == NULL || mnl_socket_bind(s, groups, MNL_SOCKET_AUTOPID) == 0)
		return s;
	error = errno;
	netlink_close(s);
	errno = error;
	return NULL;
}

void netlink_close(struct mnl_socket *s)
{
	if (s != NULL)
		mnl_socket_close(s);
}

/* ---- questions ---- */

void *netlink_begin(union netlink_question *q, uint16_t type, uint16_t flags, size_t body)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(q);

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	return mnl_nlmsg_put_extra_header(h, body);
}

void netlink_put(union netlink_question *q, uint16_t type, const void *value, size_t octets)
{
	bool fits = mnl_attr_put_check(&q->header, sizeof(*q), type, octets, value);

	assert(fits && "a question is longer than NETLINK_QUESTION");
	(void)fits;
}

static int ask(struct mnl_socket *s, const union netlink_question *q)
{
	return mnl_socket_sendto(s, q, q->header.nlmsg_len) < 0 ? errno : 0;
}

/* The errno in an answer of type NLMSG_ERROR. 0: the answer is an acknowledgement. */
static int error_of(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);

	return netlink_has_body(h, sizeof(*e)) ? -e->error : EBADMSG;
}

int netlink_ask(struct mnl_socket *s, const union netlink_question *q, union netlink_answer *a)
{
	int error = ask(s, q);

	/* The answer to an earlier question may still be in the socket. */
	for (int i = 0; i < LIMIT_NETLINK_ANSWERS && error == 0; i++) {
		ssize_t n = mnl_socket_recvfrom(s, a, sizeof(*a));

		if (n < 0 && errno == EINTR) /* a signal of the program that embeds the engine */
			continue;
		if (n < 0)
			error = errno;
		else if (mnl_nlmsg_ok(&a->header, (int)n) &&
			 a->header.nlmsg_seq == q->header.nlmsg_seq)
			return a->header.nlmsg_type == NLMSG_ERROR ? error_of(&a->header) : 0;
	}
	return error != 0 ? error : ETIMEDOUT;
}

int netlink_list(struct mnl_socket *s, const union netlink_question *q, mnl_cb_t take, void *arg)
{
	int error = ask(s, q), more = MNL_CB_OK;
	union netlink_answer part;

	/* Bounded: the kernel ends the list, and the next part is there as soon as one was read. */
	while (error == 0 && more > MNL_CB_STOP) {
		ssize_t n = mnl_socket_recvfrom(s, &part, sizeof(part));

		if (n < 0 && errno == EINTR)
			continue;
		if (n > 0)
			more = mnl_cb_run(&part, (size_t)n, q->header.nlmsg_seq, 0, take, arg);
		if (n < 0 || more < 0)
			error = errno;
		else if (n == 0)
			error = EIO;
	}
	return error;
}

/* ---- announcements ---- */

bool netlink_read(struct mnl_socket *s, mnl_cb_t take, void *arg, bool *lost)
{
	_Alignas(struct nlmsghdr) uint8_t octets[ANNOUNCEMENTS];
	bool announced = false;

	for (int i = 0; i < LIMIT_NETLINK_READS; i++) {
		ssize_t n = mnl_socket_recvfrom(s, octets, sizeof(octets));

		if (n < 0 && errno == EINTR)
			continue;
		/* ENOBUFS: the socket was full; ENOSPC: the datagram is longer than the buffer */
		if (n < 0 && errno != ENOBUFS && errno != ENOSPC)
			break;
		announced = true;
		if (n < 0)
			*lost = true;
		else if (take != NULL)
			mnl_cb_run(octets, (size_t)n, 0, 0, take, arg);
	}
	return announced;
}

/* ---- messages ---- */

bool netlink_has_body(const struct nlmsghdr *h, size_t body)
{
	return mnl_nlmsg_get_payload_len(h) >= body;
}

/*
 * Does not use mnl_attr_for_each, which would round the message's length up, and read past the end
 * of a message that was cut.
 */
const void *netlink_attribute(const struct nlmsghdr *h, size_t body, uint16_t type, size_t octets)
{
	const uint8_t *end = (const uint8_t *)h + h->nlmsg_len;
	const struct nlattr *a = mnl_nlmsg_get_payload_offset(h, body);

	for (; mnl_attr_ok(a, (int)(end - (const uint8_t *)a)); a = mnl_attr_next(a))
		if (mnl_attr_get_type(a) == type && mnl_attr_get_payload_len(a) == octets)
			return mnl_attr_get_payload(a);
	return NULL;
}
