/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/header.h"
#include "wire/opcode.h"

/* Octets of the extended headers that the flags name (IBTA 9.2, A14.3, A19.4). */
#define EXTENDED(flags)                                                                          \
	(((flags)&OP_XRCETH ? XRCETH_LENGTH : 0) + ((flags)&OP_DETH ? DETH_LENGTH : 0) +         \
	 ((flags)&OP_FETH ? FETH_LENGTH : 0) + ((flags)&OP_RETH ? RETH_LENGTH : 0) +             \
	 ((flags)&OP_ATOMIC_ETH ? ATOMIC_ETH_LENGTH : 0) + ((flags)&OP_AETH ? AETH_LENGTH : 0) + \
	 ((flags)&OP_ATOMIC_ACK_ETH ? ATOMIC_ACK_ETH_LENGTH : 0) +                               \
	 ((flags)&OP_IMM ? IMM_LENGTH : 0) + ((flags)&OP_IETH ? IETH_LENGTH : 0) +               \
	 ((flags)&OP_SELECTION ? SELECTION_LENGTH : 0))

#define ROW(SERVICE, OPB, KIND, text, f)                                   \
	[OPCODE(SERVICE_##SERVICE, OPB)] = { .name = #SERVICE " " text,    \
					     .flags = (f),                 \
					     .kind = KIND_##KIND,          \
					     .service = SERVICE_##SERVICE, \
					     .header_length = BTH_LENGTH + EXTENDED(f) }

#define FIRST	 (OP_FIRST | OP_PAYLOAD)
#define MIDDLE	 (OP_PAYLOAD)
#define LAST	 (OP_LAST | OP_PAYLOAD)
#define ONLY	 (OP_FIRST | OP_LAST | OP_PAYLOAD)
#define SINGLE	 (OP_FIRST | OP_LAST) /* one packet without payload */
#define CONSUMES OP_CONSUMES

/*
 * SEND and WRITE, which RC, UC and XRC have in common; x is OP_XRCETH or 0. IBTA's table has no
 * SEND with invalidate for UC, but ibv_post_send(3) has. Its opcode follows the pattern of the
 * others.
 */
#define SEND_WRITE_ROWS(S, x)                                                                     \
	ROW(S, OPB_SEND_FIRST, SEND, "SEND FIRST", (x) | FIRST | CONSUMES),                       \
		ROW(S, OPB_SEND_MIDDLE, SEND, "SEND MIDDLE", (x) | MIDDLE),                       \
		ROW(S, OPB_SEND_LAST, SEND, "SEND LAST", (x) | LAST),                             \
		ROW(S, OPB_SEND_LAST_IMM, SEND, "SEND LAST+IMM", (x) | LAST | OP_IMM),            \
		ROW(S, OPB_SEND_ONLY, SEND, "SEND ONLY", (x) | ONLY | CONSUMES),                  \
		ROW(S, OPB_SEND_ONLY_IMM, SEND, "SEND ONLY+IMM", (x) | ONLY | OP_IMM | CONSUMES), \
		ROW(S, OPB_WRITE_FIRST, WRITE, "WRITE FIRST", (x) | FIRST | OP_RETH),             \
		ROW(S, OPB_WRITE_MIDDLE, WRITE, "WRITE MIDDLE", (x) | MIDDLE),                    \
		ROW(S, OPB_WRITE_LAST, WRITE, "WRITE LAST", (x) | LAST),                          \
		ROW(S, OPB_WRITE_LAST_IMM, WRITE, "WRITE LAST+IMM",                               \
		    (x) | LAST | OP_IMM | CONSUMES),                                              \
		ROW(S, OPB_WRITE_ONLY, WRITE, "WRITE ONLY", (x) | ONLY | OP_RETH),                \
		ROW(S, OPB_WRITE_ONLY_IMM, WRITE, "WRITE ONLY+IMM",                               \
		    (x) | ONLY | OP_RETH | OP_IMM | CONSUMES),                                    \
		ROW(S, OPB_SEND_LAST_INV, SEND, "SEND LAST+INV", (x) | LAST | OP_IETH),           \
		ROW(S, OPB_SEND_ONLY_INV, SEND, "SEND ONLY+INV", (x) | ONLY | OP_IETH | CONSUMES)

/* The rows that RC and XRC add. Responses have no XRCETH (IBTA A14.3.1). */
#define RELIABLE_ROWS(S, x)                                                               \
	ROW(S, OPB_READ_REQUEST, READ_REQUEST, "READ REQUEST", (x) | SINGLE | OP_RETH),   \
		ROW(S, OPB_READ_RESPONSE_FIRST, READ_RESPONSE, "READ RESPONSE FIRST",     \
		    OP_RESPONSE | FIRST | OP_AETH),                                       \
		ROW(S, OPB_READ_RESPONSE_MIDDLE, READ_RESPONSE, "READ RESPONSE MIDDLE",   \
		    OP_RESPONSE | MIDDLE),                                                \
		ROW(S, OPB_READ_RESPONSE_LAST, READ_RESPONSE, "READ RESPONSE LAST",       \
		    OP_RESPONSE | LAST | OP_AETH),                                        \
		ROW(S, OPB_READ_RESPONSE_ONLY, READ_RESPONSE, "READ RESPONSE ONLY",       \
		    OP_RESPONSE | ONLY | OP_AETH),                                        \
		ROW(S, OPB_ACK, ACK, "ACK", OP_RESPONSE | SINGLE | OP_AETH),              \
		ROW(S, OPB_ATOMIC_ACK, ATOMIC_ACK, "ATOMIC ACK",                          \
		    OP_RESPONSE | SINGLE | OP_AETH | OP_ATOMIC_ACK_ETH),                  \
		ROW(S, OPB_CMP_SWAP, CMP_SWAP, "CMP SWAP", (x) | SINGLE | OP_ATOMIC_ETH), \
		ROW(S, OPB_FETCH_ADD, FETCH_ADD, "FETCH ADD", (x) | SINGLE | OP_ATOMIC_ETH)

const struct opcode_info opcode_table[256] = {
	SEND_WRITE_ROWS(RC, 0),
	RELIABLE_ROWS(RC, 0),
	ROW(RC, OPB_FLUSH, FLUSH, "FLUSH", SINGLE | OP_FETH | OP_RETH),
	ROW(RC, OPB_ATOMIC_WRITE, ATOMIC_WRITE, "ATOMIC WRITE", ONLY | OP_RETH),

	SEND_WRITE_ROWS(UC, 0),

	ROW(UD, OPB_SEND_ONLY, SEND, "SEND ONLY", ONLY | OP_DETH | CONSUMES),
	ROW(UD, OPB_SEND_ONLY_IMM, SEND, "SEND ONLY+IMM", ONLY | OP_DETH | OP_IMM | CONSUMES),

	SEND_WRITE_ROWS(XRC, OP_XRCETH),
	RELIABLE_ROWS(XRC, OP_XRCETH),

	/* A CNP has 16 reserved octets where other packets have extended headers (IBTA A17.9.3). */
	[OPCODE_CNP] = { .name = "CNP",
			 .flags = OP_RESPONSE | SINGLE,
			 .kind = KIND_CNP,
			 .service = SERVICE_CNP,
			 .header_length = BTH_LENGTH + CNP_RESERVED_LENGTH },
	[OPCODE_SELECTIVE_ACK] = { .name = "SELECTIVE ACK",
				   .flags = OP_RESPONSE | SINGLE | OP_AETH | OP_SELECTION,
				   .kind = KIND_SELECTIVE_ACK,
				   .service = SERVICE_OWN,
				   .header_length = BTH_LENGTH + AETH_LENGTH + SELECTION_LENGTH },
};
