/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_options.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/ethdev/netdev.h"
#include "drivers/offload.h"
#include "engine/address.h"
#include "uroced_config.h"

const char uroced_usage[] =
	"usage: uroced [EAL options] -- [options]\n"
	"  --netdev IFACE          serve on a Linux interface, with its addresses\n"
	"  --netdev-driver af_packet|af_xdp|auto  how its frames are read (default af_packet; af_xdp is\n"
	"                          faster, on trial: docs/ports.md; auto: af_xdp where it works)\n"
	"  --port NAME             serve on a DPDK port (given to EAL by -a or --vdev)\n"
	"                          (without either: a device for this host only)\n"
	"  --kernel-interface NAME with --port: an interface through which the kernel uses the port\n"
	"                          for all but RoCE; it has the addresses\n"
	"  --ip ADDR/LEN[,...]     the engine's addresses, IPv4 and IPv6\n"
	"  --gateway ADDR[,ADDR]   gateways to other subnets, one for each address family\n"
	"  --mtu N                 Ethernet MTU (default: the port's)\n"
	"  --descriptors N         of each rx and tx ring of the port (default: the driver's choice)\n"
	"  --offload auto|ipv4-cksum|vlan|all|none[,...]  what the port does instead of the engine, if it can\n"
	"                          (default auto: the IPv4 checksum, on a card)\n"
	"  --vlan ID               802.1Q VLAN id of all frames\n"
	"  --socket PATH           the socket that programs attach to\n"
	"  --socket-mode OCTAL     permissions of the socket (default 0600)\n"
	"  --socket-group GROUP    group of the socket\n"
	"  --config FILE           read these options from FILE: lines 'name = value' in [uroced]\n"
	"  --idle spin|adaptive    an idle lcore polls on, or sleeps (default adaptive)\n"
	"  --priority auto|normal  auto: an lcore that wakes runs before programs that keep its core busy,\n"
	"                          as far as the kernel allows (default auto)\n"
	"  --exit-when-idle SECS   exit this long after the last program has left\n"
	"  --confine on|off        drop privileges once the port is open (default on)\n"
	"  --log LEVEL             how much uroced says: emergency, alert, critical, error, warning,\n"
	"                          notice, info or debug (default: EAL's --log-level)\n"
	"  --cmdline-file FILE     execute the commands of FILE, those of the prompt, at the start\n"
	"  --interactive, -i       read commands from the terminal (help lists them)\n";

struct reader {
	struct uroced_options *options;
	struct option_table table;
	char text[128]; /* of a refusal that names a part of the value */
};

static const char *refuse(struct reader *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static const char *refuse(struct reader *r, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->text, sizeof(r->text), format, args);
	va_end(args);
	return r->text;
}

/* ---- values ---- */

static bool parse_number(const char *text, int base, unsigned long from, unsigned long to,
			 unsigned long *value)
{
	char *end;

	errno = 0;
	*value = strtoul(text, &end, base);
	return errno == 0 && end != text && *end == '\0' && text[0] != '-' && *value >= from &&
	       *value <= to;
}

static bool parse_address(const char *text, struct uroce_address *a, unsigned int *bits)
{
	memset(a, 0, sizeof(*a));
	*bits = 128;
	if (inet_pton(AF_INET6, text, a->octet) == 1)
		return !address_is_ipv4(a); /* ::ffff:10.0.0.1: IPv4 is written as such */
	a->octet[10] = a->octet[11] = 0xff;
	*bits = 32;
	return inet_pton(AF_INET, text, a->octet + 12) == 1;
}

static const char *read_one_ip(struct reader *r, char *text)
{
	struct uroce_options *o = &r->options->engine;
	char *slash = strchr(text, '/');
	const char *wrong;
	struct uroce_address a;
	unsigned long prefix;
	unsigned int bits;

	if (*text == '\0')
		return "must be addresses with prefix lengths, such as 10.0.0.1/24,fd00::1/64";
	if (slash == NULL)
		return refuse(r, "the prefix length is missing, as in %.50s/24", text);
	*slash = '\0';
	if (!parse_address(text, &a, &bits))
		return refuse(r, "%.50s is not an IPv4 or IPv6 address", text);
	if (!parse_number(slash + 1, 10, 0, bits, &prefix))
		return refuse(r, "the prefix length must be in 0 .. %u", bits);
	wrong = address_wrong(&a);
	for (uint32_t i = 0; wrong == NULL && i < o->addresses; i++)
		if (address_equal(&a, &o->address[i]))
			wrong = "is there twice";
	if (wrong != NULL)
		return refuse(r, "%.50s %s", text, wrong);
	if (o->addresses == ARRAY_SIZE(o->address))
		return refuse(r, "at most %zu addresses", ARRAY_SIZE(o->address));
	a.prefix = (uint8_t)prefix;
	o->address[o->addresses++] = a;
	return NULL;
}

static const char *read_one_gateway(struct reader *r, char *text)
{
	struct uroce_options *o = &r->options->engine;
	const char *wrong;
	struct uroce_address a;
	unsigned int bits;

	if (!parse_address(text, &a, &bits))
		return "must be an IPv4 or IPv6 address without prefix length";
	wrong = address_wrong(&a);
	if (wrong != NULL)
		return refuse(r, "%.50s %s", text, wrong);
	if (o->gateways == ARRAY_SIZE(o->gateway) ||
	    (o->gateways == 1 && address_is_ipv4(&a) == address_is_ipv4(&o->gateway[0])))
		return "must have at most one address for IPv4 and one for IPv6";
	o->gateway[o->gateways++] = a;
	return NULL;
}

static const char *read_list(struct reader *r, const char *value,
			     const char *(*read_one)(struct reader *r, char *text))
{
	char text[1024], *rest = text, *one;
	const char *wrong = NULL;

	if (strlen(value) >= sizeof(text))
		return "the list must be shorter than 1024 characters";
	memcpy(text, value, strlen(value) + 1);
	while (wrong == NULL && (one = strsep(&rest, ",")) != NULL)
		wrong = read_one(r, one);
	return wrong;
}

static const char *read_ip(void *reader, const char *value)
{
	return read_list(reader, value, read_one_ip);
}

static const char *read_gateway(void *reader, const char *value)
{
	return read_list(reader, value, read_one_gateway);
}

static const char *read_socket_mode(void *mode, const char *value)
{
	unsigned long n;

	if (!parse_number(value, 8, 1, 0777, &n))
		return "must be octal, in 1 .. 0777, such as 0660";
	*(uint32_t *)mode = (uint32_t)n;
	return NULL;
}

static const char *read_socket_group(void *gid, const char *value)
{
	const struct group *g = getgrnam(value);
	unsigned long n;

	if (g != NULL)
		*(int64_t *)gid = (int64_t)g->gr_gid;
	else if (parse_number(value, 10, 0, UINT32_MAX - 1, &n))
		*(int64_t *)gid = (int64_t)n;
	else
		return "must be the name or the number of a group (getent group)";
	return NULL;
}

static const char *read_idle(void *adaptive, const char *value)
{
	if (strcmp(value, "spin") != 0 && strcmp(value, "adaptive") != 0)
		return "must be spin or adaptive";
	*(bool *)adaptive = value[0] == 'a';
	return NULL;
}

static const char *read_priority(void *urgent, const char *value)
{
	if (strcmp(value, "auto") != 0 && strcmp(value, "normal") != 0)
		return "must be auto or normal";
	*(bool *)urgent = value[0] == 'a';
	return NULL;
}

/* As dev_valid_name() of Linux has it; a % would stand for a number. */
static const char *read_new_interface(void *name, const char *value)
{
	size_t n = strlen(value);

	if (n == 0 || n >= sizeof(((struct uroced_options *)0)->kernel_interface) ||
	    strpbrk(value, "/:% \t\n\v\f\r") != NULL || strcmp(value, ".") == 0 ||
	    strcmp(value, "..") == 0)
		return "must be a name of 1 to 15 characters without '/', ':', '%' or blanks";
	memcpy(name, value, n + 1);
	return NULL;
}

static const char *read_netdev_driver(void *driver, const char *value)
{
	static const char *const names[] = {
		[NETDEV_AF_PACKET] = "af_packet", [NETDEV_AF_XDP] = "af_xdp", [NETDEV_AUTO] = "auto"
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(value, names[i]) != 0)
			continue;
		*(uint32_t *)driver = i;
		return NULL;
	}
	return "must be af_packet, af_xdp or auto";
}

static const char *read_offload(void *offloads, const char *value)
{
	return offload_parse(value, offloads)
		       ? NULL
		       : "must be auto, all or none, or a list of ipv4-cksum and vlan";
}

static const char *read_confine(void *unconfined, const char *value)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return "must be on or off";
	*(bool *)unconfined = strcmp(value, "off") == 0;
	return NULL;
}

/* In the order of DPDK's numbers, which begin with 1. */
static const char *const levels[] = { "emergency", "alert",  "critical", "error",
				      "warning",   "notice", "info",	 "debug" };

const char *log_level_name(uint32_t level)
{
	return level >= 1 && level <= ARRAY_SIZE(levels) ? levels[level - 1] : "?";
}

uint32_t log_level_of(const char *name)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(levels); i++)
		if (strcmp(name, levels[i]) == 0)
			return i + 1;
	return 0;
}

static const char *read_log(void *level, const char *value)
{
	*(uint32_t *)level = log_level_of(value);
	return *(uint32_t *)level != 0 ? NULL
				       : "must be emergency, alert, critical, error, warning, "
					 "notice, info or debug";
}

#define ROWS 22 /* the end counted */

static void list_options(struct reader *r, struct option_row row[ROWS])
{
	struct uroced_options *o = r->options;
	struct uroce_options *e = &o->engine;
	const struct option_row all[] = {
		{ "netdev", .name_of = o->netdev, .size = sizeof(o->netdev) },
		{ "netdev-driver", .read = read_netdev_driver, .into = &o->netdev_driver },
		{ "port", .name_of = o->port, .size = sizeof(o->port) },
		{ "kernel-interface", .read = read_new_interface, .into = o->kernel_interface },
		{ "ip", .read = read_ip, .into = r },
		{ "gateway", .read = read_gateway, .into = r },
		{ "mtu", .u16 = &e->mtu, .least = 336, .most = 9978 },
		{ "descriptors", .u16 = &o->descriptors, .least = 32, .most = 32768 },
		{ "offload", .read = read_offload, .into = &o->offloads },
		{ "vlan", .u16 = &e->vlan, .least = 1, .most = 4094 },
		{ "socket", .name_of = o->socket, .size = sizeof(o->socket) },
		{ "socket-mode", .read = read_socket_mode, .into = &e->socket_mode },
		{ "socket-group", .read = read_socket_group, .into = &e->socket_gid },
		{ "config", .name_of = o->config, .size = sizeof(o->config) },
		{ "idle", .read = read_idle, .into = &e->adaptive },
		{ "priority", .read = read_priority, .into = &e->urgent },
		{ "exit-when-idle", .u32 = &e->exit_when_idle, .least = 1, .most = 86400 },
		{ "confine", .read = read_confine, .into = &o->unconfined },
		{ "log", .read = read_log, .into = &o->log },
		{ "cmdline-file", .name_of = o->cmdline_file, .size = sizeof(o->cmdline_file) },
		{ "interactive", 'i', .flag = &o->interactive },
		{ NULL },
	};

	static_assert(ARRAY_SIZE(all) == ROWS, "every option has its row");
	memcpy(row, all, sizeof(all));
}

uint32_t uroced_options_count(void)
{
	struct uroced_options nowhere;
	struct reader r = { .options = &nowhere };
	struct option_row row[ROWS];
	uint32_t n = 0;

	list_options(&r, row);
	for (uint32_t i = 0; i < ROWS - 1; i++)
		n += row[i].name != NULL;
	return n;
}

/* ---- all together ---- */

/* The line of the file that has this option; 0: the command line has it, or it is not given. */
static uint32_t line_of(const struct reader *r, const char *name)
{
	uint32_t number;

	return options_find(r->table.rows, name, strlen(name), &number) == NULL
		       ? 0
		       : r->table.line[number];
}

static int wrong(struct reader *r, const char *name, const char *other, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* The option does not go together with the other one. If a file says one of them, its line is named. */
static int wrong(struct reader *r, const char *name, const char *other, const char *format, ...)
{
	uint32_t line = MAX_OF(line_of(r, name), line_of(r, other));
	char *why = r->table.why;
	va_list args;
	int n = 0;

	if (line > 0)
		n = snprintf(why, sizeof(r->table.why), "--config %.300s:%u: ", r->options->config,
			     line);
	va_start(args, format);
	vsnprintf(why + n, sizeof(r->table.why) - (size_t)n, format, args);
	va_end(args);
	return OPTIONS_USAGE;
}

static int check_gateways(struct reader *r)
{
	const struct uroce_options *e = &r->options->engine;
	char text[INET6_ADDRSTRLEN];

	for (uint32_t i = 0; i < e->gateways; i++)
		for (uint32_t k = 0; k < e->addresses; k++)
			if (address_equal(&e->gateway[i], &e->address[k]))
				return wrong(r, "gateway", "ip",
					     "--gateway %s: must be another host, but --ip has it",
					     address_text(&e->gateway[i], text, sizeof(text)));
	return 0;
}

static int check_kernel_interface(struct reader *r)
{
	struct uroced_options *o = r->options;

	if (o->kernel_interface[0] == '\0')
		return 0;
	if (o->netdev[0] != '\0')
		return wrong(r, "kernel-interface", "netdev",
			     "--kernel-interface %s needs --port: with --netdev the kernel has an "
			     "interface already",
			     o->kernel_interface);
	if (o->port[0] == '\0')
		return wrong(r, "kernel-interface", "port", "--kernel-interface %s needs --port",
			     o->kernel_interface);
	if (o->engine.gateways > 0)
		return wrong(r, "gateway", "kernel-interface",
			     "--gateway: with --kernel-interface the routes are the kernel's (ip "
			     "route)");
	return 0;
}

/* Checks options that are valid alone but not together. */
static int check_together(struct reader *r)
{
	struct uroced_options *o = r->options;
	bool wire = o->netdev[0] != '\0' || o->port[0] != '\0';

	if (o->netdev[0] != '\0' && o->port[0] != '\0')
		return wrong(r, "netdev", "port", "--netdev and --port cannot be combined");
	if (o->netdev_driver != NETDEV_AF_PACKET && o->netdev[0] == '\0')
		return wrong(r, "netdev-driver", "netdev-driver",
			     "--netdev-driver %s needs --netdev",
			     o->netdev_driver == NETDEV_AUTO ? "auto" : "af_xdp");
	if (o->netdev_driver == NETDEV_AF_XDP && o->engine.vlan != 0)
		return wrong(r, "netdev-driver", "vlan",
			     "--netdev-driver af_xdp and --vlan cannot be combined");
	if (o->netdev[0] != '\0' && o->engine.gateways > 0)
		return wrong(r, "gateway", "netdev",
			     "--gateway: with --netdev the kernel's routes are used (ip route)");
	if (check_kernel_interface(r) != 0 || check_gateways(r) != 0)
		return OPTIONS_USAGE;
	if (!wire && o->engine.gateways > 0)
		return wrong(r, "gateway", "gateway",
			     "--gateway needs --port: without a port no packet leaves");
	if (o->descriptors != 0 && o->port[0] == '\0')
		return wrong(r, "descriptors", "netdev", "--descriptors needs --port");
	if (o->offloads != 0 && o->offloads != OFFLOAD_AUTO && o->port[0] == '\0')
		return wrong(r, "offload", "netdev", "--offload needs --port");
	if (!wire && o->engine.vlan != 0)
		return wrong(r, "vlan", "vlan", "--vlan %u needs --port or --netdev",
			     o->engine.vlan);
	if (o->port[0] != '\0' && o->engine.addresses == 0 && o->kernel_interface[0] == '\0')
		return wrong(r, "port", "port", "--port %s needs an address: --ip A.B.C.D/LEN",
			     o->port);
	return 0;
}

int uroced_options_parse(struct uroced_options *o, int argc, char **argv, char *why,
			 size_t why_size)
{
	struct option_row rows[ROWS];
	struct reader r = { .options = o,
			    .table = { .program = "uroced", .rows = rows, .once = true } };
	int status;

	memset(o, 0, sizeof(*o));
	o->engine.socket_gid = -1;
	o->engine.adaptive = true;
	o->engine.urgent = true;
	o->offloads = OFFLOAD_AUTO;
	list_options(&r, rows);
	status = options_words(&r.table, argc, argv, NULL);
	if (status == OPTIONS_OK && o->config[0] != '\0')
		status = config_read(&r.table, o->config);
	if (status == OPTIONS_OK)
		status = check_together(&r);
	memcpy(o->line, r.table.line, sizeof(o->line));
	snprintf(why, why_size, "%s", r.table.why);
	return status;
}

const char *uroced_option_place(const struct uroced_options *o, const char *why, char *text,
				size_t size)
{
	struct uroced_options nowhere;
	struct reader r = { .options = &nowhere };
	struct option_row rows[ROWS];
	uint32_t number;

	text[0] = '\0';
	list_options(&r, rows);
	if (strncmp(why, "--", 2) == 0 &&
	    options_find(rows, why + 2, strcspn(why + 2, " :"), &number) != NULL &&
	    o->line[number] != 0)
		snprintf(text, size, "--config %.300s:%u: ", o->config, o->line[number]);
	return text;
}

/* ---- EAL ---- */

/*
 * Whether the user gave this option: `name VALUE`, `name=VALUE`, or for a single letter `-nVALUE`.
 */
static bool has_option(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], name, length) != 0)
			continue;
		if (argv[i][length] == '\0' || argv[i][length] == '=' || name[1] != '-')
			return true;
	}
	return false;
}

static bool has_any(int argc, char **argv, const char *const *names)
{
	for (; *names != NULL; names++)
		if (has_option(argc, argv, *names))
			return true;
	return false;
}

static void add_argument(struct eal_arguments *eal, uint32_t *texts, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void add_argument(struct eal_arguments *eal, uint32_t *texts, const char *format, ...)
{
	char *text = eal->text[(*texts)++];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(eal->text[0]), format, args);
	va_end(args);
	eal->argv[eal->argc++] = text;
}

static void add_defaults(struct eal_arguments *eal, int argc, char **argv,
			 const struct eal_facts *facts)
{
	static const char *const memory[] = {
		"--no-huge",	 "--in-memory",	 "--huge-dir", "--socket-mem",
		"--huge-unlink", "--legacy-mem", NULL
	};
	static const char *const unlinking[] = { "--in-memory", "--huge-unlink", "--legacy-mem",
						 NULL };
	static const char *const cores[] = { "-l", "-c", "--lcores", "-s", "-S", NULL };
	static const char *const pci[] = { "-a", "--allow", "-b", "--block", NULL };
	static const char *const devices[] = { "-a", "--allow", "-b", "--block", "--no-pci", NULL };
	bool no_huge = has_option(argc, argv, "--no-huge");
	uint32_t texts = 0;

	eal->syslog = has_option(argc, argv, "--syslog");
	eal->fell_back = !facts->hugepages && !has_any(argc, argv, memory);
	if (eal->fell_back)
		add_argument(eal, &texts, "--no-huge");
	if ((no_huge || eal->fell_back) && !has_option(argc, argv, "--no-shconf"))
		add_argument(eal, &texts, "--no-shconf");
	if ((no_huge || eal->fell_back) && !has_option(argc, argv, "-m"))
		add_argument(eal, &texts, "-m512");
	/*
	 * There are no files of huge pages to unlink. The EAL would mark each of its small pages for that, at its end, and write
	 * to memory that the processes of porters share.
	 */
	if ((no_huge || eal->fell_back) && !has_any(argc, argv, unlinking))
		add_argument(eal, &texts, "--huge-unlink=never");
	if (facts->hugepages && !has_any(argc, argv, memory))
		add_argument(eal, &texts, "--in-memory");
	eal->own_prefix = !has_option(argc, argv, "--file-prefix");
	if (eal->own_prefix)
		add_argument(eal, &texts, "--file-prefix=uroce-%d", facts->pid);
	if (!has_any(argc, argv, devices))
		add_argument(eal, &texts, "--no-pci");
	/*
	 * Only devices need physical addresses, and looking them up needs CAP_SYS_ADMIN at all
	 * times.
	 */
	if (!has_any(argc, argv, pci) && !has_option(argc, argv, "--iova-mode"))
		add_argument(eal, &texts, "--iova-mode=va");
	if (!has_any(argc, argv, cores))
		add_argument(eal, &texts, "--lcores=0@(%s)", facts->cpus);
	if (!has_option(argc, argv, "--log-level")) {
		add_argument(eal, &texts, "--log-level=*:error");
		add_argument(eal, &texts, "--log-level=uroce:notice");
	}
}

int eal_arguments_make(struct eal_arguments *eal, int argc, char **argv,
		       const struct eal_facts *facts, int *own, char *why, size_t why_size)
{
	struct uroced_options nowhere;
	struct reader r = { .options = &nowhere };
	struct option_row rows[ROWS];
	uint32_t number;
	int i;

	list_options(&r, rows);
	memset(eal, 0, sizeof(*eal));
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *name = argv[i] + 2;

		if (strncmp(argv[i], "--", 2) == 0 &&
		    options_find(rows, name, strcspn(name, "="), &number) != NULL) {
			snprintf(why, why_size,
				 "%s is an option of uroced: write it after `--`, as in uroced "
				 "[EAL options] -- %s",
				 argv[i], argv[i]);
			return OPTIONS_USAGE;
		}
	}
	*own = i;
	if (i + (int)ARRAY_SIZE(eal->text) >= EAL_ARGUMENTS_MAX) {
		snprintf(why, why_size, "more than %zu EAL options",
			 EAL_ARGUMENTS_MAX - ARRAY_SIZE(eal->text));
		return OPTIONS_USAGE;
	}
	eal->argv[eal->argc++] = argv[0];
	add_defaults(eal, i, argv, facts);
	/* last, so that an option without its value does not take one of ours for it */
	eal->given = eal->argc;
	for (int k = 1; k < i; k++)
		eal->argv[eal->argc++] = argv[k];
	return 0;
}
