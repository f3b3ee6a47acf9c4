/* SPDX-License-Identifier: BSD-3-Clause */
/* What the threads of every_rdma.c share, and the tables of what they call. */
#ifndef TESTS_RDMACM_EVERY_RDMA_H
#define TESTS_RDMACM_EVERY_RDMA_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "../verbs/crowd.h"

#define OWN_ADDRESS "127.0.0.1" /* of the engine: with_engine.sh */
#define CHANNELS    3u
#define GROUPS	    8u

struct shared {
	struct rdma_event_channel *channel[CHANNELS]; /* non-blocking */
	struct rdma_cm_id *listener; /* RC */
	struct rdma_cm_id *service; /* UD */
	struct rdma_cm_id *waiting; /* RC, synchronous */
	struct rdma_cm_id *member; /* UD, with a queue pair: groups are joined and left */
	struct rdma_cm_id *idle; /* bound; asked for what it has not, and told what it cannot */
	uint16_t port, service_port, waiting_port;
	uint8_t *memory;
	struct ibv_mr *mr; /* of the domain that ids get */
	uint32_t live; /* ids that events will end */
	bool no_more; /* connections are refused, none is begun */
};

extern struct shared all;

extern const struct call calls[];
extern const uint32_t calls_count;
/* every_rdma_event.c */
extern const struct call event_calls[];
extern const uint32_t event_calls_count;

/* -1 and an errno that others can have brought about, or 0; what it was. */
int tolerate(struct thread *t, int status);
void must(struct thread *t, int status);
struct sockaddr *address(struct sockaddr_in *a, uint16_t port);
int give_qp(struct rdma_cm_id *id);

/*
 * An id that events end: whoever took the last one destroys it, but not before the call that began
 * it has come back.
 */
struct life {
	struct rdma_cm_id *id;
	uint32_t holders;
};

struct life *life_begin(struct rdma_cm_id *id, uint32_t holders);
void life_release(struct thread *t, struct life *life);
/* Takes an event of one of the shared channels and does what programs do then. False: none. */
bool serve_event(struct thread *t);
/* ... of the listener that waits for requests. */
void take_request(struct thread *t);

#endif
