/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The TCP connection between `uroce perf --peer` and `uroce perf --server`. The client says what it
 * needs, both tell each other their queue pairs, then the client tells the server before and after
 * each measurement. Numbers have the byte order of both machines, which must be the same.
 */
#ifndef APPS_PERF_CHANNEL_H
#define APPS_PERF_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHANNEL_MAGIC	 UINT64_C(0x0001507265636f72) /* version 1 above */
#define CHANNEL_TCP_PORT 4791u /* as RoCEv2 has it for UDP: one number for a firewall */

enum channel_family {
	FAMILY_IPV4 = 1,
	FAMILY_IPV6 = 2,
};

/* From the client. */
struct channel_hello {
	uint64_t magic;
	uint32_t families; /* enum channel_family that its engine has addresses of */
	uint32_t mtu; /* the largest path MTU, octets */
	uint32_t qps;
	uint32_t depth;
	uint32_t octets; /* the largest message */
	uint32_t latency; /* 1: a ping-pong */
	uint32_t preferred; /* the family of this connection; 0: any */
	uint32_t reserved;
};

/* From the server. */
struct channel_answer {
	uint64_t magic;
	uint32_t failed; /* 1: `text` says why, and nothing follows */
	uint32_t family; /* the one to use */
	uint32_t mtu;
	uint32_t reserved;
	char text[256]; /* ... or describes its device */
};

/* From both; the numbers of the queue pairs follow, 32 bits each. */
struct channel_end {
	uint8_t gid[16];
	uint64_t address;
	uint32_t key;
	uint32_t reserved;
};

enum channel_what {
	CHANNEL_BEGIN = 1, /* a measurement */
	CHANNEL_END = 2,
	CHANNEL_TCP = 3, /* the server counts what comes over a second connection, until its end */
};

/* From the client; the server replies to each. */
struct channel_command {
	uint32_t what;
	uint32_t operation; /* enum perf_operation */
	uint32_t size;
	uint32_t qps;
};

struct channel_reply {
	uint32_t failed; /* 1: the server has said why on its stderr */
	uint32_t reserved;
	uint64_t octets; /* CHANNEL_TCP */
	uint64_t sent, again, polls, idle; /* by its engine, so far */
};

/* A listening socket, or -1 and one line. `port` 0 becomes the one that was chosen. */
int channel_listen(uint16_t *port, char *why, size_t why_size);
/* The next client, -1: none came in time, or no descriptor. `seconds` 0: waits for ever. */
int channel_accept(int listener, uint32_t seconds, char *who, size_t who_size);
int channel_connect(const char *host, uint16_t port, char *why, size_t why_size);
/* Replies take no longer than this; 0: as long as the other end lives. */
void channel_limit(int fd, uint32_t seconds);
/* All of it, or false: the other end is gone or too slow. */
bool channel_put(int fd, const void *data, size_t size);
bool channel_get(int fd, void *data, size_t size);
/* enum channel_family of the connection itself; 0: neither. */
uint32_t channel_family(int fd);
/* Whether something has come, or the end. */
bool channel_readable(int fd);

#endif
