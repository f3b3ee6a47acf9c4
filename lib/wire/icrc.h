/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA A17, Annex 17.3.3): the Ethernet CRC-32 over eight octets of
 * ones, the IP and UDP headers and the BTH with their variant fields replaced by ones, and all
 * that follows up to the ICRC itself; sent least significant octet first.
 *
 * A sum is carried as the plain CRC-32 value (initial 0, as zlib's crc32(0, ...) takes and
 * returns it), so that it can be continued over the next octets.
 */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stddef.h>
#include <stdint.h>

/*
 * The sum over the masked headers: `l3` points at the IP header, `header_length` octets from
 * there to the end of the extended headers (at least IP + UDP + BTH).
 */
uint32_t icrc_begin(const uint8_t *l3, size_t header_length);

/* Continues a sum over plain octets. */
uint32_t icrc_add(uint32_t sum, const void *octets, size_t length);

/* Copies and continues in one pass over the memory. The areas do not overlap. */
uint32_t icrc_copy(uint32_t sum, void *to, const void *from, size_t length);

/* The four octets as they stand on the wire. */
void icrc_store(uint8_t *at, uint32_t sum);
uint32_t icrc_load(const uint8_t *at);

#endif
