/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/log.h"

/* The text that `say` writes to DPDK's log at this level of the type. */
static char *written(uint32_t level, void (*say)(void))
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	cr_assert_eq(rte_openlog_stream(f), 0);
	cr_assert_eq(rte_log_set_level_pattern("uroce", level), 0);
	say();
	cr_assert_eq(rte_openlog_stream(NULL), 0);
	fclose(f);
	return text;
}

static void say_both(void)
{
	LOG(WARNING, "process %d goes", 7);
	LOG(ERR, "no lcore");
}

Test(log, the_level_of_the_type_decides)
{
	char *all = written(RTE_LOG_NOTICE, say_both), *errors = written(RTE_LOG_ERR, say_both);

	cr_expect_str_eq(all, "uroce: process 7 goes\nuroce: no lcore\n");
	cr_expect_str_eq(errors, "uroce: no lcore\n");
	free(all);
	free(errors);
}
