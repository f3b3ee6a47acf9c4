/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responder knows of packets that came behind a gap and that its caller keeps. A queue
 * pair has bits for LIMIT_WINDOW packets. Peers on a long way send more (flight_window), so the
 * caller lends a larger set to the few queue pairs that need it (qp_give_far).
 */
#ifndef TRANSPORT_BEHIND_H
#define TRANSPORT_BEHIND_H

#include "transport/responder/responder.h"

static inline struct psn_set behind_set(const struct responder *r)
{
	bool own = r->behind_words == PSN_SET_WORDS;

	return (struct psn_set){ .word = own ? (uint64_t *)(uintptr_t)r->behind : r->behind_more,
				 .words = r->behind_words };
}

/* Nothing waits. */
void behind_reset(struct responder *r);

/* Whether this packet is noted. */
static inline bool behind_has(const struct responder *r, uint32_t psn)
{
	return r->holding > 0 && psn_within(psn, r->expected_psn, 64 * r->behind_words) &&
	       psn_set_has(behind_set(r), psn);
}

static inline void behind_add(struct responder *r, uint32_t psn)
{
	assert(psn_within(psn, r->expected_psn, 64 * r->behind_words) && "qp_is_far");
	r->holding += !psn_set_has(behind_set(r), psn);
	psn_set_add(behind_set(r), psn);
}

/* The caller no longer keeps this packet. */
static inline void behind_remove(struct responder *r, uint32_t psn)
{
	if (r->holding == 0)
		return;
	r->holding -= psn_set_has(behind_set(r), psn);
	psn_set_remove(behind_set(r), psn);
}

/* The expected PSN goes from a READ on, whose PSNs peers use for nothing else. */
void behind_passed_many(struct responder *r, uint32_t psn, uint32_t count);

/* The expected PSN goes from `psn` on by so many packets. */
static inline void behind_passed(struct responder *r, uint32_t psn, uint32_t count)
{
	if (count == 1)
		behind_remove(r, psn);
	else
		behind_passed_many(r, psn, count);
}

/* This packet came ahead, and the peer is to hear of it. */
static inline void behind_news(struct responder *r, uint32_t psn)
{
	if (!r->selection_due)
		r->news_first = r->news_last = psn;
	else if (psn_after(psn, r->news_last))
		r->news_last = psn;
	else if (psn_after(r->news_first, psn))
		r->news_first = psn;
	r->selection_due = true;
}

/* Which of the 64 packets from `from` on came: bit n stands for `from` + n. */
uint64_t behind_came(const struct responder *r, uint32_t from);
/*
 * Which part of what came behind `psn` the peer is told of, in steps of SELECTION_STEP: the part of
 * the newest. If the news spans more than a selection, the oldest news comes first; then *more is
 * set, and the next call has the rest.
 */
uint8_t behind_step(struct responder *r, uint32_t psn, bool *more);

#endif
