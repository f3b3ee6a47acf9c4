/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of rsockets' credits: what must hold between calls holds after each, for every state
 * in which it held before and whatever the peer sends. `waiting` is the octets that have come and were
 * not taken: no variable of the code has it.
 */
#include "rdmacm/rsockets/rs_flow.c"

/*@ predicate places(struct rs_inflow *f) =
      0 < f->half <= 0x40000000 && f->head <= f->credits && f->tail <= f->credits &&
      f->offset < 2 * f->half && f->open <= 2 * f->half && f->taken <= 2 * f->half &&
      (f->free_offset == 0 || f->free_offset == f->half);
    predicate octets(struct rs_inflow *f, integer waiting) =
      0 <= waiting && f->open + waiting + f->taken == 2 * f->half;
    predicate ring(struct rs_inflow *f) =
      \valid(f) && \valid(f->length + (0 .. f->credits)) &&
      \separated(f, f->length + (0 .. f->credits));
*/

/*@ requires ring(f) && places(f) && octets(f, waiting);
    ensures places(f);
    ensures \result ==> octets(f, waiting + octets);
    ensures \result ==> octets <= f->half;
    ensures !\result ==> octets(f, waiting);
    assigns f->open, f->tail, f->seen, f->length[0 .. f->credits]; */
bool announce(struct rs_inflow *f, uint32_t octets, uint32_t waiting)
{
	return rs_inflow_announce(f, octets);
}

/*@ requires ring(f) && places(f);
    requires f->head_taken < f->length[f->head] <= f->half;
    ensures \result.length <= wanted && \result.offset + \result.length <= 2 * f->half;
    ensures \result.length <= f->length[f->head] - f->head_taken;
    assigns \nothing; */
struct rs_piece next(const struct rs_inflow *f, uint32_t wanted)
{
	return rs_inflow_next(f, wanted);
}

/*@ requires ring(f) && places(f) && octets(f, waiting) && f->head != f->tail;
    requires f->head_taken < f->length[f->head] <= f->half;
    requires octets <= f->length[f->head] - f->head_taken;
    requires octets <= 2 * f->half - f->offset && octets <= waiting;
    ensures places(f) && octets(f, waiting - octets);
    assigns f->taken, f->offset, f->head_taken, f->head, f->seen; */
void take(struct rs_inflow *f, uint32_t octets, uint32_t waiting)
{
	rs_inflow_take(f, octets);
}

/*@ requires ring(f) && places(f) && octets(f, waiting) && \valid(half) && \separated(f, half);
    ensures places(f) && octets(f, waiting);
    ensures \old(f->taken) >= f->half ==>
            half->length == f->half && (half->offset == 0 || half->offset == f->half);
    assigns f->renew_at, f->taken, f->open, f->free_offset, *half; */
uint16_t grant(struct rs_inflow *f, struct rs_piece *half, uint32_t waiting)
{
	return rs_inflow_grant(f, half);
}

/*@ requires \valid_read(f) && \valid(pieces + (0 .. 1)) && \separated(f, pieces + (0 .. 1));
    requires f->offset < f->size <= 0x40000000 && octets <= f->size;
    ensures pieces[0].offset + pieces[0].length <= f->size;
    ensures pieces[1].offset + pieces[1].length <= f->size;
    ensures pieces[0].length + pieces[1].length == octets;
    assigns pieces[0 .. 1]; */
int pieces_of(const struct rs_outflow *f, uint32_t octets, struct rs_piece pieces[2])
{
	return rs_outflow_pieces(f, octets, pieces);
}

/*@ requires \valid(f) && f->offset < f->size <= 0x40000000 && f->available <= f->size;
    requires octets <= f->available && f->places > 0;
    ensures f->offset < f->size && f->available <= f->size;
    assigns f->places, f->available, f->offset; */
void sent(struct rs_outflow *f, uint32_t octets)
{
	rs_outflow_sent(f, octets);
}
