/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One engine for an interface and VLAN of a network namespace: two would both answer what comes to its
 * addresses. A claim is a socket with an abstract name, which belongs to the namespace, ends with the
 * process however that ends, and tells others whose it is.
 */
#ifndef DRIVERS_ETHDEV_CLAIM_H
#define DRIVERS_ETHDEV_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLAIM_MEMIF 0x80000000u /* in the place of an interface: the client's end of a memif */
#define CLAIM_LATER UINT16_MAX /* in the place of a VLAN: none was tried yet */

struct claim {
	int fd; /* negative: there is none; one may go on without, where there is no way to make one */
	uint16_t vlan;
};

static inline struct claim claim_none(void)
{
	return (struct claim){ .fd = -1, .vlan = CLAIM_LATER };
}

/*
 * Claims this interface and VLAN (a memif has none) in the place of what was claimed before. False:
 * another engine has them, `why` says whose, and the claim is as it was.
 */
bool claim_take(struct claim *c, uint32_t ifindex, uint16_t vlan, char *why, size_t why_size);
void claim_end(struct claim *c);

/* The first other process that has this file open, as far as we may look; 0: none. */
int claim_holder_of(const char *file);

#endif
