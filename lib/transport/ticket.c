/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <stddef.h>

#include "transport/psn.h"
#include "transport/ticket.h"

uint64_t ticket_issue(struct tickets *t, enum ticket_kind kind, uint32_t psn, uint32_t msn,
		      uint32_t owner)
{
	uint64_t number = ++t->issued;

	assert(number - t->settled - 1 <= t->mask && "qp_can_receive kept room for it");
	assert(kind <= TICKET_LANDING);
	*ticket_at(t, number) = (struct ticket){
		.psn = psn & PSN_MASK, .kind = (uint8_t)kind, .msn = msn, .owner = owner
	};
	if (kind != TICKET_LANDING)
		t->placing = number;
	return number;
}

const struct ticket *ticket_oldest_request(const struct tickets *t)
{
	assert(t->settled <= t->issued && "only what was issued is settled");
	for (uint64_t n = t->settled + 1; n <= t->issued; n++) {
		if (ticket_at(t, n)->kind != TICKET_LANDING)
			return ticket_at(t, n);
	}
	return NULL;
}
