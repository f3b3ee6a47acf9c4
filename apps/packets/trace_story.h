/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets of a queue pair in words: `uroce trace`, and `trace show` at uroced's prompt. */
#ifndef APPS_TRACE_STORY_H
#define APPS_TRACE_STORY_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/packet.h"

/* The queue pair that the story is about. */
struct story_of {
	uint32_t qpn;
	uint32_t peer_qpn; /* 0: not connected */
	struct gid peer;
};

/*
 * Decodes a frame of `whole` octets. The first `length` are given, with room after them for the
 * rest, which becomes zero. False: not a RoCE packet.
 */
bool story_decode(uint8_t *octets, uint32_t length, uint32_t whole, struct packet *p);
/* '>': the queue pair sent the packet, '<': it is to receive it, 0: neither. */
char story_way(const struct story_of *s, const struct packet *p);
/* A line: seconds, direction, and the packet's opcode and fields. */
void story_print(const struct packet *p, char way, double seconds);

#endif
