/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the receiver of a frame before anything else about the frame was checked. A caller that
 * thus finds out that the frame belongs elsewhere passes it on unchanged. It is decoded there,
 * once.
 */
#ifndef WIRE_PEEK_H
#define WIRE_PEEK_H

#include <stddef.h>
#include <stdint.h>

/*
 * The destination queue pair number in the BTH. 0: the frame is not a RoCEv2 frame, or it must be
 * decoded to tell.
 */
uint32_t packet_peek(const uint8_t *frame, size_t length);

#endif
