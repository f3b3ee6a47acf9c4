/* SPDX-License-Identifier: BSD-3-Clause */
/* The control path of raw queue pairs: what cmd_qp.c, objects.c and command.c call. */
#ifndef CONTROL_RAW_CONTROL_H
#define CONTROL_RAW_CONTROL_H

#include "control/control.h"
#include "lcore/raw/raw.h"

/* 0, or EPERM with a sentence in the reply. */
int raw_check_privilege(struct call *call);
/* Checks the raw options of a raw queue pair or WQ; other types must not have any. */
int raw_check_create_qp(struct call *call, const struct request_create_qp *r);
/* Called after the queue pair was built and before it is attached. */
void raw_setup_qp(struct engine_qp *q, const struct request_create_qp *r);
/* Octets beside the elements of a request that its ring slot must hold: inline data, TSO header. */
uint32_t raw_slot_octets(const struct request_create_qp *r);

/*
 * Gives a complete object its handle and context, and makes it visible. 0, or an errno with a
 * sentence in the reply.
 */
int raw_object_enter(struct call *call, enum object_kind kind, struct raw_object *o,
		     uint32_t context);
void raw_object_leave(struct client *c, enum object_kind kind, struct raw_object *o);

/*
 * Frees all raw objects of a context (0: of the client) but queue pairs and WQs, which come next.
 */
void raw_reclaim(struct client *c, uint32_t context);

/* For raw_reclaim: frees one object. It has withdrawn all flows before. */
void flow_free(struct client *c, struct engine_flow *f);
void rss_free(struct client *c, struct rss *r);
void rwq_table_free(struct client *c, struct rwq_table *t);
void counters_free(struct client *c, struct engine_counters *k);
/* Makes the rules of engine.flow_list visible to lcores. 0, or ENOMEM and nothing changed. */
int flows_publish(struct engine *e);

int cmd_modify_wq(struct call *call);
int cmd_create_rwq_table(struct call *call);
int cmd_destroy_rwq_table(struct call *call);
int cmd_create_rss(struct call *call);
int cmd_destroy_rss(struct call *call);
int cmd_create_flow(struct call *call);
int cmd_destroy_flow(struct call *call);
int cmd_create_counters(struct call *call);
int cmd_attach_counters(struct call *call);
int cmd_read_counters(struct call *call);
int cmd_destroy_counters(struct call *call);

#endif
