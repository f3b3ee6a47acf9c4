/* SPDX-License-Identifier: BSD-3-Clause */
/* An engine with a port of the test's own, which has the address 02:00:00:00:00:01. */
#ifndef ENGINE_RIG_TEST_PORT_H
#define ENGINE_RIG_TEST_PORT_H

#include "drivers/port.h"
#include "engine/uroce.h"

extern struct port test_port; /* what differs is set before the test begins it */

/*
 * Makes and starts an engine in place of the rig's, at a socket with this name. Of `own` only what matters to the test is
 * set: otherwise no frame comes, frames that are sent are freed, no bell rings, and nothing changes. The caller has
 * set one address and the size of the pool in `options`. control_rig_close ends all.
 */
void test_port_begin(const char *name, const struct port_ops *own, struct uroce_options options);

#endif
