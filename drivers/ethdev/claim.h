/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One engine for an interface and VLAN of a network namespace: two would both answer what comes to its
 * addresses. A claim is a socket with an abstract name, which belongs to the namespace, ends with the
 * process however that ends, and tells others whose it is.
 */
#ifndef DRIVERS_ETHDEV_CLAIM_H
#define DRIVERS_ETHDEV_CLAIM_H

#include <stddef.h>
#include <stdint.h>

#define CLAIM_NONE  (-1) /* there is no way to make one; one may go on */
#define CLAIM_TAKEN (-2)

/* A descriptor that is the claim, or one of the above; CLAIM_TAKEN: `why` names who has the interface. */
int claim_interface(const char *name, uint32_t ifindex, uint16_t vlan, char *why, size_t why_size);

/* The first other process that has this file open, as far as we may look; 0: none. */
int claim_holder_of(const char *file);

#endif
