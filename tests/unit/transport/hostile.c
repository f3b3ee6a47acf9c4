/* SPDX-License-Identifier: BSD-3-Clause */
#include "hostile.h"

struct pair pair;
struct pair_options hostile_options;
uint8_t hostile_payload[4096];

void hostile_begin(void)
{
	hostile_options = pair_options();
	hostile_options.psn = 0xfffffe;
	pair_init(&pair, &hostile_options);
	pair_fill(hostile_payload, sizeof(hostile_payload), 5);
}

void hostile_end(void)
{
	pair_close(&pair);
}

bool hostile_untouched(const uint8_t *memory)
{
	uint8_t different = 0;

	for (uint32_t i = 0; i < PAIR_MEMORY; i++)
		different |= memory[i] ^ 0xee;
	return different == 0;
}
