/* SPDX-License-Identifier: BSD-3-Clause */
#include "uroced_eal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "base/bits.h"
#include "uroced_log.h"
#include "uroced_vdev.h"

#define LINE_MOST 400 /* octets of the line that is printed in the end */
#define WORDS	  65536 /* ... of what it is made of */

/* ---- what is said meanwhile ---- */

/* A stream of this process, and the file in memory that is in its place. */
struct stream {
	int fd;
	int own; /* where it led before; -1: it still does */
	int file;
};

static struct stream usage = { STDOUT_FILENO, -1, -1 }; /* EAL's answer to a wrong option */
static struct stream said = { STDERR_FILENO, -1, -1 };
static char *kept; /* of a start that went well; NULL: nothing */

static void keep(struct stream *s)
{
	s->file = memfd_create("said", MFD_CLOEXEC);
	s->own = s->file < 0 ? -1 : fcntl(s->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (s->own >= 0)
		dup2(s->file, s->fd);
}

/* Returns the kept output, for the caller to free; NULL: no memory, or nothing was kept. */
static char *give_back(struct stream *s)
{
	char *text = s->own < 0 ? NULL : calloc(1, WORDS);

	fflush(NULL);
	if (s->own >= 0) {
		dup2(s->own, s->fd);
		close(s->own);
	}
	if (text != NULL && pread(s->file, text, WORDS - 1, 0) < 0)
		text[0] = '\0';
	if (s->file >= 0)
		close(s->file);
	s->own = s->file = -1;
	return text;
}

/* EAL may end the process, or abort it: then its messages must still be printed. */
static void let_out(void)
{
	char text[512];
	ssize_t n;

	for (off_t at = 0; said.own >= 0 && (n = pread(said.file, text, sizeof(text), at)) > 0;
	     at += n)
		if (write(said.own, text, (size_t)n) < 0)
			return;
}

static void let_out_and_abort(int number)
{
	signal(number, SIG_DFL); /* abort() goes on with that */
	let_out();
}

static void keep_both(void)
{
	fflush(NULL);
	keep(&usage);
	keep(&said);
	atexit(let_out);
	signal(SIGABRT, let_out_and_abort);
}

/* ---- one line of the output ---- */

static const char *without(const char *line, const char *prefix)
{
	size_t n = strlen(prefix);

	return strncmp(line, prefix, n) == 0 ? line + n : line;
}

/* The line without its level and source: the journal's "<3>", "EAL: FATAL: ". */
static const char *words_of(const char *line)
{
	if (line[0] == '<' && line[1] != '\0' && line[2] == '>')
		line += 3;
	return without(without(line, "EAL: "), "FATAL: ");
}

/* News of a start that goes well, and lines that only refer to lines before. */
static bool tells_nothing(const char *line)
{
	return line[0] == '\0' || strncmp(line, "Detected ", strlen("Detected ")) == 0 ||
	       strcmp(line, "Invalid 'command line' arguments.") == 0;
}

/* The lines of `words`, which is cut up, behind each other; each once. */
static void one_line(char *words, char *line, size_t size)
{
	char *next;
	size_t n = 0;

	line[0] = '\0';
	while ((next = strsep(&words, "\n")) != NULL) {
		const char *part = words_of(next);

		if (!tells_nothing(part) && strstr(line, part) == NULL && n < size)
			n += (size_t)snprintf(line + n, size - n, "%s%s", n > 0 ? "; " : "", part);
	}
}

/* A user who asks EAL to say more gets all of it. */
static void explain(char *words, const char *given, char *line, size_t size)
{
	line[0] = '\0';
	if (words == NULL)
		return;
	if (strstr(given, "--log-level") != NULL)
		fputs(words, stderr);
	one_line(words, line, size);
}

static void join(char *text, size_t size, int count, char *const *word)
{
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < count && n < size; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i > 0 ? " " : "", word[i]);
}

/* ---- options that EAL has not ---- */

/* Whether EAL's usage has this option: "--name" or "-n"; getopt lets long names be shortened. */
static bool is_listed(const char *list, const char *word)
{
	bool is_long = word[1] == '-';
	size_t n = is_long ? strcspn(word, "=") : 2;
	const char *at = list;

	while ((at = strstr(at, "-")) != NULL) {
		if ((at == list || isspace((unsigned char)at[-1])) && strncmp(at, word, n) == 0 &&
		    (is_long || !isalnum((unsigned char)at[2])))
			return true;
		at += strspn(at, "-");
	}
	return false;
}

/* EAL says only that something is wrong if that is getopt's business. */
static void find_unknown(const char *list, const struct eal_arguments *eal, char *line, size_t size)
{
	const char *last = eal->argv[eal->argc - 1];

	for (int i = eal->given; list != NULL && i < eal->argc; i++)
		if (eal->argv[i][0] == '-' && !is_listed(list, eal->argv[i])) {
			snprintf(line, size, "unrecognized option '%s'", eal->argv[i]);
			return;
		}
	if (eal->given < eal->argc && last[0] == '-')
		snprintf(line, size, "option '%s' has no value, or one that it does not take",
			 last);
}

/* ---- the start ---- */

static int refuse(const struct eal_arguments *eal, char *words, const char *list, const char *given,
		  int error)
{
	bool wrong = error == EINVAL || error == ENODEV;
	char line[LINE_MOST];

	explain(words, given, line, sizeof(line));
	if (wrong && line[0] == '\0')
		find_unknown(list, eal, line, sizeof(line));
	SAY(ERR, "EAL does not start%s%s%s: %s%s", given[0] != '\0' ? " with '" : "", given,
	    given[0] != '\0' ? "'" : "", line[0] != '\0' ? line : rte_strerror(error),
	    wrong ? " (uroced --help -- lists what EAL takes)" : "");
	return wrong ? OPTIONS_USAGE : 1;
}

/* --mbuf-pool-ops-name is only looked up when there is a pool to make. */
static bool has_pool_ops(const char *name)
{
	for (uint32_t i = 0; i < rte_mempool_ops_table.num_ops; i++)
		if (strcmp(rte_mempool_ops_table.ops[i].name, name) == 0)
			return true;
	return false;
}

/* The kind of packet buffers, and whether another process has the memory (--proc-type auto). */
static int check_process(void)
{
	const char *ops = rte_mbuf_user_mempool_ops();

	if (ops != NULL && !has_pool_ops(ops)) {
		SAY(ERR,
		    "--mbuf-pool-ops-name %s: must name mempool operations of DPDK or of a library given with -d, such as ring_mp_mc or stack",
		    ops);
		return OPTIONS_USAGE;
	}
	if (rte_eal_process_type() == RTE_PROC_PRIMARY)
		return OPTIONS_OK;
	SAY(ERR, "--proc-type auto: another process has this --file-prefix: choose another one");
	return 1;
}

/* EAL took the options; one of them is wrong all the same. `taken`: as rte_eal_init() counts them. */
static int check_taken(const struct eal_arguments *eal, int taken, char *words, const char *given)
{
	const struct rte_devargs *missing = vdev_missing();
	char line[LINE_MOST], process[64] = "";
	int holder;

	if (taken + 1 < eal->argc) {
		SAY(ERR,
		    "'%s' is not an option of EAL: its options begin with '-' (uroced --help -- lists "
		    "them), those of uroced come after `--`",
		    eal->argv[taken + 1]);
		return OPTIONS_USAGE;
	}
	if (missing == NULL)
		return check_process();
	explain(words, given, line, sizeof(line));
	holder = vdev_holder(missing);
	if (holder > 0)
		snprintf(process, sizeof(process), "; process %d has that socket", holder);
	SAY(ERR, "EAL could not create %s, from '%s': %s%s", missing->name, given, line, process);
	return holder > 0 || vdev_needs_machine(missing) ? 1 : OPTIONS_USAGE;
}

static bool asks_for_usage(const struct eal_arguments *eal)
{
	for (int i = 1; i < eal->argc; i++)
		if (strcmp(eal->argv[i], "--help") == 0 || strcmp(eal->argv[i], "-h") == 0)
			return true;
	return false;
}

int start_eal(struct eal_arguments *eal)
{
	char given[LINE_MOST], *words, *list;
	struct eal_arguments as_given = *eal; /* getopt changes the order */
	int taken, status;

	join(given, sizeof(given), eal->argc - eal->given, eal->argv + eal->given);
	log_open(eal->syslog);
	if (!asks_for_usage(eal))
		keep_both();
	taken = rte_eal_init(eal->argc, eal->argv);
	list = give_back(&usage);
	words = give_back(&said);
	signal(SIGABRT, SIG_DFL);
	if (taken < 0)
		status = refuse(&as_given, words, list, given, rte_errno);
	else
		status = check_taken(eal, taken, words, given);
	if (taken >= 0 && status != 0)
		end_eal();
	if (status == 0)
		kept = words;
	else
		free(words);
	free(list);
	return status;
}

static bool asks_for_more(const struct eal_arguments *eal)
{
	for (int i = eal->given; i < eal->argc; i++)
		if (strncmp(eal->argv[i], "--log-level", strlen("--log-level")) == 0)
			return true;
	return false;
}

void start_eal_say(const struct eal_arguments *eal, bool explained)
{
	if (kept != NULL && (!explained || asks_for_more(eal)))
		fputs(kept, stderr);
	free(kept);
	kept = NULL;
}
