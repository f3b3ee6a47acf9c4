/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uroce trace: the packets of one queue pair as they pass, a line each. A program of its own, as it
 * decodes packets and `uroce run` shall not load what that needs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "capture_session.h"
#include "commands.h"
#include "lists.h"
#include "options.h"
#include "wire/decode.h"
#include "wire/opcode.h"

#define WAIT_MS 5
#define SNAP	256u /* octets: all headers, and the first of the payload */

static const char usage[] =
	"usage: uroce trace [--socket PATH] [--count N] [--seconds N] QPN\n"
	"\n"
	"Prints the packets of a queue pair as they pass, a line each: the time since the first one,\n"
	"its direction (> sent, < received), what it is, its PSN, and what else matters. QPN is a\n"
	"number that `uroce stat --qps` shows. Ends with SIGINT, --count or --seconds. Only root and\n"
	"the engine's own user may trace.\n"
	"\n"
	"  --socket PATH  use the engine at PATH (default: $UROCE_SOCKET, the system's, your own)\n"
	"  --count N      end after N packets\n"
	"  --seconds N    end after N seconds\n";

struct trace_options {
	const char *socket;
	uint64_t count; /* 0: no end */
	double seconds; /* likewise */
	uint32_t qpn;
};

static bool parse(int argc, char **argv, struct trace_options *o, int *status)
{
	const struct option_row rows[] = {
		{ "socket", .text = &o->socket },
		{ "count", .u64 = &o->count, .least = 1, .most = UINT64_MAX },
		{ "seconds", .real = &o->seconds, .from = 0.001, .to = 1e9 },
		{ NULL },
	};
	unsigned long qpn;
	char text[128], *end;
	int rest;

	if (!options_read("trace", usage, rows, argc, argv, &rest, status))
		return false;
	if (rest + 1 != argc) {
		*status = options_refuse("trace", rest == argc
							  ? "no queue pair given: uroce trace QPN"
							  : "more than one queue pair given");
		return false;
	}
	qpn = strtoul(argv[rest], &end, 0);
	o->qpn = (uint32_t)qpn;
	if (argv[rest][0] >= '0' && argv[rest][0] <= '9' && *end == '\0' && qpn >= 2 &&
	    qpn < QPN_MULTICAST)
		return true;
	snprintf(text, sizeof(text), "%.40s: must be the number of a queue pair, 2 .. 0xfffffe",
		 argv[rest]);
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

/* '>' it sent the packet, '<' it is to receive it, 0: neither. */
static char direction(const struct traced *t, const struct packet *p)
{
	if (p->dest_qpn == t->qpn)
		return '<';
	if (t->qp.dest_qpn != 0 && p->dest_qpn == t->qp.dest_qpn &&
	    gid_equal(&p->dst_gid, &t->qp.peer))
		return '>';
	return opcode_is(p->opcode, OP_DETH) && p->src_qpn == t->qpn ? '>' : 0;
}

/* ---- a packet in words ---- */

static void print_syndrome(const struct packet *p)
{
	static const char *const naks[] = { "sequence", "invalid request", "remote access",
					    "remote operation" };
	uint32_t value = p->syndrome & 0x1f;

	if ((p->syndrome & SYNDROME_CLASS) == SYNDROME_RNR)
		printf(" RNR NAK, timer %" PRIu32, value);
	else if (p->syndrome >= SYNDROME_NAK_SEQUENCE && value < 4)
		printf(" NAK: %s", naks[value]);
	else if ((p->syndrome & SYNDROME_CLASS) != SYNDROME_ACK)
		printf(" syndrome 0x%02x", p->syndrome);
	printf(" msn %" PRIu32, p->msn);
}

static void print_packet(const struct packet *p, char way, double seconds)
{
	printf("%12.6f %c %-26s psn %8" PRIu32, seconds, way, opcode_table[p->opcode].name, p->psn);
	if (opcode_is(p->opcode, OP_RETH))
		printf(" key 0x%08" PRIx32 " at 0x%" PRIx64 ", %" PRIu32 " octets", p->rkey, p->va,
		       p->dma_length);
	if (opcode_is(p->opcode, OP_ATOMIC_ETH))
		printf(" key 0x%08" PRIx32 " at 0x%" PRIx64, p->rkey, p->va);
	if (opcode_is(p->opcode, OP_DETH))
		printf(" from 0x%06" PRIx32, p->src_qpn);
	if (opcode_is(p->opcode, OP_AETH))
		print_syndrome(p);
	if (p->payload_length > 0)
		printf(" payload %" PRIu32, p->payload_length);
	printf("%s%s%s\n", p->ack_req ? " ack?" : "", p->solicited ? " solicited" : "",
	       p->ecn == 3 ? " ce" : "");
}

/*
 * The lengths in the headers are of the whole frame, so the rest of it is zero here. The tag, if
 * there is one, is accepted whatever it is.
 */
static bool decode(struct capture_frame *f, struct packet *p)
{
	struct decode_options options = { .check_icrc = false };

	if (f->record.whole > sizeof(f->octets))
		return false;
	memset(f->octets + f->record.length, 0, f->record.whole - f->record.length);
	if (f->octets[12] == 0x81 && f->octets[13] == 0)
		options.vlan = (uint16_t)((f->octets[14] & 0x0f) << 8 | f->octets[15]);
	return packet_decode(p, f->octets, f->record.whole, &options) == REASON_NONE;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void trace(struct capture_session *s, const struct trace_options *o, const struct traced *t)
{
	static struct capture_frame frame;
	double end = now() + o->seconds;
	uint64_t first = 0, n = 0;
	struct packet p;
	bool last = false;
	char way;

	while (n < o->count || o->count == 0) {
		if (capture_session_next(s, &frame)) {
			way = decode(&frame, &p) ? direction(t, &p) : 0;
			if (way == 0)
				continue;
			first = n++ == 0 ? frame.time : first;
			print_packet(&p, way, (double)(int64_t)(frame.time - first) / 1e9);
			continue;
		}
		if (last || fflush(stdout) != 0)
			break;
		capture_session_wait(s, WAIT_MS);
		last = s->gone || capture_interrupted || (o->seconds > 0 && now() >= end);
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

int main(int argc, char **argv)
{
	struct trace_options o = { 0 };
	static struct capture_session s;
	struct engine_place where;
	struct reply_device device;
	struct traced t = { 0 };
	char why[256] = "";
	int error, status;

	if (!parse(argc, argv, &o, &status))
		return status;
	capture_catch_signals();
	t.qpn = o.qpn;
	if (engine_locate(o.socket, &where, &device, why, sizeof(why)) != 0)
		return fail(why);
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
	status = s.gone ? fail("the engine has ended") : EXIT_DONE;
	capture_session_close(&s);
	return status;
}
