/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for what an rsocket takes from its peer: greetings, datagram headers, and the
 * announcements and credits of a stream. What is read is stored again and must be the same. A
 * stream never hands out octets outside its buffer, and none twice: what is open, what waits and
 * what was taken are the whole buffer at any time.
 */
#include <netinet/in.h>

#include "base/bits.h"
#include "input.h"
#include "rdmacm/rsockets/rs_flow.h"
#include "rdmacm/rsockets/rs_wire.h"

#define CREDITS	   8u
#define HALF	   64u
#define OUT_PLACES 6u

static void greeting(struct input *in)
{
	uint8_t octets[RS_GREETING_SIZE + 8], again[RS_GREETING_SIZE];
	size_t length = input_8(in) % (sizeof(octets) + 1);
	uint8_t *from = malloc(length + (length == 0));
	struct rs_greeting g, h;

	input_take(in, from, length);
	if (length > 0 && (from[0] & 0x80) == 0)
		from[0] = RS_VERSION;
	if (rs_greeting_load(&g, from, length)) {
		demand(length >= RS_GREETING_SIZE && g.table.length > 0);
		rs_greeting_store(again, &g);
		demand(rs_greeting_load(&h, again, sizeof(again)));
		demand(h.credits == g.credits && h.iomap_entries == g.iomap_entries);
		demand(memcmp(&h.table, &g.table, sizeof(h.table)) == 0);
		demand(memcmp(&h.buffer, &g.buffer, sizeof(h.buffer)) == 0);
		rs_sge_for(&g.buffer, true);
	}
	free(from);
}

static void datagram(struct input *in)
{
	size_t length = input_8(in) % (RS_DATAGRAM_HEADER_MAX + 8), n;
	uint8_t *from = malloc(length + (length == 0)), again[RS_DATAGRAM_HEADER_MAX];
	struct sockaddr_storage source, same;

	input_take(in, from, length);
	n = rs_datagram_load(&source, from, length, 3);
	demand(n <= length);
	if (n > 0) {
		demand(rs_datagram_store(again, (struct sockaddr *)&source) == n);
		demand(rs_datagram_load(&same, again, n, 3) == n);
		demand(memcmp(&source, &same, sizeof(same)) == 0);
	}
	free(from);
}

static void udp(struct input *in)
{
	size_t length = input_8(in) % (RS_UDP_HEADER_MAX + 8), n;
	int family = input_8(in) & 1 ? AF_INET6 : AF_INET;
	uint8_t *from = malloc(length + (length == 0)), again[RS_UDP_HEADER_MAX];
	struct sockaddr_storage address = { .ss_family = (sa_family_t)family };
	struct rs_udp u, v;

	input_take(in, from, length);
	if (length > 6 && (from[6] & 1)) {
		memset(from, 0x55, 4);
		from[4] = family == AF_INET6 ? 6 : 4;
		from[6] = family == AF_INET6 ? 28 : 16;
	}
	n = rs_udp_load(&u, from, length, family);
	demand(n <= length);
	if (n > 0) {
		demand(u.qpn <= 0xffffff);
		demand(rs_udp_store(again, &u, (struct sockaddr *)&address) == n);
		demand(rs_udp_load(&v, again, n, family) == n);
		demand(v.qpn == u.qpn && v.operation == u.operation);
	}
	free(from);
}

/* ---- a stream ---- */

struct stream {
	struct rs_inflow in;
	struct rs_outflow out;
	uint32_t lengths[CREDITS + 1];
	uint32_t waits; /* octets announced and not taken */
	uint32_t under_way[OUT_PLACES]; /* octets of messages sent and not done, oldest first */
	uint32_t sent;
};

static void look_at(const struct stream *s)
{
	demand(s->in.open + s->waits + s->in.taken == 2 * s->in.half);
	demand(s->in.offset < 2 * s->in.half);
	demand(s->out.available <= s->out.size && s->out.offset < s->out.size);
	demand(rs_inflow_waits(&s->in) == (s->waits > 0));
}

static void announced(struct stream *s, uint32_t octets)
{
	uint32_t open = s->in.open;

	if (!rs_inflow_announce(&s->in, octets))
		return; /* the socket ends here */
	demand(octets <= open);
	s->waits += octets;
}

static void read_some(struct stream *s, uint32_t wanted)
{
	struct rs_piece p = rs_inflow_next(&s->in, wanted);

	demand(p.length <= wanted && p.length <= s->waits);
	demand(p.offset + p.length <= 2 * s->in.half);
	demand(p.length > 0 || wanted == 0 || s->waits == 0);
	if (p.length == 0)
		return;
	rs_inflow_take(&s->in, p.length);
	s->waits -= p.length;
}

static void grant(struct stream *s)
{
	struct rs_piece half;

	rs_inflow_grant(&s->in, &half);
	demand(half.length == 0 || half.length == s->in.half);
	demand(half.offset == 0 || half.offset == s->in.half);
}

static void send_some(struct stream *s, uint32_t octets, uint32_t target)
{
	struct rs_piece piece[2];
	int n;

	if (!rs_outflow_may_send(&s->out, target))
		return;
	octets = MIN_OF(octets, MIN_OF(target, s->out.available));
	n = rs_outflow_pieces(&s->out, octets, piece);
	demand(n == 1 || n == 2);
	demand(piece[0].offset + piece[0].length <= s->out.size);
	demand(n == 1 || (piece[1].offset == 0 && piece[1].length <= s->out.size));
	demand(piece[0].length + (n == 2 ? piece[1].length : 0) == octets);
	rs_outflow_sent(&s->out, octets);
	s->out.sent++;
	demand(s->sent < OUT_PLACES);
	s->under_way[s->sent++] = octets;
}

static void sent_is_done(struct stream *s)
{
	if (s->sent == 0)
		return;
	rs_outflow_done(&s->out, s->under_way[0]);
	s->sent--;
	memmove(&s->under_way[0], &s->under_way[1], s->sent * sizeof(s->under_way[0]));
}

static void message(struct stream *s, uint32_t m)
{
	switch (rs_message_kind(m)) {
	case RS_DATA:
		announced(s, rs_message_value(m));
		break;
	case RS_CREDIT:
		s->out.granted = (uint16_t)rs_message_value(m);
		rs_inflow_pass(&s->in);
		break;
	default:
		rs_inflow_pass(&s->in);
	}
}

static void step(struct stream *s, struct input *in)
{
	uint8_t what = input_8(in);

	switch (what % 9) {
	case 0:
		greeting(in);
		break;
	case 1:
		datagram(in);
		break;
	case 2:
		udp(in);
		break;
	case 3:
		message(s, input_32(in));
		break;
	case 4:
		read_some(s, input_size(in, 2 * HALF));
		break;
	case 5:
		if (rs_inflow_owes(&s->in))
			grant(s);
		break;
	case 6:
		send_some(s, input_size(in, HALF), input_size(in, 4 * HALF));
		break;
	case 7:
		sent_is_done(s);
		break;
	default:
		announced(s, input_size(in, HALF));
	}
	look_at(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct stream s = { .waits = 0 };

	rs_inflow_init(&s.in, HALF, CREDITS, s.lengths);
	rs_outflow_init(&s.out, 2 * LIMIT_RS_LOW_WATER, OUT_PLACES, 2);
	s.out.granted = input_8(&in);
	while (in.left > 0)
		step(&s, &in);
	return 0;
}
