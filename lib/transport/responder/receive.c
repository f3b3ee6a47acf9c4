/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>

#include "transport/responder/receive.h"

void receive_push(struct receives *r, const struct receive_done *d)
{
	assert(r->done - r->taken <= r->mask && "qp_can_receive keeps room");
	*receive_at(r, r->done++) = *d;
}

void receives_fail_behind(struct receives *r, uint64_t ticket, enum work_status status,
			  enum reason why)
{
	assert(r->done - r->taken <= r->mask + 1 && "the ring holds what is waiting");
	assert(status != STATUS_SUCCESS && why != REASON_NONE && "they failed");
	for (uint32_t i = r->taken; i != r->done; i++) {
		struct receive_done *d = receive_at(r, i);

		if ((int32_t)(d->ticket - (uint32_t)ticket) < 0)
			continue;
		d->status = (uint8_t)status;
		d->reason = (uint8_t)why;
		status = STATUS_WR_FLUSH_ERR;
		why = REASON_FLUSHED;
	}
}
