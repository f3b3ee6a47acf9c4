/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line: EAL options, `--`, and uroced's options, or a file of the latter. Nothing here
 * uses DPDK, so wrong options are refused before anything is started.
 */
#ifndef APPS_UROCED_OPTIONS_H
#define APPS_UROCED_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/uroce.h"
#include "apps/options.h"

struct uroced_options {
	struct uroce_options engine; /* addresses, gateways, vlan, mtu, socket, idle */
	char netdev[16]; /* "": none */
	char port[64]; /* "": none */
	char kernel_interface[16]; /* "": none */
	uint16_t descriptors; /* of each ring of the port; 0: the driver's choice */
	uint32_t offloads; /* OFFLOAD_* that the port is to do if it announces them */
	char socket[108]; /* "": the default path */
	char config[4096];
	char cmdline_file[4096]; /* "": none */
	uint32_t log; /* a level of DPDK's log for what uroce says; 0: EAL's option decides */
	bool interactive;
	bool unconfined; /* --confine off */
	uint32_t netdev_driver; /* enum netdev_driver */
	uint32_t netdev_used; /* ... once the port is open: what `auto` has become */
	uint32_t line[OPTIONS_MOST]; /* of `config`, by the numbers of the options; 0: not there */
};

/*
 * argv[1 ..]: the words behind `--`, which is argv[0]. The command line goes before what the file of
 * --config says. Returns OPTIONS_OK and so on (options.h); `why` is one line, "" if nothing is wrong.
 */
int uroced_options_parse(struct uroced_options *o, int argc, char **argv, char *why,
			 size_t why_size);

/*
 * What becomes known when an option is used: `why` begins with its name ("--netdev eth7: ..."). Writes
 * "--config FILE:3: " if that line says it, "" if the command line does or nobody. Returns `text`.
 */
const char *uroced_option_place(const struct uroced_options *o, const char *why, char *text,
				size_t size);

extern const char uroced_usage[];

/* "notice"; "?" for a number that is not a level of DPDK's log. */
const char *log_level_name(uint32_t level);
/* 0: there is no such level. */
uint32_t log_level_of(const char *name);

/* How many options with a name there are. */
uint32_t uroced_options_count(void);

/* Facts about this host that decide which EAL options are added. */
struct eal_facts {
	bool hugepages; /* there are free ones that this process may use */
	int pid;
	char cpus[256]; /* allowed for this process: "0-1" */
};

#define EAL_ARGUMENTS_MAX 128

struct eal_arguments {
	int argc;
	int given; /* from here on they are the user's */
	char *argv[EAL_ARGUMENTS_MAX];
	char text[11][320]; /* of those that were added */
	bool syslog; /* the user chose a facility (--syslog): messages go there, too */
	bool own_prefix; /* --file-prefix=uroce-PID was added */
	bool fell_back; /* no hugepages, and the user said nothing: --no-huge */
};

/*
 * Finds where uroced's own options begin: the index of `--` in argv, or argc. Fills *eal with the
 * user's EAL options and defaults for the others. 0, or OPTIONS_USAGE and `why`.
 */
int eal_arguments_make(struct eal_arguments *eal, int argc, char **argv,
		       const struct eal_facts *facts, int *own, char *why, size_t why_size);

#endif
