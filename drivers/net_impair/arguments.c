/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_kvargs.h>

#include "config/limits.h"
#include "drivers/net_impair/arguments.h"

RTE_LOG_REGISTER_DEFAULT(impair_log, NOTICE);

/* The product of the longest queue and the lowest rate fits the arithmetic of through_rate. */
#define RATE_LEAST     1e5 /* bits a second */
#define RATE_MOST      1e12
#define QUEUE_LEAST    1024.0 /* octets */
#define QUEUE_MOST     (16.0 * 1024 * 1024)
#define OVERTAKEN_MOST 1024u
#define DELAY_MOST     60000000u /* us */

#define COMPLAIN(...) rte_log(RTE_LOG_ERR, impair_log, "net_impair: " __VA_ARGS__)

static int read_port(const char *key, const char *value, void *lower)
{
	RTE_SET_USED(key);
	if (rte_eth_dev_get_port_by_name(value, lower) == 0)
		return 0;
	COMPLAIN("port=%s: no such port; it must come before net_impair\n", value);
	return -ENODEV;
}

bool impair_read_chance(const char *text, uint64_t *threshold)
{
	char *end;
	double p = strtod(text, &end);

	if (end != text && strcmp(end, "%") == 0)
		p /= 100;
	else if (end == text || *end != '\0')
		return false;
	if (!(p >= 0 && p <= 1)) /* false also for NaN */
		return false;
	*threshold = (uint64_t)(p * 4294967296.0);
	if (p > 0 && *threshold == 0)
		*threshold = 1;
	return true;
}

static int read_probability(const char *key, const char *value, void *threshold)
{
	if (impair_read_chance(value, threshold))
		return 0;
	COMPLAIN("%s=%s: must be " IMPAIR_CHANCE_ACCEPTED "\n", key, value);
	return -EINVAL;
}

bool impair_read_delay(const char *text, uint64_t *us)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end != '\0' || n > DELAY_MOST)
		return false;
	*us = n;
	return true;
}

uint64_t impair_delay_cycles(uint64_t us, uint64_t frequency)
{
	return us * frequency / 1000000; /* DELAY_MOST at 300 GHz fits */
}

static int read_delay(const char *key, const char *value, void *us)
{
	if (impair_read_delay(value, us))
		return 0;
	COMPLAIN("%s=%s: must be " IMPAIR_DELAY_ACCEPTED "\n", key, value);
	return -EINVAL;
}

static int read_number(const char *key, const char *value, void *number)
{
	char *end;

	errno = 0;
	*(uint64_t *)number = strtoull(value, &end, 0);
	if (errno == 0 && end != value && *end == '\0' && value[0] != '-')
		return 0;
	COMPLAIN("%s=%s: must be a number\n", key, value);
	return -EINVAL;
}

/*
 * Reads a number, which k, M or G may follow; each is `unit` times the previous one. False: it is
 * not such a number.
 */
static bool read_scaled(const char *value, double unit, double least, double most, uint64_t *into)
{
	static const char letters[] = "kMG";
	char *end;
	double v = strtod(value, &end);
	const char *letter = *end == '\0' ? NULL : strchr(letters, *end);

	if (end == value || (*end != '\0' && (letter == NULL || end[1] != '\0')))
		return false;
	for (ptrdiff_t i = letter == NULL ? 0 : letter - letters + 1; i > 0; i--)
		v *= unit;
	if (!(v >= least && v <= most))
		return false;
	*into = (uint64_t)v;
	return true;
}

bool impair_read_rate(const char *text, uint64_t *rate)
{
	return read_scaled(text, 1000, RATE_LEAST, RATE_MOST, rate);
}

static int read_rate(const char *key, const char *value, void *rate)
{
	if (impair_read_rate(value, rate))
		return 0;
	COMPLAIN("%s=%s: must be " IMPAIR_RATE_ACCEPTED "\n", key, value);
	return -EINVAL;
}

bool impair_read_octets(const char *text, uint64_t *octets)
{
	return read_scaled(text, 1024, QUEUE_LEAST, QUEUE_MOST, octets);
}

static int read_octets(const char *key, const char *value, void *octets)
{
	if (impair_read_octets(value, octets))
		return 0;
	COMPLAIN("%s=%s: must be " IMPAIR_OCTETS_ACCEPTED "\n", key, value);
	return -EINVAL;
}

static int read_overtaken(const char *key, const char *value, void *overtaken)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	*(uint32_t *)overtaken = (uint32_t)n;
	if (end != value && *end == '\0' && n >= 1 && n <= OVERTAKEN_MOST)
		return 0;
	COMPLAIN("%s=%s: must be a number of frames, 1 .. %u\n", key, value, OVERTAKEN_MOST);
	return -EINVAL;
}

static int read_direction(const char *key, const char *value, void *arguments)
{
	struct impair_arguments *s = arguments;

	s->rx = strcmp(value, "rx") == 0 || strcmp(value, "both") == 0;
	s->tx = strcmp(value, "tx") == 0 || strcmp(value, "both") == 0;
	if (s->rx || s->tx)
		return 0;
	COMPLAIN("%s=%s: must be tx, rx or both\n", key, value);
	return -EINVAL;
}

static const char *const keys[] = { "port",	 "seed",    "drop", "duplicate", "reorder",
				    "overtaken", "corrupt", "ce",   "delay_us",	 "rate",
				    "queue",	 "ecn",	    "dir",  NULL };

/* Checks the buffer's arguments together. */
static int check_queue(struct impair_rules *r)
{
	if (r->rate == 0 && (r->queue != 0 || r->ecn != UINT64_MAX)) {
		COMPLAIN("queue= and ecn= need rate=: without a rate no frame waits\n");
		return -EINVAL;
	}
	if (r->queue == 0)
		r->queue = IMPAIR_QUEUE_DEFAULT;
	if (r->ecn == UINT64_MAX || r->ecn < r->queue)
		return 0;
	COMPLAIN("ecn=%" PRIu64 ": must be less than queue=%" PRIu64 "\n", r->ecn, r->queue);
	return -EINVAL;
}

static int read_rules(const struct rte_kvargs *list, struct impair_arguments *s)
{
	uint64_t delay_us = 0;
	const struct {
		const char *key;
		arg_handler_t read;
		void *into;
	} row[] = {
		{ "port", read_port, &s->lower },
		{ "seed", read_number, &s->rules.seed },
		{ "drop", read_probability, &s->rules.drop },
		{ "duplicate", read_probability, &s->rules.duplicate },
		{ "reorder", read_probability, &s->rules.reorder },
		{ "overtaken", read_overtaken, &s->rules.overtaken },
		{ "corrupt", read_probability, &s->rules.corrupt },
		{ "ce", read_probability, &s->rules.ce },
		{ "delay_us", read_delay, &delay_us },
		{ "rate", read_rate, &s->rules.rate },
		{ "queue", read_octets, &s->rules.queue },
		{ "ecn", read_octets, &s->rules.ecn },
		{ "dir", read_direction, s },
	};

	s->rx = s->tx = true;
	s->rules.seed = 1;
	s->rules.overtaken = LIMIT_IMPAIR_OVERTAKEN;
	s->rules.ecn = UINT64_MAX;
	for (size_t i = 0; i < RTE_DIM(row); i++) {
		int ret = rte_kvargs_process(list, row[i].key, row[i].read, row[i].into);

		if (ret != 0)
			return ret < 0 ? -EINVAL : ret;
	}
	s->rules.frequency = rte_get_tsc_hz();
	s->rules.patience = rte_get_tsc_hz() / 1000;
	s->rules.delay = impair_delay_cycles(delay_us, rte_get_tsc_hz());
	return check_queue(&s->rules);
}

/*
 * Complains about arguments that are unknown, have no value, or are given twice. rte_kvargs_parse()
 * could also find unknown ones, but would not say which.
 */
static bool are_known(const struct rte_kvargs *list)
{
	for (unsigned int i = 0; i < list->count; i++) {
		const char *key = list->pairs[i].key;
		const char *const *known = keys;

		while (*known != NULL && strcmp(*known, key) != 0)
			known++;
		if (*known == NULL)
			COMPLAIN(
				"%s: must be port, seed, drop, duplicate, reorder, overtaken, corrupt, ce, "
				"delay_us, rate, queue, ecn or dir\n",
				key);
		else if (list->pairs[i].value == NULL)
			COMPLAIN("%s has no value, as in %s=\n", key, key);
		else if (rte_kvargs_count(list, key) > 1)
			COMPLAIN("%s= is given twice\n", key);
		else
			continue;
		return false;
	}
	return true;
}

int impair_arguments_read(const char *text, struct impair_arguments *a)
{
	struct rte_kvargs *list = rte_kvargs_parse(text, NULL);
	int ret = -EINVAL;

	*a = (struct impair_arguments){ 0 };
	if (list != NULL && are_known(list)) {
		if (rte_kvargs_count(list, "port") == 1)
			ret = read_rules(list, a);
		else
			COMPLAIN("needs port=NAME, a port that comes before it\n");
	}
	rte_kvargs_free(list);
	return ret;
}
