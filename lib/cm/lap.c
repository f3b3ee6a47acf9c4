/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Alternate paths: a LAP offers one, an APR answers. Path migration is not supported, so every LAP
 * of a connection gets an APR that says so.
 */
#include "cm/state.h"

enum cm_verdict cm_lap_received(struct cm_connection *c, const struct cm_message *m, nanotime now)
{
	if (c->state != CM_ESTABLISHED || !cm_belongs(c, m))
		return CM_IGNORED;
	c->asked = m->transaction;
	c->owed |= CM_OWES_APR;
	return CM_REPEATED;
}
