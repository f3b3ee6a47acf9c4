/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive side scaling: chooses the entry of an indirection table for a frame. The Toeplitz
 * function is applied to the chosen fields, in the order of Microsoft's specification: source
 * address, destination address, source port, destination port.
 */
#ifndef LCORE_RAW_HASH_H
#define LCORE_RAW_HASH_H

#include "lcore/raw/raw_frame.h"

#define RSS_KEY_LENGTH 40u

/* ibv_rx_hash_fields */
enum rss_field {
	RSS_SRC_IPV4 = 1 << 0,
	RSS_DST_IPV4 = 1 << 1,
	RSS_SRC_IPV6 = 1 << 2,
	RSS_DST_IPV6 = 1 << 3,
	RSS_SRC_PORT_TCP = 1 << 4,
	RSS_DST_PORT_TCP = 1 << 5,
	RSS_SRC_PORT_UDP = 1 << 6,
	RSS_DST_PORT_UDP = 1 << 7,
	RSS_FIELDS = 0xff,
};

/* Returns 0 for a frame that has none of the fields. */
uint32_t raw_hash(const struct raw_frame *f, uint32_t fields, const uint8_t key[RSS_KEY_LENGTH]);

#endif
