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
 * Finishes one segment of `length` octets: `header` octets of headers, with the IP header at `l3`
 * and a TCP header behind it, and the payload. Sets lengths, IPv4 identification, sequence number,
 * flags and checksums to those of the segment; the previous lengths and checksums do not matter.
 * False: there is no TCP header, or it does not end at `header`. The octets are undefined then.
 */
bool tcp_segment_finish(uint8_t *octets, size_t length, size_t l3, size_t header,
			const struct tcp_segment *s);

#endif
