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

void say(const char *format, ...)
{
	va_list args;

	fputs("uroced: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void say_option(const struct uroced_options *o, const char *format, ...)
{
	char text[5120], place[336];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say("%s%s", uroced_option_place(o, text, place, sizeof(place)), text);
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

/* DPDK's levels are those of syslog, counted from 1. */
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
	FILE *f;

	where.syslog = to_syslog;
	where.journal = stderr_is_journal();
	f = where.syslog || where.journal ? fopencookie(NULL, "w", io) : NULL;
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
}
