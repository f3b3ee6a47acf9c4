/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * print-packets FILE.pcap: what our decoder sees, a line per frame: number, verdict, and the
 * columns of fields.c (empty where the opcode has no such field). ICRCs are checked.
 */
#include <inttypes.h>

#include "fields.h"
#include "wire/decode.h"
#include "wire/opcode.h"

#define VLAN_OF(frame) ((unsigned int)((frame)[14] << 8 | (frame)[15]) & 0xfff)

static void print_packet(const struct packet *p)
{
	for (unsigned int i = 0; i < field_count; i++) {
		putchar('\t');
		if (field_present(&fields[i], opcode_table[p->opcode].flags))
			printf("%" PRIu64, fields[i].value(p));
	}
}

int main(int argc, char **argv)
{
	static uint8_t frame[65536];
	unsigned int number = 0;
	FILE *f;
	size_t n;

	f = argc == 2 ? pcap_open(argv[1]) : NULL;
	if (f == NULL) {
		fprintf(stderr, "usage: print-packets FILE, a pcap file of Ethernet frames\n");
		return 2;
	}
	printf("frame.number\tverdict");
	for (unsigned int i = 0; i < field_count; i++)
		printf("\t%s", fields[i].name);
	putchar('\n');
	while ((n = pcap_next(f, frame, sizeof(frame))) != 0) {
		struct decode_options options = { .check_icrc = true };
		struct packet p;
		enum reason r;

		if (n >= 18 && frame[12] == 0x81 && frame[13] == 0)
			options.vlan = (uint16_t)VLAN_OF(frame);
		r = packet_decode(&p, frame, n, &options);
		printf("%u\t%s", ++number, reason_name(r));
		if (r == REASON_NONE)
			print_packet(&p);
		putchar('\n');
	}
	fclose(f);
	return 0;
}
