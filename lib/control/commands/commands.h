/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands (cmd_*.c), and the functions that their files share. */
#ifndef CONTROL_COMMANDS_H
#define CONTROL_COMMANDS_H

#include "control/call.h"

struct connection;
struct xrcd;

int cmd_device(struct call *call);
int cmd_statistics(struct call *call);
/* cmd_list.c: what `uroce stat` and the prompt show */
int cmd_qp_list(struct call *call);
int cmd_mr_list(struct call *call);
int cmd_program_list(struct call *call);
int cmd_neighbour_list(struct call *call);
int cmd_path_list(struct call *call);
int cmd_capture(struct call *call);
/* cmd_capture.c: a connection ends, and its capture with it, if it has one. */
void capture_end(struct engine *e, const struct connection *owner);
/* From now on lcores capture or trace what was chosen, if anything was. */
void capture_change(struct engine *e);
int cmd_cycles(struct call *call);
int cmd_trace(struct call *call);
/* cmd_trace.c: the trace, if there is one, ends; a queue pair has been connected. */
void trace_end(struct engine *e);
void trace_connected(struct engine *e, const struct engine_qp *q);
int cmd_hello(struct call *call);
int cmd_open_context(struct call *call);
int cmd_close_context(struct call *call);
int cmd_alloc_pd(struct call *call);
int cmd_dealloc_pd(struct call *call);
int cmd_promoted_file(struct call *call);
int cmd_leave_promoted(struct call *call);
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
int cmd_cq_ring_left(struct call *call);
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

/* cmd_ah.c: checks an address vector and fills in its source GID. 0 or an errno. */
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

/*
 * pieces.c: creates m->region with its pieces and m->use, and fills in nothing else. 0 or an errno.
 */
int region_lay_out(struct call *call, const struct mr_wish *w, struct mr *m);
void region_unmap(struct client *c, struct mr *m);
/* A complete region with parts in the promoted file is found by LEAVE_PROMOTED. */
void region_enter_promoted(struct client *c, struct mr *m);
void region_exit_promoted(struct mr *m);

/* cmd_mr.c: checks access flags of any kind of region. 0 or an errno. */
int mr_check_access(struct call *call, uint32_t access);
/* ... and checks a range with its access flags. */
int mr_check_wish(struct call *call, const struct mr_wish *w);
/* Checks that the message has `fixed` octets and that many backings. */
int mr_check_backings(struct call *call, uint32_t backings, size_t fixed);
bool mr_wish_implicit(const struct mr_wish *w);
/* Allocates a key: a random variant in a permuted slot. 0 or an errno. */
int key_give(struct call *call, uint32_t *key);

/* For reclaim.c: the objects are unreachable for everybody else. */
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
/* Called at intervals: frees destroyed handles when the requests posted before have been sent. */
void ahs_let_go(struct client *c);
void ah_withdraw(struct client *c, struct engine_ah *ah);
void ah_free(struct client *c, struct engine_ah *ah);
/* A handle with another next hop that is to replace this one. NULL: no memory. */
struct engine_ah *ah_renew(struct engine *e, const struct engine_ah *ah, enum flow_state state,
			   const struct mac *mac);
void dm_free(struct client *c, struct dm *d);
void mr_import_free(struct client *c, struct mr_import *i);

/*
 * cmd_context.c: creates a context, with its descriptors in call->out and its handle in the reply.
 */
int context_create(struct call *call, struct context **out);

/* token.c: how a program proves that it has a context. */
/* Creates the token of a context. Returns its descriptor, or -1 with errno. */
int token_create(struct engine *e, struct context *x);
void token_forget(struct context *x);
/* The open context with this token, or NULL. Never blocks. */
struct context *token_find(struct engine *e, int fd);

/* domain.c */
/* Creates a handle of the domain `of`, or of a new one if `of` is NULL. 0 or an errno. */
int pd_create(struct call *call, uint32_t context, struct domain *of, struct pd **out);
/*
 * Visits clients that share a protection or XRC domain with this one, without domains that this
 * walk (a new number of control.domain_walks) has visited.
 */
void domain_each_sharer(struct client *c, uint64_t walk,
			void (*visit)(struct client *sharer, void *arg), void *arg);

/* Called when the handle's client may have begun to share its XRC domain. 0 or an errno. */
int xrcd_share(struct xrcd *x);

/* cmd_dm.c: creates another handle of device memory. 0 or an errno. */
int dm_create(struct call *call, uint32_t context, struct dm_memory *of);

/* cmd_srq.c: creates the table of numbers. 0 or an errno. */
int srq_numbers_init(struct engine *e);
void srq_withdraw(struct client *c, struct engine_srq *s);
void srq_free(struct client *c, struct engine_srq *s);
/* True: copies for its queue pair, whose last handle it was, are under way. */
bool target_free(struct client *c, struct target *t);
void xrcd_free(struct client *c, struct xrcd *x);

/*
 * qp_memory.c: allocates the core, with that many octets beside it at *at. qp_memory_free() frees
 * this and everything that the queue pair got later, unless it was charged to another program. 0 or
 * an errno.
 */
int qp_memory_make(struct call *call, struct engine_qp *q, const struct qp_caps *caps,
		   size_t beside, void **at);
void qp_memory_free(struct engine_qp *q);
void qp_memory_inherit(struct engine_qp *q, struct client *from, struct client *heir);
/*
 * Makes room for that many READs and atomics of the peer if there is less. 0 or an errno. qp_modify
 * rejects a number above the device's limit.
 */
int records_provide(struct call *call, struct engine_qp *q, uint32_t max_dest_rd_atomic);
/* Opens the ring by which queue pairs request more room; and gives room to those that did. */
bool crowded_prepare(struct engine *e);
void crowded_provide(struct engine *e);

/* cmd_qp.c: changes of a queue pair, one after the other, up to the first that fails. */
#define QP_STEPS_MAX 4u
struct qp_step {
	struct qp_attributes attributes;
	uint32_t mask; /* enum qp_attribute */
};
/* Takes 1 .. QP_STEPS_MAX steps. *state is the state after them. 0 or an errno. */
int qp_take_steps(struct call *call, struct engine_qp *q, const struct qp_step *step,
		  uint32_t steps, uint32_t *state);

/* cmd_device.c: the reply of DEVICE. */
void device_describe(const struct engine *e, struct reply_device *d);
/* The node GUID, octets in network order. */
uint64_t guid_of_mac(const struct mac *m);

/*
 * A socketpair for events: *ours is non-blocking and takes nothing, *theirs blocks. 0 or an errno.
 */
int event_pair(int *ours, int *theirs);
/*
 * The common part of completion and event channels: reserves a handle, to be published, and opens a
 * pair of sockets whose other end goes with the reply. 0, or the reply's errno.
 */
int channel_open(struct call *call, enum object_kind kind, uint32_t *handle, int *fd);
/* Closes the engine's end. */
void channel_close(struct client *c, int fd);

#endif
