/* SPDX-License-Identifier: BSD-3-Clause */
/* What uroced says, and where: its own lines and DPDK's log. */
#ifndef APPS_UROCED_LOG_H
#define APPS_UROCED_LOG_H

#include <stdbool.h>
#include <stdint.h>

/* A line on stderr, without its end, for the person or service that started uroced. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct uroced_options;

/* ... about one of its options, with which it begins: where the config file says that comes before it. */
void say_option(const struct uroced_options *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * DPDK's log goes to stderr from now on (its own choice is stdout, which is for what was asked for),
 * and with `to_syslog` to syslog(3), too: EAL opens that with the facility of --syslog. Each line has
 * its level there, and on stderr if that is the journal (sd-daemon(3)).
 */
void log_open(bool to_syslog);

/* What uroce itself says: a level of DPDK's log, 0: the one that EAL started with. */
void log_choose(uint32_t level);
/* The level that this choice means, and the one in force. */
uint32_t log_chosen(uint32_t level);
uint32_t log_level(void);

#endif
