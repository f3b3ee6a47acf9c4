/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints where a program looks for engines: for privileged_test.sh. */
#include <stdio.h>

#include "client/locate.h"

int main(void)
{
	struct locations l;

	locate_engines(&l);
	for (uint32_t i = 0; i < l.count; i++)
		puts(l.path[i]);
	return 0;
}
