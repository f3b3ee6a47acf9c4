/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/stage.h"

#include <string.h>

#include "base/bits.h"

void stage_start(struct stage_watch *w, uint64_t (*clock)(void), enum stage at)
{
	memset(w, 0, sizeof(*w));
	w->clock = clock;
	w->at = at;
	w->since = clock();
}

enum stage stage_enter(struct stage_watch *w, enum stage to)
{
	enum stage from = w->at;
	uint64_t now = w->clock(), passed = now - w->since;

	w->cycles[from] += passed;
	w->longest = MAX_OF(w->longest, passed);
	w->passes[from]++;
	w->since = now;
	w->at = to;
	return from;
}

static const char *const names[STAGE_COUNT] = {
#define X(NAME, name, what) [STAGE_##NAME] = name,
	STAGE_LIST(X)
#undef X
};

static const char *const whats[STAGE_COUNT] = {
#define X(NAME, name, what) [STAGE_##NAME] = what,
	STAGE_LIST(X)
#undef X
};

const char *stage_name(enum stage s)
{
	return names[s];
}

const char *stage_what(enum stage s)
{
	return whats[s];
}
