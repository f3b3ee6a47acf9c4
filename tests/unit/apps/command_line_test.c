/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wrong command lines of `uroce`: status 2, nothing on stdout, and one line on stderr that says
 * what is wrong and what is allowed. $UROCE is the program.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"

#define WORDS 8
#define LONG_112                                                       \
	"/0123456789abcdef0123456789abcdef0123456789abcdef0123456789/" \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123"

#define SCENARIO_REFUSED(given)                                                                  \
	"--scenario " given ": must be incast[:N], bottleneck[:N] (N in 1 .. 1024), reorder or " \
	"many[:N] (1 .. 65536)"

struct run {
	int status; /* -1: ended by a signal */
	char out[8192], err[8192];
};

TestSuite(command_line, .timeout = 60);

static void read_back(int fd, char *text, size_t size)
{
	ssize_t n = pread(fd, text, size - 1, 0);

	cr_assert_geq(n, 0);
	text[n] = '\0';
	close(fd);
}

static void run(const char *const *word, struct run *r)
{
	int out = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), status;
	int err = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	const char *argv[WORDS + 2] = { "uroce" };
	pid_t pid;

	cr_assert_not_null(getenv("UROCE"), "UROCE must be the path of the program");
	memcpy(argv + 1, word, WORDS * sizeof(*word));
	pid = fork();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(err, STDERR_FILENO);
		execv(getenv("UROCE"), (char *const *)argv);
		_exit(99);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	r->status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	read_back(out, r->out, sizeof(r->out));
	read_back(err, r->err, sizeof(r->err));
}

/* `said` follows "uroce COMMAND: ". */
struct wrong {
	const char *word[WORDS];
	const char *said;
};

static const struct wrong wrong[] = {
	/* options that no command has */
	{ { "stat", "--nonsense" }, "'--nonsense' is not an option (uroce stat --help)" },
	{ { "stat", "-x" }, "'-x' is not an option (uroce stat --help)" },
	{ { "stat", "more" }, "'more' is not an option (uroce stat --help)" },
	{ { "stat", "--", "more" }, "'more' is not an option (uroce stat --help)" },
	{ { "run", "--nonsense", "--", "true" },
	  "'--nonsense' is not an option (uroce run --help)" },
	{ { "run", "-q", "true" }, "'-q' is not an option (uroce run --help)" },
	{ { "ping", "--nonsense=3" }, "'--nonsense=3' is not an option (uroce ping --help)" },
	{ { "perf", "--nonsense" }, "'--nonsense' is not an option (uroce perf --help)" },
	{ { "doctor", "--nonsense" }, "'--nonsense' is not an option (uroce doctor --help)" },
	{ { "doctor", "eth0" }, "'eth0' is not an option (uroce doctor --help)" },
	{ { "sim", "--nonsense" }, "'--nonsense' is not an option (uroce sim --help)" },
	{ { "sim", "--s", "3" }, "'--s' is not an option (uroce sim --help)" },
	/* a missing value, or one too many */
	{ { "stat", "--socket" }, "--socket needs a value" },
	{ { "stat", "--socket", "" }, "--socket '': must not be empty" },
	{ { "stat", "--json=yes" }, "--json=yes: --json takes no value" },
	{ { "stat", "--help=yes" }, "--help=yes: --help takes no value" },
	{ { "stat", "--all", "--cm" }, "--all and --cm cannot be combined" },
	{ { "stat", "--qps", "--prometheus" }, "--prometheus and --qps cannot be combined" },
	{ { "stat", "--json", "--prometheus" }, "--prometheus and --json cannot be combined" },
	{ { "stat", "--cycles=0" }, "--cycles 0: must be in 0.01 .. 3600" },
	{ { "stat", "--paths", "--cycles" }, "--paths and --cycles cannot be combined" },
	{ { "stat", "--watch=0" }, "--watch 0: must be in 0.1 .. 3600" },
	{ { "stat", "--watch=" }, "--watch : must be in 0.1 .. 3600" },
	{ { "stat", "--watch", "5" }, "'5' is not an option (uroce stat --help)" },
	{ { "top", "--nonsense" }, "'--nonsense' is not an option (uroce top --help)" },
	{ { "top", "--interval", "0.05" }, "--interval 0.05: must be in 0.1 .. 3600" },
	{ { "top", "--interval" }, "--interval needs a value" },
	{ { "top", "--lines", "0" }, "--lines 0: must be in 1 .. 100000" },
	{ { "top", "--once=2" }, "--once=2: --once takes no value" },
	{ { "capture" }, "no file given: uroce capture FILE" },
	{ { "capture", "a", "b" }, "more than one file given: 'a' and 'b'" },
	{ { "capture", "" }, "FILE '': must not be empty" },
	{ { "capture", "a", "--count", "0" }, "--count 0: must be in 1 .. 18446744073709551615" },
	{ { "capture", "a", "--json", "b" }, "more than one file given: 'a' and 'b'" },
	{ { "capture", "--count", "0", "a" }, "--count 0: must be in 1 .. 18446744073709551615" },
	{ { "capture", "--seconds", "0", "a" }, "--seconds 0: must be in 0.001 .. 1000000000" },
	{ { "capture", "--snap", "63", "a" }, "--snap 63: must be in 64 .. 65535" },
	{ { "capture", "--buffer", "3", "a" }, "--buffer 3: must be a power of two in 1 .. 256" },
	{ { "capture", "--json", "-" }, "--json and - cannot be combined" },
	{ { "trace", "--keep", "1", "--end", "9" },
	  "of --keep, --last and --end only one can be given" },
	{ { "trace", "--keep", "0", "9" }, "--keep 0: must be in 1 .. 16384" },
	{ { "trace", "--last", "16385", "9" }, "--last 16385: must be in 1 .. 16384" },
	{ { "trace", "--last", "1", "--count", "1", "9" },
	  "--count and --seconds are for packets as they pass, not for kept ones" },
	{ { "trace", "--pcap", "f", "9" }, "--pcap needs --last" },
	{ { "trace" }, "no queue pair given: uroce trace QPN" },
	{ { "trace", "1", "2" }, "more than one queue pair given: '1' and '2'" },
	{ { "trace", "9", "--keep" }, "--keep needs a value" },
	{ { "trace", "9", "--keep", "0" }, "--keep 0: must be in 1 .. 16384" },
	{ { "trace", "" }, "QPN '': must not be empty" },
	{ { "trace", "1" }, "1: must be the number of a queue pair, 2 .. 0xfffffe" },
	{ { "trace", "0xffffff" }, "0xffffff: must be the number of a queue pair, 2 .. 0xfffffe" },
	{ { "trace", "-5" }, "'-5' is not an option (uroce trace --help)" },
	{ { "trace", "--count", "x", "5" }, "--count x: must be in 1 .. 18446744073709551615" },
	{ { "run", "--files" }, "--files needs a value" },
	{ { "run", "--quiet=1", "true" }, "--quiet=1: --quiet takes no value" },
	{ { "ping", "-c" }, "-c needs a value" },
	{ { "perf", "--mtu" }, "--mtu needs a value" },
	{ { "sim", "--pcap=" }, "--pcap '': must not be empty" },
	/* invalid values */
	{ { "run", "--files", "copies", "true" },
	  "--files copies: must be one of auto, mounts, preload, none" },
	{ { "doctor", "--port", "" }, "--port '': must not be empty" },
	{ { "doctor", "--port", "nowhere0" },
	  "--port nowhere0: must be a network interface or a PCI device of this machine" },
	{ { "doctor", "--port", "ffff:ff:1f.7" },
	  "--port ffff:ff:1f.7: must be a network interface or a PCI device of this machine" },
	{ { "run", "--no-files", "--files", "preload", "true" },
	  "--files and --no-files cannot be combined" },
	{ { "run", "--quiet" }, "no program given: uroce run -- PROGRAM [ARGS...]" },
	{ { "run", "--" }, "no program given: uroce run -- PROGRAM [ARGS...]" },
	{ { "ping", "--count", "0" }, "--count 0: must be in 1 .. 1000000000" },
	{ { "ping", "-c", "-1" }, "--count -1: must be in 1 .. 1000000000" },
	{ { "ping", "-c1000000001" }, "--count 1000000001: must be in 1 .. 1000000000" },
	{ { "ping", "--count", "18446744073709551617" },
	  "--count 18446744073709551617: must be in 1 .. 1000000000" },
	{ { "ping", "--interval", "60001" }, "--interval 60001: must be in 0 .. 60000" },
	{ { "ping", "--interval", "1s" }, "--interval 1s: must be in 0 .. 60000" },
	{ { "ping", "--size", "" }, "--size : must be in 1 .. 1048576" },
	{ { "ping", "--size=1048577" }, "--size 1048577: must be in 1 .. 1048576" },
	{ { "ping", "--size", "0x" }, "--size 0x: must be in 1 .. 1048576" },
	{ { "perf", "--operation", "write,fly" },
	  "--operation write,fly: must be a list of write, read, send, atomic" },
	{ { "perf", "--operation", "" },
	  "--operation : must be a list of write, read, send, atomic" },
	{ { "perf", "--size", "8,,8" },
	  "--size 8,,8: must be a list of at most 16 sizes in 1 .. 67108864" },
	{ { "perf", "--size", "67108865" },
	  "--size 67108865: must be a list of at most 16 sizes in 1 .. 67108864" },
	{ { "perf", "--size", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1" },
	  "--size 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1: must be a list of at most 16 sizes in "
	  "1 .. 67108864" },
	{ { "perf", "--qps", "16385" },
	  "--qps 16385: must be a list of at most 16 numbers in 1 .. 16384" },
	{ { "perf", "--qps", "1,,2" },
	  "--qps 1,,2: must be a list of at most 16 numbers in 1 .. 16384" },
	{ { "perf", "--depth", "0" }, "--depth 0: must be in 1 .. 4096" },
	{ { "perf", "--post", "many" }, "--post many: must be in 1 .. 4096" },
	{ { "perf", "--mtu", "1500" }, "--mtu 1500: must be one of 256, 512, 1024, 2048, 4096" },
	{ { "perf", "--placement", "three" }, "--placement three: must be one of one, two, apart" },
	{ { "perf", "--seconds", "nan" }, "--seconds nan: must be in 0.01 .. 3600" },
	{ { "perf", "--depth", "31", "--post", "16" },
	  "--depth 31: must be a multiple of --post 16" },
	{ { "perf", "--peer", "a", "--depth", "5", "--post", "2" },
	  "--depth 5: must be a multiple of --post 2" },
	{ { "perf", "--report", "a", "--depth", "17", "--post", "16" },
	  "--depth 17: must be a multiple of --post 16" },
	{ { "perf", "--latency", "--cycles" }, "--latency and --cycles cannot be combined" },
	{ { "perf", "--latency", "--operation", "write,read,send,atomic" },
	  "--latency and --operation cannot be combined" },
	{ { "perf", "--peer", "a", "--qps", "1", "--latency" },
	  "--latency and --qps cannot be combined" },
	{ { "perf", "--latency", "--depth", "128" }, "--latency and --depth cannot be combined" },
	{ { "perf", "--peer", "a", "--latency", "--post", "1" },
	  "--latency and --post cannot be combined" },
	{ { "perf", "--peer", "a", "--cycles" },
	  "'--cycles' is not an option (uroce perf --help)" },
	{ { "perf", "--loss", "1,101" },
	  "--loss 1,101: must be a list of at most 16 numbers in 0 .. 100" },
	{ { "perf", "--loss", "0,-1" },
	  "--loss 0,-1: must be a list of at most 16 numbers in 0 .. 100" },
	{ { "perf", "--loss", "nan" },
	  "--loss nan: must be a list of at most 16 numbers in 0 .. 100" },
	{ { "perf", "--reorder", "0,101" },
	  "--reorder 0,101: must be a list of at most 16 numbers in 0 .. 100" },
	{ { "perf", "--peer", "a", "--loss", "1" },
	  "'--loss' is not an option (uroce perf --help)" },
	{ { "perf", "--memory", "63" }, "--memory 63: must be in 64 .. 1048576" },
	{ { "perf", "--report" }, "--report needs a value" },
	{ { "perf", "--report", "" }, "--report '': must not be empty" },
	{ { "perf", "--quick" }, "'--quick' is not an option (uroce perf --help)" },
	{ { "perf", "--report", "a", "--size", "8" },
	  "'--size' is not an option (uroce perf --help)" },
	{ { "perf", "--report", "a", "--peer", "b" },
	  "--report runs both ends itself: it cannot be combined with --peer or --server" },
	{ { "perf", "--server", "--size", "8" }, "'--size' is not an option (uroce perf --help)" },
	{ { "perf", "--server", "--peer", "a" }, "'--peer' is not an option (uroce perf --help)" },
	{ { "perf", "--server", "--tcp-port", "65536" },
	  "--tcp-port 65536: must be in 0 .. 65535" },
	{ { "perf", "--peer" }, "--peer needs a value" },
	{ { "perf", "--peer=" }, "--peer '': must not be empty" },
	{ { "perf", "--peer", "a", "--tcp-port", "0" }, "--tcp-port 0: must be in 1 .. 65535" },
	{ { "perf", "--peer", "a", "--link", "0" }, "--link 0: must be in 0.001 .. 10000" },
	{ { "perf", "--peer", "a", "--placement", "two" },
	  "'--placement' is not an option (uroce perf --help)" },
	{ { "perf", "--tcp-port", "5" }, "'--tcp-port' is not an option (uroce perf --help)" },
	{ { "sim", "--seed", "-1" }, "--seed -1: must be in 0 .. 18446744073709551615" },
	{ { "sim", "--seeds", "0" }, "--seeds 0: must be in 1 .. 18446744073709551615" },
	{ { "sim", "--messages", "4294967296" },
	  "--messages 4294967296: must be in 1 .. 4294967295" },
	{ { "sim", "--qps", "33" }, "--qps 33: must be in 1 .. 32" },
	{ { "sim", "--loss", "1.5" }, "--loss 1.5: must be in 0 .. 1" },
	{ { "sim", "--xrc", "-0.1" }, "--xrc -0.1: must be in 0 .. 1" },
	{ { "sim", "--delay", "2e9" }, "--delay 2e9: must be in 0 .. 1000000000" },
	{ { "sim", "--scenario", "outcast" }, SCENARIO_REFUSED("outcast") },
	{ { "sim", "--scenario", "incast:0" }, SCENARIO_REFUSED("incast:0") },
	{ { "sim", "--scenario=incast:1025" }, SCENARIO_REFUSED("incast:1025") },
	{ { "sim", "--scenario", "incast:many" }, SCENARIO_REFUSED("incast:many") },
	{ { "sim", "--scenario", "reorder:2" }, SCENARIO_REFUSED("reorder:2") },
	{ { "sim", "--scenario", "many:65537" }, SCENARIO_REFUSED("many:65537") },
	{ { "sim", "--scenario" }, SCENARIO_REFUSED("") },
	{ { "sim", "--scenario", "many", "--messages", "5" },
	  "'--messages' is not an option (uroce sim --help)" },
	{ { "sim", "--campaign", "/nonexistent/file" },
	  "/nonexistent/file: No such file or directory" },
	{ { "sim", "--campaign", "/nonexistent/file", "--jobs", "257" },
	  "--jobs 257: must be in 1 .. 256" },
	{ { "sim", "--scenario", "many", "--peers", "cisco" },
	  "--peers cisco: must be uroce, linux, dcqcn or mixed" },
	{ { "sim", "--scenario", "many", "--peers", "linux", "--operation", "read" },
	  "peers of other makes only have --operation write" },
	{ { "sim", "--scenario", "many", "--beside", "tcp" },
	  "--beside tcp: must be none, uc, ud or cm" },
	{ { "sim", "--scenario", "many", "--beside", "ud", "--peers", "linux" },
	  "--beside needs --peers uroce or mixed" },
	{ { "sim", "--scenario", "many", "--operation", "atomic" },
	  "--operation atomic: must be write, send or read" },
	{ { "sim", "--scenario", "many", "--rate", "10" },
	  "--rate 10: must be bits a second, 1M .. 1000G" },
	{ { "sim", "--scenario", "many", "--rate", "10Gbit" },
	  "--rate 10Gbit: must be bits a second, 1M .. 1000G" },
	{ { "sim", "--scenario", "many", "--buffer", "1k" },
	  "--buffer 1k: must be octets, 16k .. 1024M" },
	{ { "sim", "--scenario", "many", "--ecn", "-1" }, "--ecn -1: must be octets, 0 .. 1024M" },
	{ { "sim", "--scenario", "incast", "--ecn", "256k" }, "--ecn must be less than --buffer" },
	{ { "sim", "--scenario", "many", "--delay", "1min" },
	  "--delay 1min: must be a time, 0 .. 10s" },
	{ { "sim", "--scenario", "many", "--time", "1us" },
	  "--time 1us: must be a time, 100us .. 10s" },
	{ { "sim", "--scenario", "many", "--mtu", "1500" },
	  "--mtu 1500: must be 256, 512, 1024, 2048 or 4096" },
	{ { "sim", "--scenario", "many", "--mtu", "1024abc" },
	  "--mtu 1024abc: must be 256, 512, 1024, 2048 or 4096" },
	{ { "sim", "--scenario", "many", "--size", "17M" },
	  "--size 17M: must be octets, 1 .. 16M" },
	{ { "sim", "--scenario", "many", "--size", "0" }, "--size 0: must be octets, 1 .. 16M" },
	{ { "sim", "--scenario", "many", "--size", "16M" },
	  "queue pairs times depth times size must be at most 2 GiB" },
	{ { "sim", "--scenario", "incast:1024", "--qps", "65" },
	  "senders times queue pairs must be at most 65536" },
	{ { "sim", "--scenario", "incast", "--svg", "x" },
	  "--svg shows one row of incast: choose it with --peers" },
};

Test(command_line, wrong_options_are_refused)
{
	char wanted[512];
	struct run r;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(wanted, sizeof(wanted), "uroce %s: %s\n", wrong[i].word[0], wrong[i].said);
		run(wrong[i].word, &r);
		cr_expect_eq(r.status, 2, "%s: status %d", wanted, r.status);
		cr_expect_str_eq(r.err, wanted, "%s, not %s", r.err, wanted);
		cr_expect_str_empty(r.out, "%s: %s", wanted, r.out);
	}
}

/* What the library would silently take for the default. */
Test(command_line, variables_of_the_library)
{
	static const struct {
		const char *name, *value, *must;
	} rows[] = { { "UROCE_PROMOTE", "maybe", "on, off or auto" },
		     { "UROCE_PROMOTE", "on off", "on, off or auto" },
		     { "UROCE_LOG", "loud", "info or debug" } };
	static const char *const words[WORDS] = { "run", "--socket", "/nonexistent", "true" };
	char wanted[128];
	struct run r;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		setenv(rows[i].name, rows[i].value, 1);
		run(words, &r);
		unsetenv(rows[i].name);
		snprintf(wanted, sizeof(wanted), "uroce run: %s=%s: must be %s\n", rows[i].name,
			 rows[i].value, rows[i].must);
		cr_expect_eq(r.status, 2, "status %d", r.status);
		cr_expect_str_eq(r.err, wanted);
	}
	setenv("UROCE_PROMOTE", "auto", 1);
	setenv("UROCE_LOG", "", 1);
	run(words, &r);
	cr_expect_eq(r.status, 1, "they are right, and there is no engine: %s", r.err);
}

/* No table can check this: the value is a path, and the socket limits its length. */
Test(command_line, a_path_too_long_for_a_socket)
{
	static const char *const command[] = { "stat", "ping", "top", "run" };
	struct run r;

	for (size_t i = 0; i < ARRAY_SIZE(command); i++) {
		const char *const words[WORDS] = { command[i], "--socket", LONG_112,
						   i == 3 ? "true" : NULL };

		run(words, &r);
		cr_expect_eq(r.status, 1, "%s: status %d", command[i], r.status);
		cr_expect(strstr(r.err, "a socket path is limited to 107 octets") != NULL, "%s",
			  r.err);
	}
}

Test(command_line, help_is_not_an_error)
{
	static const char *const command[] = {
		"run", "stat", "top", "doctor", "ping", "perf", "sim"
	};
	static const char *const how[] = { "--help", "-h", "--hel" };
	char wanted[64];
	struct run r;

	for (size_t i = 0; i < ARRAY_SIZE(command); i++)
		for (size_t k = 0; k < ARRAY_SIZE(how); k++) {
			const char *const words[WORDS] = { command[i], "--json", how[k] };

			snprintf(wanted, sizeof(wanted), "usage: uroce %s ", command[i]);
			run(words, &r);
			cr_expect_eq(r.status, 0, "uroce %s %s: %d", command[i], how[k], r.status);
			cr_expect_eq(strncmp(r.out, wanted, strlen(wanted)), 0, "%s", r.out);
			cr_expect_str_empty(r.err, "%s", r.err);
		}
}

Test(command_line, no_command_and_an_unknown_command)
{
	static const char *const none[WORDS], *const other[WORDS] = { "fly" };
	struct run r;

	run(none, &r);
	cr_expect_eq(r.status, 2);
	cr_expect_eq(strncmp(r.err, "usage: uroce COMMAND", 20), 0, "%s", r.err);
	run(other, &r);
	cr_expect_eq(r.status, 2);
	cr_expect_str_eq(r.err, "uroce: unknown command 'fly': must be run, stat, top, capture, "
				"trace, doctor, ping, perf or sim (uroce --help)\n");
}

/* Valid values, to show that the table above refuses only wrong ones. */
Test(command_line, valid_options_are_accepted)
{
	static const char *const sim[][WORDS] = {
		{ "sim", "--seed", "0x10", "--messages=5", "--qps", "1", "--json" },
		{ "sim", "--seed", "16", "--mess", "5", "--qps=32", "--qps=1", "--json" },
	};
	struct run r[2];

	for (int i = 0; i < 2; i++) {
		run(sim[i], &r[i]);
		cr_expect_eq(r[i].status, 0, "%s", r[i].err);
		cr_expect_eq(strncmp(r[i].out, "{\"seed\": 16, \"ok\": true", 23), 0, "%s",
			     r[i].out);
		*strstr(r[i].out, "packets_per_second") = '\0';
	}
	cr_expect_str_eq(r[0].out, r[1].out);
}

/* The line that repeats a run that failed has the very numbers of that run. */
Test(command_line, a_run_is_repeated_with_the_same_numbers)
{
	static const char *const words[WORDS] = { "sim",	"--pcap",    "/nonexistent/file",
						  "--delay",	"1234567.5", "--loss",
						  "0.123456789" };
	const char *loss, *delay;
	struct run r;

	run(words, &r);
	cr_assert_eq(r.status, 1, "%d", r.status);
	loss = strstr(r.err, " --loss ");
	delay = strstr(r.err, " --delay ");
	cr_assert(loss != NULL && delay != NULL, "%s", r.err);
	cr_expect_eq(strtod(loss + strlen(" --loss "), NULL), 0.123456789, "%s", r.err);
	cr_expect_eq(strtod(delay + strlen(" --delay "), NULL), 1234567.5, "%s", r.err);
}

/* An empty element of PATH is the current folder, as for execvp(3). */
Test(command_line, a_program_in_the_current_folder)
{
	static const char *const paths[] = { ":/bin", "/bin:", "/bin::/usr/bin", "", "." };
	static const char *const words[WORDS] = { "run", "--socket", "/nowhere", "here" };
	char folder[] = "/tmp/uroce-command-line-XXXXXX";
	struct run r;

	cr_assert_not_null(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
	cr_assert_eq(close(open("here", O_CREAT | O_WRONLY | O_CLOEXEC, 0755)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		setenv("PATH", paths[i], 1);
		run(words, &r);
		cr_expect_not_null(strstr(r.err, "/nowhere: no engine"), "PATH=%s: %s", paths[i],
				   r.err);
	}
	unlink("here");
	rmdir(folder);
}

/* A container may have some of the machine's CPUs, and not the first ones. */
Test(command_line, perf_uses_only_allowed_cpus)
{
	static const char *const words[WORDS] = { "perf",   "--placement", "two",   "--no-limits",
						  "--size", "8",	   "--sec", "0.01" };
	cpu_set_t all, one;
	struct run r;
	int last = CPU_SETSIZE - 1;

	cr_assert_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(last, &all))
		last--;
	CPU_ZERO(&one);
	CPU_SET(last, &one);
	cr_assert_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	run(words, &r);
	cr_expect_eq(r.status, 1, "%d", r.status);
	cr_expect_not_null(strstr(r.err, "this placement needs two cores"), "%s", r.err);
}
