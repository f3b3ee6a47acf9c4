/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of the connection manager that the rest of the control path calls. */
#ifndef CONTROL_CM_CONTROL_H
#define CONTROL_CM_CONTROL_H

#include <stdint.h>

#include "base/time.h"

struct call;
struct cm_channel;
struct cm_id;
struct engine;

int cm_manager_open(struct engine *e);
void cm_manager_close(struct engine *e);
/* Does all due work. Returns when to call again. */
nanotime cm_manager_tick(struct engine *e, nanotime now);

/* Frees the id with its connection, joins and events. */
void cm_id_free(struct cm_id *id);
void cm_channel_free(struct cm_channel *ch);
/* Sends the messages that are queued. */
void cm_flush(struct engine *e);

/*
 * cmd_cm_qp.c. Moves a new queue pair to INIT, or to RTS if it is for datagrams, with the attributes of
 * this id. *state is what it came to; the program asks again for what failed, and hears why.
 */
void cm_start_qp(struct call *call, uint32_t id, uint32_t qp, uint32_t *state);
/* cm_link.c */
uint32_t cm_link_count(const struct engine *e);
/* cm_report.c. The port has a new MAC address: sends RDMA_CM_EVENT_ADDR_CHANGE to bound ids. */
void cm_tell_address_change(struct engine *e);

int cmd_cm_create_channel(struct call *call);
int cmd_cm_destroy_channel(struct call *call);
int cmd_cm_create_id(struct call *call);
int cmd_cm_destroy_id(struct call *call);
int cmd_cm_bind(struct call *call);
int cmd_cm_resolve_addr(struct call *call);
int cmd_cm_resolve_route(struct call *call);
int cmd_cm_listen(struct call *call);
int cmd_cm_connect(struct call *call);
int cmd_cm_accept(struct call *call);
int cmd_cm_reject(struct call *call);
int cmd_cm_disconnect(struct call *call);
int cmd_cm_establish(struct call *call);
int cmd_cm_notify(struct call *call);
int cmd_cm_join(struct call *call);
int cmd_cm_leave(struct call *call);
int cmd_cm_migrate(struct call *call);
int cmd_cm_set_option(struct call *call);
int cmd_cm_query(struct call *call);
int cmd_cm_init_qp_attr(struct call *call);
int cmd_cm_modify_qp(struct call *call);
int cmd_cm_get_event(struct call *call);
int cmd_cm_list(struct call *call);

#endif
