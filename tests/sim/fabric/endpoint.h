/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair of a host, of one of two kinds: the core's, driven as a node drives it, or a
 * go-back-N one.
 */
#ifndef SIM_ENDPOINT_H
#define SIM_ENDPOINT_H

#include "base/heap.h"
#include "goback.h"
#include "sim/node.h"

#define ENDPOINT_QPN	16u /* number of a host's first queue pair */
#define ENDPOINT_PD	7u
#define ENDPOINT_QKEY	0x1234u
#define ENDPOINT_ACCESS (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ)

/* The owner of a host. */
enum make {
	MAKE_UROCE, /* the core */
	MAKE_LINUX, /* go-back-N, a window of 128 packets, no congestion control */
	MAKE_DCQCN, /* go-back-N with DCQCN */
};

struct transfer;
struct beside;
struct connects;
struct host;

struct endpoint {
	struct host *host;
	struct transfer *transfer; /* the transfer that it is an end of */
	struct beside *beside; /* or this, */
	struct connects *connects; /* or this */
	struct node_qp *q; /* of the core; NULL: it is a goback */
	struct goback *goback;
	struct flow envelope;
	uint16_t identification;
	struct heap_node deadline;
	uint32_t peer; /* host */
	struct endpoint *next; /* ready, too */
	struct endpoint *next_parked; /* held back by the same path */
	bool ready, parked;
	bool gone; /* its program was killed */
};

struct endpoint_config {
	enum make make;
	uint32_t type; /* enum qp_type */
	uint32_t peer; /* host */
	uint32_t peer_qpn;
	uint32_t size, depth, mtu; /* of its messages */
	uint8_t timeout; /* 4.096 us * 2^timeout */
	bool ect; /* tells the network that it understands marks */
	double rate; /* bits a second of its line */
	uint32_t psn;
};

/* The address of that host. */
struct gid endpoint_gid(uint32_t host);
/* The number of the host's next endpoint. */
uint32_t endpoint_qpn(const struct host *h);
struct endpoint *endpoint_add(struct host *h, const struct endpoint_config *c);
void endpoint_free(struct endpoint *e);

enum reason endpoint_received(struct endpoint *e, const struct packet *p, nanotime now);
/* Makes the next packet, with its payload in `payload` or elsewhere (p->payload). */
bool endpoint_next(struct endpoint *e, nanotime now, struct packet *p, uint8_t *payload);
/* A packet that was made at made_at has left. */
void endpoint_left(struct endpoint *e, const struct packet *p, nanotime made_at, nanotime now);
void endpoint_expired(struct endpoint *e, nanotime now);
nanotime endpoint_deadline(const struct endpoint *e, nanotime now);
/* Its path holds it back until it is resumed. */
bool endpoint_is_held(const struct endpoint *e);
bool endpoint_may_resume(const struct endpoint *e, nanotime now);
nanotime endpoint_resumes_at(const struct endpoint *e, nanotime now);
void endpoint_resume(struct endpoint *e, nanotime now);
bool endpoint_has_packet(const struct endpoint *e, nanotime now);

/* For statistics: the octets that may be unacknowledged, and how often its timer fired. */
double endpoint_window(const struct endpoint *e);
uint32_t endpoint_timeouts(const struct endpoint *e);

#endif
