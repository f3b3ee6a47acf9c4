/* SPDX-License-Identifier: BSD-3-Clause */
/* A table of command lines: the words, the resulting options, and the message. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/uroced/uroced_options.h"
#include "base/bits.h"
#include "drivers/offload.h"

#define WORDS_MAX 12

static const struct {
	const char *words[WORDS_MAX];
	int status;
	const char *says; /* NULL: nothing */
} table[] = {
	{ { NULL }, OPTIONS_OK, NULL },
	{ { "--socket", "/tmp/x", "--idle", "spin" }, OPTIONS_OK, NULL },
	{ { "--socket=/tmp/x", "--idle=adaptive" }, OPTIONS_OK, NULL },
	{ { "--port", "p0", "--ip", "10.0.0.1/24,fd00::1/64" }, OPTIONS_OK, NULL },
	{ { "--netdev", "eth0", "--mtu", "4200", "--vlan", "7" }, OPTIONS_OK, NULL },
	{ { "--port", "p0", "--ip", "10.0.0.1/8", "--gateway", "10.0.0.254,fd00::1" },
	  OPTIONS_OK,
	  NULL },
	{ { "--exit-when-idle", "10" }, OPTIONS_OK, NULL },
	{ { "--confine", "off" }, OPTIONS_OK, NULL },
	{ { "--confine", "no" }, OPTIONS_USAGE, "on or off" },
	{ { "--port", "p0", "--kernel-interface", "uroce-kernel-15" }, OPTIONS_OK, NULL },
	{ { "--port", "p0", "--kernel-interface", "k0", "--ip", "10.0.0.1/8", "--vlan", "7" },
	  OPTIONS_OK,
	  NULL },
	{ { "--kernel-interface", "k0" }, OPTIONS_USAGE, "needs --port" },
	{ { "--netdev", "e", "--kernel-interface", "k0" }, OPTIONS_USAGE, "--kernel-interface k0" },
	{ { "--netdev", "e", "--netdev-driver", "af_xdp" }, OPTIONS_OK, NULL },
	{ { "--netdev", "e", "--netdev-driver", "xdp" },
	  OPTIONS_USAGE,
	  "af_packet, af_xdp or auto" },
	{ { "--netdev", "e", "--netdev-driver", "auto" }, OPTIONS_OK, NULL },
	{ { "--netdev", "e", "--netdev-driver", "auto", "--vlan", "7" }, OPTIONS_OK, NULL },
	{ { "--netdev-driver", "auto" }, OPTIONS_USAGE, "--netdev-driver auto needs --netdev" },
	{ { "--netdev", "e", "--netdev-driver", "af_xdp", "--vlan", "7" },
	  OPTIONS_USAGE,
	  "--netdev-driver af_xdp and --vlan cannot be combined" },
	{ { "--netdev-driver", "af_xdp" }, OPTIONS_USAGE, "--netdev-driver af_xdp needs --netdev" },
	{ { "--port", "p0", "--kernel-interface", "k0", "--gateway", "10.0.0.1" },
	  OPTIONS_USAGE,
	  "ip route" },
	{ { "--port", "p0", "--kernel-interface", "sixteen-letters-" },
	  OPTIONS_USAGE,
	  "--kernel-interface sixteen-letters-: must be a name of 1 to 15" },
	{ { "--port", "p0", "--kernel-interface", "a/b" },
	  OPTIONS_USAGE,
	  "--kernel-interface a/b: must be a name of 1 to 15 characters without '/'" },
	{ { "--port", "p0", "--kernel-interface", "k%d" }, OPTIONS_USAGE, "k%d: must be" },
	{ { "--port", "p0", "--kernel-interface", ".." }, OPTIONS_USAGE, "..: must be" },
	{ { "--port", "p0", "--kernel-interface", "" }, OPTIONS_USAGE, "--kernel-interface" },
	{ { "--port", "p0", "--kernel-interface" }, OPTIONS_USAGE, "needs a value" },
	{ { "--help" }, OPTIONS_HELP, NULL },
	{ { "--nonsense" }, OPTIONS_USAGE, "--nonsense" },
	{ { "surplus" }, OPTIONS_USAGE, "surplus" },
	{ { "--ip" }, OPTIONS_USAGE, "needs a value" },
	{ { "--mtu", "1500", "--mtu", "1500" }, OPTIONS_USAGE, "twice" },
	{ { "--netdev", "eth0", "--port", "p0" }, OPTIONS_USAGE, "combined" },
	{ { "--gateway", "10.0.0.1" }, OPTIONS_USAGE, "--port" },
	{ { "--netdev", "e", "--gateway", "10.0.0.1" }, OPTIONS_USAGE, "kernel" },
	{ { "--vlan", "5" }, OPTIONS_USAGE, "--vlan" },
	{ { "--port", "p0" }, OPTIONS_USAGE, "--ip" },
	{ { "--ip", "10.0.0.1" }, OPTIONS_USAGE, "10.0.0.1/24" },
	{ { "--ip", "10.0.0.1/33" }, OPTIONS_USAGE, "0 .. 32" },
	{ { "--ip", "fd00::1/129" }, OPTIONS_USAGE, "0 .. 128" },
	{ { "--ip", "banana/8" }, OPTIONS_USAGE, "banana" },
	{ { "--ip", "10.0.0.1/24," }, OPTIONS_USAGE, "--ip" },
	{ { "--ip", "" }, OPTIONS_USAGE, "--ip : must be addresses with prefix lengths" },
	{ { "--ip", "0.0.0.0/0" }, OPTIONS_USAGE, "0.0.0.0 is the address of nobody" },
	{ { "--ip", "::/0" }, OPTIONS_USAGE, ":: is the address of nobody" },
	{ { "--ip", "10.0.0.1/24,224.0.0.1/24" },
	  OPTIONS_USAGE,
	  "224.0.0.1 is the address of a group" },
	{ { "--ip", "ff02::1/64" }, OPTIONS_USAGE, "ff02::1 is the address of a group" },
	{ { "--ip", "255.255.255.255/24" }, OPTIONS_USAGE, "is the address of everybody" },
	{ { "--ip", "10.0.0.1/24,10.0.0.2/24,10.0.0.1/8" },
	  OPTIONS_USAGE,
	  "10.0.0.1 is there twice" },
	{ { "--ip", "::ffff:10.0.0.1/120" },
	  OPTIONS_USAGE,
	  "::ffff:10.0.0.1 is not an IPv4 or IPv6 address" },
	{ { "--gateway", "10.0.0.1/24" }, OPTIONS_USAGE, "without prefix" },
	{ { "--port", "p", "--ip", "10.0.0.1/8", "--gateway", "224.0.0.1" },
	  OPTIONS_USAGE,
	  "--gateway 224.0.0.1: 224.0.0.1 is the address of a group" },
	{ { "--port", "p", "--ip", "10.0.0.1/8", "--gateway", "10.0.0.2,10.0.0.3" },
	  OPTIONS_USAGE,
	  "at most one address for IPv4 and one for IPv6" },
	{ { "--port", "p", "--ip", "10.0.0.1/8", "--gateway", "fd00::1,fd00::2" },
	  OPTIONS_USAGE,
	  "at most one address for IPv4 and one for IPv6" },
	{ { "--port", "p", "--ip", "10.0.0.1/8", "--gateway", "10.0.0.1" },
	  OPTIONS_USAGE,
	  "--gateway 10.0.0.1: must be another host, but --ip has it" },
	{ { "--mtu", "12" }, OPTIONS_USAGE, "336 .. 9978" },
	{ { "--mtu", "4200x" }, OPTIONS_USAGE, "4200x" },
	{ { "--mtu", "-1" }, OPTIONS_USAGE, "-1" },
	{ { "--descriptors", "16" }, OPTIONS_USAGE, "32 .. 32768" },
	{ { "--descriptors", "512" }, OPTIONS_USAGE, "--descriptors needs --port" },
	{ { "--descriptors", "512", "--netdev", "e" },
	  OPTIONS_USAGE,
	  "--descriptors needs --port" },
	{ { "--port", "p0", "--ip", "10.0.0.1/8", "--offload", "ipv4-cksum,vlan" },
	  OPTIONS_OK,
	  NULL },
	{ { "--netdev", "e", "--offload", "none" }, OPTIONS_OK, NULL },
	{ { "--offload", "checksums" },
	  OPTIONS_USAGE,
	  "--offload checksums: must be auto, all or none, or a list of ipv4-cksum and vlan" },
	{ { "--port", "p0", "--ip", "10.0.0.1/8", "--offload", "none,vlan" },
	  OPTIONS_USAGE,
	  "--offload none,vlan: must be auto, all or none, or a list of ipv4-cksum and vlan" },
	{ { "--offload", "auto" }, OPTIONS_OK, NULL },
	{ { "--offload", "vlan" }, OPTIONS_USAGE, "--offload needs --port" },
	{ { "--netdev", "e", "--offload", "all" }, OPTIONS_USAGE, "--offload needs --port" },
	{ { "--vlan", "4095" }, OPTIONS_USAGE, "1 .. 4094" },
	{ { "--socket-mode", "9" }, OPTIONS_USAGE, "octal" },
	{ { "--socket-mode", "7777" }, OPTIONS_USAGE, "octal" },
	{ { "--socket-group", "no such group" },
	  OPTIONS_USAGE,
	  "must be the name or the number of a group" },
	{ { "--idle", "often" }, OPTIONS_USAGE, "spin or adaptive" },
	{ { "--priority", "normal" }, OPTIONS_OK, NULL },
	{ { "--priority", "auto", "--idle", "spin" }, OPTIONS_OK, NULL },
	{ { "--priority", "high" }, OPTIONS_USAGE, "--priority high: must be auto or normal" },
	{ { "--priority" }, OPTIONS_USAGE, "--priority needs a value" },
	{ { "--log", "all" }, OPTIONS_USAGE, "must be emergency, alert" },
	{ { "--log", "debug" }, OPTIONS_OK, "" },
	{ { "--exit-when-idle", "0" }, OPTIONS_USAGE, "1 .. 86400" },
	{ { "--socket", "" }, OPTIONS_USAGE, "--socket" },
	{ { "--config", "/nonexistent" }, OPTIONS_USAGE, "--config /nonexistent: No such file" },
	{ { "--config", "/" }, OPTIONS_USAGE, "--config /: Is a directory" },
};

static int parse(struct uroced_options *o, const char *const *words, char *why, size_t size)
{
	char *argv[WORDS_MAX + 2] = { (char *)(uintptr_t) "--" };
	int argc = 1;

	for (; argc <= WORDS_MAX && words[argc - 1] != NULL; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
	return uroced_options_parse(o, argc, argv, why, size);
}

Test(uroced_options, table)
{
	struct uroced_options o;
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		int status = parse(&o, table[i].words, why, sizeof(why));

		cr_expect_eq(status, table[i].status, "row %zu: status %d: %s", i, status, why);
		cr_expect(table[i].says == NULL || strstr(why, table[i].says) != NULL,
			  "row %zu says '%s', not '%s'", i, why, table[i].says);
		cr_expect_null(strchr(why, '\n'), "row %zu: one line", i);
	}
}

Test(uroced_options, values_arrive)
{
	const char *const words[WORDS_MAX] = {
		"--port", "p0",		 "--ip",	   "10.1.2.3/24,fd00::5/64",
		"--mtu",  "4200",	 "--vlan",	   "9",
		"-i",	  "--idle=spin", "--offload=vlan", "--priority=normal"
	};
	struct uroced_options o;
	char why[256];

	cr_assert_eq(parse(&o, words, why, sizeof(why)), OPTIONS_OK, "%s", why);
	cr_assert_str_eq(o.port, "p0");
	cr_assert_eq(o.engine.addresses, 2);
	cr_assert_eq(memcmp(o.engine.address[0].octet,
			    "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\x01\x02\x03", 16),
		     0);
	cr_assert_eq(o.engine.address[0].prefix, 24);
	cr_assert_eq(o.engine.address[1].octet[15], 5);
	cr_assert_eq(o.engine.mtu, 4200);
	cr_assert_eq(o.engine.vlan, 9);
	cr_assert(o.interactive && !o.engine.adaptive && !o.engine.urgent);
	cr_assert_eq(o.offloads, OFFLOAD_VLAN_TX | OFFLOAD_VLAN_RX);
	cr_assert_eq(o.engine.socket_gid, -1);
}

Test(uroced_options, command_line_goes_before_the_file)
{
	char path[] = "/tmp/uroced-options-XXXXXX", why[256];
	const char text[] = "# an engine\n[uroced]\nmtu = 1500\nvlan = 3\nnetdev = eth7\n"
			    "interactive = off\n";
	const char *words[WORDS_MAX] = { "--config", path, "--mtu", "4200", "-i" };
	struct uroced_options o;
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	cr_assert_eq(parse(&o, words, why, sizeof(why)), OPTIONS_OK, "%s", why);
	unlink(path);
	cr_assert_eq(o.engine.mtu, 4200);
	cr_assert_eq(o.engine.vlan, 3);
	cr_assert_str_eq(o.netdev, "eth7");
	cr_assert(o.interactive);
}

static const struct {
	const char *text;
	int status;
	const char *says; /* behind "--config FILE" */
} files[] = {
	{ "[uroced]\n", OPTIONS_OK, "" },
	{ " [uroced] # options\n\n  mtu = 4200 # octets\n", OPTIONS_OK, "" },
	{ "[uroced]\ninteractive = on\nidle=spin\n", OPTIONS_OK, "" },
	{ "", OPTIONS_USAGE, ": has no section [uroced]" },
	{ "mtu = 4200\n[uroced]\n", OPTIONS_USAGE, ":1: 'mtu = 4200' stands before [uroced]" },
	{ "[other]\n", OPTIONS_USAGE, ":1: [other]: the only section is [uroced]" },
	{ "[uroced]\n\nnonsense = 1\n", OPTIONS_USAGE,
	  ":3: 'nonsense' is not an option of uroced" },
	{ "[uroced]\nconfig = /x\n", OPTIONS_USAGE, ":2: 'config' is not an option of uroced" },
	{ "[uroced]\nmtu\n", OPTIONS_USAGE, ":2: 'mtu': must be 'name = value'" },
	{ "[uroced]\nmtu = 12\n", OPTIONS_USAGE, ":2: --mtu 12: must be in 336 .. 9978" },
	{ "[uroced]\nmtu = 1500\nmtu = 1500\n", OPTIONS_USAGE, ":3: mtu is given twice" },
	{ "[uroced]\nidle = often\n", OPTIONS_USAGE, ":2: --idle often: must be spin or adaptive" },
	{ "[uroced]\ninteractive = yes\n", OPTIONS_USAGE,
	  ":2: interactive = yes: must be on or off" },
	{ "[uroced]\nsocket =\n", OPTIONS_USAGE, ":2: --socket '': must have 1 to 107 characters" },
	/* options that contradict each other: the later line is named */
	{ "[uroced]\nport = p0\n\nnetdev = e\n", OPTIONS_USAGE,
	  ":4: --netdev and --port cannot be combined" },
	{ "[uroced]\ngateway = 10.0.0.1\nnetdev = e\nidle = spin\n", OPTIONS_USAGE,
	  ":3: --gateway: with --netdev the kernel's routes are used (ip route)" },
	{ "[uroced]\nvlan = 5\n", OPTIONS_USAGE, ":2: --vlan 5 needs --port or --netdev" },
	{ "[uroced]\nport = p0\n", OPTIONS_USAGE,
	  ":2: --port p0 needs an address: --ip A.B.C.D/LEN" },
};

Test(uroced_options, an_error_in_a_file_names_its_line)
{
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[] = "/tmp/uroced-options-XXXXXX", why[256], wanted[256] = "";
		const char *words[WORDS_MAX] = { "--config", path };
		struct uroced_options o;
		int fd = mkstemp(path);

		cr_assert_eq(write(fd, files[i].text, strlen(files[i].text)),
			     (ssize_t)strlen(files[i].text));
		close(fd);
		cr_expect_eq(parse(&o, words, why, sizeof(why)), files[i].status, "row %zu: %s", i,
			     why);
		unlink(path);
		if (files[i].says[0] != '\0')
			snprintf(wanted, sizeof(wanted), "--config %s%s", path, files[i].says);
		cr_expect_str_eq(why, wanted, "row %zu: %s", i, why);
	}
}

/* One on the command line, one in the file. */
Test(uroced_options, a_line_that_contradicts_the_command_line_is_named)
{
	char path[] = "/tmp/uroced-options-XXXXXX", why[256], wanted[256];
	const char *words[WORDS_MAX] = { "--config", path, "--netdev", "e" };
	const char text[] = "[uroced]\nidle = spin\nport = p0\n";
	struct uroced_options o;
	int fd = mkstemp(path);

	cr_assert_eq(write(fd, text, sizeof(text) - 1), (ssize_t)sizeof(text) - 1);
	close(fd);
	cr_expect_eq(parse(&o, words, why, sizeof(why)), OPTIONS_USAGE);
	unlink(path);
	snprintf(wanted, sizeof(wanted), "--config %s:3: --netdev and --port cannot be combined",
		 path);
	cr_expect_str_eq(why, wanted);
}

/*
 * Every option of the command line except --config can be in a file. The example file and the usage
 * show all of them.
 */
Test(uroced_options, the_example_has_every_option)
{
	static char example[16384];
	FILE *f = fopen(UROCED_EXAMPLE, "r");
	char dashed[64], commented[64];
	uint32_t options = 0;

	cr_assert_not_null(f);
	example[fread(example, 1, sizeof(example) - 1, f)] = '\0';
	fclose(f);
	for (const char *c = uroced_usage; (c = strstr(c, "\n  --")) != NULL; c++) {
		int length = (int)strcspn(c + 5, " ,");

		snprintf(dashed, sizeof(dashed), "\n%.*s = ", length, c + 5);
		snprintf(commented, sizeof(commented), "\n# %.*s = ", length, c + 5);
		cr_expect(strncmp(c + 5, "config ", 7) == 0 || strstr(example, dashed) != NULL ||
				  strstr(example, commented) != NULL,
			  "%.*s is not in the example", length, c + 5);
		options++;
	}
	cr_expect_eq(options, uroced_options_count(), "the usage has them all");
}

/*
 * ... and the other way round: each line of the example that shows an option shows an existing one.
 */
Test(uroced_options, the_example_has_no_other_option)
{
	FILE *f = fopen(UROCED_EXAMPLE, "r");
	char line[512], why[256];
	uint32_t shown = 0;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		char *name = strncmp(line, "# ", 2) == 0 ? line + 2 : line;
		char path[] = "/tmp/uroced-options-XXXXXX";
		const char *words[WORDS_MAX] = { "--config", path };
		struct uroced_options o;
		int fd;

		if (strncmp(name + strcspn(name, " \n"), " = ", 3) != 0)
			continue;
		fd = mkstemp(path);
		cr_assert_gt(dprintf(fd, "[uroced]\n%s", name), 0);
		close(fd);
		parse(&o, words, why, sizeof(why));
		unlink(path);
		cr_expect_null(strstr(why, "is not an option"), "%s", why);
		shown++;
	}
	fclose(f);
	cr_expect_eq(shown, uroced_options_count() - 1, "all but --config");
}

Test(uroced_options, the_example_is_accepted_as_it_stands)
{
	const char *words[WORDS_MAX] = { "--config", UROCED_EXAMPLE };
	struct uroced_options o;
	char why[256];

	cr_assert_eq(parse(&o, words, why, sizeof(why)), OPTIONS_OK, "%s", why);
	cr_assert(o.engine.adaptive && o.engine.urgent);
}

/* EAL: the words before `--` and those that uroced adds. */
static const struct {
	const char *words[WORDS_MAX];
	bool hugepages;
	const char *has, *has_not;
} eal_table[] = {
	{ { "uroced" }, false, "--no-huge", "--in-memory" },
	{ { "uroced" }, false, "--no-shconf", "--in-memory" },
	{ { "uroced" }, false, "-m512", NULL },
	{ { "uroced" }, true, "--in-memory", "--no-huge" },
	{ { "uroced", "--no-huge" }, true, "--no-shconf", "--in-memory" },
	{ { "uroced", "--no-huge", "-m", "64" }, false, "--no-shconf", "-m512" },
	{ { "uroced" }, false, "--huge-unlink=never", NULL },
	{ { "uroced" }, true, "--in-memory", "--huge-unlink=never" },
	{ { "uroced", "--no-huge", "--in-memory" }, false, "--in-memory", "--huge-unlink=never" },
	{ { "uroced", "--huge-dir=/x" }, false, "--huge-dir=/x", "--no-huge" },
	{ { "uroced" }, false, "--file-prefix=uroce-77", NULL },
	{ { "uroced", "--file-prefix", "mine" }, false, "mine", "--file-prefix=uroce-77" },
	{ { "uroced" }, false, "--no-pci", NULL },
	{ { "uroced" }, true, "--iova-mode=va", NULL },
	{ { "uroced", "--iova-mode=pa" }, true, "--iova-mode=pa", "--iova-mode=va" },
	{ { "uroced", "-a", "0000:01:00.0" }, true, "-a", "--iova-mode=va" },
	{ { "uroced", "-a", "0000:01:00.0" }, false, "-a", "--no-pci" },
	{ { "uroced", "-a0000:01:00.0" }, false, "-a0000:01:00.0", "--no-pci" },
	{ { "uroced" }, false, "--lcores=0@(0-1)", NULL },
	{ { "uroced", "-l", "0" }, false, "-l", "--lcores=0@(0-1)" },
	{ { "uroced" }, false, "--log-level=*:error", NULL },
	{ { "uroced" }, false, "--log-level=uroce:notice", NULL },
	{ { "uroced", "--log-level=8" }, false, "--log-level=8", "--log-level=*:error" },
	{ { "uroced", "--log-level=8" }, false, "--log-level=8", "--log-level=uroce:notice" },
};

static bool has_word(const struct eal_arguments *eal, const char *word)
{
	for (int i = 0; i < eal->argc; i++)
		if (strcmp(eal->argv[i], word) == 0)
			return true;
	return false;
}

Test(uroced_options, eal_defaults_give_way)
{
	char why[256];

	for (size_t i = 0; i < ARRAY_SIZE(eal_table); i++) {
		struct eal_facts facts = { eal_table[i].hugepages, 77, "0-1" };
		struct eal_arguments eal;
		char *argv[WORDS_MAX + 2];
		int argc = 0, own;

		for (; argc < WORDS_MAX && eal_table[i].words[argc] != NULL; argc++)
			argv[argc] = (char *)(uintptr_t)eal_table[i].words[argc];
		argv[argc++] = (char *)(uintptr_t) "--";
		cr_assert_eq(eal_arguments_make(&eal, argc, argv, &facts, &own, why, sizeof(why)),
			     0);
		cr_expect_eq(own, argc - 1);
		cr_expect(has_word(&eal, eal_table[i].has), "row %zu lacks %s", i,
			  eal_table[i].has);
		cr_expect(eal_table[i].has_not == NULL || !has_word(&eal, eal_table[i].has_not),
			  "row %zu has %s", i, eal_table[i].has_not);
	}
}

Test(uroced_options, own_option_before_the_dashes_is_explained)
{
	char *argv[] = { (char *)"uroced", (char *)"--socket", (char *)"/tmp/x" };
	struct eal_facts facts = { false, 1, "0" };
	struct eal_arguments eal;
	char why[256];
	int own;

	cr_assert_eq(eal_arguments_make(&eal, 3, argv, &facts, &own, why, sizeof(why)),
		     OPTIONS_USAGE);
	cr_assert_not_null(strstr(why, "after `--`"));
}
