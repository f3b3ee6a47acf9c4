/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/reason.h"

static const char *const names[REASON_COUNT] = {
#define X(NAME, counter, sentence) [REASON_##NAME] = #counter,
	REASONS(X)
#undef X
};

static const char *const sentences[REASON_COUNT] = {
#define X(NAME, counter, sentence) [REASON_##NAME] = sentence,
	REASONS(X)
#undef X
};

const char *reason_name(enum reason r)
{
	return (unsigned int)r < REASON_COUNT ? names[r] : "unknown";
}

const char *reason_sentence(enum reason r)
{
	return (unsigned int)r < REASON_COUNT ? sentences[r] : "an unknown reason";
}
