/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce trace: the packets of one queue pair as they pass, one line each. It is a program of its
 * own, because it decodes packets, and `uroce run` should not load the libraries for that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture_session.h"
#include "commands.h"
#include "config/limits.h"
#include "lists.h"
#include "options.h"
#include "output.h"
#include "trace_kept.h"
#include "trace_story.h"

#define SNAP 256u /* octets: all headers, and the first of the payload */

static const char usage[] =
	"usage: uroce trace [--socket PATH] [--count N] [--seconds N] QPN\n"
	"       uroce trace [--socket PATH] --keep N | --last N [--pcap FILE] | --end QPN\n"
	"\n"
	"Prints the packets of a queue pair as they pass, one line each: the time since the first one,\n"
	"its direction (> sent, < received), opcode, PSN and other important fields. QPN is a\n"
	"number that `uroce stat --qps` shows. Ends at SIGINT, --count or --seconds. Only root and\n"
	"the engine's own user may trace.\n"
	"\n"
	"  --socket PATH  use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --count N      end after N packets\n"
	"  --seconds N    end after N seconds\n"
	"\n"
	"The engine itself can keep the last packets of a queue pair, while no program watches:\n"
	"\n"
	"  --keep N       keep the last N packets from now on, 1 .. 16384 of each lcore\n"
	"  --last N       print the last N kept packets, even if the queue pair is gone\n"
	"  --pcap FILE    ... but write them into FILE, for Wireshark\n"
	"  --end          stop keeping packets, and forget the kept ones\n";

struct trace_options {
	const char *socket;
	uint64_t count; /* 0: no end */
	double seconds; /* likewise */
	uint32_t qpn;
	uint32_t keep, last; /* 0: not this one */
	bool end;
	const char *pcap;
};

/* NULL, or which options contradict each other. */
static const char *contradiction(const struct trace_options *o)
{
	bool live = o->count > 0 || o->seconds > 0;

	if ((o->keep > 0) + (o->last > 0) + o->end > 1)
		return "of --keep, --last and --end only one can be given";
	if (live && (o->keep > 0 || o->last > 0 || o->end))
		return "--count and --seconds are for packets as they pass, not for kept ones";
	if (o->pcap != NULL && o->last == 0)
		return "--pcap needs --last";
	return NULL;
}

static bool parse(int argc, char **argv, struct trace_options *o, int *status)
{
	const struct option_row rows[] = {
		{ "socket", .text = &o->socket },
		{ "count", .u64 = &o->count, .least = 1, .most = UINT64_MAX },
		{ "seconds", .real = &o->seconds, .from = 0.001, .to = 1e9 },
		{ "keep", .u32 = &o->keep, .least = 1, .most = LIMIT_TRACE_PACKETS },
		{ "last", .u32 = &o->last, .least = 1, .most = LIMIT_TRACE_PACKETS },
		{ "pcap", .text = &o->pcap },
		{ "end", .flag = &o->end },
		{ NULL },
	};
	const char *wrong, *word;
	unsigned long qpn;
	char text[128], *end;

	if (!options_read_word("trace", usage, rows, argc, argv, "QPN", "queue pair", &word,
			       status))
		return false;
	wrong = contradiction(o);
	if (wrong != NULL) {
		*status = options_refuse("trace", wrong);
		return false;
	}
	qpn = strtoul(word, &end, 0);
	o->qpn = (uint32_t)qpn;
	if (word[0] >= '0' && word[0] <= '9' && *end == '\0' && qpn >= 2 && qpn < QPN_MULTICAST)
		return true;
	snprintf(text, sizeof(text), "%.40s: must be the number of a queue pair, 2 .. 0xfffffe",
		 word);
	*status = options_refuse("trace", text);
	return false;
}

/* ---- which packets ---- */

struct traced {
	uint32_t qpn;
	bool found;
	struct listed_qp qp;
};

static void find(void *arg, const void *entry)
{
	const struct listed_qp *q = entry;
	struct traced *t = arg;

	if (q->qpn != t->qpn)
		return;
	t->qp = *q;
	t->found = true;
}

/* 0 or an errno and `why`. */
static int look_up(const char *path, struct traced *t, char *why, size_t why_size)
{
	int fd = engine_connect(path), error;

	if (fd < 0)
		return -fd;
	error = list_walk(fd, LIST_QPS, find, t, why, why_size);
	close(fd);
	return error;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_packet(struct capture_frame *f, struct packet *p)
{
	return f->record.whole <= sizeof(f->octets) &&
	       story_decode(f->octets, f->record.length, f->record.whole, p);
}

static void trace(struct capture_session *s, const struct trace_options *o, const struct traced *t)
{
	const struct story_of of = { t->qpn, t->qp.dest_qpn, t->qp.peer };
	static struct capture_frame frame;
	double end = now() + o->seconds;
	uint64_t first = 0, n = 0;
	struct packet p;
	char way;

	while ((n < o->count || o->count == 0) && !ferror(stdout)) {
		if (s->gone || capture_interrupted || (o->seconds > 0 && now() >= end))
			capture_session_end(s);
		if (capture_session_next(s, &frame)) {
			way = is_packet(&frame, &p) ? story_way(&of, &p) : 0;
			if (way == 0)
				continue;
			first = n++ == 0 ? frame.time : first;
			story_print(&p, way, (double)(int64_t)(frame.time - first) / 1e9);
			continue;
		}
		if (s->until != 0 || output_error() != 0)
			break;
		capture_session_wait(s, LIMIT_CAPTURE_LOOK_MS);
	}
	if (capture_session_lost(s) > 0)
		fprintf(stderr, "uroce trace: %" PRIu64 " frames of the engine found no room\n",
			capture_session_lost(s));
}

static int fail(const char *why)
{
	fprintf(stderr, "uroce trace: %s\n", why);
	return EXIT_FAILED;
}

/* ---- what the engine keeps ---- */

static int show_kept(const struct trace_options *o, const struct kept_trace *k)
{
	int error = 0;

	if (o->pcap == NULL)
		kept_print(k, o->last);
	else
		error = kept_save(k, o->last, o->pcap);
	if (error != 0)
		fprintf(stderr, "uroce trace: --pcap %s: %s\n", o->pcap, strerror(error));
	return error != 0 ? EXIT_FAILED : output_status("uroce trace");
}

/* Reads or ends the trace of this queue pair, not of another one. */
static int use_kept(int fd, const struct trace_options *o)
{
	struct kept_trace k;
	char why[256];
	int status;

	if (kept_read(fd, &k, why, sizeof(why)) != 0)
		return fail(why);
	if (k.about.qpn != o->qpn) {
		snprintf(why, sizeof(why),
			 "0x%06" PRIx32 ": the queue pair that is traced is 0x%06" PRIx32, o->qpn,
			 k.about.qpn);
		status = fail(why);
	} else if (o->end) {
		status = kept_stop(fd, why, sizeof(why)) != 0 ? fail(why) : EXIT_DONE;
	} else {
		status = show_kept(o, &k);
	}
	kept_free(&k);
	return status;
}

static int kept(const char *path, const struct trace_options *o)
{
	int fd = engine_connect(path), status = EXIT_DONE;
	char why[256];

	if (fd < 0)
		return fail(strerror(-fd));
	if (o->keep == 0)
		status = use_kept(fd, o);
	else if (kept_start(fd, o->qpn, o->keep, why, sizeof(why)) != 0)
		status = fail(why);
	close(fd);
	return status;
}

int main(int argc, char **argv)
{
	struct trace_options o = { 0 };
	static struct capture_session s;
	struct engine_place where;
	struct reply_device device;
	struct traced t = { 0 };
	char why[256] = "";
	int error, status;

	output_keep_closed();
	if (!parse(argc, argv, &o, &status))
		return status;
	capture_catch_signals();
	t.qpn = o.qpn;
	if (engine_locate(o.socket, &where, &device, why, sizeof(why)) != 0)
		return fail(why);
	if (o.keep > 0 || o.last > 0 || o.end)
		return kept(where.path, &o);
	error = look_up(where.path, &t, why, sizeof(why));
	if (error == 0 && !t.found) {
		snprintf(why, sizeof(why),
			 "0x%06" PRIx32 ": no queue pair has this number (uroce stat --qps)",
			 o.qpn);
		return fail(why);
	}
	if (error == 0)
		error = capture_session_open(&s, where.path, SNAP, LIMIT_CAPTURE_RING, why,
					     sizeof(why));
	if (error != 0)
		return fail(why[0] != '\0' ? why : strerror(error));
	trace(&s, &o, &t);
	status = output_status("uroce trace");
	if (s.gone)
		status = fail("the engine has ended");
	capture_session_close(&s);
	return status;
}
