/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for whole frames of any kind: their layers, the steering rules that see them,
 * RSS, checksums, the segments of TSO, and IP packets inside datagrams. The frame stands in memory
 * of exactly its length. A frame whose checksums were filled in is right, and a segment is one
 * whole TCP packet.
 */
#include "base/bits.h"
#include "input.h"
#include "lcore/raw/inner_ip.h"
#include "lcore/raw/flow_table.h"
#include "lcore/raw/raw_hash.h"

#define RULES	  6u
#define FRAME_MAX 512u

static uint8_t memory[sizeof(struct flow_table) + RULES * sizeof(struct flow_rule)]
	__attribute__((aligned(8)));

static struct flow_table *make_table(struct input *in, const struct raw_frame *f)
{
	struct flow_table *t = (struct flow_table *)(void *)memory;
	uint32_t rules = input_8(in) % (RULES + 1);

	memset(memory, 0, sizeof(memory));
	for (uint32_t i = 0; i < rules; i++) {
		struct flow_rule r = { .kind = input_8(in) % FLOW_KINDS,
				       .priority = input_8(in) % 4,
				       .layers = input_8(in) & f->layers,
				       .actions = input_8(in) & FLOW_ACTIONS };
		uint8_t *mask = (uint8_t *)&r.mask;

		r.value = f->key; /* a rule for this frame, */
		memset(mask + input_8(in) % sizeof(r.mask) / 2, 0xff, sizeof(r.mask) / 2);
		((uint8_t *)&r.value)[input_8(in) % sizeof(r.value)] ^=
			input_8(in) & 1; /* or nearly */
		flow_table_add(t, &r);
	}
	return t;
}

static void match(struct input *in, const struct raw_frame *f)
{
	const struct flow_table *t = make_table(in, f);
	struct flow_match m;
	bool roce = input_8(in) & 1;

	for (uint32_t i = 1; i < t->normal; i++)
		demand(t->rule[i - 1].priority <= t->rule[i].priority);
	flow_table_match(t, f, roce, &m);
	demand(m.count <= LIMIT_FLOW_COPIES && m.count <= t->count);
	demand(!roce || !m.taken);
	for (uint32_t i = 0; i < m.count; i++)
		demand(!roce || m.rule[i]->kind == FLOW_SNIFFER);
}

static void hash(struct input *in, const struct raw_frame *f)
{
	uint8_t key[RSS_KEY_LENGTH] __attribute__((aligned(4)));

	input_take(in, key, sizeof(key));
	raw_hash(f, input_8(in), key);
}

static void look_at(const struct raw_frame *f, size_t length)
{
	demand(f->end <= length && f->l3 <= length);
	if (f->layers & (FLOW_LAYER_TCP | FLOW_LAYER_UDP)) {
		demand(f->layers & (FLOW_LAYER_IPV4 | FLOW_LAYER_IPV6));
		demand(f->l4 > f->l3 && f->l4 + 8u <= f->end);
	}
}

static void whole_frame(struct input *in, uint8_t *frame, size_t length)
{
	struct raw_frame f;

	raw_frame_parse(&f, frame, length);
	look_at(&f, length);
	raw_frame_is_roce(&f, frame, length);
	match(in, &f);
	hash(in, &f);
	raw_frame_checksums_right(&f, frame);
	if (f.cut)
		return;
	raw_frame_fill_checksums(&f, frame);
	if ((f.layers & FLOW_LAYER_IPV4) && !f.fragment &&
	    (f.layers & (FLOW_LAYER_TCP | FLOW_LAYER_UDP)))
		demand(raw_frame_checksums_right(&f, frame));
}

static void whole_segment(const uint8_t *octets, size_t length, size_t l3)
{
	struct raw_frame f;

	raw_frame_parse_ip(&f, octets, l3, length);
	demand(!f.cut && !f.fragment && (f.layers & FLOW_LAYER_TCP) && f.end == length);
	demand(!(f.layers & FLOW_LAYER_IPV4) || raw_frame_checksums_right(&f, octets));
}

static void segments(struct input *in, uint8_t *octets, size_t length, bool inside)
{
	struct tcp_segment s = { .number = input_8(in), .offset = input_32(in) };
	size_t header = input_8(in), l3 = input_8(in) & 1 ? 0 : 14;

	s.last = s.offset & 1;
	if (inside) {
		if (header <= length)
			inner_ip_segment(octets, length, header, &s);
	} else if (tcp_segment_finish(octets, length, l3, header, &s)) {
		whole_segment(octets, length, l3);
	}
}

static void inside(uint8_t *octets, size_t length)
{
	inner_ip_checksums_right(octets, length);
	inner_ip_fill_checksums(octets, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t what = input_8(&in);
	size_t length = input_16(&in) % (FRAME_MAX + 1);
	uint8_t *octets;

	length = MIN_OF(length, in.left);
	octets = malloc(length + (length == 0));
	input_take(&in, octets, length);
	switch (what % 4) {
	case 0:
		segments(&in, octets, length, false);
		break;
	case 1:
		segments(&in, octets, length, true);
		break;
	case 2:
		inside(octets, length);
		break;
	default:
		whole_frame(&in, octets, length);
	}
	free(octets);
	return 0;
}
