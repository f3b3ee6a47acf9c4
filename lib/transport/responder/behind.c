/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "transport/qp.h"
#include "transport/responder/behind.h"
#include "transport/transport.h"
#include "wire/opcode.h"

#define FAR_WORDS (LIMIT_WINDOW_MOST / 64)

static void use_own(struct responder *r)
{
	memset(r->behind, 0, sizeof(r->behind));
	r->behind_words = PSN_SET_WORDS;
}

void behind_reset(struct responder *r)
{
	r->holding = 0;
	if (r->behind_words <= PSN_SET_WORDS)
		use_own(r);
	else
		memset(r->behind_more, 0, qp_far_size());
}

void behind_passed_many(struct responder *r, uint32_t psn, uint32_t count)
{
	uint32_t n;

	count = MIN_OF(count, 64 * r->behind_words);
	while (r->holding > 0 && (n = psn_set_first(behind_set(r), psn, count)) < count)
		behind_remove(r, psn_add(psn, n));
}

uint64_t behind_came(const struct responder *r, uint32_t from)
{
	int32_t before = psn_distance(r->expected_psn, from);
	int32_t room = before + (int32_t)(64 * r->behind_words); /* PSNs that there are bits for */
	uint64_t bits;

	if (before >= 64)
		return UINT64_MAX;
	if (r->holding == 0 || room <= 0)
		return before > 0 ? (UINT64_C(1) << before) - 1 : 0;
	bits = psn_set_bits(behind_set(r), from);
	if (before > 0)
		return bits | ((UINT64_C(1) << before) - 1);
	return room < 64 ? bits & ((UINT64_C(1) << room) - 1) : bits;
}

/* How far behind `psn` it is; 0: not behind. */
static uint32_t beyond(uint32_t psn, uint32_t news)
{
	return psn_after(news, psn) ? (news - psn_add(psn, 1)) & PSN_MASK : 0;
}

uint8_t behind_step(struct responder *r, uint32_t psn, bool *more)
{
	uint32_t first = beyond(psn, r->news_first), last = beyond(psn, r->news_last);
	uint32_t step = last < SELECTION_BITS ? 0 : (last - SELECTION_BITS) / SELECTION_STEP + 1;

	*more = first < step * SELECTION_STEP;
	r->news_first = r->news_last;
	return (uint8_t)(*more ? first / SELECTION_STEP : step);
}

size_t qp_far_size(void)
{
	return FAR_WORDS * sizeof(uint64_t);
}

bool qp_is_far(const struct qp *qp, const struct packet *p)
{
	return !opcode_is(p->opcode, OP_RESPONSE) &&
	       !psn_within(p->psn, qp->resp.expected_psn, 64 * qp->resp.behind_words);
}

void qp_give_far(struct qp *qp, void *memory)
{
	struct responder *r = &qp->resp;
	struct psn_set far = { .word = memory, .words = FAR_WORDS };

	assert(r->behind_words == PSN_SET_WORDS && "once");
	memset(memory, 0, qp_far_size());
	for (uint32_t i = 0; i < LIMIT_WINDOW; i++) {
		uint32_t psn = psn_add(r->expected_psn, i);

		if (behind_has(r, psn))
			psn_set_add(far, psn);
	}
	r->behind_more = memory;
	r->behind_words = FAR_WORDS;
}

void *qp_take_far(struct qp *qp)
{
	struct responder *r = &qp->resp;
	void *memory = r->behind_more;

	if (r->behind_words == PSN_SET_WORDS)
		return NULL;
	r->holding = 0;
	use_own(r);
	return memory;
}
