/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `uroce perf` between two machines: what its client and its server have in common, and what a wire
 * can carry.
 */
#ifndef APPS_PERF_WIRE_H
#define APPS_PERF_WIRE_H

#include "channel.h"
#include "locate.h"
#include "perf.h"

/* An engine that this program is attached to. */
struct wire_engine {
	struct engine_place where;
	struct reply_device device;
	int fd; /* for its counters */
};

/* Finds the engine, for libibverbs, too. 0, or 1 after a line on stderr. */
int wire_engine_find(struct wire_engine *e, const char *socket);
/* Its counts so far. */
void wire_engine_count(const struct wire_engine *e, struct channel_reply *r);

/* enum channel_family bits of the engine's addresses. */
uint32_t wire_families(const struct wire_engine *e);
/* The first address of that family. */
union ibv_gid wire_address(const struct wire_engine *e, uint32_t family);
uint32_t wire_mtu(const struct wire_engine *e);

/* Sends what the other end needs to know of ours, and gets the same. 0, or 1. */
int wire_tell(int fd, const struct perf_side *s, uint32_t qps);
int wire_hear(int fd, struct perf_side *s, uint32_t *qpn, uint32_t qps);

/* bits/s of the engine's link; 0: the port does not know it. */
double wire_rate(const struct wire_engine *e);
/* Messages of that size that such a link carries in a second. */
double wire_messages(double rate, enum perf_operation op, uint32_t size, uint32_t mtu,
		     uint32_t family);

int wire_server(const struct perf_options *o);
int wire_client(struct perf_options *o);

#endif
