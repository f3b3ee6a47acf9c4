/* SPDX-License-Identifier: BSD-3-Clause */
/* The log of uroced, its own lines and DPDK's, and its destinations. */
#ifndef APPS_UROCED_LOG_H
#define APPS_UROCED_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_log.h>

/*
 * One line for the person or service that started uroced, in DPDK's log, type "uroced". ERR: the reason
 * to end, which is always printed. WARNING, NOTICE: only if --log and --log-level let it pass.
 */
#define SAY(level, ...) say(RTE_LOG_##level, __VA_ARGS__)
void say(uint32_t level, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct uroced_options;

/* An error about an option, with which the line begins; its place in the config file comes before it. */
void say_option(const struct uroced_options *o, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * From now on DPDK's log goes to stderr (its own choice is stdout, which is for requested output),
 * and with `to_syslog` also to syslog(3), which EAL opens with the facility of --syslog. There each
 * line has its level, and also on stderr if that is the journal (sd-daemon(3)).
 */
void log_open(bool to_syslog);

/* The level of uroce's log; 0: the level that EAL started with. */
void log_choose(uint32_t level);
/* The level that this choice means, and the one in force. */
uint32_t log_chosen(uint32_t level);
uint32_t log_level(void);

#endif
