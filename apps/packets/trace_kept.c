/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace_kept.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/time.h"
#include "capture_file.h"
#include "locate.h"
#include "pcapng.h"
#include "queue/capture_ring.h"
#include "trace_story.h"

/* The reply may bring a descriptor, *file; otherwise that is -1. */
static int ask(int fd, struct request_trace *request, struct reply_trace *reply, int *file,
	       char *why, size_t why_size)
{
	request->h =
		(struct command_request){ .command = COMMAND_TRACE, .length = sizeof(*request) };
	return engine_call_for_file(fd, &request->h, &reply->h, sizeof(*reply), file, why,
				    why_size);
}

static int simple(int fd, struct request_trace *request, char *why, size_t why_size)
{
	struct reply_trace reply;
	int file, error = ask(fd, request, &reply, &file, why, why_size);

	if (file >= 0)
		close(file);
	return error;
}

int kept_start(int fd, uint32_t qpn, uint32_t packets, char *why, size_t why_size)
{
	struct request_trace r = { .action = TRACE_START, .qpn = qpn, .packets = packets };

	return simple(fd, &r, why, why_size);
}

int kept_stop(int fd, char *why, size_t why_size)
{
	struct request_trace r = { .action = TRACE_STOP };

	return simple(fd, &r, why, why_size);
}

/* ---- reading ---- */

static int by_time(const void *a, const void *b)
{
	const struct traced_packet *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->reserved < y->reserved ? -1 : x->reserved > y->reserved;
}

/*
 * Lcores write for themselves: their packets are put in order here. Those of a burst have one time, and
 * keep the order in which they came, which `reserved` notes.
 */
static int load(int file, struct kept_trace *k)
{
	size_t octets = (size_t)k->about.count * sizeof(*k->packet);

	if (k->about.count > LIMIT_TRACE_PACKETS * LIMIT_LCORES)
		return EPROTO;
	k->packet = malloc(MAX_OF(octets, (size_t)1));
	if (k->packet == NULL)
		return ENOMEM;
	if (pread(file, k->packet, octets, 0) != (ssize_t)octets)
		return EPROTO;
	for (uint32_t i = 0; i < k->about.count; i++) {
		if (k->packet[i].length > LIMIT_TRACE_SNAP ||
		    k->packet[i].length > k->packet[i].whole)
			return EPROTO;
		k->packet[i].reserved = i;
	}
	if (k->about.count > 0)
		qsort(k->packet, k->about.count, sizeof(*k->packet), by_time);
	return 0;
}

int kept_read(int fd, struct kept_trace *k, char *why, size_t why_size)
{
	struct request_trace r = { .action = TRACE_READ };
	int file, error;

	memset(k, 0, sizeof(*k));
	error = ask(fd, &r, &k->about, &file, why, why_size);
	if (error == 0) {
		error = file < 0 ? EPROTO : load(file, k);
		if (error != 0)
			snprintf(why, why_size, "the engine's answer is incomplete");
	}
	if (file >= 0)
		close(file);
	if (error != 0)
		kept_free(k);
	return error;
}

void kept_free(struct kept_trace *k)
{
	free(k->packet);
	k->packet = NULL;
}

/* ---- showing ---- */

static uint32_t first_of(const struct kept_trace *k, uint32_t most)
{
	return most == 0 || most > k->about.count ? 0 : k->about.count - most;
}

void kept_print(const struct kept_trace *k, uint32_t most)
{
	const struct story_of s = { k->about.qpn, k->about.peer_qpn, k->about.peer };
	static uint8_t octets[UINT16_MAX + 1];
	uint32_t first = first_of(k, most);
	struct packet p;

	for (uint32_t i = first; i < k->about.count; i++) {
		const struct traced_packet *t = &k->packet[i];
		char way;

		if (t->whole > sizeof(octets))
			continue;
		memcpy(octets, t->octets, t->length);
		if (!story_decode(octets, t->length, t->whole, &p))
			continue;
		way = story_way(&s, &p);
		if (way != 0)
			story_print(&p, way, (double)(t->at - k->packet[first].at) / 1e9);
	}
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * TIME_S + (uint64_t)t.tv_nsec;
}

int kept_save(const struct kept_trace *k, uint32_t most, const char *path)
{
	static const enum pcapng_direction ways[] = { [CAPTURE_RECEIVED] = PCAPNG_INBOUND,
						      [CAPTURE_SENT] = PCAPNG_OUTBOUND,
						      [CAPTURE_HERE] = PCAPNG_UNKNOWN };
	uint64_t offset = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
	FILE *f = capture_file_open(path);
	int error = 0;

	if (f == NULL)
		return errno;
	pcapng_begin(f, "uroce trace");
	pcapng_interface(f, "queue pair", LIMIT_TRACE_SNAP);
	for (uint32_t i = first_of(k, most); i < k->about.count; i++) {
		const struct traced_packet *t = &k->packet[i];

		pcapng_frame(f, 0, t->at + offset, t->octets, t->length, t->whole,
			     t->way < ARRAY_SIZE(ways) ? ways[t->way] : PCAPNG_UNKNOWN);
	}
	if (fflush(f) != 0 || ferror(f))
		error = errno;
	if (f != stdout && fclose(f) != 0 && error == 0)
		error = errno;
	return error;
}
