/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's commands `set ...`. */
#include "uroced_set.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_log.h>

#include "base/bits.h"
#include "drivers/port.h"
#include "uroced_commands.h"
#include "engine/port.h"

bool console_port_id(uint16_t *id)
{
	const struct port *p = port_of_program(console.options->engine.port);

	return p != NULL && rte_eth_dev_get_port_by_name(p->name, id) == 0;
}

/* ---- set ---- */

static void set_idle(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	bool adaptive = strcmp(w->word[2], "adaptive") == 0;

	uroce_set_adaptive(console.engine, adaptive);
	console.options->engine.adaptive = adaptive;
}

static_assert(RTE_LOG_EMERG == 1 && RTE_LOG_DEBUG == 8, "the numbers of log_level_of()");
#define LEVELS "emergency#alert#critical#error#warning#notice#info#debug"

/* DPDK would take any pattern, also one that fits no type: it keeps it for types to come. */
static bool fits_a_type(const char *pattern)
{
	char *types = NULL, *rest, *line;
	size_t size;
	bool fits = false;
	FILE *f = open_memstream(&types, &size);

	if (f == NULL)
		return true;
	rte_log_dump(f); /* "id 5: lib.eal, level is error" */
	if (fclose(f) != 0)
		return true;
	for (rest = types; !fits && (line = strsep(&rest, "\n")) != NULL;) {
		char *type = strstr(line, ": "), *end = strchr(line, ',');

		if (type == NULL || end == NULL || strncmp(line, "id ", 3) != 0)
			continue;
		*end = '\0';
		fits = fnmatch(pattern, type + 2, 0) == 0;
	}
	free(types);
	return fits;
}

static bool type_is_right(const struct words *w)
{
	const char *type = w->word[2];

	if (fits_a_type(type))
		return true;
	console_fail("set log %s %s: %s must be a type of DPDK's log, such as uroce or lib.*", type,
		     w->word[3], type);
	return false;
}

static void set_log(void *parsed, struct cmdline *cl, void *data)
{
	rte_log_set_level_pattern("uroce", log_level_of(((const struct words *)parsed)->word[2]));
}

static void set_log_type(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;

	if (type_is_right(w))
		rte_log_set_level_pattern(w->word[2], log_level_of(w->word[3]));
}

WORD(set_word, 0, "set");
WORD(idle_word, 1, "idle");
WORD(idle_mode_word, 2, "spin#adaptive");
WORD(log_word, 1, "log");
WORD(log_level_word, 2, LEVELS);
WORD(log_type_word, 2, ANY_WORD);
WORD(log_type_level_word, 3, LEVELS);

static cmdline_parse_inst_t set_idle_command = {
	.f = set_idle,
	.help_str = "set idle spin|adaptive: an idle lcore polls on, or sleeps",
	.tokens = { (void *)&set_word, (void *)&idle_word, (void *)&idle_mode_word, NULL },
};
static cmdline_parse_inst_t set_log_command = {
	.f = set_log,
	.help_str = "set log LEVEL: what uroce says: emergency, alert, critical, error, warning, "
		    "notice, info, debug",
	.tokens = { (void *)&set_word, (void *)&log_word, (void *)&log_level_word, NULL },
};
static cmdline_parse_inst_t set_log_type_command = {
	.f = set_log_type,
	VALUES(type_is_right),
	.help_str = "set log TYPE LEVEL: the same for other types of DPDK's log, such as lib.eal",
	.tokens = { (void *)&set_word, (void *)&log_word, (void *)&log_type_word,
		    (void *)&log_type_level_word, NULL },
};

cmdline_parse_inst_t *const set_commands[] = {
	&set_idle_command,
	&set_log_command,
	&set_log_type_command,
	NULL,
};
