/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcapng.h"

#include <string.h>

enum block { /* section 11.1 of the draft */
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_FRAME = 6,
};

enum option {
	OPTION_END = 0,
	OPTION_APPLICATION = 4, /* shb_userappl */
	OPTION_NAME = 2, /* if_name */
	OPTION_RESOLUTION = 9, /* if_tsresol: 9 means ns */
	OPTION_FLAGS = 2, /* epb_flags: direction in the low two bits */
	OPTION_LOST = 5, /* isb_ifdrop */
};

#define LINK_ETHERNET 1u

static uint32_t padded(uint32_t n)
{
	return (n + 3) & ~3u;
}

static void put(FILE *f, const void *octets, uint32_t n)
{
	static const char zero[4];

	fwrite(octets, 1, n, f);
	fwrite(zero, 1, padded(n) - n, f);
}

static void put32(FILE *f, uint32_t v)
{
	fwrite(&v, sizeof(v), 1, f);
}

static void put_option(FILE *f, uint16_t code, const void *value, uint16_t length)
{
	fwrite(&code, sizeof(code), 1, f);
	fwrite(&length, sizeof(length), 1, f);
	put(f, value, length);
}

/* Octets of an option. */
static uint32_t option(uint32_t length)
{
	return 4 + padded(length);
}

/* A block begins and ends with its whole length. */
static uint32_t begin(FILE *f, enum block type, uint32_t body)
{
	uint32_t length = 12 + body;

	put32(f, type);
	put32(f, length);
	return length;
}

static void put_time(FILE *f, uint64_t time)
{
	put32(f, (uint32_t)(time >> 32));
	put32(f, (uint32_t)time);
}

void pcapng_begin(FILE *f, const char *application)
{
	uint32_t name = (uint32_t)strlen(application);
	uint32_t length = begin(f, BLOCK_SECTION, 16 + option(name) + 4);
	uint16_t version[2] = { 1, 0 };

	put32(f, 0x1a2b3c4d); /* says the byte order */
	fwrite(version, sizeof(version), 1, f);
	put32(f, UINT32_MAX); /* the section's length is unknown: -1 */
	put32(f, UINT32_MAX);
	put_option(f, OPTION_APPLICATION, application, (uint16_t)name);
	put32(f, OPTION_END);
	put32(f, length);
}

void pcapng_interface(FILE *f, const char *name, uint32_t snap)
{
	uint32_t octets = (uint32_t)strlen(name);
	uint32_t length = begin(f, BLOCK_INTERFACE, 8 + option(octets) + option(1) + 4);

	put32(f, LINK_ETHERNET);
	put32(f, snap);
	put_option(f, OPTION_NAME, name, (uint16_t)octets);
	put_option(f, OPTION_RESOLUTION, "\x09", 1);
	put32(f, OPTION_END);
	put32(f, length);
}

void pcapng_frame(FILE *f, uint32_t interface, uint64_t time, const void *octets, uint32_t n,
		  uint32_t whole, enum pcapng_direction direction)
{
	uint32_t length = begin(f, BLOCK_FRAME, 20 + padded(n) + option(4) + 4);
	uint32_t flags = direction;

	put32(f, interface);
	put_time(f, time);
	put32(f, n);
	put32(f, whole);
	put(f, octets, n);
	put_option(f, OPTION_FLAGS, &flags, sizeof(flags));
	put32(f, OPTION_END);
	put32(f, length);
}

void pcapng_statistics(FILE *f, uint32_t interface, uint64_t time, uint64_t lost)
{
	uint32_t length = begin(f, BLOCK_STATISTICS, 12 + option(8) + 4);

	put32(f, interface);
	put_time(f, time);
	put_option(f, OPTION_LOST, &lost, sizeof(lost));
	put32(f, OPTION_END);
	put32(f, length);
}
