/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a frame is for, before anything about it was checked. Who finds out in this way that the frame belongs
 * elsewhere passes it on as it is, and it is decoded there, once.
 */
#ifndef WIRE_PEEK_H
#define WIRE_PEEK_H

#include <stddef.h>
#include <stdint.h>

/* The queue pair number that its BTH has; 0: it is no RoCEv2 frame, or one that only decoding can judge. */
uint32_t packet_peek(const uint8_t *frame, size_t length);

#endif
