/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbour_rig.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

struct neighbour_table *t;
struct neighbour_frames out;

void neighbour_rig_on_vlan(uint16_t vlan)
{
	static const struct mac ours = { { 2, 0, 0, 0, 0, 1 } };
	static const struct neighbour_address own[2] = {
		{ { { [10] = 0xff, 0xff, 10, 0, 0, 1 } }, 24 },
		{ { { 0xfe, 0x80, [15] = 1 } }, 64 },
	};

	neighbour_rig_close();
	t = neighbour_table_new(&ours, vlan, 0);
	cr_assert_not_null(t);
	neighbour_set_addresses(t, own, 2);
	neighbour_frames_clear(&out);
}

void neighbour_rig_open(void)
{
	neighbour_rig_on_vlan(0);
}

void neighbour_rig_close(void)
{
	if (t != NULL)
		neighbour_table_free(t);
	t = NULL;
}

/* An exact copy on the heap, so that a sanitizer detects a read past the end. */
bool input(const uint8_t *frame, size_t length, nanotime now)
{
	uint8_t *copy = malloc(length + 1);
	bool taken;

	memcpy(copy + 1, frame, length);
	taken = neighbour_input(t, copy + 1, (uint32_t)length, now, &out);
	free(copy);
	return taken;
}
