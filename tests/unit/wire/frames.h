/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames for the tests of lib/wire: from hex files, and from an encoder's flow. */
#ifndef TESTS_WIRE_FRAMES_H
#define TESTS_WIRE_FRAMES_H

#include <stdint.h>
#include <stddef.h>

#include "wire/decode.h"
#include "wire/encode.h"

#define FRAME_MAX 9216

/* The frame in tests/vectors/NAME.hex; ends the test with a message if it cannot be read. */
size_t frame_load(const char *name, uint8_t *frame);

/* 192.0.2.1 -> 192.0.2.2, or 2001:db8::1 -> ::2. */
struct address_vector address_of(int ipv6, uint16_t vlan);

/* A complete frame; every header field of the packet has a different value. */
struct packet packet_of(uint8_t opcode, const uint8_t *payload, uint32_t payload_length);
size_t frame_of(uint8_t *frame, const struct address_vector *av, const struct packet *p);

/* After a change: makes the frame pass all checks before the transport headers again. */
void frame_fix_lengths(uint8_t *frame, size_t l3, size_t length);
void frame_fix_checksum(uint8_t *frame, size_t l3);
void frame_fix_icrc(uint8_t *frame, size_t l3, size_t length);

extern const struct decode_options untagged;

#endif
