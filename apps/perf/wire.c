/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"

/* ---- the engine ---- */

int wire_engine_find(struct wire_engine *e, const char *socket)
{
	char why[256];

	e->fd = -1;
	if (engine_locate(socket, &e->where, &e->device, why, sizeof(why)) != 0) {
		fprintf(stderr, "uroce perf: %s\n", why);
		return 1;
	}
	setenv("UROCE_SOCKET", e->where.path, 1);
	e->fd = engine_connect(e->where.path);
	if (e->fd >= 0)
		return 0;
	fprintf(stderr, "uroce perf: %s: %s\n", e->where.path, strerror(-e->fd));
	return 1;
}

void wire_engine_count(const struct wire_engine *e, struct channel_reply *r)
{
	static struct reply_statistics s;
	char why[128];

	if (engine_ask(e->fd, COMMAND_STATISTICS, &s.h, sizeof(s), why, sizeof(why)) != 0)
		return; /* it is gone: requests fail, too */
	r->sent = s.tx_packets;
	r->again = s.retransmitted;
	r->polls = s.polls;
	r->idle = s.idle_polls;
}

static uint32_t family_of(const struct gid *g)
{
	static const uint8_t none[16], mapped[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(g->octet, none, sizeof(none)) == 0)
		return 0;
	return memcmp(g->octet, mapped, sizeof(mapped)) == 0 ? FAMILY_IPV4 : FAMILY_IPV6;
}

/* The entry 0 is link-local, as on Linux. */
uint32_t wire_families(const struct wire_engine *e)
{
	uint32_t families = 0;

	for (uint32_t i = 1; i < MIN_OF(e->device.gid_count, (uint32_t)LIMIT_GIDS); i++)
		families |= family_of(&e->device.gid[i]);
	return families;
}

union ibv_gid wire_address(const struct wire_engine *e, uint32_t family)
{
	union ibv_gid gid = { .raw = { 0 } };

	for (uint32_t i = 1; i < MIN_OF(e->device.gid_count, (uint32_t)LIMIT_GIDS); i++)
		if (family_of(&e->device.gid[i]) == family) {
			memcpy(gid.raw, e->device.gid[i].octet, sizeof(gid.raw));
			break;
		}
	return gid;
}

uint32_t wire_mtu(const struct wire_engine *e)
{
	return e->device.active_mtu >= 1 && e->device.active_mtu <= 5 ? 128u << e->device.active_mtu
								      : 256;
}

/* ---- both ends ---- */

int wire_tell(int fd, const struct perf_side *s, uint32_t qps)
{
	struct channel_end end = { .address = (uintptr_t)s->buffer, .key = s->mr->rkey };

	memcpy(end.gid, s->gid.raw, sizeof(end.gid));
	if (!channel_put(fd, &end, sizeof(end)))
		return 1;
	for (uint32_t i = 0; i < qps; i++)
		if (!channel_put(fd, &s->qp[i]->qp_num, sizeof(uint32_t)))
			return 1;
	return 0;
}

int wire_hear(int fd, struct perf_side *s, uint32_t *qpn, uint32_t qps)
{
	struct channel_end end;

	if (!channel_get(fd, &end, sizeof(end)) || !channel_get(fd, qpn, qps * sizeof(*qpn)))
		return 1;
	memcpy(s->far_gid.raw, end.gid, sizeof(end.gid));
	s->far_address = end.address;
	s->far_key = end.key;
	return 0;
}

/* ---- the wire ---- */

double wire_rate(const struct wire_engine *e)
{
	return (double)e->device.link_speed * 1e6;
}

/* Preamble, Ethernet header, checksum, gap; UDP, BTH, ICRC. */
#define FRAME_OCTETS	   (8u + 14u + 4u + 12u)
#define LEAST_FRAME_OCTETS (8u + 64u + 12u)
#define ROCE_OCTETS	   (8u + 12u + 4u)
#define RETH_OCTETS	   16u

/*
 * Octets of more headers of the first packet of a message, and of the last; an only one has the
 * larger number.
 */
static const struct {
	uint32_t first, last;
} headers[PERF_OPERATIONS] = {
	[PERF_WRITE] = { RETH_OCTETS, 0 },
	[PERF_READ] = { 4, 4 }, /* AETH, of the responses */
	[PERF_ATOMIC] = { 28 - 8, 0 }, /* AtomicETH, which has the operand in it */
};

static uint32_t frame_octets(uint32_t payload, uint32_t more, uint32_t family)
{
	uint32_t ip = family == FAMILY_IPV6 ? 40 : 20;
	uint32_t octets = FRAME_OCTETS + ip + ROCE_OCTETS + more + (payload + 3) / 4 * 4;

	return MAX_OF(octets, LEAST_FRAME_OCTETS);
}

static uint64_t message_octets(enum perf_operation op, uint32_t size, uint32_t mtu, uint32_t family)
{
	uint32_t first = headers[op].first, last = headers[op].last;
	uint32_t full = size > 0 ? (size - 1) / mtu : 0; /* packets before the last one */

	if (full == 0)
		return frame_octets(size, MAX_OF(first, last), family);
	return (uint64_t)full * frame_octets(mtu, 0, family) + first +
	       frame_octets(size - full * mtu, last, family);
}

double wire_messages(double rate, enum perf_operation op, uint32_t size, uint32_t mtu,
		     uint32_t family)
{
	uint64_t octets = message_octets(op, size, mtu, family);

	if (op == PERF_READ) /* its requests go the other way, and may be longer */
		octets = MAX_OF(octets, (uint64_t)frame_octets(0, RETH_OCTETS, family));
	return rate / 8 / (double)octets;
}
