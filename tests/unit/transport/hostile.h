/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the tests of hostile peers and clients: two queue pairs, just before PSNs wrap. */
#ifndef TESTS_HOSTILE_H
#define TESTS_HOSTILE_H

#include "pair.h"

extern struct pair pair;
extern struct pair_options hostile_options; /* those of `pair` */
extern uint8_t hostile_payload[4096];

void hostile_begin(void);
void hostile_end(void);

/* All of an end's memory still is 0xee, as the test filled it. */
bool hostile_untouched(const uint8_t *memory);

#endif
