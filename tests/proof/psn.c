/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of PSNs by enumeration: every distance from places around the wrap and around half the
 * circle. It is compared with arithmetic in wide signed numbers.
 */
#include "transport/psn.h"

#include <stdio.h>

#define CIRCLE (INT64_C(1) << 24)

static int64_t modulo(int64_t a)
{
	return (a % CIRCLE + CIRCLE) % CIRCLE;
}

static bool right(int64_t from, int64_t distance)
{
	uint32_t a = (uint32_t)from, b = psn_add(a, (uint32_t)distance);
	int64_t ahead = distance < CIRCLE / 2 ? distance : distance - CIRCLE;

	return b == modulo(from + distance) && psn_distance(b, a) == ahead &&
	       psn_after(b, a) == (ahead > 0) && psn_within(b, a, (uint32_t)distance + 1) &&
	       !psn_within(b, a, (uint32_t)distance) && psn_add(b, (uint32_t)-distance) == from;
}

int main(void)
{
	static const int64_t from[] = {
		0, 1, CIRCLE / 2 - 1, CIRCLE / 2, CIRCLE / 2 + 1, CIRCLE - 1
	};

	for (unsigned int i = 0; i < sizeof(from) / sizeof(from[0]); i++)
		for (int64_t distance = 0; distance < CIRCLE; distance++)
			if (!right(from[i], distance)) {
				printf("wrong: %06llx and %06llx ahead of it\n",
				       (unsigned long long)from[i], (unsigned long long)distance);
				return 1;
			}
	return 0;
}
