/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic without a program: datagrams (UD) that one thread sends as fast as it may, and a queue
 * pair that counts those that arrive, like dpdk-testpmd's txonly and rxonly. Both use the public
 * verbs of a device of this process.
 */
#ifndef APPS_TRAFFIC_H
#define APPS_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRAFFIC_SIZE_MOST 4096u /* octets; the path MTU may be less */
#define TRAFFIC_RATE_MOST 1000000000u
#define TRAFFIC_Q_KEY	  UINT32_C(0x11111111)

struct traffic;

struct traffic_settings {
	uint32_t size; /* octets of a message */
	uint32_t rate; /* messages a second; 0: as fast as it goes */
	uint32_t period; /* seconds between two lines about it; 0: none */
};

struct traffic_counts {
	uint64_t messages, octets;
	uint64_t failed; /* 1: the queue pair failed, and nothing more happens */
	double seconds;
};

/*
 * Begins. `to`: the address of a sink, and `qpn` its queue pair; NULL: be a sink. Returns NULL and a
 * line in `why`. The settings may change until the end; the size is of the next source.
 */
struct traffic *traffic_start(const char *device, const char *to, uint32_t qpn,
			      const struct traffic_settings *settings, char *why, size_t why_size);
/* Its queue pair, as "tx" or "rx", and its totals. */
uint32_t traffic_qpn(const struct traffic *t);
void traffic_count(const struct traffic *t, struct traffic_counts *counts);
/* Ends it and frees everything. */
void traffic_stop(struct traffic *t, struct traffic_counts *counts);

/* "1234 messages, 79.0 KB in 1.0 s: ..." */
void traffic_text(const struct traffic_counts *c, char *text, size_t size);

#endif
