/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds of memory windows on the control thread (binds.c). */
#ifndef CONTROL_BINDS_H
#define CONTROL_BINDS_H

#include "lcore/lcore.h"

/* Executes what lcores have passed on; all that was there when it was called ... */
void operations_finish(struct engine *e);
/* Binds that wait for copies, which may be over. */
void operations_go_on(struct engine *e, nanotime now);
/* ... or some of it: then it wakes the control thread again. */
void operations_continue(struct engine *e);

/* The queue pair is detached: what was bound through it is bound no more. */
void windows_leave(struct engine_qp *q);

#endif
