/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_eal_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <linux/magic.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "base/bits.h"

#define VALUE_MOST 1024 /* octets of a value that is looked at; EAL judges longer ones */

/* An option with a value, and the check of that value. */
struct check {
	const char *name; /* without its dashes; NULL: it has a letter only */
	char letter; /* 0: it has a name only */
	bool may_miss; /* the value: it stands behind "=", if at all */
	unsigned long least, most; /* a decimal number */
	const char *pattern; /* an extended regular expression of the whole value, without blanks */
	bool (*is_right)(const char *value);
	const char *(*wrong)(const char *value, char *text, size_t size); /* instead of `must` */
	const char *must; /* "must be ..." */
};

/* ---- kinds of values ---- */

static bool matches(const char *pattern, const char *value)
{
	char text[VALUE_MOST];
	regex_t r;
	size_t n = 0;
	bool good;

	for (; *value != '\0' && n < sizeof(text) - 1; value++)
		if (!isblank((unsigned char)*value))
			text[n++] = *value;
	text[n] = '\0';
	if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return true; /* there is no memory, and EAL looks once more */
	good = regexec(&r, text, 0, NULL, 0) == 0;
	regfree(&r);
	return good;
}

static bool is_number(const char *text, unsigned long least, unsigned long most)
{
	unsigned long n;
	char *end;

	if (!isdigit((unsigned char)text[0]))
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	return errno == 0 && *end == '\0' && n >= least && n <= most;
}

/* It is the name of a folder that EAL makes, and part of a socket's path. */
static bool is_prefix(const char *value)
{
	return value[0] != '\0' && strlen(value) <= 64 && strpbrk(value, "/%") == NULL &&
	       strcmp(value, ".") != 0 && strcmp(value, "..") != 0;
}

static bool is_something(const char *value)
{
	return value[0] != '\0';
}

static bool has_huge_pages(const char *folder)
{
	struct statfs s;

	return statfs(folder, &s) == 0 && (unsigned long)s.f_type == HUGETLBFS_MAGIC;
}

static bool is_expression(const char *text)
{
	regex_t r;

	if (regcomp(&r, text, REG_NOSUB) != 0)
		return false;
	regfree(&r);
	return true;
}

/* EAL lets names be shortened. */
static bool is_level(const char *text)
{
	static const char *const names[] = { "emergency", "alert",  "critical", "error",
					     "warning",	  "notice", "info",	"debug" };

	for (size_t i = 0; text[0] != '\0' && i < ARRAY_SIZE(names); i++)
		if (strncmp(names[i], text, strlen(text)) == 0)
			return true;
	return is_number(text, 1, 8);
}

/* LEVEL, PATTERN:LEVEL or EXPRESSION,LEVEL */
static bool is_log_level(const char *value)
{
	const char *comma = strchr(value, ','), *colon = strchr(value, ':');
	char expression[VALUE_MOST];

	if (strcmp(value, "help") == 0)
		return true;
	if (comma == NULL)
		return is_level(colon != NULL ? colon + 1 : value);
	snprintf(expression, sizeof(expression), "%.*s", (int)(comma - value), value);
	return is_level(comma + 1) && is_expression(expression);
}

/* Other buses have names of other kinds, but not of these characters alone. */
static bool may_be_device(const char *value)
{
	static const char pci[] =
		"^([0-9a-fA-F]{1,8}:)?[0-9a-fA-F]{1,2}:[01]?[0-9a-fA-F]\\.[0-7](,.*)?$";

	return value[0] != '\0' && (!matches("^[0-9a-fA-F:.]+(,.*)?$", value) ||
				    strpbrk(value, ":.") == NULL || matches(pci, value));
}

/* ---- devices of --vdev ---- */

/*
 * Drivers that let an argument pass that they do not know, and all others of the device with it, or that refuse it
 * without saying which it is; and that read numbers with atoi(), or do not say what is wrong with them.
 */
struct driver {
	const char *name;
	const char *keys;
	const char *numbers; /* those of them whose values are numbers */
};

static const struct driver silent[] = {
	{ "net_af_packet", "iface qpairs blocksz framesz framecnt qdisc_bypass",
	  "qpairs blocksz framesz framecnt qdisc_bypass" },
	{ "net_af_xdp", "iface start_queue queue_count shared_umem xdp_prog busy_budget force_copy",
	  "start_queue queue_count shared_umem busy_budget force_copy" },
	{ "net_memif",
	  "id role bsize rsize socket socket-abstract owner-uid owner-gid mac "
	  "zero-copy secret",
	  "id bsize rsize owner-uid owner-gid" },
	{ "net_null", "size copy no-rx", "size copy no-rx" },
	{ "net_pcap", "rx_pcap tx_pcap rx_iface rx_iface_in tx_iface iface phy_mac infinite_rx",
	  "phy_mac infinite_rx" },
	{ "net_ring", "nodeaction internal", "" },
	{ "net_tap", "iface remote mac", "" },
};

/* This device's driver; NULL: it looks itself. */
static const struct driver *driver_of(const char *device)
{
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++) {
		size_t n = strlen(silent[i].name);

		if (strncmp(device, silent[i].name, n) == 0 &&
		    strspn(device + n, "0123456789") == strcspn(device + n, ","))
			return &silent[i];
	}
	return NULL;
}

static bool is_listed(const char *keys, const char *key, size_t length)
{
	const char *at = keys;

	while (*at != '\0') {
		size_t n = strcspn(at, " ");

		if (n == length && memcmp(at, key, n) == 0)
			return true;
		at += n + strspn(at + n, " ");
	}
	return false;
}

/* Octets of the argument that begins here: up to the next comma outside of brackets. */
static size_t argument_length(const char *text)
{
	size_t n;
	int deep = 0;

	for (n = 0; text[n] != '\0' && (text[n] != ',' || deep > 0); n++)
		deep += (strchr("([", text[n]) != NULL) - (strchr(")]", text[n]) != NULL);
	return n;
}

static bool is_numeric(const char *text, size_t length)
{
	char number[24];

	snprintf(number, sizeof(number), "%.*s", (int)MIN_OF(length, sizeof(number) - 1), text);
	return matches("^(0[xX][0-9a-fA-F]+|[0-9]+)$", number) && length < sizeof(number);
}

/* Checks an argument of n octets whose key has `key` octets. False: it is right. */
static bool wrong_argument(const struct driver *d, const char *at, size_t n, size_t key, char *text,
			   size_t size)
{
	/* DPDK's drivers crash with a key that has no value */
	if (key >= n)
		snprintf(text, size, "'%.*s' has no value, as in key=value", (int)MIN_OF(n, 40),
			 at);
	else if (d == NULL || at[key] != '=')
		return false;
	else if (!is_listed(d->keys, at, key))
		snprintf(text, size, "'%.*s' is not one of this driver's arguments: %s",
			 (int)MIN_OF(key, 40), at, d->keys);
	else if (is_listed(d->numbers, at, key) && !is_numeric(at + key + 1, n - key - 1))
		snprintf(text, size, "'%.*s': %.*s must be a number", (int)MIN_OF(n, 40), at,
			 (int)key, at);
	else
		return false;
	return true;
}

static const char *wrong_device(const char *value, char *text, size_t size)
{
	const struct driver *driver = driver_of(value);
	const char *at = value + strcspn(value, ",");

	if (at == value)
		return "must be a driver with a number and its arguments, as in "
		       "net_memif0,role=server";
	while (*at++ == ',') {
		size_t n = argument_length(at), key = strcspn(at, "=([,");

		if (n > 0 && wrong_argument(driver, at, n, key, text, size))
			return text;
		at += n;
	}
	return NULL;
}

/* ---- the options ---- */

#define NUMBERS "[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*"
#define SET	"([0-9]+(-[0-9]+)?|\\(" NUMBERS "\\))"
#define ENTRY	SET "(@" SET ")?"
#define MASK	"^(0[xX])?[0-9a-fA-F]+$"
#define AMOUNTS "^[0-9]+(,[0-9]+)*$"
#define DEVICE                                                                          \
	"must be a PCI device, such as 0000:03:00.0, or a device of another bus, with " \
	"its arguments"

static const struct check checks[] = {
	{ NULL, 'm', .least = 1, .most = 524288, .must = "must be MiB, in 1 .. 524288" },
	{ NULL, 'n', .least = 1, .most = 32, .must = "must be in 1 .. 32" },
	{ NULL, 'r', .least = 1, .most = 16, .must = "must be in 1 .. 16" },
	{ NULL, 'l', .pattern = "^" NUMBERS "$",
	  .must = "must be a list of lcores, such as 0-2,5" },
	{ NULL, 'S', .pattern = "^" NUMBERS "$",
	  .must = "must be a list of lcores, such as 0-2,5" },
	{ NULL, 'c', .pattern = MASK, .must = "must be a hexadecimal mask of lcores, such as 0x3" },
	{ NULL, 's', .pattern = MASK, .must = "must be a hexadecimal mask of lcores, such as 0x3" },
	{ NULL, 'd', .is_right = is_something, .must = "must be a library, or a folder of them" },
	{ "allow", 'a', .is_right = may_be_device, .must = DEVICE },
	{ "block", 'b', .is_right = may_be_device, .must = DEVICE },
	{ "lcores", .pattern = "^" ENTRY "(," ENTRY ")*$",
	  .must = "must be lcores and their processors, such as 0-1 or (0-1)@2,2@3" },
	{ "main-lcore", .pattern = "^([0-9]+|0[xX][0-9a-fA-F]+)$", .must = "must be an lcore" },
	{ "socket-mem", .pattern = AMOUNTS,
	  .must = "must be MiB of each NUMA node, such as 512,0" },
	{ "socket-limit", .pattern = AMOUNTS,
	  .must = "must be MiB of each NUMA node, such as 512,0" },
	{ "file-prefix", .is_right = is_prefix,
	  .must = "must be 1 to 64 characters without '/' and '%'" },
	{ "vdev", .wrong = wrong_device },
	{ "huge-dir", .is_right = has_huge_pages, .must = "must be a folder of a hugetlbfs" },
	{ "huge-unlink", .may_miss = true, .pattern = "^(existing|always|never)$",
	  .must = "must be existing, always or never" },
	{ "log-level", .is_right = is_log_level,
	  .must = "must be LEVEL, PATTERN:LEVEL or EXPRESSION,LEVEL, with a level of emergency, "
		  "alert, critical, error, warning, notice, info, debug, or 1 .. 8" },
	{ "iova-mode", .pattern = "^(pa|va)$", .must = "must be pa or va" },
	{ "proc-type", .pattern = "^(primary|auto)$",
	  .must = "must be primary or auto: an engine is a primary process" },
	{ "syslog",
	  .pattern = "^(auth|cron|daemon|ftp|kern|lpr|mail|news|syslog|user|uucp|local[0-7])$",
	  .must = "must be a facility: auth, cron, daemon, ftp, kern, lpr, mail, news, syslog, user, "
		  "uucp, local0 .. local7" },
	{ "vfio-intr", .pattern = "^(legacy|msi|msix)$", .must = "must be legacy, msi or msix" },
	{ "base-virtaddr", .pattern = "^(0[xX][0-9a-fA-F]+|[0-9]+)$",
	  .must = "must be an address" },
	{ "trace", .is_right = is_expression, .must = "must be a regular expression" },
	{ "trace-mode", .pattern = "^(overwrite|discard)$",
	  .must = "must be overwrite or discard" },
	{ "force-max-simd-bitwidth", .pattern = "^(0|64|128|256|512)$",
	  .must = "must be 0, 64, 128, 256 or 512" },
};

static bool passes(const struct check *c, const char *value)
{
	if (c->pattern != NULL)
		return matches(c->pattern, value);
	if (c->is_right != NULL)
		return c->is_right(value);
	return is_number(value, c->least, c->most);
}

/* getopt's answer for a row that has no letter. */
#define BEYOND_LETTERS 256

static void list_names(struct option *names, char *letters)
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		const struct check *c = &checks[i];

		if (c->letter != 0) {
			*letters++ = c->letter;
			*letters++ = ':';
		}
		if (c->name != NULL)
			*names++ = (struct option){ c->name,
						    c->may_miss ? optional_argument
								: required_argument,
						    NULL, BEYOND_LETTERS + (int)i };
	}
	*letters = '\0';
	*names = (struct option){ NULL };
}

static const struct check *check_of(int answer)
{
	if (answer >= BEYOND_LETTERS)
		return &checks[answer - BEYOND_LETTERS];
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		if (checks[i].letter == answer)
			return &checks[i];
	return NULL;
}

/* An option as getopt finds it: `option` is as the user wrote it, or in full. */
typedef int each_option(void *arg, const struct check *c, const char *option, const char *value);

static int each(const struct eal_arguments *eal, each_option *take, void *arg)
{
	char *argv[EAL_ARGUMENTS_MAX + 1], letters[2 * ARRAY_SIZE(checks) + 1];
	struct option names[ARRAY_SIZE(checks) + 1];
	int argc = 1, answer, status = 0, speaks = opterr;

	list_names(names, letters);
	argv[0] = eal->argv[0];
	for (int i = eal->given; i < eal->argc; i++) /* getopt changes the order */
		argv[argc++] = eal->argv[i];
	argv[argc] = NULL;
	opterr = 0;
	optind = 0;
	while (status == 0 && (answer = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		const struct check *c = check_of(answer);
		char option[32] = { '-', (char)answer };

		if (c != NULL && answer >= BEYOND_LETTERS)
			snprintf(option, sizeof(option), "--%s", c->name);
		if (c != NULL && optarg != NULL)
			status = take(arg, c, option, optarg);
	}
	opterr = speaks;
	optind = 1;
	return status;
}

struct line {
	char *text;
	size_t size;
};

static int look(void *line, const struct check *c, const char *option, const char *value)
{
	struct line *why = line;
	const char *must = c->must;
	char text[256];

	if (strlen(value) >= VALUE_MOST)
		return 0;
	if (c->wrong != NULL)
		must = c->wrong(value, text, sizeof(text));
	else if (passes(c, value))
		must = NULL;
	if (must == NULL)
		return 0;
	snprintf(why->text, why->size, "%s %.120s: %s", option, value, must);
	return OPTIONS_USAGE;
}

int eal_options_check(const struct eal_arguments *eal, char *why, size_t why_size)
{
	struct line line = { why, why_size };

	return each(eal, look, &line);
}

struct devices {
	int (*each)(void *arg, const char *device);
	void *arg;
};

static int take_device(void *devices, const struct check *c, const char *option, const char *value)
{
	const struct devices *d = devices;

	return c->wrong == wrong_device ? d->each(d->arg, value) : 0;
}

int eal_options_vdevs(const struct eal_arguments *eal,
		      int (*each_device)(void *arg, const char *device), void *arg)
{
	struct devices d = { each_device, arg };

	return each(eal, take_device, &d);
}

const char *eal_options_driver(const char *device)
{
	const struct driver *d = driver_of(device);

	if (d != NULL)
		return d->name;
	return strncmp(device, "net_impair", strlen("net_impair")) == 0 ? "net_impair" : NULL;
}

static int chooses(void *none, const struct check *c, const char *option, const char *value)
{
	if (c->wrong == wrong_device)
		return eal_options_driver(value) == NULL;
	return c->letter == 'a' || c->letter == 'b' || c->letter == 'd';
}

bool eal_options_choose_drivers(const struct eal_arguments *eal)
{
	return each(eal, chooses, NULL) != 0;
}
