/* SPDX-License-Identifier: BSD-3-Clause */
/* A port under its two names: programs that use liburoce do not see its members. */
#ifndef ENGINE_PORT_H
#define ENGINE_PORT_H

#include "drivers/port.h"
#include "engine/uroce.h"

static inline struct uroce_port *port_for_program(struct port *p)
{
	return (struct uroce_port *)p;
}

static inline struct port *port_of_program(struct uroce_port *p)
{
	return (struct port *)p;
}

#endif
