/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums that a sender on this host left to hardware that does not exist. Linux puts the sum of
 * the pseudo header into such a TCP or UDP packet (CHECKSUM_PARTIAL), and packet sockets get it in
 * that form. The flag that marks such a packet is lost on the way through a DPDK port.
 */
#ifndef DRIVERS_CHECKSUM_H
#define DRIVERS_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Completes the checksum of such a frame and leaves other frames alone. A correct checksum that
 * looks like such a sum is replaced by the same value. True: it was such a frame. Any octets are
 * allowed.
 */
bool checksum_complete(uint8_t *frame, uint32_t length);

#endif
