/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands (cmd_*.c), and what their files ask of each other. */
#ifndef CONTROL_COMMANDS_H
#define CONTROL_COMMANDS_H

#include "control/call.h"

struct xrcd;

int cmd_device(struct call *call);
int cmd_statistics(struct call *call);
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
/*
 * Clients that have a protection or XRC domain in common with this one, but for domains that were looked
 * at in this walk before: a new number of control.domain_walks.
 */
void domain_each_sharer(struct client *c, uint64_t walk,
			void (*visit)(struct client *sharer, void *arg), void *arg);

/* This handle's client has come to share its XRC domain, or not. 0 or an errno. */
int xrcd_share(struct xrcd *x);

/* cmd_dm.c: another handle of device memory. 0 or an errno. */
int dm_create(struct call *call, uint32_t context, struct dm_memory *of);

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

/* cmd_device.c: what DEVICE answers. */
void device_describe(const struct engine *e, struct reply_device *d);
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

#endif
