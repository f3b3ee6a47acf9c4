/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic that nothing acknowledges, beside the transfers of a scenario: UC or UD messages at a rate
 * of their own. Some may be lost. Checked:
 *
 *	a message that arrives was sent, is whole and in its place, and did not arrive before
 *	it is later than the one before, where no cable reorders
 *	every request completes, in order
 */
#ifndef SIM_BESIDE_H
#define SIM_BESIDE_H

#include "endpoint.h"
#include "fabric.h"

#define BESIDE_DEPTH 64u /* requests under way, and receive requests */

struct beside {
	struct host *from, *to;
	struct endpoint *out, *in;
	struct event tick; /* a message is posted */
	nanotime every;
	uint32_t type; /* enum qp_type: UC, UD */
	uint32_t size, stride;
	uint32_t source_at, sink_at, source_key, sink_key;
	uint32_t posted, completed, receives, arrived, newest;
	uint8_t *scratch;
	uint8_t *seen; /* a bit for each message, for `room` of them */
	uint32_t room;
	bool ordered; /* no cable reorders */
	bool stopped;
};

size_t beside_memory(uint32_t size);
void beside_start(struct beside *b, struct fabric *f);
void beside_settle(struct beside *b, struct fabric *f, struct endpoint *e);
void beside_end(struct beside *b, struct fabric *f);

#endif
