/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rtnetlink over libmnl: queries to the kernel's tables of interfaces, addresses, routes and
 * neighbours, and the kernel's announcements of changes. A socket belongs to one thread at a time.
 */
#ifndef DRIVERS_NETLINK_H
#define DRIVERS_NETLINK_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NETLINK_QUESTION 128u /* octets of the longest question */
#define NETLINK_ANSWER	 16384u /* octets of the longest answer, and of a part of a list */

union netlink_question {
	struct nlmsghdr header;
	uint8_t octets[NETLINK_QUESTION];
};

union netlink_answer {
	struct nlmsghdr header;
	uint8_t octets[NETLINK_ANSWER];
};

/*
 * Opens a socket of this network namespace for queries. `waits`: a query waits up to 100 ms for its
 * answer; otherwise it does not wait. NULL and errno on failure.
 */
struct mnl_socket *netlink_open(bool waits);
/*
 * Opens a socket that gets the announcements to these groups (RTMGRP_*). It never waits. NULL and
 * errno on failure.
 */
struct mnl_socket *netlink_listen(uint32_t groups);
/* NULL is allowed. */
void netlink_close(struct mnl_socket *s);

/*
 * Starts a query. Returns its body of that many octets, all of them 0. Attributes follow the body.
 */
void *netlink_begin(union netlink_question *q, uint16_t type, uint16_t flags, size_t body);
void netlink_put(union netlink_question *q, uint16_t type, const void *value, size_t octets);

/*
 * Sends the query, and takes the answer with its nlmsg_seq. 0: *a is the answer, or the kernel's
 * acknowledgement. Otherwise the errno in the kernel's answer or of the socket.
 */
int netlink_ask(struct mnl_socket *s, const union netlink_question *q, union netlink_answer *a);

/*
 * Asks for a list (NLM_F_DUMP), and gives each entry to `take`. Returns 0 or an errno. EINTR: the
 * list changed while it was read, and may be incomplete.
 */
int netlink_list(struct mnl_socket *s, const union netlink_question *q, mnl_cb_t take, void *arg);

/*
 * Gives each announcement that has arrived to `take` (NULL: to nobody), from at most 256 datagrams.
 * True: something was announced. *lost becomes true if some announcements were lost.
 */
bool netlink_read(struct mnl_socket *s, mnl_cb_t take, void *arg, bool *lost);

/* Whether the message has a body of at least that many octets. */
bool netlink_has_body(const struct nlmsghdr *h, size_t body);
/*
 * The value of the first attribute behind the body that has this type and length. NULL: there is
 * none.
 */
const void *netlink_attribute(const struct nlmsghdr *h, size_t body, uint16_t type, size_t octets);

#endif
