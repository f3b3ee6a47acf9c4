/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams whose payload is an IP packet, as with IPoIB. The packet begins at once, or behind the
 * four octets of RFC 4391 (an Ethernet type and two reserved ones). Any octets may be passed in.
 */
#ifndef LCORE_INNER_IP_H
#define LCORE_INNER_IP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lcore/raw/tcp_segment.h"

/* IBV_SEND_IP_CSUM: writes the checksums; a payload that is not an IP packet stays as it is. */
void inner_ip_fill_checksums(uint8_t *payload, size_t length);

/* IBV_WC_IP_CSUM_OK: the payload is a whole IPv4 packet with TCP or UDP, both checksums right. */
bool inner_ip_checksums_right(const uint8_t *payload, size_t length);

/* TSO: the payload is a copy of the header (`header` octets) and this segment: tcp_segment.h. */
bool inner_ip_segment(uint8_t *payload, size_t length, size_t header, const struct tcp_segment *s);

#endif
