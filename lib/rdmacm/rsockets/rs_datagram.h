/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram rsockets. Each has a UDP socket of the kernel, whose address is the socket's name. It
 * also has one UD queue pair for each local address from which it sends. A datagram for an address
 * whose queue pair is not known yet goes over UDP, with a header that names our queue pair. The
 * peer answers with its own.
 *
 * A peer that was restarted has another queue pair, and nothing tells that the old one is gone.
 * So one datagram goes over UDP, too, if nothing came from its peer for a while, and one each
 * time after that while.
 *
 * So the kernel must have the addresses, too. A port with addresses that the kernel does not know
 * has no datagram rsockets.
 */
#ifndef RDMACM_RS_DATAGRAM_H
#define RDMACM_RS_DATAGRAM_H

#include "rdmacm/rsockets/rs.h"

/* One local address (with the UDP socket's port) and its queue pair. */
struct rs_local {
	struct sockaddr_storage address;
	uint8_t header[RS_DATAGRAM_HEADER_MAX]; /* prepended to every datagram from here */
	size_t header_length;
	uint32_t longest; /* octets of the longest datagram, with its header */
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct rs_memory send, receive;
	uint16_t *free_slots; /* slots of `send` */
	struct rs_destination **sent_to; /* the destination of each slot in use */
	uint32_t free_count, slots;
	struct rs_local *next;
};

struct rs_destination {
	struct sockaddr_storage address;
	struct rs_local *local;
	struct ibv_ah *ah; /* NULL: send over UDP */
	uint32_t qpn;
	uint32_t uses; /* datagrams under way, and threads waiting to send one */
	int64_t ask_at; /* rs_now_us(): from then on the next datagram asks whether it is still there */
	bool resolving; /* its path is being resolved; then these are set: */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rs_destination *next;
};

/* The longest datagram comes over UDP, where its header may be shorter than RS_UDP_HEADER_MAX. */
#define RS_DATAGRAM_ROOM (LIMIT_RS_DATAGRAM + RS_UDP_HEADER_MAX - RS_UDP_HEADER_MIN)

struct rs_datagram {
	struct rs_datagram *next;
	struct sockaddr_storage source;
	uint32_t length;
	uint8_t octets[RS_DATAGRAM_ROOM];
};

/* ---- rs_inbox.c ---- */

/* Allocates the memory for received datagrams, once the sizes are known. 0 or ENOMEM. */
int rs_inbox_open(struct rs_socket *s);
void rs_inbox_close(struct rs_socket *s);
/* Queues a datagram for the program, or drops it if there is no room. */
void rs_deliver(struct rs_socket *s, const struct sockaddr_storage *source, const void *octets,
		size_t length);

/* ---- rs_datagram.c ---- */

/* Returns 0 or an errno. */
int rs_local_post_receive(struct rs_local *l, uint32_t slot);

/* ---- rs_local.c ---- */

/* Finds or makes the local address that reaches `to`. Returns 0 or an errno. */
int rs_local_for(struct rs_socket *s, const struct sockaddr *to, struct rs_local **local);
void rs_local_free(struct rs_local *l);

/* ---- rs_destination.c ---- */

bool rs_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/*
 * Finds or makes the destination. Returns 0 or an errno. The next call may free a destination that
 * is not in use: when the table is full, the least recently used one is dropped.
 */
int rs_destination_for(struct rs_socket *s, const struct sockaddr *to, struct rs_destination **d);
/* The peer's queue pair is `qpn`. Resolves the path to it. */
void rs_destination_resolve(struct rs_socket *s, struct rs_destination *d, uint32_t qpn);
/* Something came from its queue pair, or its number did. */
void rs_destination_heard(struct rs_destination *d);
/* Whether a datagram must go over UDP, so that an answer comes if it is still there. */
bool rs_destination_must_answer(struct rs_destination *d);
/* An option of their packets has changed. */
void rs_destinations_resolve_again(struct rs_socket *s);
void rs_destinations_progress(struct rs_socket *s);
void rs_destinations_free(struct rs_socket *s);

/* ---- rs_udp.c ---- */

int rs_udp_send(struct rs_socket *s, const struct rs_destination *d, enum rs_udp_operation what,
		const void *octets, size_t length, bool must_not_wait);
void rs_udp_progress(struct rs_socket *s);
/* Takes the peer away, but not the port. Returns 0 or an errno. */
int rs_udp_disconnect(struct rs_socket *s);

#endif
