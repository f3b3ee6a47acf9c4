/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engines of this process. A program's pointer is looked up here before it is used, so that one
 * whose engine is gone gives an error and not a crash.
 *
 * The atomics are single words. Acquire in live_find() pairs with release in live_add(): who finds an
 * engine sees it complete.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/inside.h"

static struct {
	const struct engine *engine; /* NULL: free */
	uint32_t changing; /* somebody has live_enter()ed it */
} live[LIMIT_EMBEDDED_ENGINES];

/* LIMIT_EMBEDDED_ENGINES: there is none. */
static uint32_t index_of(const void *engine)
{
	uint32_t i = 0;

	while (i < LIMIT_EMBEDDED_ENGINES &&
	       __atomic_load_n(&live[i].engine, __ATOMIC_ACQUIRE) != engine)
		i++;
	return i;
}

int live_add(struct engine *e)
{
	for (uint32_t i = 0; i < LIMIT_EMBEDDED_ENGINES; i++) {
		const struct engine *none = NULL;

		if (__atomic_compare_exchange_n(&live[i].engine, &none, e, false, __ATOMIC_RELEASE,
						__ATOMIC_RELAXED))
			return 0;
	}
	return ENOSPC;
}

void live_remove(const struct engine *e)
{
	uint32_t i = index_of(e);

	if (i == LIMIT_EMBEDDED_ENGINES)
		return;
	__atomic_store_n(&live[i].changing, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&live[i].engine, NULL, __ATOMIC_RELEASE);
}

struct engine *live_find(const struct uroce_engine *u)
{
	if (u == NULL || index_of(u) == LIMIT_EMBEDDED_ENGINES)
		return NULL;
	return (struct engine *)(uintptr_t)u;
}

int live_enter(struct uroce_engine *u, struct engine **e)
{
	uint32_t i = u == NULL ? LIMIT_EMBEDDED_ENGINES : index_of(u);

	if (i == LIMIT_EMBEDDED_ENGINES)
		return EINVAL;
	if (__atomic_exchange_n(&live[i].changing, 1, __ATOMIC_ACQUIRE) != 0)
		return EBUSY;
	*e = (struct engine *)u;
	return 0;
}

void live_leave(const struct engine *e)
{
	uint32_t i = index_of(e);

	if (i < LIMIT_EMBEDDED_ENGINES)
		__atomic_store_n(&live[i].changing, 0, __ATOMIC_RELEASE);
}

bool struct_take(void *to, size_t known, const void *from, const char *name, char *why,
		 size_t why_size)
{
	const uint8_t *octet = from;
	size_t given = 0;

	why[0] = '\0';
	if (from != NULL)
		memcpy(&given, from, sizeof(given));
	if (given <= sizeof(given)) {
		snprintf(why, why_size, "%s.size must be sizeof(struct %s), not %zu", name, name,
			 given);
		return false;
	}
	for (size_t i = known; i < given; i++)
		if (octet[i] != 0) {
			snprintf(why, why_size,
				 "%s has a member that uroce " UROCE_VERSION
				 " does not know: it ends after %zu octets",
				 name, known);
			return false;
		}
	memset(to, 0, known);
	memcpy(to, from, given < known ? given : known);
	return true;
}
