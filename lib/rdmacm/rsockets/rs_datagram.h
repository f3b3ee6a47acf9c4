/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagram rsockets. A socket has a UDP socket of the kernel, by whose addresses it is known, and for
 * each of our addresses that it sends from a UD queue pair. What goes to an address whose queue pair
 * is not known yet goes over UDP, with a header that says ours; the peer answers with its own.
 * The kernel must have the addresses, too: of a port that the kernel knows nothing of there are none.
 */
#ifndef RDMACM_RS_DATAGRAM_H
#define RDMACM_RS_DATAGRAM_H

#include "rdmacm/rsockets/rs.h"

/* One of our addresses (with the port of the UDP socket) and its queue pair. */
struct rs_local {
	struct sockaddr_storage address;
	uint8_t header[RS_DATAGRAM_HEADER_MAX]; /* of all that goes from here */
	size_t header_length;
	uint32_t longest; /* datagram with its header */
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct rs_memory send, receive;
	uint16_t *free_slots; /* of send */
	struct rs_destination **sent_to; /* of each slot that is not free */
	uint32_t free_count, slots;
	struct rs_local *next;
};

struct rs_destination {
	struct sockaddr_storage address;
	struct rs_local *local;
	struct ibv_ah *ah; /* NULL: over UDP */
	uint32_t qpn;
	uint32_t uses; /* datagrams that are under way, threads that wait to send one */
	bool resolving; /* its path is looked for; then: */
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct rs_destination *next;
};

/* The longest one comes over UDP, whose header may be shorter than its room. */
#define RS_DATAGRAM_ROOM (LIMIT_RS_DATAGRAM + RS_UDP_HEADER_MAX - RS_UDP_HEADER_MIN)

struct rs_datagram {
	struct rs_datagram *next;
	struct sockaddr_storage source;
	uint32_t length;
	uint8_t octets[RS_DATAGRAM_ROOM];
};

/* ---- rs_inbox.c ---- */

/* Places for what is received, when the sizes are known. 0 or ENOMEM. */
int rs_inbox_open(struct rs_socket *s);
void rs_inbox_close(struct rs_socket *s);
/* For the program, if there is room. */
void rs_deliver(struct rs_socket *s, const struct sockaddr_storage *source, const void *octets,
		size_t length);

/* ---- rs_datagram.c ---- */

/* 0 or an errno */
int rs_local_post_receive(struct rs_local *l, uint32_t slot);

/* ---- rs_local.c ---- */

/* That from which one sends to this address: 0 or an errno. */
int rs_local_for(struct rs_socket *s, const struct sockaddr *to, struct rs_local **local);
void rs_local_free(struct rs_local *l);

/* ---- rs_destination.c ---- */

bool rs_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/*
 * Found or made. 0 or an errno. Who is not in use may be gone after the next call: of those, the one
 * that was asked for the longest ago makes room for a new one.
 */
int rs_destination_for(struct rs_socket *s, const struct sockaddr *to, struct rs_destination **d);
/* The queue pair is this one: its path is looked for. */
void rs_destination_resolve(struct rs_socket *s, struct rs_destination *d, uint32_t qpn);
void rs_destinations_progress(struct rs_socket *s);
void rs_destinations_free(struct rs_socket *s);

/* ---- rs_udp.c ---- */

int rs_udp_send(struct rs_socket *s, const struct rs_destination *d, enum rs_udp_operation what,
		const void *octets, size_t length, bool must_not_wait);
void rs_udp_progress(struct rs_socket *s);

#endif
