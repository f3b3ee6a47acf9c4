/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Only one engine may have an interface and VLAN of a network namespace: two would both answer
 * frames to its addresses. A claim is a socket with an abstract name. It belongs to the namespace,
 * ends with the process in any case, and tells others which process has it.
 */
#ifndef DRIVERS_ETHDEV_CLAIM_H
#define DRIVERS_ETHDEV_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIM_MEMIF 0x80000000u /* in place of an interface: the client's end of a memif */
#define CLAIM_LATER UINT16_MAX /* in place of a VLAN: it is not known yet */

struct claim {
	int fd; /* negative: no claim; this is allowed where none can be made */
	uint16_t vlan;
};

static inline struct claim claim_none(void)
{
	return (struct claim){ .fd = -1, .vlan = CLAIM_LATER };
}

/*
 * Claims this interface and VLAN (a memif has no VLAN) instead of what was claimed before. False:
 * another engine has them, `why` names it, and the previous claim stays.
 */
bool claim_take(struct claim *c, uint32_t ifindex, uint16_t vlan, char *why, size_t why_size);
void claim_end(struct claim *c);

/* The first other process that has this file open, as far as we may see. 0: none. */
int claim_holder_of(const char *file);

#endif
