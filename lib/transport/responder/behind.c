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
	r->holding = false;
	if (r->behind_words <= PSN_SET_WORDS)
		use_own(r);
	else
		memset(r->behind_more, 0, qp_far_size());
}

void behind_add(struct responder *r, uint32_t psn)
{
	assert(psn_within(psn, r->expected_psn, 64 * r->behind_words) && "qp_is_far");
	psn_set_add(behind_set(r), psn);
	r->holding = true;
}

void behind_remove(struct responder *r, uint32_t psn)
{
	if (r->holding)
		psn_set_remove(behind_set(r), psn);
}

void behind_passed(struct responder *r, uint32_t psn, uint32_t count)
{
	if (!r->holding)
		return;
	psn_set_clear(behind_set(r), psn, count);
	r->holding = !psn_set_empty(behind_set(r));
}

void behind_news(struct responder *r, uint32_t psn)
{
	if (!r->selection_due)
		r->news_first = r->news_last = psn;
	else if (psn_after(psn, r->news_last))
		r->news_last = psn;
	else if (psn_after(r->news_first, psn))
		r->news_first = psn;
	r->selection_due = true;
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
	r->holding = false;
	use_own(r);
	return memory;
}
