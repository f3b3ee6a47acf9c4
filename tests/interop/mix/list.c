/* SPDX-License-Identifier: BSD-3-Clause */
#include "mix.h"

#include <stdio.h>
#include <string.h>

#define GUARD 0xa5

void mix_divide(struct mix *m, struct mix_list *l, uint32_t length)
{
	uint32_t i, left = length, most = m->script.most_pieces;

	l->n = 1 + mix_roll(m, mix_roll(m, 4) == 0 ? most : 3);
	if (l->n > most)
		l->n = most;
	for (i = 0; i < l->n; i++) {
		l->part[i] = i + 1 == l->n ? left : mix_roll(m, left + 1);
		left -= l->part[i];
	}
}

int mix_elements(const struct mix_list *l, uint32_t lkey, struct ibv_sge *sges)
{
	uint8_t *at = l->memory;
	uint32_t i;

	for (i = 0; i < l->n; at += l->part[i++] + MIX_GAP)
		sges[i] = (struct ibv_sge){ (uintptr_t)at, l->part[i], lkey };
	return (int)l->n;
}

/* Octets of an element that hold none of the first `used` octets and are looked at. */
static uint32_t unused(const struct mix_list *l, uint32_t i, uint32_t used)
{
	uint32_t n = used < l->part[i] ? l->part[i] - used : 0;

	return n > 64 ? 64 : n;
}

void mix_guard(struct mix_list *l, uint32_t used)
{
	uint8_t *at = l->memory;
	uint32_t i, mine;

	l->guarded_from = used;
	for (i = 0; i < l->n; at += l->part[i++] + MIX_GAP) {
		mine = used < l->part[i] ? used : l->part[i];
		memset(at + mine, GUARD, unused(l, i, mine));
		memset(at + l->part[i], GUARD, MIX_GAP);
		used -= mine;
	}
}

static bool guarded(const uint8_t *at, uint32_t n)
{
	for (; n > 0; n--)
		if (at[n - 1] != GUARD)
			return false;
	return true;
}

const char *mix_wrong(const struct mix_list *l, const uint8_t *wanted, uint32_t length)
{
	static char text[120];
	const uint8_t *at = l->memory;
	uint32_t i, j, mine, begun = 0, used = length;

	for (i = 0; i < l->n; at += l->part[i++] + MIX_GAP) {
		mine = used < l->part[i] ? used : l->part[i];
		if (memcmp(at, wanted + begun, mine) != 0) {
			for (j = 0; at[j] == wanted[begun + j]; j++)
				;
			snprintf(text, sizeof(text), "octet %u of %u is %#x, not %#x", begun + j,
				 length, at[j], wanted[begun + j]);
			return text;
		}
		if ((length == l->guarded_from && !guarded(at + mine, unused(l, i, mine))) ||
		    !guarded(at + l->part[i], MIX_GAP)) {
			snprintf(text, sizeof(text), "something behind octet %u of %u changed",
				 begun + mine, length);
			return text;
		}
		begun += mine;
		used -= mine;
	}
	return NULL;
}
