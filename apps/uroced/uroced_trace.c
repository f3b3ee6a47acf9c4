/* SPDX-License-Identifier: BSD-3-Clause */
/* The prompt's commands `trace ...`: the last packets of a queue pair, which the engine keeps. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "locate.h"
#include "packets/capture_file.h"
#include "packets/trace_kept.h"
#include "uroced_commands.h"

/* As any program asks. The descriptor, or -1: the command has failed. */
static int ask_ourselves(const char *command)
{
	int fd = engine_connect(console.options->socket);

	if (fd < 0)
		console_fail("%s: %s", command, strerror(-fd));
	return fd < 0 ? -1 : fd;
}

static bool read_number(const char *text, int base, unsigned long *value)
{
	char *end;

	*value = strtoul(text, &end, base);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static bool read_keep(const struct words *w, unsigned long *qpn, unsigned long *packets)
{
	if (!read_number(w->word[2], 0, qpn) || *qpn < 2 || *qpn >= QPN_MULTICAST)
		console_fail(
			"trace keep %.32s %.32s: must be the number of a queue pair, 2 .. 0xfffffe",
			w->word[2], w->word[3]);
	else if (!read_number(w->word[3], 10, packets) || *packets < 1 ||
		 *packets > LIMIT_TRACE_PACKETS)
		console_fail("trace keep %.32s %.32s: must keep 1 .. %u packets", w->word[2],
			     w->word[3], LIMIT_TRACE_PACKETS);
	else
		return true;
	return false;
}

static bool keep_is_right(const struct words *w)
{
	unsigned long qpn, packets;

	return read_keep(w, &qpn, &packets);
}

static void trace_keep(void *parsed, struct cmdline *cl, void *data)
{
	const struct words *w = parsed;
	unsigned long qpn, packets;
	char command[96], why[256];
	int fd;

	snprintf(command, sizeof(command), "trace keep %.32s %.32s", w->word[2], w->word[3]);
	if (!read_keep(w, &qpn, &packets) || (fd = ask_ourselves(command)) < 0)
		return;
	if (kept_start(fd, (uint32_t)qpn, (uint32_t)packets, why, sizeof(why)) != 0)
		console_fail("%s: %s", command, why);
	close(fd);
}

/* The kept trace, for the caller to free. False: the command has failed. */
static bool take(const char *command, struct kept_trace *k)
{
	int fd = ask_ourselves(command);
	char why[256];
	int error;

	if (fd < 0)
		return false;
	error = kept_read(fd, k, why, sizeof(why));
	close(fd);
	if (error != 0)
		console_fail("%s: %s", command, why);
	return error == 0;
}

static void trace_show(void *parsed, struct cmdline *cl, void *data)
{
	struct kept_trace k;

	if (!take("trace show", &k))
		return;
	kept_print(&k, 0);
	printf("queue pair 0x%06x: %u of %lu packets are kept\n", k.about.qpn, k.about.count,
	       (unsigned long)k.about.seen);
	kept_free(&k);
}

static void trace_save(void *parsed, struct cmdline *cl, void *data)
{
	const char *path = ((const struct words *)parsed)->word[2];
	struct kept_trace k;
	char command[160];
	int error;

	snprintf(command, sizeof(command), "trace save %s", path);
	if (capture_file_is_pipe(path)) {
		console_fail("%s: must be a file", command);
		return;
	}
	if (!take(command, &k))
		return;
	error = kept_save(&k, 0, path);
	if (error != 0)
		console_fail("%s: %s", command, strerror(error));
	else
		printf("%s: %u packets\n", path, k.about.count);
	kept_free(&k);
}

static void trace_end_it(void *parsed, struct cmdline *cl, void *data)
{
	int fd = ask_ourselves("trace end");
	char why[256];

	if (fd < 0)
		return;
	if (kept_stop(fd, why, sizeof(why)) != 0)
		console_fail("trace end: %s", why);
	close(fd);
}

WORD(trace_word, 0, "trace");
WORD(keep_word, 1, "keep");
WORD(show_word, 1, "show");
WORD(save_word, 1, "save");
WORD(end_word, 1, "end");
WORD(qpn_word, 2, ANY_WORD);
WORD(file_word, 2, ANY_WORD);
WORD(packets_word, 3, ANY_WORD);

static cmdline_parse_inst_t trace_keep_command = {
	.f = trace_keep,
	VALUES(keep_is_right),
	.help_str = "trace keep QPN N: keep the last N packets of that queue pair from now on",
	.tokens = { (void *)&trace_word, (void *)&keep_word, (void *)&qpn_word,
		    (void *)&packets_word, NULL },
};
static cmdline_parse_inst_t trace_show_command = {
	.f = trace_show,
	.help_str = "trace show: print the kept packets, one line each",
	.tokens = { (void *)&trace_word, (void *)&show_word, NULL },
};
static cmdline_parse_inst_t trace_save_command = {
	.f = trace_save,
	.help_str = "trace save FILE: write them into FILE, for Wireshark",
	.tokens = { (void *)&trace_word, (void *)&save_word, (void *)&file_word, NULL },
};
static cmdline_parse_inst_t trace_end_command = {
	.f = trace_end_it,
	.help_str = "trace end: stop keeping packets, and forget the kept ones",
	.tokens = { (void *)&trace_word, (void *)&end_word, NULL },
};

cmdline_parse_inst_t *const trace_commands[] = { &trace_keep_command, &trace_show_command,
						 &trace_save_command, &trace_end_command, NULL };
