/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes files that Wireshark and tshark read: pcapng (draft-ietf-opsawg-pcapng), host byte order,
 * times in ns. Check ferror() of the file in the end.
 */
#ifndef APPS_PCAPNG_H
#define APPS_PCAPNG_H

#include <stdint.h>
#include <stdio.h>

enum pcapng_direction {
	PCAPNG_UNKNOWN = 0,
	PCAPNG_INBOUND = 1,
	PCAPNG_OUTBOUND = 2,
};

/* The head of the file, once. */
void pcapng_begin(FILE *f, const char *application);
/* The next interface; they are numbered from 0. Ethernet; `snap`: octets kept of a frame. */
void pcapng_interface(FILE *f, const char *name, uint32_t snap);
/* `length` octets are there, of a frame of `whole`; `time` in ns since 1970. */
void pcapng_frame(FILE *f, uint32_t interface, uint64_t time, const void *octets, uint32_t length,
		  uint32_t whole, enum pcapng_direction direction);
/* How many frames of an interface were lost. */
void pcapng_statistics(FILE *f, uint32_t interface, uint64_t time, uint64_t lost);

#endif
