/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stddef.h>

#include "transport/psn.h"
#include "transport/ticket.h"

const struct ticket *ticket_oldest_request(const struct tickets *t)
{
	assert(t->settled <= t->issued && "only what was issued is settled");
	for (uint64_t n = t->settled + 1; n <= t->issued; n++) {
		if (ticket_at(t, n)->kind != TICKET_LANDING)
			return ticket_at(t, n);
	}
	return NULL;
}
