/* SPDX-License-Identifier: BSD-3-Clause */
/* TSO: corrects the copy of the header in front of each segment. */
#ifndef LCORE_TCP_SEGMENT_H
#define LCORE_TCP_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tcp_segment {
	uint32_t number; /* from 0 */
	uint32_t offset; /* octets of payload before it */
	bool last;
};

/*
 * The IP header at `l3`, its TCP header, and the segment behind these `header` octets, `length`
 * octets in all: lengths, IPv4 identification, sequence number, flags and checksums become those of
 * the segment; the lengths and checksums before do not matter. False: not a TCP header, or it does
 * not end where the header does; the octets are undefined then.
 */
bool tcp_segment_finish(uint8_t *octets, size_t length, size_t l3, size_t header,
			const struct tcp_segment *s);

#endif
