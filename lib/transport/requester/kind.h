/* SPDX-License-Identifier: BSD-3-Clause */
/* The kind of a request, beside what the opcode table says of its packets. */
#ifndef TRANSPORT_KIND_H
#define TRANSPORT_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/opcode.h"

/* Requests that no packet carries: a numbering behind enum packet_kind (operation.c). */
enum local_kind {
	KIND_BIND_MW = 0x40,
	KIND_LOCAL_INV,
};

static inline bool kind_is_atomic(uint8_t kind)
{
	return kind == KIND_CMP_SWAP || kind == KIND_FETCH_ADD;
}

/* Answered by a response of its own; a plain acknowledgement does not complete it. */
static inline bool kind_is_fetching(uint8_t kind)
{
	const uint32_t fetching = 1u << KIND_READ_REQUEST | 1u << KIND_CMP_SWAP |
				  1u << KIND_FETCH_ADD | 1u << KIND_ATOMIC_WRITE | 1u << KIND_FLUSH;

	return kind < PACKET_KINDS && (fetching >> kind & 1);
}

/* Executed at home, without a packet. */
static inline bool kind_is_local(uint8_t kind)
{
	return kind >= KIND_BIND_MW;
}

/* FETH: placement type in bits 3-0, selectivity level in bits 5-4 (IBTA A19). */
#define FETH(type, level) ((uint32_t)(type) | (uint32_t)(level) << 4)
#define FETH_TYPE(feth)	  ((feth)&0xf)
#define FETH_LEVEL(feth)  ((feth) >> 4) /* includes the reserved bits above: all are 0 */

#endif
