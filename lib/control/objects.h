/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of programs: handles, and the objects behind them that lcores do not see. Queue
 * pairs, CQs, SRQs, address handles and windows are in lcore/queue_pair.h, srq.h and window.h.
 */
#ifndef CONTROL_OBJECTS_H
#define CONTROL_OBJECTS_H

#include <sys/types.h>

#include "control/ending/reclaim.h"
#include "control/ending/settle.h"
#include "control/share/backing.h"
#include "control/share/user.h"
#include "lcore/lcore.h"
#include "protocol/command.h"

enum object_kind {
	OBJECT_CONTEXT,
	OBJECT_PD,
	OBJECT_MR,
	OBJECT_CHANNEL,
	OBJECT_CQ,
	OBJECT_QP,
	OBJECT_AH,
	OBJECT_DM,
	OBJECT_MR_IMPORT,
	OBJECT_SRQ,
	OBJECT_RWQ_TABLE,
	OBJECT_RSS,
	OBJECT_FLOW,
	OBJECT_COUNTERS,
	OBJECT_MW,
	OBJECT_XRCD,
	OBJECT_TARGET,
	OBJECT_CM_CHANNEL, /* these three belong to no context: cm_manager.h */
	OBJECT_CM_ID,
	OBJECT_CM_JOIN,
	OBJECT_KINDS,
};

static_assert(OBJECT_KINDS <= STATISTICS_KINDS, "every kind is counted");

/*
 * Handles 1 .. limit of one kind and client. The slots are plain pointers that lcores may read
 * (queue pairs). A freed handle is reused as late as is cheap.
 */
struct handle_table {
	void **slot; /* limit + 1 */
	uint32_t *next_free;
	uint32_t limit;
	uint32_t used; /* handles that were ever handed out: 1 .. used */
	uint32_t count; /* of live objects */
	uint32_t freed; /* handles in the FIFO */
	uint32_t first_free, last_free;
	struct account *account; /* objects count in this account; NULL: in none */
	enum resource resource;
};

int handle_table_init(struct handle_table *t, uint32_t limit);
void handle_table_destroy(struct handle_table *t);
/* Reserves a handle, whose slot stays empty. 0: the client or its user has reached its limit. */
uint32_t handle_reserve(struct handle_table *t);
/* Makes the complete object visible under the handle (release). */
void handle_publish(struct handle_table *t, uint32_t handle, void *object);
/* Empties the slot. The handle stays reserved until handle_free. */
void handle_withdraw(struct handle_table *t, uint32_t handle);
void handle_free(struct handle_table *t, uint32_t handle);

static inline void *handle_find(const struct handle_table *t, uint32_t handle)
{
	return handle != 0 && handle <= t->used ? t->slot[handle] : NULL;
}

struct context {
	uint32_t handle;
	int async_fd; /* the engine's end */
	uint32_t async_owed; /* bits: port events that found async_fd full */
	struct client *client;
	/* The file and the secret in it that are its token. */
	dev_t token_device;
	ino_t token_inode;
	uint8_t token_secret[16];
	LIST_ENTRY(context) token_link;
	bool imported;
	bool closed; /* it is freed when copies are over */
	struct context *exporter; /* NULL: closed since, or the context was not imported */
	LIST_HEAD(, context) importers;
	LIST_ENTRY(context) import_link; /* in the exporter's list */
};

/* A protection domain as keys know it; several processes may have handles of one. */
struct domain {
	uint32_t number; /* unique in the engine: what keys and queue pairs carry */
	uint32_t handles;
	uint64_t walk; /* the last of control.domain_walks that visited it */
	LIST_HEAD(, pd) pds;
	LIST_ENTRY(domain) link;
};

/* A process's handle of a protection domain. */
struct pd {
	uint32_t handle;
	uint32_t context;
	uint32_t users; /* queue pairs, regions, address handles, imports... that use this handle */
	uint32_t number; /* of the domain */
	struct domain *domain;
	struct client *client;
	LIST_ENTRY(pd) domain_link;
};

struct mr {
	uint32_t handle;
	uint32_t context;
	struct pd *pd;
	uint32_t key;
	bool implicit; /* ACCESS_ON_DEMAND: the whole address space */
	bool leaving; /* it is freed or replaced when copies are over */
	struct region *region;
	uint32_t uses;
	struct backing_use *use; /* the mapped files of its direct pieces */
	uint32_t promoted; /* how many of them are in the promoted file */
	LIST_ENTRY(mr) promoted_link; /* if there are any: in client_objects.promoted_mrs */
	struct dm *dm; /* the device memory that it is a part of; NULL: the program's memory */
};

/* Device memory. Several processes may have handles of it; it lasts until the last one is freed. */
struct dm_memory {
	uint32_t handles;
	struct user *user; /* it counts for this user, even if others have handles */
	int fd;
	uint8_t *base; /* where the engine maps it */
	uint64_t length; /* as requested */
	uint64_t octets; /* in whole pages */
};

struct dm {
	uint32_t handle;
	uint32_t context;
	uint32_t users; /* regions */
	struct dm_memory *memory;
};

/* An imported region: its keys' numbers. The region itself belongs to its exporter. */
struct mr_import {
	uint32_t handle;
	uint32_t context;
	uint32_t key;
	struct pd *pd;
};

/* The new properties of a region, by REG_MR or REREG_MR. */
struct mr_wish {
	uint32_t access; /* enum access_flag */
	uint64_t address;
	uint64_t length;
	uint64_t iova;
	uint32_t backings;
	uint32_t leaves; /* as in the request */
	const struct mr_backing *backing;
};

struct client_objects {
	struct account account;
	bool counted; /* ... with what every client takes of the engine */
	struct handle_table table[OBJECT_KINDS];
	uint64_t dm_octets; /* of device memory for which it has handles */
	uint32_t cm_events; /* waiting; without requests, which backlogs limit */
	uint32_t async_rest; /* heartbeats until owed asynchronous events are tried again */
	LIST_HEAD(, engine_qp) holding; /* UD queue pairs that may hold requests for long */
	uint32_t groups; /* multicast groups of its queue pairs, ... */
	uint32_t reported_joins; /* ... and rdma_cm joins that are reported on the link */
	uint32_t ah_serial; /* of its handles that are AH_GOING; 0: none */
	pid_t pid; /* as the engine sees it; 0: unknown or embedded */
	bool pid_sure; /* it is certainly not the pid of another process */
	uid_t uid;
	char program[32];
	int promoted; /* the memfd of promoted pages; -1: none */
	dev_t promoted_device;
	ino_t promoted_inode;
	uint32_t leaves; /* the last LEAVE_PROMOTED; 0: none */
	uint32_t promoted_uses; /* of that file by regions; at most LIMIT_PROMOTED_USES */
	LIST_HEAD(, mr) promoted_mrs;
	LIST_HEAD(, backing_file) files[BACKING_BUCKETS]; /* mapped ones */
	uint64_t bell_offset[LIMIT_LCORES]; /* doorbell rings in the arena */
	uint64_t slots_offset; /* struct command_slots there; 0: embedded */
	bool orphan; /* embedded, engine ending: arena and wake_fd are the carrier's now */
	int wake_fd[LIMIT_LCORES]; /* eventfds by which this client alone wakes lcores */
	struct grave grave;
	struct reclaim reclaim; /* at the end of the client, or of one of its contexts */
	bool releases; /* at its end: everything is withdrawn and copies are over */
	struct connection *closes; /* that closes a context; NULL: the client itself ends */
	bool closing; /* embedded: one of its threads closes a context, and others wait */
	TAILQ_ENTRY(client_objects) ending_link;
	struct client *client; /* in control.ending */
};

/* The client's object of this kind, or NULL. */
static inline void *object_find(const struct client *c, enum object_kind kind, uint32_t handle)
{
	return handle_find(&c->objects->table[kind], handle);
}

/* ... of this kind and context, or NULL. */
void *object_of_context(const struct client *c, enum object_kind kind, uint32_t handle,
			uint32_t context);

/* The handle of the context that an object of this kind belongs to; 0: of none. */
uint32_t context_of_object(enum object_kind kind, const void *object);

/* Frees what queues_take() (call.h) gave for that many octets. Offset 0 does nothing. */
void queues_give(struct client *c, uint64_t offset, size_t octets);

/* The tables of a client whose account is open; false: no memory. */
bool objects_open(struct client *c);
void objects_close(struct client *c);

#endif
