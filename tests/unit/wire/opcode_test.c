/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table compared with the lists of IBTA 9.2.1, A14.3, A17.9 and A19.4, written out here again.
 */
#include <criterion/criterion.h>

#include "base/bits.h"
#include "wire/opcode.h"

/* Octets of BTH and extended headers for each opcode's low five bits; 0: undefined. */
static const uint8_t rc_length[32] = {
	12, 12, 12, 16, 12, 16, 28, 12, 12, 16, 28, 32, 28, 16, 12, 16,
	16, 16, 24, 40, 40, 0,	16, 16, 0,  0,	0,  0,	32, 28, 0,  0,
};
static const uint8_t xrc_length[32] = {
	16, 16, 16, 20, 16, 20, 32, 16, 16, 20, 32, 36, 32, 16, 12, 16,
	16, 16, 24, 44, 44, 0,	20, 20, 0,  0,	0,  0,	0,  0,	0,  0,
};

static unsigned int length_expected(unsigned int opcode)
{
	unsigned int base = opcode & 31;

	switch (opcode >> 5) {
	case 0:
		return rc_length[base];
	case 1:
		return base <= 0x0b || base == 0x16 || base == 0x17 ? rc_length[base] : 0;
	case 3:
		return base == 4 ? 20 : base == 5 ? 24 : 0;
	case 4:
		return base == 1 ? 28 : 0;
	case 5:
		return xrc_length[base];
	case 6:
		return base == 0x11 ? 48 : 0; /* docs/wire-extensions.md */
	default:
		return 0;
	}
}

/* hostile H-152: every value of the opcode. */
Test(opcode, every_value_has_its_length_or_is_undefined)
{
	for (unsigned int o = 0; o < 256; o++) {
		cr_expect_eq(opcode_table[o].header_length, length_expected(o), "opcode %#x", o);
		cr_expect_eq(opcode_defined((uint8_t)o), length_expected(o) != 0, "opcode %#x", o);
		cr_expect_eq(opcode_table[o].name != NULL, length_expected(o) != 0, "opcode %#x",
			     o);
		if (opcode_defined((uint8_t)o))
			cr_expect_eq(opcode_table[o].service, o >> 5, "opcode %#x", o);
		else
			cr_expect_eq(opcode_table[o].flags, 0, "opcode %#x", o);
	}
}

Test(opcode, xrc_requests_name_the_srq_and_responses_do_not)
{
	for (unsigned int o = 0xa0; o < 0xc0; o++)
		if (opcode_defined((uint8_t)o))
			cr_expect_eq(opcode_is((uint8_t)o, OP_XRCETH),
				     !opcode_is((uint8_t)o, OP_RESPONSE), "opcode %#x", o);
	for (unsigned int o = 0; o < 0xa0; o++)
		cr_expect_not(opcode_is((uint8_t)o, OP_XRCETH), "opcode %#x", o);
}

Test(opcode, which_packets_take_a_receive_request)
{
	static const uint8_t consumes[] = { 0x00, 0x04, 0x05, 0x09, 0x0b, 0x17, 0x20,
					    0x24, 0x25, 0x29, 0x2b, 0x37, 0x64, 0x65,
					    0xa0, 0xa4, 0xa5, 0xa9, 0xab, 0xb7 };
	unsigned int found = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(consumes); i++)
		cr_expect(opcode_is(consumes[i], OP_CONSUMES), "opcode %#x", consumes[i]);
	for (unsigned int o = 0; o < 256; o++)
		found += opcode_is((uint8_t)o, OP_CONSUMES);
	cr_expect_eq(found, ARRAY_SIZE(consumes));
}

Test(opcode, which_packets_begin_and_end_a_message)
{
	static const struct {
		uint8_t base;
		uint16_t first_last;
	} rows[] = {
		{ OPB_SEND_FIRST, OP_FIRST },
		{ OPB_SEND_MIDDLE, 0 },
		{ OPB_SEND_LAST, OP_LAST },
		{ OPB_SEND_LAST_IMM, OP_LAST },
		{ OPB_SEND_LAST_INV, OP_LAST },
		{ OPB_SEND_ONLY, OP_FIRST | OP_LAST },
		{ OPB_WRITE_FIRST, OP_FIRST },
		{ OPB_WRITE_MIDDLE, 0 },
		{ OPB_WRITE_LAST, OP_LAST },
		{ OPB_WRITE_ONLY_IMM, OP_FIRST | OP_LAST },
		{ OPB_READ_REQUEST, OP_FIRST | OP_LAST },
		{ OPB_READ_RESPONSE_FIRST, OP_FIRST },
		{ OPB_READ_RESPONSE_MIDDLE, 0 },
		{ OPB_READ_RESPONSE_LAST, OP_LAST },
		{ OPB_READ_RESPONSE_ONLY, OP_FIRST | OP_LAST },
		{ OPB_CMP_SWAP, OP_FIRST | OP_LAST },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(rows); i++)
		cr_expect_eq(opcode_table[rows[i].base].flags & (OP_FIRST | OP_LAST),
			     rows[i].first_last, "%s", opcode_table[rows[i].base].name);
}

Test(opcode, which_packets_carry_payload)
{
	for (unsigned int o = 0; o < 256; o++) {
		uint8_t kind = opcode_table[o].kind;
		bool carries = kind == KIND_SEND || kind == KIND_WRITE ||
			       kind == KIND_READ_RESPONSE || kind == KIND_ATOMIC_WRITE;

		cr_expect_eq(opcode_is((uint8_t)o, OP_PAYLOAD), carries, "opcode %#x", o);
	}
}
