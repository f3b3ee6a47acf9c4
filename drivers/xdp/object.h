/* SPDX-License-Identifier: BSD-3-Clause */
/* roce.bpf.c, compiled for the kernel: an ELF object for libbpf. */
#ifndef DRIVERS_XDP_OBJECT_H
#define DRIVERS_XDP_OBJECT_H

extern const unsigned char xdp_object[];
extern const unsigned int xdp_object_octets;

#endif
