/* SPDX-License-Identifier: BSD-3-Clause */
/* A selective acknowledgement against the octets of docs/wire-extensions.md, written out by hand. */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/opcode.h"

/* From the BTH to before the ICRC: PSN 0x123455 and what is before it; others from 64 * 0x55 behind it on. */
static const uint8_t octets[48] = {
	0xd1, 0x40, 0xff,	 0xff, 0x2b, 0x00, 0x0a, 0x11, 0x55, 0x12, 0x34, 0x55, /* BTH */
	0x1f, 0x00, 0x00,	 0x07, /* AETH */
	0x02, 0x04, [47] = 0x80, /* bits 1, 10 and 255 */
};

static void flow_of_test(struct flow *f)
{
	struct address_vector av = { .hop_limit = 64, .src_port = 0xc001 };

	av.src_gid = (struct gid){ { [10] = 0xff, [11] = 0xff, 10, 0, 0, 1 } };
	av.dst_gid = (struct gid){ { [10] = 0xff, [11] = 0xff, 10, 0, 0, 2 } };
	flow_init(f, &av);
}

Test(selective, octets_to_and_fro)
{
	struct packet p = { .opcode = OPCODE_SELECTIVE_ACK,
			    .mig_req = true,
			    .selective = true,
			    .late = 0x15,
			    .pkey = 0xffff,
			    .dest_qpn = 0x000a11,
			    .psn = 0x123455,
			    .syndrome = 0x1f,
			    .msn = 7,
			    .selection_step = 0x55,
			    .selection = { UINT64_C(1) << 1 | UINT64_C(1) << 10, 0, 0,
					   UINT64_C(1) << 63 } };
	struct decode_options options = { .check_icrc = true };
	struct packet q;
	struct flow f;
	uint8_t frame[256];
	size_t n, total;

	flow_of_test(&f);
	n = packet_encode(frame, &f, &p, 1);
	cr_assert_eq(n, f.length + sizeof(octets));
	cr_assert_arr_eq(frame + f.length, octets, sizeof(octets));
	total = packet_seal(frame, &f, n, 0);
	cr_assert_eq(packet_decode(&q, frame, total, &options), REASON_NONE);
	cr_assert(q.selective);
	cr_assert_eq(q.late, 0x15);
	cr_assert_eq(q.selection_step, 0x55);
	cr_assert_not(q.ack_req);
	cr_assert_arr_eq(q.selection, p.selection, sizeof(p.selection));
	/* These bits are among those that the ICRC does not see: others change nothing by them. */
	frame[f.length + 4] ^= 0x01;
	cr_assert_eq(packet_decode(&q, frame, total, &options), REASON_NONE);
	cr_assert_not(q.selective);
	cr_assert_eq(q.late, 0, "without that bit the others say nothing");
}
