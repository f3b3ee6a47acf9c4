/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control path: everything slow. One thread of the engine's own serves the socket, notices
 * deaths, beats the heart of every client page, answers neighbours and follows the port; commands
 * of an embedding program run in the caller's thread. Both hold engine.control_lock meanwhile.
 *
 *	listen.c	the socket in the file system: lock, temporary name, rename
 *	client.c	connections and the processes behind them
 *	objects.c	handles
 *	command.c	one message: checked, dispatched, answered; cmd_*.c execute
 *	domain.c	protection domains, which several processes may share
 *	gid.c		own addresses
 *	neighbour_agent.c  where packets for an address go
 */
#ifndef ENGINE_CONTROL_H
#define ENGINE_CONTROL_H

#include <sys/types.h>

#include "client/carrier.h"
#include "engine/backing.h"
#include "engine/disposal.h"
#include "engine/engine.h"
#include "engine/reclaim.h"
#include "engine/settle.h"
#include "engine/uroce.h"
#include "engine/user.h"

/* A descriptor that the control thread waits for. */
struct watch {
	int fd;
	void (*ready)(struct watch *w, uint32_t events);
};

/* ---- objects of a client ---- */

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
	OBJECT_CM_CHANNEL, /* these three are of no context: cm_manager.h */
	OBJECT_CM_ID,
	OBJECT_CM_JOIN,
	OBJECT_KINDS,
};

static_assert(OBJECT_KINDS <= STATISTICS_KINDS, "every kind is counted");

/*
 * Handles 1 .. limit of one kind and client. The slots are plain pointers that lcores may read
 * (queue pairs); a handle that was given back is used again as late as is cheap.
 */
struct handle_table {
	void **slot; /* limit + 1 */
	uint32_t *next_free;
	uint32_t limit;
	uint32_t used; /* handles that were ever handed out: 1 .. used */
	uint32_t count; /* of live objects */
	uint32_t freed; /* handles in the FIFO */
	uint32_t first_free, last_free;
	struct account *account; /* whose objects they are: each counts there. NULL: nobody's */
	enum resource resource;
};

int handle_table_init(struct handle_table *t, uint32_t limit);
void handle_table_destroy(struct handle_table *t);
/* A handle whose slot is still empty; 0: the client or its user has as many as it may. */
uint32_t handle_reserve(struct handle_table *t);
/* Shows the object, complete, to whoever looks the handle up (release). */
void handle_publish(struct handle_table *t, uint32_t handle, void *object);
/* The slot is empty again; the handle stays taken until handle_free. */
void handle_withdraw(struct handle_table *t, uint32_t handle);
void handle_free(struct handle_table *t, uint32_t handle);

static inline void *handle_find(const struct handle_table *t, uint32_t handle)
{
	return handle != 0 && handle <= t->used ? t->slot[handle] : NULL;
}

struct context {
	uint32_t handle;
	int async_fd; /* our end */
	uint32_t async_owed; /* bits of events of the port that found it full */
	struct client *client;
	/* Its token is this file with this secret in it. */
	dev_t token_device;
	ino_t token_inode;
	uint8_t token_secret[16];
	LIST_ENTRY(context) token_link;
	bool imported;
	bool closed; /* it goes when copies are over */
	struct context *exporter; /* NULL: closed meanwhile, or not imported */
	LIST_HEAD(, context) importers;
	LIST_ENTRY(context) import_link; /* in the exporter's list */
};

/* A protection domain as keys know it; several processes may have handles of one. */
struct domain {
	uint32_t number; /* unique in the engine: what keys and queue pairs carry */
	uint32_t handles;
	uint64_t walk; /* the last one of control.domain_walks that came by */
	LIST_HEAD(, pd) pds;
	LIST_ENTRY(domain) link;
};

/* A process's handle of a protection domain. */
struct pd {
	uint32_t handle;
	uint32_t context;
	uint32_t
		users; /* queue pairs, regions, address handles, imports ... made with this handle */
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
	bool implicit; /* on demand: the whole address space */
	bool leaving; /* it goes, or changes, when copies are over */
	struct region *region;
	uint32_t uses;
	struct backing_use *use; /* what its direct pieces lie in */
	struct dm *dm; /* device memory that it is a part of; NULL: the program's memory */
};

/* Device memory, which several processes may have handles of; it ends with the last. */
struct dm_memory {
	uint32_t handles;
	struct user *user; /* whose it is, whoever has handles of it */
	int fd;
	uint8_t *base; /* where we map it */
	uint64_t length; /* as asked for */
	uint64_t octets; /* in whole pages */
};

struct dm {
	uint32_t handle;
	uint32_t context;
	uint32_t users; /* regions */
	struct dm_memory *memory;
};

/* An imported region: the right to its keys' numbers. The region itself is its exporter's. */
struct mr_import {
	uint32_t handle;
	uint32_t context;
	uint32_t key;
	struct pd *pd;
};

/* What a region is to be: of REG_MR or REREG_MR. */
struct mr_wish {
	uint32_t access; /* enum access_flag */
	uint64_t address;
	uint64_t length;
	uint64_t iova;
	uint32_t backings;
	const struct mr_backing *backing;
};

struct client_objects {
	struct account account;
	bool counted; /* ... with what every client takes */
	struct handle_table table[OBJECT_KINDS];
	uint64_t dm_octets; /* of device memory that it has handles of */
	uint32_t cm_events; /* that wait for it, but for requests: backlogs bound those */
	uint32_t async_rest; /* beats until owed asynchronous events are tried again */
	LIST_HEAD(, engine_qp) holding; /* UD queue pairs that may send nothing for long */
	uint32_t groups; /* multicast groups that its queue pairs are members of, */
	uint32_t reported_joins; /* and joins of rdma_cm that the link is told of */
	uint32_t ah_serial; /* of the handles that are AH_GOING; 0: there are none */
	bool shares; /* other clients' queue pairs may name its memory: it has or had a shared PD */
	pid_t pid; /* as we see it; 0: unknown or embedded */
	uid_t uid;
	char program[32];
	int promoted; /* the memfd of promoted pages; -1: none */
	LIST_HEAD(, backing_file) files[BACKING_BUCKETS]; /* that are mapped */
	uint64_t bell_offset[LIMIT_LCORES]; /* doorbell rings in the arena */
	int wake_fd[LIMIT_LCORES]; /* what this client alone wakes an lcore with */
	struct grave grave;
	struct reclaim reclaim; /* at its end, or at that of a context of it */
	bool releases; /* its end: all is withdrawn, and copies are over */
	struct connection *closes; /* not its end, but a context's: who waits for the answer */
	TAILQ_ENTRY(client_objects) ending_link;
	struct client *client; /* in control.ending */
};

/* Whether copies of others' queue pairs may be of its memory. Any thread. */
static inline bool client_shares(const struct client *c)
{
	return __atomic_load_n(&c->objects->shares, __ATOMIC_RELAXED);
}

/* Copies from or to memory are under way for it. On its lcore. */
static inline bool qp_has_copies(const struct engine_qp *q)
{
	return q->last_ticket != 0 || q->gather_pending;
}

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

/* The tables of a client whose account is open; false: no memory. */
bool objects_open(struct client *c);
void objects_close(struct client *c);

/* ---- one command ---- */

struct porter;

struct call {
	struct engine *engine;
	struct client *client; /* NULL: before HELLO */
	struct connection *connection; /* NULL: embedded */
	const struct command_request *request;
	size_t length; /* octets of it, at least what its command needs */
	struct carrier_descriptors in; /* ours; what a command keeps it replaces by -1 */
	bool in_lost; /* ... and not all that came */
	struct {
		bool known;
		dev_t device;
		ino_t inode;
	} file; /* of the only descriptor, if that is -1 */
	struct {
		bool sought; /* a porter has looked for the memory of the program that says hello, */
		int error; /* 0, or why not (peer_memory_find) */
		int fd; /* ours; -1: none */
		bool proven, foreign, by_pid; /* struct porter_report */
	} memory;
	struct porter *porter; /* that brought the message; NULL: it came without descriptors */
	struct carrier_descriptors out; /* closed after they were sent, but see out_borrowed */
	uint32_t out_borrowed; /* bits: descriptors that stay ours */
	union {
		struct command_reply reply;
		uint8_t reply_octets[LIMIT_COMMAND_BYTES];
	} __attribute__((aligned(8)));
	size_t reply_length;
	int (*finish)(struct call *call); /* not NULL: it waits for copies, see settle.h, */
	bool in_slices; /* or, before and after that, is done in slices: ending.c */
	void (*abandon)(struct call *call);
	void *data; /* theirs */
	struct settling settling;
};

/* Returns `error` and puts the sentence into the reply. */
int call_fail(struct call *call, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The program takes n more of it. 0, or ENOMEM and the sentence in the reply. */
int call_take(struct call *call, enum resource r, uint64_t n);
/* There was no handle: ENOMEM, and the sentence. */
int call_no_handle(struct call *call, enum object_kind kind);

/*
 * Executes a message of any bytes; call->reply and call->out are to be sent, if call->finish is not set.
 * Then the call waits for copies or is done in slices, and command_finish makes the reply. Lock held.
 */
void command_execute(struct call *call);
void command_finish(struct call *call);
void call_close_descriptors(struct call *call);
/* The reply to what was not executed. */
void command_refuse(struct call *call, int error, const char *why);

int cmd_device(struct call *call);
int cmd_statistics(struct call *call);
/* cm_link.c */
uint32_t cm_link_count(const struct engine *e);
/* cm_report.c. The port has another MAC address: ids that are bound hear of it. */
void cm_tell_address_change(struct engine *e);
int cmd_hello(struct call *call);
int cmd_open_context(struct call *call);
int cmd_close_context(struct call *call);
int cmd_alloc_pd(struct call *call);
int cmd_dealloc_pd(struct call *call);
int cmd_promoted_file(struct call *call);
int cmd_reg_mr(struct call *call);
int cmd_dereg_mr(struct call *call);
int cmd_rereg_mr(struct call *call);
int cmd_alloc_null_mr(struct call *call);
int cmd_advise_mr(struct call *call);
int cmd_alloc_mw(struct call *call);
int cmd_dealloc_mw(struct call *call);
int cmd_create_channel(struct call *call);
int cmd_destroy_channel(struct call *call);
int cmd_create_cq(struct call *call);
int cmd_resize_cq(struct call *call);
int cmd_cq_moved(struct call *call);
int cmd_modify_cq(struct call *call);
int cmd_wake_cq(struct call *call);
int cmd_destroy_cq(struct call *call);
int cmd_create_qp(struct call *call);
int cmd_modify_qp(struct call *call);
int cmd_query_qp(struct call *call);
int cmd_destroy_qp(struct call *call);
int cmd_create_ah(struct call *call);
int cmd_query_ah(struct call *call);
int cmd_destroy_ah(struct call *call);
int cmd_resolve_path(struct call *call);
int cmd_alloc_dm(struct call *call);
int cmd_free_dm(struct call *call);
int cmd_reg_dm_mr(struct call *call);
int cmd_import_context(struct call *call);
int cmd_import_pd(struct call *call);
int cmd_import_mr(struct call *call);
int cmd_unimport_mr(struct call *call);
int cmd_import_dm(struct call *call);
int cmd_attach_mcast(struct call *call);
int cmd_detach_mcast(struct call *call);

/* cmd_ah.c: an address vector that makes sense here; its source GID is filled in. 0 or an errno. */
int path_check(struct call *call, struct qp_path *path);
int cmd_create_srq(struct call *call);
int cmd_modify_srq(struct call *call);
int cmd_query_srq(struct call *call);
int cmd_destroy_srq(struct call *call);
int cmd_open_xrcd(struct call *call);
int cmd_close_xrcd(struct call *call);
int cmd_open_qp(struct call *call);

/* cmd_target.c: the queue pair behind a handle of either kind (xrc.h), or NULL. */
struct engine_qp *qp_of_handle(const struct client *c, uint32_t handle);
/* CREATE_QP and DESTROY_QP of XRC targets. */
int target_create(struct call *call);
int target_destroy(struct call *call, uint32_t handle);

/* pieces.c: m->region with its pieces (nothing else of it filled), m->use. 0 or an errno. */
int region_lay_out(struct call *call, const struct mr_wish *w, struct mr *m);
void region_unmap(struct client *c, struct mr *m);

/* cmd_mr.c: access flags that make sense, of whatever kind of region. 0 or an errno. */
int mr_check_access(struct call *call, uint32_t access);
/* ... and a range that does, with access. */
int mr_check_wish(struct call *call, const struct mr_wish *w);
/* A message of `fixed` octets and that many backings. */
int mr_check_backings(struct call *call, uint32_t backings, size_t fixed);
bool mr_wish_implicit(const struct mr_wish *w);
/* A key that nobody can guess from another one: a random variant of a permuted slot. 0 or an errno. */
int key_give(struct call *call, uint32_t *key);

/* For reclaim.c; the objects are unreachable for everybody else. */
void context_withdraw(struct context *x);
void context_free(struct client *c, struct context *x);
void pd_free(struct client *c, struct pd *p);
void mw_withdraw(struct client *c, struct window *w);
void mw_free(struct client *c, struct window *w);
void mr_withdraw(struct client *c, struct mr *m);
void mr_free(struct client *c, struct mr *m);
void channel_free(struct client *c, struct engine_channel *ch);
void cq_free(struct client *c, struct engine_cq *cq);
void qp_free(struct client *c, struct engine_qp *q);
/* Now and then: destroyed handles go, when what was posted before has left. */
void ahs_let_go(struct client *c);
void ah_withdraw(struct client *c, struct engine_ah *ah);
void ah_free(struct client *c, struct engine_ah *ah);
/* Another handle for its place, with another next hop. NULL: no memory. */
struct engine_ah *ah_renew(struct engine *e, const struct engine_ah *ah, enum flow_state state,
			   const struct mac *mac);
void dm_free(struct client *c, struct dm *d);
void mr_import_free(struct client *c, struct mr_import *i);

/* cmd_context.c: a context, with its descriptors in call->out and its handle in the reply. */
int context_create(struct call *call, struct context **out);

/* token.c: how a context is proved to be at hand. */
/* Makes the token of a context: a descriptor, or -1 with errno. */
int token_create(struct engine *e, struct context *x);
void token_forget(struct context *x);
/* The open context that this descriptor is the token of, or NULL. Never blocks. */
struct context *token_find(struct engine *e, int fd);

/* domain.c */
/* A handle of the domain, of a new one if `of` is NULL. 0 or an errno. */
int pd_create(struct call *call, uint32_t context, struct domain *of, struct pd **out);
/* Clients that have a protection or XRC domain in common with this one. */
void domain_each_sharer(struct client *c, void (*visit)(struct client *sharer, void *arg),
			void *arg);

/* This handle's client has come to share its XRC domain, or not. 0 or an errno. */
int xrcd_share(struct xrcd *x);

/* cmd_dm.c: another handle of device memory. 0 or an errno. */
int dm_create(struct call *call, uint32_t context, struct dm_memory *of);

/* A key that nobody can guess from another one: a random variant of a permuted slot. 0 or an errno. */
int key_give(struct call *call, uint32_t *key);
/* cmd_srq.c: the table of numbers. 0 or an errno. */
int srq_numbers_init(struct engine *e);
void srq_withdraw(struct client *c, struct engine_srq *s);
void srq_free(struct client *c, struct engine_srq *s);
void target_free(struct client *c, struct target *t);
void xrcd_free(struct client *c, struct xrcd *x);

/*
 * qp_memory.c: the core with so many octets beside it, at *at; all that it ever got goes with
 * qp_memory_free, or is counted against another program. 0 or an errno.
 */
int qp_memory_make(struct call *call, struct engine_qp *q, const struct qp_caps *caps,
		   size_t beside, void **at);
void qp_memory_free(struct engine_qp *q);
void qp_memory_inherit(struct engine_qp *q, struct client *from, struct client *heir);
/*
 * Room for as many READs and atomics of the peer, if there is less. 0 or an errno; a number over
 * the device's limit is left to qp_modify.
 */
int records_provide(struct call *call, struct engine_qp *q, uint32_t max_dest_rd_atomic);
/* The ring that queue pairs ask through for more room; room for those that did. */
bool crowded_prepare(struct engine *e);
void crowded_provide(struct engine *e);

/* cmd_qp.c: changes of a queue pair, one after the other; the first that fails is the last. */
#define QP_STEPS_MAX 4u
struct qp_step {
	struct qp_attributes attributes;
	uint32_t mask; /* enum qp_attribute */
};
/* 1 .. QP_STEPS_MAX of them; *state: where it stands then. 0 or an errno. */
int qp_take_steps(struct call *call, struct engine_qp *q, const struct qp_step *step,
		  uint32_t steps, uint32_t *state);

/*
 * mcast.c: a queue pair joins or leaves a group; joining twice is joining once. 0 or an errno:
 * EINVAL: not a member; ENOMEM: too many groups or members; EUSERS: of the user; what the kernel says.
 */
int mcast_attach(struct engine *e, const struct gid *gid, struct engine_qp *q);
int mcast_detach(struct engine *e, const struct gid *gid, struct engine_qp *q);
/* It leaves all groups. Those that are empty now are put before `unlinked`, to be freed later. */
struct mcast_group *mcast_forget(struct engine *e, struct engine_qp *q,
				 struct mcast_group *unlinked);
/* After a grace period. */
void mcast_free(struct engine *e, struct mcast_group *unlinked);

/* cmd_device.c: what DEVICE answers. */
void device_describe(const struct engine *e, struct reply_device *d);
/* link_rate.c: ibv_port_attr's active_speed and active_width of a link of so many Mbit/s; 0: unknown. */
void link_rate(uint32_t mbits, uint8_t *speed, uint8_t *width);
/* The node GUID, octets in network order. */
uint64_t guid_of_mac(const struct mac *m);

/* A socketpair for events: *ours does not block, *theirs does. 0 or an errno. */
int event_pair(int *ours, int *theirs);
/*
 * What a completion channel and an event channel begin with: a handle, to be published, and our end
 * of a pair whose other end goes with the reply. 0, or the reply's errno.
 */
int channel_open(struct call *call, enum object_kind kind, uint32_t *handle, int *fd);
/* Our end goes. */
void channel_close(struct client *c, int fd);

/* ---- clients ---- */

/* raw_policy.c: it may do what a packet socket may. */
bool client_is_privileged(const struct client *c);
/* ... or what takes this capability (its bit). */
bool client_has_capability(const struct client *c, uint32_t bit);

/* Room for one more client with everything but its memory; takes the arena. NULL: *error says why. */
struct client *client_create(struct engine *e, struct arena *arena, uid_t uid, bool embedded,
			     int *error);
/* Shows the client to the lcores. */
void client_start(struct client *c);
/* client.c: nothing leads to it any more. */
void client_free(struct client *c);

/* ending.c. Takes everything of it away, whatever it was doing, in slices of the control thread's. */
void client_end(struct client *c);
/* ... in the caller's thread, which gives control_lock to others between slices. */
void client_leave(struct client *c);
/*
 * All that is in the context, and the context: what the command returns. A call of a connection is
 * parked where one slice does not do, an embedded program's is done at once.
 */
int context_end(struct call *call, struct context *x);
/* A slice of those that are ending. Returns when the next one is due. */
nanotime clients_go_on(struct engine *e, nanotime now);
/* All of them, but for those that wait for copies. */
void clients_close(struct engine *e);
/*
 * movers.c. A client of another user gets a mover at once, one of our own user when a copy of its
 * memory took long. 0 or an errno.
 */
int client_mover_give(struct client *c);
/* ... only this client, not those that share a domain with it. */
int client_mover_make(struct client *c);
/*
 * Memory of this client that the engine maps is about to go (the region's; NULL: all of it). Nobody
 * can reach it by a key any more, since a grace period; movers may be on the way there, or stuck in
 * front of it: from now on none of them touches it.
 */
void client_memory_revoke(struct client *c, const struct region *region);

/* ibv_event_type, of the port */
enum port_event {
	EVENT_PORT_ACTIVE = 9,
	EVENT_PORT_ERR = 10,
	EVENT_GID_CHANGE = 18,
};

/* Tells every context. One whose program reads no events hears of it when it does. */
void client_event(struct client *c, enum port_event event);
/* ... as qp_tell_owed. */
void context_tell_owed(struct context *x, struct owed_round *round);

struct listener;
struct owed_reply;
struct porter;

struct connection {
	struct watch socket; /* first */
	struct watch process; /* pidfd; fd -1: none */
	struct engine *engine;
	struct client *client; /* NULL: before HELLO */
	pid_t pid; /* of the process that connected, as we see it; 0: of another pid namespace */
	struct parked_call *parked; /* a command that waits for copies; NULL: none */
	LIST_ENTRY(connection) parked_link;
	uid_t uid;
	bool proven; /* the client's memory is that process's */
	bool carried; /* its message is a porter's business: it is not read */
	nanotime carried_since;
	struct porter *porter; /* NULL: it waits for one */
	bool last_has_descriptors; /* the last reply */
	bool untaken; /* ... and it waits until that was taken */
	struct owed_reply *owed; /* that could not be sent; NULL: none */
	struct user *user;
	LIST_ENTRY(connection) link;
};

/* Sends the reply of a call. False: the connection is to be ended. */
bool connection_answer(struct connection *n, struct call *call);

void connection_accept(struct watch *listener, uint32_t events);
void connection_end(struct connection *n);
/* Its porter brings the message, or, with 0 octets, the end. */
void connection_carried(struct connection *n, struct call *call);
/* Ends it; the message that waits there is answered so. */
void connection_refuse(struct connection *n, int error, const char *why);
/* exchange.c: its socket is readable, or has ended. */
void connection_ready(struct watch *socket, uint32_t events);
/* The reply that it is owed, if any, goes with it. */
void connection_forget_reply(struct connection *n);
/* Ends those that wait to be accepted. */
void connections_decline(struct listener *l);
/* Now and then: replies that could not be sent, or were not taken. */
void connections_tick(struct engine *e, nanotime now);

/* ---- the socket ---- */

struct listener {
	struct watch watch; /* first; fd -1: none */
	struct engine *engine;
	int lock_fd;
	int files_fd; /* the folder of the device's files; -1: none */
	bool files_late; /* there was no descriptor to write them with */
	char path[108];
	bool shown;
	bool paused; /* out of descriptors: looked at again with the next tick */
};

/* 0, or an errno and one line in `why`: who holds the socket, what to do. */
int listener_open(struct listener *l, const struct uroce_options *o, char *why, size_t why_size);
/* The socket appears in place. */
int listener_show(struct listener *l, char *why, size_t why_size);
void listener_pause(struct listener *l);
void listener_resume(struct listener *l);
void listener_close(struct listener *l);

/* engine.c: the port carries more or less than before. True: programs see another MTU. */
bool engine_follow_mtu(struct engine *e);

/* ---- the device in the file system: device_files.c ---- */

void device_files_open(struct engine *e);
/* Something of the device or its port has changed. */
void device_files_update(struct engine *e);
void device_files_close(struct engine *e);

/* ---- own addresses ---- */

/* Fills the table from the options, the port, or the host. Returns how many entries changed. */
uint32_t gid_table_update(struct engine *e);
bool gid_is_own(const struct engine *e, const struct gid *g);
bool gid_is_zero(const struct gid *g);
/* "10.1.0.2" or "fe80::1". */
const char *gid_text(const struct gid *g, char *text, size_t size);

/* ---- where packets go ---- */

int neighbour_agent_open(struct engine *e, char *why, size_t why_size);
void neighbour_agent_close(struct engine *e);
/* Our addresses, or at the start the port, are new: tell the link. */
void neighbour_agent_announce(struct engine *e);
/* Frames that are not RoCE, ticks: called from the control thread. */
void neighbour_agent_frames(struct engine *e, nanotime now);
nanotime neighbour_agent_tick(struct engine *e, nanotime now);
/* The link is to send us what is for a group, or no more. 0 or an errno. */
int neighbour_agent_join(struct engine *e, const struct gid *group);
void neighbour_agent_leave(struct engine *e, const struct gid *group);
/* Another number once somebody's MAC address became known, changed, or was given up. */
uint32_t neighbour_agent_news(const struct engine *e);
/* Decides the flow state of a path; FLOW_PORT fills *mac. */
enum flow_state flow_resolve(struct engine *e, const struct gid *dgid, struct mac *mac);
/* The flow of a path between these queue pairs. */
void flow_make(const struct engine *e, const struct qp_path *path, uint32_t local_qpn,
	       uint32_t dest_qpn, const struct mac *mac, struct flow *flow);

/* ---- the thread ---- */

#define CONTROL_BUCKETS 1024u

struct control {
	struct engine *engine;
	pthread_t thread;
	bool thread_runs;
	int epoll_fd;
	int wait_fd[LIMIT_LCORES]; /* epoll: what wakes a sleeping lcore, besides its port */
	struct watch wake; /* engine.control_fd */
	uint32_t stop; /* atomic */
	struct listener listener;
	LIST_HEAD(, connection) connections;
	uint32_t connection_count;
	LIST_HEAD(, connection) parked; /* settle.c, with those that follow */
	LIST_HEAD(, grave) graves;
	uint32_t grave_count;
	LIST_HEAD(, bind_wait) binds; /* operation.c */
	nanotime settle_at;
	struct neighbour_agent *neighbours; /* NULL: nothing to resolve */
	struct destinations *destinations; /* NULL, likewise */
	struct peer_table *peers;
	uint64_t peers_taken; /* connections that were refused: REASON_PEER_TAKEN */
	struct uroce_options options;
	char name[32];
	bool owns_pool;
	uint32_t next_lcore; /* round robin of queue pairs */
	uint32_t next_domain; /* number */
	uint64_t
		domain_walks; /* so that each looks at a domain once, however many handles lead there */
	LIST_HEAD(, domain) domains[CONTROL_BUCKETS]; /* by number */
	LIST_HEAD(, context) tokens[CONTROL_BUCKETS]; /* by inode */
	struct users users;
	struct disposal disposal;
	TAILQ_HEAD(ending_list, client_objects) ending; /* clients */
	nanotime ending_at; /* the next slice */
	nanotime beat_at;
	nanotime refresh_at;
	nanotime neighbours_at;
	nanotime empty_since; /* when the last client left */
	bool addresses_late; /* there was no descriptor to ask the host with */
	uint32_t idle_expired; /* atomic */
	bool link_up;
	int host_events; /* addresses of this host; -1: there is a port, or --ip */
	bool main_thread_runs; /* main_thread polls the main lcore */
	pthread_t main_thread;
	bool launched; /* uroce_start ran: threads of ours poll */
	bool registered; /* libibverbs.so.1 of this process lists it */
	void *key_memory;
	LIST_HEAD(, engine_xrcd) xrcds;
	struct handle_table srq_numbers; /* engine.srq is its slots */
	uint32_t srq_generation;
	struct cm_manager *cm;
	struct porters *porters; /* NULL: no socket */
};

/* The parts that the thread needs; then the thread; both ways back. */
int control_open(struct engine *e, const struct uroce_options *o, char *why, size_t why_size);
int control_start(struct engine *e, char *why, size_t why_size);
void control_stop(struct engine *e);
void control_close(struct engine *e);
int watch_add(struct engine *e, struct watch *w);
/* EPOLLIN, or 0 to hear of nothing but its end. */
void watch_change(struct engine *e, struct watch *w, uint32_t events);
void watch_remove(struct engine *e, struct watch *w);

/* idle.c: what a dedicated thread does with an lcore until engine.stopping. */
int lcore_loop(void *lcore);

/* carrier_direct.c */
int carrier_direct_register(struct engine *e);
void carrier_direct_unregister(struct engine *e);

#endif
