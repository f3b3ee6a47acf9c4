/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>

#include "base/bits.h"

const char uroced_usage[] =
	"usage: uroced [EAL options] -- [options]\n"
	"  --netdev IFACE          serve on a Linux interface, with its addresses\n"
	"  --port NAME             serve on a DPDK port (given to EAL by -a or --vdev)\n"
	"                          neither: a device for this host only\n"
	"  --kernel-interface NAME beside --port: an interface for the kernel, which gets all that is\n"
	"                          not RoCE and owns the addresses\n"
	"  --ip ADDR/LEN[,...]     own addresses, IPv4 and IPv6\n"
	"  --gateway ADDR[,ADDR]   where other subnets are, one of each family\n"
	"  --mtu N                 Ethernet MTU (default: the port's)\n"
	"  --vlan ID               802.1Q tag of all frames\n"
	"  --socket PATH           where programs attach\n"
	"  --socket-mode OCTAL     who may (default 0600)\n"
	"  --socket-group GROUP    whose group it is\n"
	"  --config FILE           more of these options, one 'name = value' a line in [uroced]\n"
	"  --idle spin|adaptive    what an idle lcore does (default adaptive)\n"
	"  --exit-when-idle SECS   end that long after the last program left\n"
	"  --confine on|off        drop privileges once the port is open (default on)\n"
	"  -i                      read commands from the terminal\n";

struct reader {
	struct uroced_options *options;
	uint32_t given; /* bits of rows[] that the command line has set */
	char *why;
	size_t why_size;
};

static int refuse(struct reader *r, int how, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(struct reader *r, int how, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(r->why, r->why_size, format, args);
	va_end(args);
	return how;
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

static int read_text(struct reader *r, const char *name, const char *value, char *to, size_t size)
{
	if (value[0] == '\0' || strlen(value) >= size)
		return refuse(r, OPTIONS_FAILED, "--%s '%s': give a name of 1 to %zu characters",
			      name, value, size - 1);
	memcpy(to, value, strlen(value) + 1);
	return 0;
}

static int read_netdev(struct reader *r, const char *value)
{
	return read_text(r, "netdev", value, r->options->netdev, sizeof(r->options->netdev));
}

static int read_kernel_interface(struct reader *r, const char *value)
{
	return read_text(r, "kernel-interface", value, r->options->kernel_interface,
			 sizeof(r->options->kernel_interface));
}

static int read_port(struct reader *r, const char *value)
{
	return read_text(r, "port", value, r->options->port, sizeof(r->options->port));
}

static int read_socket(struct reader *r, const char *value)
{
	return read_text(r, "socket", value, r->options->socket, sizeof(r->options->socket));
}

static int read_config(struct reader *r, const char *value)
{
	return read_text(r, "config", value, r->options->config, sizeof(r->options->config));
}

static bool parse_address(const char *text, struct uroce_address *a, unsigned int *bits)
{
	memset(a, 0, sizeof(*a));
	*bits = 128;
	if (inet_pton(AF_INET6, text, a->octet) == 1)
		return true;
	a->octet[10] = a->octet[11] = 0xff;
	*bits = 32;
	return inet_pton(AF_INET, text, a->octet + 12) == 1;
}

static int read_one_ip(struct reader *r, char *text)
{
	struct uroce_options *o = &r->options->engine;
	char *slash = strchr(text, '/');
	struct uroce_address a;
	unsigned long prefix;
	unsigned int bits;

	if (slash == NULL)
		return refuse(r, OPTIONS_FAILED,
			      "--ip %s: write the prefix length too, such as %s/24", text, text);
	*slash = '\0';
	if (!parse_address(text, &a, &bits))
		return refuse(r, OPTIONS_FAILED, "--ip %s: this is no IPv4 or IPv6 address", text);
	if (!parse_number(slash + 1, 10, 0, bits, &prefix))
		return refuse(r, OPTIONS_FAILED, "--ip %s/%s: the prefix length is not 0 .. %u",
			      text, slash + 1, bits);
	if (o->addresses == ARRAY_SIZE(o->address))
		return refuse(r, OPTIONS_FAILED, "--ip: at most %zu addresses",
			      ARRAY_SIZE(o->address));
	a.prefix = (uint8_t)prefix;
	o->address[o->addresses++] = a;
	return 0;
}

static int read_one_gateway(struct reader *r, char *text)
{
	struct uroce_options *o = &r->options->engine;
	struct uroce_address a;
	unsigned int bits;

	if (!parse_address(text, &a, &bits))
		return refuse(r, OPTIONS_FAILED,
			      "--gateway %s: give an IPv4 or IPv6 address without prefix length",
			      text);
	if (o->gateways == ARRAY_SIZE(o->gateway))
		return refuse(r, OPTIONS_FAILED, "--gateway: at most one of each address family");
	o->gateway[o->gateways++] = a;
	return 0;
}

static int read_list(struct reader *r, const char *value,
		     int (*read_one)(struct reader *r, char *text))
{
	char text[1024], *rest = text, *one;
	int status = 0;

	if (strlen(value) >= sizeof(text))
		return refuse(r, OPTIONS_FAILED, "the list of addresses is too long");
	memcpy(text, value, strlen(value) + 1);
	while (status == 0 && (one = strsep(&rest, ",")) != NULL)
		status = read_one(r, one);
	return status;
}

static int read_ip(struct reader *r, const char *value)
{
	return read_list(r, value, read_one_ip);
}

static int read_gateway(struct reader *r, const char *value)
{
	return read_list(r, value, read_one_gateway);
}

static int read_mtu(struct reader *r, const char *value)
{
	unsigned long n;

	if (!parse_number(value, 10, 336, 9978, &n))
		return refuse(r, OPTIONS_FAILED, "--mtu %s: the Ethernet MTU is 336 .. 9978",
			      value);
	r->options->engine.mtu = (uint16_t)n;
	return 0;
}

static int read_vlan(struct reader *r, const char *value)
{
	unsigned long n;

	if (!parse_number(value, 10, 1, 4094, &n))
		return refuse(r, OPTIONS_FAILED, "--vlan %s: the VLAN id is 1 .. 4094", value);
	r->options->engine.vlan = (uint16_t)n;
	return 0;
}

static int read_socket_mode(struct reader *r, const char *value)
{
	unsigned long n;

	if (!parse_number(value, 8, 1, 0777, &n))
		return refuse(r, OPTIONS_FAILED,
			      "--socket-mode %s: write it in octal, such as 0660", value);
	r->options->engine.socket_mode = (uint32_t)n;
	return 0;
}

static int read_socket_group(struct reader *r, const char *value)
{
	const struct group *g = getgrnam(value);
	unsigned long n;

	if (g != NULL)
		r->options->engine.socket_gid = (int64_t)g->gr_gid;
	else if (parse_number(value, 10, 0, UINT32_MAX - 1, &n))
		r->options->engine.socket_gid = (int64_t)n;
	else
		return refuse(r, OPTIONS_FAILED, "--socket-group %s: there is no such group",
			      value);
	return 0;
}

static int read_idle(struct reader *r, const char *value)
{
	if (strcmp(value, "spin") != 0 && strcmp(value, "adaptive") != 0)
		return refuse(r, OPTIONS_FAILED, "--idle %s: choose spin or adaptive", value);
	r->options->engine.adaptive = value[0] == 'a';
	return 0;
}

static int read_confine(struct reader *r, const char *value)
{
	if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
		return refuse(r, OPTIONS_FAILED, "--confine %s: choose on or off", value);
	r->options->unconfined = strcmp(value, "off") == 0;
	return 0;
}

static int read_exit_when_idle(struct reader *r, const char *value)
{
	unsigned long n;

	if (!parse_number(value, 10, 1, 86400, &n))
		return refuse(r, OPTIONS_FAILED, "--exit-when-idle %s: give seconds, 1 .. 86400",
			      value);
	r->options->engine.exit_when_idle = (uint32_t)n;
	return 0;
}

static const struct {
	const char *name;
	int (*read)(struct reader *r, const char *value);
} rows[] = {
	{ "netdev", read_netdev },
	{ "port", read_port },
	{ "kernel-interface", read_kernel_interface },
	{ "ip", read_ip },
	{ "gateway", read_gateway },
	{ "mtu", read_mtu },
	{ "vlan", read_vlan },
	{ "socket", read_socket },
	{ "socket-mode", read_socket_mode },
	{ "socket-group", read_socket_group },
	{ "config", read_config },
	{ "idle", read_idle },
	{ "exit-when-idle", read_exit_when_idle },
	{ "confine", read_confine },
};

static int row_of(const char *name, size_t length)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
			return (int)i;
	return -1;
}

/* ---- the command line and the file ---- */

/* --name VALUE or --name=VALUE; returns how many words it took, or -status. */
static int read_word(struct reader *r, int argc, char **argv)
{
	const char *name = argv[0] + 2;
	size_t length = strcspn(name, "=");
	int row = strncmp(argv[0], "--", 2) == 0 ? row_of(name, length) : -1;
	const char *value;
	int status;

	if (row < 0)
		return -refuse(r, OPTIONS_USAGE, "%s is no option of uroced (--help lists them)",
			       argv[0]);
	if (r->given & (1u << row))
		return -refuse(r, OPTIONS_USAGE, "--%s is given twice", rows[row].name);
	if (name[length] == '\0' && argc < 2)
		return -refuse(r, OPTIONS_USAGE, "--%s needs a value", rows[row].name);
	value = name[length] == '=' ? name + length + 1 : argv[1];
	status = rows[row].read(r, value);
	r->given |= 1u << row;
	if (status != 0)
		return -status;
	return name[length] == '=' ? 1 : 2;
}

static int read_command_line(struct reader *r, int argc, char **argv)
{
	for (int i = 0; i < argc;) {
		int words;

		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return OPTIONS_HELP;
		if (strcmp(argv[i], "-i") == 0) {
			r->options->interactive = true;
			i++;
			continue;
		}
		words = read_word(r, argc - i, argv + i);
		if (words < 0)
			return -words;
		i += words;
	}
	return 0;
}

static int read_entries(struct reader *r, struct rte_cfgfile *file)
{
	struct rte_cfgfile_entry entry[32];
	int n = rte_cfgfile_section_entries(file, "uroced", entry, ARRAY_SIZE(entry));

	for (int i = 0; i < n; i++) {
		int row = row_of(entry[i].name, strlen(entry[i].name));
		int status;

		if (row < 0 || rows[row].read == read_config)
			return refuse(r, OPTIONS_USAGE, "%s: '%.64s' is no option of uroced",
				      r->options->config, entry[i].name);
		if (r->given & (1u << row))
			continue;
		status = rows[row].read(r, entry[i].value);
		if (status != 0)
			return status;
	}
	return 0;
}

static int read_file(struct reader *r)
{
	static const struct rte_cfgfile_parameters parameters = { .comment_character = '#' };
	struct rte_cfgfile *file;
	FILE *f;
	int status;

	f = fopen(r->options->config, "r");
	if (f == NULL)
		return refuse(r, OPTIONS_FAILED, "--config %s: %s", r->options->config,
			      strerror(errno));
	fclose(f);
	file = rte_cfgfile_load_with_params(r->options->config, 0, &parameters);
	if (file == NULL)
		return refuse(r, OPTIONS_FAILED,
			      "--config %s: it is not 'name = value' lines below [uroced]",
			      r->options->config);
	status = rte_cfgfile_has_section(file, "uroced")
			 ? read_entries(r, file)
			 : refuse(r, OPTIONS_FAILED, "--config %s: it has no section [uroced]",
				  r->options->config);
	rte_cfgfile_close(file);
	return status;
}

/* Options that are right by themselves and wrong together. */
static int check_together(struct reader *r)
{
	struct uroced_options *o = r->options;
	bool wire = o->netdev[0] != '\0' || o->port[0] != '\0';

	if (o->netdev[0] != '\0' && o->port[0] != '\0')
		return refuse(r, OPTIONS_USAGE,
			      "--netdev and --port exclude each other: choose one");
	if (o->netdev[0] != '\0' && o->engine.gateways > 0)
		return refuse(r, OPTIONS_USAGE,
			      "--gateway: with --netdev the routes are the kernel's (ip route)");
	if (o->kernel_interface[0] != '\0' && o->port[0] == '\0')
		return refuse(r, OPTIONS_USAGE, "--kernel-interface %s needs --port%s",
			      o->kernel_interface,
			      o->netdev[0] != '\0' ? ": with --netdev the kernel has its interface"
						   : "");
	if (o->kernel_interface[0] != '\0' && o->engine.gateways > 0)
		return refuse(r, OPTIONS_USAGE,
			      "--gateway: with --kernel-interface the routes are the kernel's (ip "
			      "route)");
	if (!wire && o->engine.gateways > 0)
		return refuse(r, OPTIONS_USAGE,
			      "--gateway needs --port: without it nothing leaves");
	if (!wire && o->engine.vlan != 0)
		return refuse(r, OPTIONS_USAGE, "--vlan needs --port or --netdev");
	if (o->port[0] != '\0' && o->engine.addresses == 0 && o->kernel_interface[0] == '\0')
		return refuse(r, OPTIONS_FAILED, "--port %s needs an address: --ip A.B.C.D/LEN",
			      o->port);
	return 0;
}

int uroced_options_parse(struct uroced_options *o, int argc, char **argv, char *why,
			 size_t why_size)
{
	struct reader r = { .options = o, .why = why, .why_size = why_size };
	int status;

	memset(o, 0, sizeof(*o));
	o->engine.socket_gid = -1;
	o->engine.adaptive = true;
	status = read_command_line(&r, argc, argv);
	if (status == 0 && o->config[0] != '\0')
		status = read_file(&r);
	return status != 0 ? status : check_together(&r);
}

/* ---- EAL ---- */

/* Whether the user gave this option, as `name VALUE`, `name=VALUE`, or for one letter `-nVALUE`. */
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
	static const char *const cores[] = { "-l", "-c", "--lcores", "-s", "-S", NULL };
	static const char *const pci[] = { "-a", "--allow", "-b", "--block", NULL };
	static const char *const devices[] = { "-a", "--allow", "-b", "--block", "--no-pci", NULL };
	bool no_huge = has_option(argc, argv, "--no-huge");
	uint32_t texts = 0;

	eal->fell_back = !facts->hugepages && !has_any(argc, argv, memory);
	if (eal->fell_back)
		add_argument(eal, &texts, "--no-huge");
	if ((no_huge || eal->fell_back) && !has_option(argc, argv, "--no-shconf"))
		add_argument(eal, &texts, "--no-shconf");
	if ((no_huge || eal->fell_back) && !has_option(argc, argv, "-m"))
		add_argument(eal, &texts, "-m512");
	if (facts->hugepages && !has_any(argc, argv, memory))
		add_argument(eal, &texts, "--in-memory");
	if (!has_option(argc, argv, "--file-prefix"))
		add_argument(eal, &texts, "--file-prefix=uroce-%d", facts->pid);
	if (!has_any(argc, argv, devices))
		add_argument(eal, &texts, "--no-pci");
	/* Physical addresses are for devices, and to look them up takes CAP_SYS_ADMIN for ever. */
	if (!has_any(argc, argv, pci) && !has_option(argc, argv, "--iova-mode"))
		add_argument(eal, &texts, "--iova-mode=va");
	if (!has_any(argc, argv, cores))
		add_argument(eal, &texts, "--lcores=0@(%s)", facts->cpus);
	if (!has_option(argc, argv, "--log-level"))
		add_argument(eal, &texts, "--log-level=*:error");
}

int eal_arguments_make(struct eal_arguments *eal, int argc, char **argv,
		       const struct eal_facts *facts, int *own, char *why, size_t why_size)
{
	int i;

	memset(eal, 0, sizeof(*eal));
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *name = argv[i] + 2;

		if (strncmp(argv[i], "--", 2) == 0 && row_of(name, strcspn(name, "=")) >= 0) {
			snprintf(why, why_size,
				 "%s is uroced's own option: write it after `--`, as in uroced "
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
	for (int k = 0; k < i; k++)
		eal->argv[eal->argc++] = argv[k];
	add_defaults(eal, i, argv, facts);
	return 0;
}
