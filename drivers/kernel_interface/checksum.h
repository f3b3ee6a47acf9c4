/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums that a sender on this very host left to hardware which is not there. Linux puts the sum
 * of the pseudo header into such a TCP or UDP packet (CHECKSUM_PARTIAL) and hands it to a packet
 * socket like that; the note that says so is lost on the way through a DPDK port.
 */
#ifndef DRIVERS_CHECKSUM_H
#define DRIVERS_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Writes the checksum of such a frame, and leaves every other as it is: a sum that is right but
 * looks like one of these is replaced by the same value. True: it was such a frame. Any octets.
 */
bool checksum_complete(uint8_t *frame, uint32_t length);

#endif
