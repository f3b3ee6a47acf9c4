/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdmacm/rsockets/rs_flow.h"

#include "base/bits.h"

void rs_inflow_init(struct rs_inflow *f, uint32_t half, uint16_t credits, uint32_t *length)
{
	*f = (struct rs_inflow){
		.half = half,
		.open = half,
		.taken = half, /* the second half was never published */
		.free_offset = half,
		.renew_at = credits / 2,
		.credits = credits,
		.length = length,
	};
}

static uint32_t next_place(const struct rs_inflow *f, uint32_t place)
{
	return place == f->credits ? 0 : place + 1;
}

/* A message must end in the half that it begins in: each half is a buffer of its own. */
bool rs_inflow_announce(struct rs_inflow *f, uint32_t octets)
{
	uint32_t left = f->open % f->half == 0 ? f->half : f->open % f->half;
	uint32_t tail = next_place(f, f->tail);

	if (octets > f->open || octets > left || tail == f->head)
		return false;
	if (octets == 0) {
		rs_inflow_pass(f);
		return true;
	}
	f->open -= octets;
	f->length[f->tail] = octets;
	f->tail = tail;
	return true;
}

void rs_inflow_pass(struct rs_inflow *f)
{
	f->seen++;
}

struct rs_piece rs_inflow_next(const struct rs_inflow *f, uint32_t wanted)
{
	struct rs_piece p = { .offset = f->offset };

	if (!rs_inflow_waits(f))
		return p;
	p.length = MIN_OF(wanted, f->length[f->head] - f->head_taken);
	p.length = MIN_OF(p.length, 2 * f->half - f->offset);
	return p;
}

void rs_inflow_take(struct rs_inflow *f, uint32_t octets)
{
	f->taken += octets;
	f->offset += octets;
	if (f->offset == 2 * f->half)
		f->offset = 0;
	f->head_taken += octets;
	if (f->head_taken < f->length[f->head])
		return;
	f->head_taken = 0;
	f->head = next_place(f, f->head);
	f->seen++;
}

bool rs_inflow_owes(const struct rs_inflow *f)
{
	return f->taken >= f->half || (int16_t)(uint16_t)(f->seen - f->renew_at) >= 0;
}

uint16_t rs_inflow_grant(struct rs_inflow *f, struct rs_piece *half)
{
	*half = (struct rs_piece){ 0 };
	f->renew_at = (uint16_t)(f->seen + f->credits / 2);
	if (f->taken >= f->half) {
		half->offset = f->free_offset;
		half->length = f->half;
		f->taken -= f->half;
		f->open += f->half;
		f->free_offset = f->free_offset == 0 ? f->half : 0;
	}
	return (uint16_t)(f->seen + f->credits);
}

void rs_outflow_init(struct rs_outflow *f, uint32_t size, uint16_t places, uint16_t control_places)
{
	*f = (struct rs_outflow){
		.size = size,
		.available = size,
		.places = places,
		.control_places = control_places,
	};
}

int rs_outflow_pieces(const struct rs_outflow *f, uint32_t octets, struct rs_piece pieces[2])
{
	uint32_t to_end = f->size - f->offset;

	pieces[0] = (struct rs_piece){ .offset = f->offset, .length = MIN_OF(octets, to_end) };
	pieces[1] = (struct rs_piece){ .length = octets - pieces[0].length };
	return pieces[1].length > 0 ? 2 : 1;
}

void rs_outflow_sent(struct rs_outflow *f, uint32_t octets)
{
	f->places--;
	f->available -= octets;
	f->offset += octets;
	if (f->offset >= f->size)
		f->offset -= f->size;
}

void rs_outflow_done(struct rs_outflow *f, uint32_t octets)
{
	f->places++;
	f->available += octets;
}
