/* SPDX-License-Identifier: BSD-3-Clause */
/* Binds of memory windows on the control thread (binds.c). */
#ifndef CONTROL_BINDS_H
#define CONTROL_BINDS_H

#include "lcore/lcore.h"

/* Executes all binds that lcores had passed on when it was called ... */
void operations_finish(struct engine *e);
/* Binds that wait for copies: looks whether these are over. */
void operations_go_on(struct engine *e, nanotime now);
/* ... or some of them, and wakes the control thread for the rest. */
void operations_continue(struct engine *e);

/* The queue pair is detached: unbinds the windows that it bound. */
void windows_leave(struct engine_qp *q);

#endif
