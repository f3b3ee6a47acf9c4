/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The prompt's commands `capture start FILE`, `capture stop` and `show capture`: frames of this engine
 * go into a file, which a thread of its own writes.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "config/limits.h"
#include "packets/capture_file.h"
#include "uroced_commands.h"

static struct {
	bool running;
	pthread_t thread;
	struct capture_session session;
	FILE *file;
	char path[STR_TOKEN_SIZE];
	/* Atomic: the prompt writes it, the thread reads it. */
	uint32_t stop;
	/* Atomic: the thread writes it, the prompt shows it. */
	uint64_t frames;
	/* the thread's; the prompt's once it has joined it */
	struct capture_counts counts;
	int error;
} capture;

static void *write_frames(void *arg)
{
	bool more;
	int ended;

	do {
		if (__atomic_load_n(&capture.stop, __ATOMIC_ACQUIRE) != 0 || capture.session.gone)
			capture_session_end(&capture.session);
		capture.error = capture_file_take(capture.file, &capture.session, 0,
						  &capture.counts, &more);
		__atomic_store_n(&capture.frames, capture.counts.frames, __ATOMIC_RELAXED);
		if (!more && capture.session.until == 0)
			capture_session_wait(&capture.session, LIMIT_CAPTURE_LOOK_MS);
		else if (!more)
			break;
	} while (capture.error == 0);
	ended = capture_file_end(capture.file, &capture.session, &capture.counts);
	if (capture.error == 0)
		capture.error = ended;
	return NULL;
}

static int fail(const char *path, const char *why)
{
	console_fail("capture start %s: %s", path, why);
	return 1;
}

/* The session and the head of the file. 0, or 1 and nothing is open. */
static int begin(const char *path)
{
	char why[160];
	int error;

	/* `uroce capture` has these; here the prompt writes to standard output, too */
	if (capture_file_is_pipe(path))
		return fail(path, "must be a file");
	if (capture_session_open(&capture.session, console.options->socket, LIMIT_CAPTURE_SNAP,
				 LIMIT_CAPTURE_RING, why, sizeof(why)) != 0)
		return fail(path, why);
	capture.file = capture_file_open(path);
	error = capture.file == NULL ? errno
				     : capture_file_begin(capture.file, &capture.session, "uroced",
							  LIMIT_CAPTURE_SNAP);
	if (error == 0)
		return 0;
	if (capture.file != NULL)
		fclose(capture.file);
	capture_session_close(&capture.session);
	return fail(path, strerror(error));
}

static void capture_start(void *parsed, struct cmdline *cl, void *data)
{
	const char *path = ((const struct words *)parsed)->word[2];
	int error;

	if (capture.running) {
		console_fail("capture start %s: the capture into %s still runs; `capture stop` "
			     "ends it",
			     path, capture.path);
		return;
	}
	memset(&capture, 0, sizeof(capture));
	if (begin(path) != 0)
		return;
	snprintf(capture.path, sizeof(capture.path), "%s", path);
	error = pthread_create(&capture.thread, NULL, write_frames, NULL);
	capture.running = error == 0;
	if (capture.running)
		return;
	fclose(capture.file);
	capture_session_close(&capture.session);
	fail(path, strerror(error));
}

/* 0, or what went wrong with the file. */
static int stop(void)
{
	__atomic_store_n(&capture.stop, 1, __ATOMIC_RELEASE);
	pthread_join(capture.thread, NULL);
	capture.running = false;
	capture_session_close(&capture.session);
	if (fclose(capture.file) != 0 && capture.error == 0)
		capture.error = errno;
	return capture.error;
}

static void capture_stop(void *parsed, struct cmdline *cl, void *data)
{
	int error;

	if (!capture.running) {
		console_fail("capture stop: no capture runs");
		return;
	}
	error = stop();
	if (error != 0)
		console_fail("capture stop: %s: %s", capture.path, strerror(error));
	else
		printf("%s: %" PRIu64 " frames captured, %" PRIu64 " lost\n", capture.path,
		       capture.counts.frames, capture.counts.lost);
}

static void show_capture(void *parsed, struct cmdline *cl, void *data)
{
	if (capture.running)
		printf("%s: %" PRIu64 " frames so far\n", capture.path,
		       __atomic_load_n(&capture.frames, __ATOMIC_RELAXED));
	else
		puts("no capture runs");
}

void console_capture_close(void)
{
	if (capture.running)
		stop();
}

WORD(show_word, 0, "show");
WORD(capture_word, 0, "capture");
WORD(show_capture_word, 1, "capture");
WORD(start_word, 1, "start");
WORD(stop_word, 1, "stop");
WORD(file_word, 2, ANY_WORD);

static cmdline_parse_inst_t capture_start_command = {
	.f = capture_start,
	.help_str = "capture start FILE: write frames of the port and of this host into FILE, for "
		    "Wireshark",
	.tokens = { (void *)&capture_word, (void *)&start_word, (void *)&file_word, NULL },
};
static cmdline_parse_inst_t capture_stop_command = {
	.f = capture_stop,
	.help_str = "capture stop: end the capture, and say how many frames it has",
	.tokens = { (void *)&capture_word, (void *)&stop_word, NULL },
};
static cmdline_parse_inst_t show_capture_command = {
	.f = show_capture,
	.help_str = "show capture: whether a capture runs, and how many frames it has",
	.tokens = { (void *)&show_word, (void *)&show_capture_word, NULL },
};

cmdline_parse_inst_t *const capture_commands[] = { &capture_start_command, &capture_stop_command,
						   &show_capture_command, NULL };
