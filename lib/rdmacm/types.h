/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The drop-in librdmacm.so.1. Ids, channels and events live in the engine (protocol/command_cm.h);
 * this library shows them to programs as the structs of <rdma/rdma_cma.h>, moves the queue pairs
 * that it made, and waits where a program asked for it.
 *
 * One lock, cm_lock, over all that several threads may look at: the tables of devices, channels
 * and ids, and how many events of an id were delivered and acknowledged. Asking the engine for an
 * event and destroying or migrating an id happen under it, too, so that an event always finds the
 * id that it is about; so does what makes an event and still has to write its answer into the id,
 * so that whoever takes the event finds it written. The rest of an id is its program's: as in
 * rdma-core, two threads must not use one id at once, but for taking and acknowledging its events.
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
#include "protocol/command_cm.h"
#include "verbs/private_node.h"

/* The project is built with hidden visibility: what rdmacm.map names is marked. */
#define EXPORT __attribute__((visibility("default")))

/* A device that this library has opened; it stays open, also after its engine is gone. */
struct cm_device {
	struct ibv_context *context; /* id->verbs of all ids on it */
	struct ibv_pd *pd; /* for queue pairs without one of their own; NULL: not wanted yet */
	struct ibv_xrcd *xrcd; /* likewise */
	uint8_t max_responder_resources, max_initiator_depth;
	pid_t pid; /* who opened it: the child of a fork has to do so itself */
	struct handle_map ids; /* by handle: struct id * */
	struct cm_device *next;
};

struct channel {
	struct rdma_event_channel rdma;
	struct cm_device *device;
	uint32_t handle;
	int idle_fd; /* atomic; see verbs/events.h; -1: not in use */
	uint32_t waiting; /* threads that take an event of it */
	bool destroyed;
	struct channel *next; /* of all, or of those that were destroyed */
};

/* A group that an id joined, or is joining. */
struct join {
	uint64_t cookie; /* as the engine's events name it */
	uint32_t handle;
	bool attached; /* the id's queue pair hears it */
	bool send_only;
	union ibv_gid gid; /* as the event of the join said */
	void *context;
	struct sockaddr_storage address;
	struct join *next;
};

struct id {
	struct rdma_cm_id rdma;
	struct cm_device *device;
	uint32_t handle;
	bool sync; /* has a channel of its own, calls wait */
	bool mapped; /* its program says IPv4 addresses as IPv6 ones */
	bool told_gone; /* its DEVICE_REMOVAL was delivered */
	uint32_t delivered, acknowledged; /* events that must be acknowledged before it goes */
	uint8_t responder_resources, initiator_depth;
	struct ibv_ece local_ece, remote_ece;
	struct ibv_sa_path_rec path;
	struct join *joins;
	uint32_t srq_wr; /* capacity of the SRQ made by rdma_create_srq */
	/* rdma_create_ep: what new connections of a listener get; what connecting begins with */
	struct ibv_qp_init_attr *init;
	struct ibv_pd *init_pd;
	void *greeting;
	uint8_t greeting_length;
};

struct event {
	struct rdma_cm_event rdma;
	struct id *of; /* who counts it */
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

/* -1 with errno, unless all went well. */
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

/* Where new channels are made: the first engine that answers. NULL with errno: there is none. */
struct cm_device *device_home(void);
static inline bool device_is_inherited(const struct cm_device *d)
{
	return d->pid != getpid();
}

#define COMMAND(device, WHAT, request, reply)                                   \
	uroce_context_command((device)->context, COMMAND_##WHAT, &(request)->h, \
			      sizeof(*(request)), &(reply)->h, sizeof(*(reply)), NULL)

/* ---- channel.c ---- */

/* Around everything that a thread does to take an event: the channel is not freed meanwhile. */
void channel_enter(struct channel *ch);
void channel_leave(struct channel *ch);
/*
 * Waits for an octet, the thread's cancelability being set to `cancelstate` meanwhile. 0; ENODEV:
 * the engine is gone; or an errno of recv. Does not return once the channel was destroyed.
 */
int channel_wait(struct channel *ch, int cancelstate);
/* With cm_lock held since the engine said that so many octets of it stand for no event any more. */
void channel_drop_octets(const struct rdma_event_channel *channel, uint32_t octets);
void channels_forked(void);

/* ---- id.c ---- */

/* 0 or an errno. Channel NULL: the id is synchronous. */
int id_create(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	      enum ibv_qp_type qp_type, struct id **out);
/* The id of a connection request, on the listener's channel. NULL: no memory. */
struct id *id_adopt(struct id *listener, uint32_t handle);
/* It is bound: what programs see of its device. With cm_lock held. */
void id_set_device(struct id *id);
/* With cm_lock held. */
struct id *id_find(struct cm_device *d, uint32_t handle);
/* Moves the id to a channel; NULL: to one of its own. 0 or an errno. */
int id_migrate(struct id *id, struct rdma_event_channel *channel);
/* An event will not be looked at any more. */
void id_acknowledge(struct id *id);

/* ---- address.c ---- */

/* 0, EINVAL: neither IPv4 nor IPv6 (EAFNOSUPPORT: another known family). */
int address_to_engine(struct cm_address *to, const struct sockaddr *from);
/* mapped: an IPv4 address is shown as an IPv6 one. */
void address_from_engine(struct sockaddr_storage *to, const struct cm_address *from, bool mapped);
/* With cm_lock held. */
void id_take_query(struct id *id, const struct reply_cm_query *q);
/* What the engine knows of its addresses and route. 0 or an errno. */
int id_query(struct id *id);

/* ---- scope.c ---- */

/*
 * Of an address that an id is to be bound to: 0; EINVAL: it is link-local and names no interface;
 * ENODEV: there is no such interface, or it is not the address's; or an errno of what was asked.
 */
int scope_check_source(const struct sockaddr *source);
/*
 * Of a destination. Its interface counts where the source (NULL: none is given) has none: then 0;
 * ENETUNREACH: there is no such interface; ENODEV: it is not the device's; or an errno.
 */
int scope_check_destination(const struct id *id, const struct sockaddr *source,
			    const struct sockaddr *destination);

/* ---- event.c ---- */

/* A synchronous id waits for the event that its call caused. 0, or -1 with errno. */
int id_complete(struct id *id);
/* Gives back the event of the last call of a synchronous id. */
void id_drop_event(struct id *id);

/* ---- connect.c ---- */

int id_reject(struct id *id, uint32_t reason, const void *data, uint8_t length);

/* ---- qp.c ---- */

/* The CQs of an id; what a call made since then goes again. */
struct id_cqs {
	const struct ibv_cq *send, *recv;
};
struct id_cqs id_cqs_of(const struct id *id);
void id_cqs_restore(struct id *id, struct id_cqs before);
/* CQs with channels of their own, where the id has none. A size of 0: none wanted. 0 or an errno. */
int id_make_cqs(struct id *id, uint32_t send_size, uint32_t recv_size);
void id_destroy_cqs(struct id *id);
struct ibv_pd *id_default_pd(struct id *id);
struct ibv_pd *id_default_pd_locked(struct id *id); /* with cm_lock held */
struct ibv_xrcd *id_default_xrcd(struct id *id);
int id_qp_attributes(struct id *id, struct ibv_qp_attr *attr, int *mask);
/* Moves a queue pair by enum cm_qp_steps, and does what follows. 0 or an errno. */
int id_move_qp(struct id *id, struct ibv_qp *qp, uint32_t steps, enum cm_then then);
/* What is left of the way of the id's connected queue pair. */
uint32_t id_steps_to_rts(const struct id *id);
/*
 * Around a command that takes these steps: before it, as what it brings about may be told to another
 * thread, which destroys the queue pair, before it returns here; and after an error, when nothing was
 * brought about.
 */
void id_qp_moves(struct ibv_qp *qp, uint32_t steps);
void id_qp_moved_in_part(struct ibv_qp *qp);
void id_qp_to_error(struct id *id);

/* ---- multicast.c ---- */

/* An event of a join: what the program is told in its private_data. */
void *id_take_join(struct id *id, const struct reply_cm_event *e, const struct ibv_ah_attr *to,
		   int *status);
void id_forget_joins(struct id *id);

#endif
