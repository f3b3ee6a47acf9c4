/* SPDX-License-Identifier: BSD-3-Clause */
/* Apart from starved.c: tests that have no libibverbs time commands of their own. */
#include <criterion/criterion.h>

#include "starved.h"

double starved_commands(struct starved *s, struct ibv_context *context)
{
	struct ibv_pd *pd;
	double made, ended;

	starved_begin(s);
	pd = ibv_alloc_pd(context);
	made = starved_command(s);
	cr_assert_not_null(pd, "a command beside an attack");
	starved_begin(s);
	cr_assert_eq(ibv_dealloc_pd(pd), 0);
	ended = starved_command(s);
	return made > ended ? made : ended;
}
