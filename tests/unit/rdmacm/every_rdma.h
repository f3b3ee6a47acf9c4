/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the threads of every_rdma.c, with the tables of the calls that they make. */
#ifndef TESTS_RDMACM_EVERY_RDMA_H
#define TESTS_RDMACM_EVERY_RDMA_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "../verbs/rig/crowd.h"

#define OWN_ADDRESS "127.0.0.1" /* the engine's: with_engine.sh */
#define CHANNELS    3u
#define GROUPS	    8u

struct shared {
	struct rdma_event_channel *channel[CHANNELS]; /* non-blocking */
	struct rdma_cm_id *listener; /* RC */
	struct rdma_cm_id *service; /* UD */
	struct rdma_cm_id *waiting; /* RC, synchronous */
	struct rdma_cm_id *member; /* UD, with a queue pair: joins and leaves groups */
	struct rdma_cm_id *idle; /* bound; for calls that its state refuses */
	uint16_t port, service_port, waiting_port;
	uint8_t *memory;
	struct ibv_mr *mr; /* in the ids' default domain */
	uint32_t live; /* ids that events will end */
	bool no_more; /* connections are refused, and no more are begun */
};

extern struct shared all;

extern const struct call calls[];
extern const uint32_t calls_count;
/* every_rdma_event.c */
extern const struct call event_calls[];
extern const uint32_t event_calls_count;

/* Accepts success, or -1 with an errno that other threads can have caused. Returns the status. */
int tolerate(struct thread *t, int status);
void must(struct thread *t, int status);
struct sockaddr *address(struct sockaddr_in *a, uint16_t port);
int give_qp(struct rdma_cm_id *id);

/*
 * An id that ends by an event. The thread that takes its last event destroys it, but only after the
 * call that began it has returned.
 */
struct life {
	struct rdma_cm_id *id;
	uint32_t holders;
};

struct life *life_begin(struct rdma_cm_id *id, uint32_t holders);
void life_release(struct thread *t, struct life *life);
/* Takes an event of a shared channel and handles it as a program would. False: there was none. */
bool serve_event(struct thread *t);
/* The same for the synchronous listener. */
void take_request(struct thread *t);

#endif
