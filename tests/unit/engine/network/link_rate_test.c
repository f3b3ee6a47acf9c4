/* SPDX-License-Identifier: BSD-3-Clause */
/* The rate and width that a port of a given speed reports. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "control/control.h"

Test(link_rate, as_linux_says_it)
{
	static const struct {
		uint32_t mbits;
		uint8_t speed, width; /* bits of ibv_port_attr */
	} row[] = {
		{ 0, 1, 1 }, /* unknown: the slowest */
		{ 10, 1, 1 },
		{ 1000, 1, 1 },
		{ 2500, 8, 1 },
		{ 10000, 8, 1 },
		{ 20000, 2, 2 },
		{ 25000, 32, 1 },
		{ 40000, 8, 2 },
		{ 50000, 32, 16 },
		{ 100000, 32, 2 },
		{ 200000, 64, 2 },
		{ 400000, 128, 2 },
		{ 800000, 128, 4 },
		{ UINT32_MAX - 1, 128, 4 },
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(row); i++) {
		uint8_t speed, width;

		link_rate(row[i].mbits, &speed, &width);
		cr_expect_eq(speed, row[i].speed, "%u Mbit/s: speed %u", row[i].mbits, speed);
		cr_expect_eq(width, row[i].width, "%u Mbit/s: width %u", row[i].mbits, width);
	}
}
