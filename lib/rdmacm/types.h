/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The drop-in librdmacm.so.1. Ids, channels and events live in the engine (protocol/command_cm.h).
 * This library shows them to programs as the structs of <rdma/rdma_cma.h>, moves the queue pairs
 * that it made, and waits where a program asked it to.
 *
 * The rdma_* functions follow their manual pages. Unless its comment says otherwise, a function
 * returns 0, or -1 with errno: EINVAL if a required argument is NULL, ENODEV if the engine is gone,
 * or the errno with which the engine refused the command.
 *
 * The lock cm_lock protects what several threads may use: the tables of devices, channels and ids,
 * and each id's counts of delivered and acknowledged events. It is also held while an event is
 * fetched, and while an id is destroyed or migrated, so that an event always finds its id. A
 * command that causes an event and stores its answer in the id also runs under it, so that the
 * thread that takes the event sees the answer. The rest of an id belongs to its program: as in
 * rdma-core, two threads must not use one id at once, except to take and acknowledge its events.
 */
#ifndef RDMACM_TYPES_H
#define RDMACM_TYPES_H

#include <errno.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/bits.h"
#include "client/handle_map.h"
#include "client/own_file.h"
#include "protocol/command_cm.h"
#include "queue/event_ring.h"
#include "verbs/private_node.h"

/* Marks what rdmacm.map exports, because the project is built with hidden visibility. */
#define EXPORT __attribute__((visibility("default")))

/* A device that this library has opened. It stays open, even after its engine is gone. */
struct cm_device {
	struct ibv_context *context; /* id->verbs of all ids on it */
	struct ibv_pd *pd; /* default domain for queue pairs; NULL: not needed yet */
	struct ibv_xrcd *xrcd; /* default XRC domain, likewise */
	uint8_t max_responder_resources, max_initiator_depth;
	bool inherited; /* a parent opened it; the child of a fork opens its own */
	struct handle_map ids; /* by handle: struct id * */
	struct cm_device *next;
};

struct channel {
	struct rdma_event_channel rdma;
	struct cm_device *device;
	struct own_file file; /* of its descriptor */
	uint32_t handle;
	uint32_t taken; /* records taken from the ring */
	struct event_page *ring;
	int idle_fd; /* -1: not in use. Atomic: read while another thread sets it (events.h) */
	uint32_t waiting; /* threads that are taking an event from it */
	bool destroyed;
	struct channel *next; /* in the list of open channels, or of destroyed ones */
};

/* A multicast group that an id has joined or is joining. */
struct join {
	uint64_t cookie; /* names the join in the engine's events */
	uint32_t handle;
	bool attached; /* the id's queue pair is attached to the group */
	bool send_only;
	union ibv_gid gid; /* from the event of the join */
	void *context;
	struct sockaddr_storage address;
	struct join *next;
};

struct id {
	struct rdma_cm_id rdma;
	struct cm_device *device;
	uint32_t handle;
	bool sync; /* has its own channel; calls wait for completion */
	bool mapped; /* its program uses IPv4-mapped IPv6 addresses */
	bool told_gone; /* its DEVICE_REMOVAL event was delivered */
	/*
	 * What the program has heard of it, under cm_lock: the engine will not refuse what follows,
	 * so nobody waits for its answer.
	 */
	bool is_resolved; /* ADDR_RESOLVED */
	bool asked_route; /* rdma_resolve_route was called: it succeeds once */
	bool is_connected; /* ESTABLISHED; final */
	uint32_t delivered, acknowledged; /* events; equal counts are needed to destroy the id */
	uint8_t responder_resources, initiator_depth;
	struct ibv_ece local_ece, remote_ece;
	struct ibv_sa_path_rec path;
	struct join *joins;
	uint32_t srq_wr; /* capacity of the SRQ made by rdma_create_srq */
	/*
	 * rdma_create_ep: for the listener's new connections. `greeting`: the private data with
	 * which to connect.
	 */
	struct ibv_qp_init_attr *init;
	struct ibv_pd *init_pd;
	void *greeting;
	uint8_t greeting_length;
};

struct event {
	struct rdma_cm_event rdma;
	struct id *of; /* the id that counts the event */
	uint8_t private_data[CM_PRIVATE_MAX];
};

extern pthread_mutex_t cm_lock;

static inline struct id *id_of(struct rdma_cm_id *id)
{
	return (struct id *)id;
}

static inline struct channel *channel_of(struct rdma_event_channel *channel)
{
	return (struct channel *)channel;
}

/* 0, or -1 with errno set to `error`. */
static inline int result(int error)
{
	if (error == 0)
		return 0;
	errno = error;
	return -1;
}

static inline bool is_datagram(const struct id *id)
{
	return id->rdma.qp_type == IBV_QPT_UD;
}

/* ---- device.c ---- */

/*
 * The device on which new channels are made: that of the first engine that answers. NULL with
 * errno: no engine does.
 */
struct cm_device *device_home(void);
static inline bool device_is_inherited(const struct cm_device *d)
{
	return d->inherited;
}

#define COMMAND(device, WHAT, request, reply)                                   \
	uroce_context_command((device)->context, COMMAND_##WHAT, &(request)->h, \
			      sizeof(*(request)), &(reply)->h, sizeof(*(reply)), NULL)

/* A command of which only ENODEV and ETIMEDOUT are heard. */
#define POST(device, WHAT, request) \
	uroce_context_post((device)->context, COMMAND_##WHAT, &(request)->h, sizeof(*(request)))

/* ---- channel.c ---- */

/*
 * Called before and after everything that a thread does to take an event, so that the channel is
 * not freed.
 */
void channel_enter(struct channel *ch);
void channel_leave(struct channel *ch);
/*
 * Waits for an octet, while the thread's cancel state is `cancelstate`. Returns 0, ENODEV (the
 * engine is gone) or an errno of recv. Does not return once the channel was destroyed.
 */
int channel_wait(struct channel *ch, int cancelstate);
/*
 * Drops octets of the channel whose events the engine has discarded. The caller has held cm_lock
 * since the engine said so.
 */
void channel_drop_octets(const struct rdma_event_channel *channel, uint32_t octets);
void channels_forked(void);

/* ---- id.c ---- */

/* Creates an id. A NULL channel makes it synchronous. Returns 0 or an errno. */
int id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	      enum ibv_qp_type qp_type, struct id **out);
/* Makes the id of a connection request, on the listener's channel. NULL: out of memory. */
struct id *id_adopt(struct id *listener, uint32_t handle);
/*
 * Called when the id is bound. Fills in what programs see of its device. The caller holds cm_lock.
 */
void id_set_device(struct id *id);
/* The caller holds cm_lock. */
struct id *id_find(struct cm_device *d, uint32_t handle);
/* Moves the id to `channel`, or to one of its own (NULL). Returns 0 or an errno. */
int id_migrate(struct id *id, struct rdma_event_channel *channel);
/* The program is done with an event of the id. */
void id_acknowledge(struct id *id);
/* Called in the child of a fork, which has none of the threads that wait for that. */
void ids_forked(void);

/* ---- address.c ---- */

/*
 * Returns 0; EINVAL or EAFNOSUPPORT: the address is neither IPv4 nor IPv6 (EAFNOSUPPORT: its family
 * is another known one).
 */
int address_to_engine(struct cm_address *to, const struct sockaddr *from);
/* mapped: an IPv4 address becomes an IPv4-mapped IPv6 one. */
void address_from_engine(struct sockaddr_storage *to, const struct cm_address *from, bool mapped);
/* The caller holds cm_lock. */
void id_take_route(struct id *id, const struct cm_route *q);
/* Asks the engine for the id's addresses and route. 0 or an errno. */
int id_query(struct id *id);

/* ---- scope.c ---- */

/*
 * Checks an address to bind to. 0; EINVAL: it is link-local without an interface; ENODEV: there is
 * no such interface, or the interface does not have the address; or an errno of getifaddrs(3) or
 * if_indextoname(3).
 */
int scope_check_source(const struct sockaddr *source);
/*
 * Checks a destination. Its interface matters if the source (may be NULL) names none. 0;
 * ENETUNREACH: there is no such interface; ENODEV: it is not the device's interface; or an errno as
 * above.
 */
int scope_check_destination(const struct id *id, const struct sockaddr *source,
			    const struct sockaddr *destination);

/* ---- event.c ---- */

/* A synchronous id waits for the event of its call. 0, or -1 with errno. */
int id_complete(struct id *id);
/* Acknowledges the event of the last call of a synchronous id. */
void id_drop_event(struct id *id);

/* ---- connect.c ---- */

int id_reject(struct id *id, uint32_t reason, const void *data, uint8_t length);

/* ---- qp.c ---- */

/* The CQs of an id before a call, to undo what the call made. */
struct id_cqs {
	const struct ibv_cq *send, *recv;
};
struct id_cqs id_cqs_of(const struct id *id);
void id_cqs_restore(struct id *id, struct id_cqs before);
/*
 * Makes CQs with channels of their own if the id has none. A size of 0 means that none is needed.
 * Returns 0 or an errno.
 */
int id_make_cqs(struct id *id, uint32_t send_size, uint32_t recv_size);
void id_destroy_cqs(struct id *id);
struct ibv_pd *id_default_pd(struct id *id);
struct ibv_pd *id_default_pd_locked(struct id *id); /* the caller holds cm_lock */
struct ibv_xrcd *id_default_xrcd(struct id *id);
int id_qp_attributes(struct id *id, struct ibv_qp_attr *attr, int *mask);
/* Moves a queue pair by enum cm_qp_steps. 0 or an errno. */
int id_move_qp(struct id *id, struct ibv_qp *qp, uint32_t steps);
/* The steps that the id's connected queue pair still lacks to reach RTS. */
uint32_t id_steps_to_rts(const struct id *id);
/*
 * Record the new state of a queue pair in struct ibv_qp. The state is atomic, because other threads
 * read it to post requests. Call id_qp_moves before a command that takes these steps. The command's
 * event may reach another thread, which may destroy the queue pair before the command returns. Call
 * id_qp_moved_in_part after a command that failed.
 */
void id_qp_moves(struct ibv_qp *qp, uint32_t steps);
void id_qp_moved_in_part(struct ibv_qp *qp);
void id_qp_to_error(struct id *id);

/* ---- multicast.c ---- */

/*
 * Handles the event of a join. Stores the join's context, for the event's private_data. False:
 * another thread has left the group since the event was taken.
 */
bool id_take_join(struct id *id, const struct reply_cm_event *e, const struct ibv_ah_attr *to,
		  const void **context, int *status);
void id_forget_joins(struct id *id);

#endif
