/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for packet_decode. The first octet chooses the options; the rest is a frame. A
 * frame that is accepted is encoded again and must be accepted again, as the same packet. packet_peek
 * finds the number of its queue pair, and reads nothing behind any frame. Of a frame in the middle of a message, alike.h
 * says the same as packet_decode.
 *
 *	decode-fuzz -max_len=512 tests/fuzz/corpus
 */
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "wire/alike.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/peek.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void encode_again(const struct packet *p)
{
	static uint8_t frame[65536 + PACKET_HEADER_MAX];
	const struct decode_options options = { .check_icrc = true };
	struct address_vector av = { .src_gid = p->src_gid, .dst_gid = p->dst_gid };
	struct flow flow;
	struct packet q;
	size_t n;

	flow_init(&flow, &av);
	n = packet_encode(frame, &flow, p, 1);
	memcpy(frame + n, p->payload, p->payload_length);
	n = packet_seal(frame, &flow, n, p->payload_length);
	/* A payload that was accepted without pad may not fit the 16-bit length with it. */
	if (n - ENVELOPE_MAX > 65000)
		return;
	if (packet_decode(&q, frame, n, &options) != REASON_NONE || q.opcode != p->opcode ||
	    q.psn != p->psn || q.payload_length != p->payload_length ||
	    memcmp(q.payload, p->payload, p->payload_length) != 0)
		abort();
}

/* It was decoded with these options, or with others that accept more. */
static void decode_alike(const struct packet *p, uint8_t *frame, size_t length,
			 struct decode_options options)
{
	struct alike a = { 0 };
	struct packet q, r;

	alike_remember(&a, p, frame, length);
	if (a.length == 0)
		return;
	options.check_icrc = true;
	for (uint32_t i = 0; i < 2; i++) {
		enum reason why = packet_decode(&q, frame, length, &options);

		if (!alike_is(&a, frame, length) || alike_decode(&a, &r, frame, NULL) != why ||
		    (why == REASON_NONE &&
		     (q.psn != r.psn || q.ack_req != r.ack_req || q.payload != r.payload)))
			abort();
		frame[a.same + 3] ^= 1; /* another PSN */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct decode_options options = { 0 };
	struct packet p;
	uint8_t *frame;
	uint32_t qpn;

	if (size == 0)
		return 0;
	options.check_icrc = data[0] & 1;
	options.vlan = data[0] & 2 ? 100 : 0;
	frame = malloc(size - 1 +
		       (size == 1)); /* its end is the frame's: the sanitizer watches it */
	if (frame == NULL)
		return 0;
	memcpy(frame, data + 1, size - 1);
	qpn = packet_peek(frame, size - 1);
	if (packet_decode(&p, frame, size - 1, &options) == REASON_NONE) {
		if (qpn != p.dest_qpn)
			abort();
		if (p.payload < frame || p.payload + p.payload_length > frame + size - 1)
			abort();
		encode_again(&p);
		decode_alike(&p, frame, size - 1, options);
	}
	free(frame);
	return 0;
}
