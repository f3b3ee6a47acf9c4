/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire format of rsockets, octet by octet (rsocket(7) of rdma-core, protocol version 1). Pure.
 * Nothing here trusts its input.
 *
 * Stream: each end writes into the other's memory. The private data of the REQ and the REP says
 * where (big endian):
 *
 *	 0  version = 1          1  flags                2  credits: messages that may be under way
 *	 4  reserved[3]          7  entries of the table of mapped buffers, scaled
 *	 8  the peer's table of two buffers (struct rs_sge)
 *	24  the first buffer (struct rs_sge)
 *
 * Every message is an RDMA WRITE with immediate data. The upper three bits of the immediate are its
 * type (enum rs_message), the lower 29 bits its argument. Tables in memory are in their owner's
 * byte order.
 *
 * Datagrams: a UDP datagram with a header finds the queue pair behind an address, and carries the
 * payload until that queue pair is known. From then on every UD SEND begins with the sender's
 * address.
 */
#ifndef RDMACM_RS_WIRE_H
#define RDMACM_RS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define RS_VERSION	 1
#define RS_GREETING_SIZE 40
#define RS_SGL_ENTRIES	 2 /* entries of our own table of buffers */

enum rs_message {
	RS_DATA = 0, /* octets written into the current buffer */
	RS_CREDIT = 4, /* total messages that may have been sent, modulo 2^16 */
	RS_IOMAP = 6, /* the entry that was written */
	RS_CONTROL = 7, /* enum rs_control */
};

enum rs_control {
	RS_DISCONNECT = 0, /* the sender neither sends nor receives any more */
	RS_KEEPALIVE = 1, /* nothing: what matters is the acknowledgement of its packet */
	RS_SHUTDOWN = 2, /* the sender sends no more */
};

#define RS_MESSAGE_MAX 0x1fffffffu

static inline uint32_t rs_message(enum rs_message what, uint32_t value)
{
	return (uint32_t)what << 29 | (value & RS_MESSAGE_MAX);
}

static inline unsigned rs_message_kind(uint32_t message)
{
	return message >> 29;
}

static inline uint32_t rs_message_value(uint32_t message)
{
	return message & RS_MESSAGE_MAX;
}

struct rs_sge {
	uint64_t address;
	uint32_t key;
	uint32_t length; /* octets; in a greeting the table's length in entries */
};

struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

struct rs_greeting {
	bool big_endian; /* byte order of the sender's tables */
	bool has_iomap; /* the table of mapped buffers follows the table of buffers */
	uint16_t credits;
	uint16_t iomap_entries;
	struct rs_sge table, buffer;
};

void rs_greeting_store(uint8_t to[RS_GREETING_SIZE], const struct rs_greeting *g);
/* False: it is too short, has another version, or has an empty table. */
bool rs_greeting_load(struct rs_greeting *g, const uint8_t *from, size_t length);

/* The scale has one octet. Above 128 it counts in steps of 256. Rounds down. */
uint8_t rs_entries_to_scale(uint32_t entries);
uint16_t rs_entries_from_scale(uint8_t scale);

/* Converts an entry to the peer's byte order. */
struct rs_sge rs_sge_for(const struct rs_sge *sge, bool swap);
struct rs_iomap rs_iomap_for(const struct rs_iomap *map, bool swap);

/* ---- datagrams ---- */

#define RS_DATAGRAM_HEADER_MAX 24
#define RS_UDP_HEADER_MAX      28
#define RS_UDP_HEADER_MIN      16

/*
 * Writes the header of a UD SEND, which names the sender. Returns its length. 0: the address is
 * neither IPv4 nor IPv6.
 */
size_t rs_datagram_store(uint8_t to[RS_DATAGRAM_HEADER_MAX], const struct sockaddr *source);
/*
 * Parses such a header. Returns its length, or 0 if it is invalid. `scope`: the interface from
 * which it came; a link-local address is ambiguous without it.
 */
size_t rs_datagram_load(struct sockaddr_storage *source, const uint8_t *from, size_t length,
			uint32_t scope);

enum rs_udp_operation {
	RS_UDP_DATA = 0, /* a payload for the program follows the header */
	RS_UDP_CONTROL = 7, /* an answer, which names the queue pair */
};

struct rs_udp {
	enum rs_udp_operation operation;
	uint32_t qpn;
};

/*
 * `address`: that of the sender's queue pair. Returns the length. 0: it is neither IPv4 nor IPv6.
 */
size_t rs_udp_store(uint8_t to[RS_UDP_HEADER_MAX], const struct rs_udp *u,
		    const struct sockaddr *address);
/* `family`: that of the sender. Returns the length. 0: the header is invalid. */
size_t rs_udp_load(struct rs_udp *u, const uint8_t *from, size_t length, int family);

#endif
