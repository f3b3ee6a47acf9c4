/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether it pays to promote a range. Promotion and demotion take as long as about ten copies of
 * the pages by the engine. A region that stays registered earns that back. A region that a program
 * registers for each transfer does not. It cannot stay promoted in between either, because memory
 * that is not registered must behave as usual. For example, allocators rely on MADV_DONTNEED giving
 * zeros. So this file remembers what was promoted in vain, for each range and in total.
 *
 * Even to look whether memory may be promoted does not pay if it takes too long. For each
 * registration, the kernel walks the page tables of everything below (16 ms for each GiB of small
 * pages).
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drivers/client_memory/promote_private.h"

#define LOSS_GRANTED  ((int64_t)LIMIT_PROMOTE_LOSS * 1000000) /* ns */
#define LOOKS_GRANTED ((int64_t)LIMIT_PROMOTE_LOOKS * 1000000)

static int64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t promote_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

int64_t promote_work_now(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

bool promote_in_any_case(void)
{
	const char *how = getenv("UROCE_PROMOTE");

	return how != NULL && strcmp(how, "on") == 0;
}

/* The range's entry. If it is that of another range with the same hash, takes it over. */
static struct vain *entry_of(uintptr_t start, uintptr_t end)
{
	uint64_t hash = (start / PAGE * 31 + end / PAGE) * UINT64_C(0x9e3779b97f4a7c15);
	struct vain *v = &promote_state.vain[hash >> 32 & (LIMIT_PROMOTE_VAIN - 1)];

	if (v->start != start || v->end != end)
		*v = (struct vain){ .start = start, .end = end };
	return v;
}

static void spend(struct promote_budget *b, int64_t took, int64_t since)
{
	if (b->spent == 0)
		b->since = since;
	b->spent += took;
}

static bool is_spent(const struct promote_budget *b, int64_t granted)
{
	return b->spent > granted &&
	       b->spent - granted > (promote_now() - b->since) / (int64_t)LIMIT_PROMOTE_LOSS_SHARE;
}

void promote_looked(int64_t begin)
{
	spend(&promote_state.looked, promote_work_now() - begin, promote_now());
}

bool promote_pays(uintptr_t start, uintptr_t end)
{
	struct vain *v;

	if (promote_in_any_case())
		return true;
	if (is_spent(&promote_state.looked, LOOKS_GRANTED))
		return false;
	if (promote_state.vainly.spent == 0)
		return true;
	v = entry_of(start, end);
	if (v->waits == 0)
		return !is_spent(&promote_state.vainly, LOSS_GRANTED);
	v->waits--;
	return false;
}

void promote_paid(const struct part *p, int64_t until, int64_t back)
{
	int64_t took = p->took + back;
	struct vain *v;

	if (p->took == 0 || until - p->promoted_at >= LIMIT_PROMOTE_PAYS * took)
		return;
	spend(&promote_state.vainly, took, p->promoted_at);
	v = entry_of(p->region_start, p->region_end);
	if (++v->times < LIMIT_PROMOTE_TRIES)
		return;
	v->wait = v->wait == 0 ? LIMIT_PROMOTE_REST : v->wait * 4;
	if (v->wait > LIMIT_PROMOTE_REST_MOST)
		v->wait = LIMIT_PROMOTE_REST_MOST;
	v->waits = v->wait;
}
