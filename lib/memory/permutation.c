/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/siphash.h"
#include "memory/permutation.h"

void permutation_init(struct permutation *p, const uint8_t secret[16])
{
	const uint32_t entries = sizeof(p->round) / sizeof(p->round[0][0]);
	uint16_t *entry = &p->round[0][0];
	uint64_t key[2], four = 0;

	memcpy(key, secret, sizeof(key));
	for (uint32_t i = 0; i < entries; i++) { /* each entry takes sixteen bits of a hash */
		four = i % 4 == 0 ? siphash(key, i / 4) : four >> 16;
		entry[i] = four & PERMUTATION_MASK;
	}
}
