/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <rte_log.h>

#include "drivers/log.h"
#include "uroced_options.h"

#define SAY_OCTETS 6144u /* of a line: the longest has a place in a file, an option and its value */

RTE_LOG_REGISTER(uroced_log, uroced, NOTICE);

/* The reason to end is printed even if the options set a higher level. */
static void let_pass(uint32_t level)
{
	if (level <= RTE_LOG_ERR && rte_log_get_level(uroced_log) < (int)level)
		rte_log_set_level(uroced_log, level);
}

void say(uint32_t level, const char *format, ...)
{
	char text[SAY_OCTETS];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	let_pass(level);
	rte_log(level, (uint32_t)uroced_log, "uroced: %s\n", text);
}

void say_option(const struct uroced_options *o, const char *format, ...)
{
	char text[5120], place[336];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	SAY(ERR, "%s%s", uroced_option_place(o, text, place, sizeof(place)), text);
}

static struct {
	bool syslog;
	bool journal; /* stderr is it */
} where;

/* systemd says so in the environment: device and inode of the socket. */
static bool stderr_is_journal(void)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long device, inode;
	struct stat st;

	return text != NULL && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == device && st.st_ino == inode;
}

/* DPDK's levels are syslog's, counted from 1. */
static int priority(void)
{
	int level = rte_log_cur_msg_loglevel();

	return level >= (int)RTE_LOG_EMERG && level <= (int)RTE_LOG_DEBUG
		       ? level - (int)RTE_LOG_EMERG
		       : LOG_INFO;
}

static ssize_t write_message(void *cookie, const char *text, size_t size)
{
	if (where.syslog)
		syslog(priority(), "%.*s", (int)size, text);
	if (where.journal)
		fprintf(stderr, "<%d>", priority());
	fwrite(text, 1, size, stderr);
	return (ssize_t)size;
}

void log_open(bool to_syslog)
{
	cookie_io_functions_t io = { .write = write_message };
	static FILE *f;

	where.syslog = to_syslog;
	where.journal = stderr_is_journal();
	if (f == NULL && (where.syslog || where.journal))
		f = fopencookie(NULL, "w", io);
	rte_openlog_stream(f != NULL ? f : stderr);
}

static uint32_t level_at_start; /* 0: not asked yet */

uint32_t log_level(void)
{
	return (uint32_t)rte_log_get_level(uroce_log);
}

uint32_t log_chosen(uint32_t level)
{
	if (level_at_start == 0)
		level_at_start = log_level();
	return level != 0 ? level : level_at_start;
}

void log_choose(uint32_t level)
{
	rte_log_set_level(uroce_log, log_chosen(level));
	rte_log_set_level(uroced_log, log_chosen(level));
}
