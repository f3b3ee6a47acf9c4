/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP packets in datagrams, and the segments of a TCP stream: what must arrive, made by code other
 * than the code under test.
 */
#ifndef TESTS_VERBS_INNER_PACKET_H
#define TESTS_VERBS_INNER_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_MAX 2048u
#define STREAM	   2500u /* octets of a stream */
#define MSS	   700u
#define SEGMENTS   4u

struct octets {
	uint8_t at[PACKET_MAX];
	size_t n;
};

struct kind {
	bool v6;
	bool ipoib; /* four octets in front */
	uint8_t protocol;
};

void packet_put(struct octets *o, const void *from, size_t n);
/* The headers of a packet, without lengths and sums: 17 is UDP, 6 TCP with 12 octets of options. */
void packet_begin(struct octets *o, struct kind k);
/* Fills in the lengths of a packet and, with `sums`, its checksums. */
void packet_finish(struct octets *o, struct kind k, bool sums);

/* A TSO header with wrong lengths; and segment i of STREAM octets after it. */
void stream_header(struct octets *o, struct kind k);
void stream_segment(struct octets *o, struct kind k, const uint8_t *data, uint32_t i);

#endif
