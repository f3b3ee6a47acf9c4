/* SPDX-License-Identifier: BSD-3-Clause */
#include "script.h"

#include <string.h>

static uint64_t mixed(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t mix_random(uint64_t seed, uint64_t a, uint64_t b, uint64_t c)
{
	return mixed(mixed(mixed(mixed(seed) ^ a) ^ b) ^ c);
}

/* A sequence of numbers for one request. */
struct dice {
	uint64_t state;
};

static uint32_t roll(struct dice *d, uint32_t sides)
{
	d->state = mixed(d->state);
	return (uint32_t)(d->state >> 32) % sides;
}

enum ibv_qp_type mix_type(unsigned int qp)
{
	return qp < MIX_RC ? IBV_QPT_RC : qp < MIX_RC + MIX_UC ? IBV_QPT_UC : IBV_QPT_UD;
}

struct mix_end mix_end(const struct mix_script *s, unsigned int qp, uint32_t round)
{
	struct dice d = { mix_random(s->seed, 77, qp, round) };
	struct mix_end e = { .role = roll(&d, 2),
			     .at = 1 + roll(&d, s->per_round - 1),
			     .again = roll(&d, 2) == 0 };
	uint32_t how = roll(&d, 10);

	if (mix_type(qp) == IBV_QPT_RC)
		e.how = how < 2 ? MIX_BAD_REQUEST : how == 2 ? MIX_OWN_ERROR : MIX_NO_BREAK;
	return e;
}

static uint32_t size_of(const struct mix_script *s, struct dice *d, uint32_t largest)
{
	uint32_t mtu = s->mtu, n = 1 + roll(d, 8), length;

	switch (roll(d, 14)) {
	case 0:
		length = 0;
		break;
	case 1:
		length = 1;
		break;
	case 2:
	case 3:
		length = n * mtu - 1;
		break;
	case 4:
	case 5:
		length = n * mtu;
		break;
	case 6:
	case 7:
		length = n * mtu + 1;
		break;
	case 8:
		length = 65536 - 1 + roll(d, 3);
		break;
	case 9:
		length = roll(d, 4) == 0 ? 1 << 20 : 2 * mtu + roll(d, mtu);
		break;
	case 10:
		length = roll(d, 8 * mtu);
		break;
	default:
		length = 2 + roll(d, 63);
		break;
	}
	return length > largest ? 1 + length % largest : length;
}

static void gather(const struct mix_script *s, struct mix_op *op, struct dice *d)
{
	uint32_t left = op->length, i;

	op->pieces = roll(d, 3) == 0 ? 1 : 1 + roll(d, roll(d, 4) == 0 ? s->most_pieces : 4);
	if (op->pieces > s->most_pieces)
		op->pieces = s->most_pieces;
	if (op->length == 0 && roll(d, 2) == 0)
		op->pieces = 0;
	for (i = 0; i < op->pieces; i++) {
		op->part[i] = i + 1 == op->pieces ? left : roll(d, left + 1);
		op->from[i] = roll(d, (uint32_t)(MIX_SOURCE - op->part[i] + 1));
		left -= op->part[i];
	}
}

static enum ibv_wr_opcode opcode(enum ibv_qp_type type, bool plain, struct dice *d)
{
	uint32_t n = roll(d, plain ? 58 : 100);

	if (type == IBV_QPT_UD)
		return n < 50 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM;
	if (type == IBV_QPT_UC)
		return n < 30	? IBV_WR_SEND
		       : n < 60 ? IBV_WR_SEND_WITH_IMM
		       : n < 80 ? IBV_WR_RDMA_WRITE
				: IBV_WR_RDMA_WRITE_WITH_IMM;
	return n < 17	? IBV_WR_SEND
	       : n < 27 ? IBV_WR_SEND_WITH_IMM
	       : n < 30 ? IBV_WR_SEND_WITH_INV
	       : n < 48 ? IBV_WR_RDMA_WRITE
	       : n < 58 ? IBV_WR_RDMA_WRITE_WITH_IMM
	       : n < 80 ? IBV_WR_RDMA_READ
	       : n < 88 ? IBV_WR_ATOMIC_CMP_AND_SWP
			: IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static uint32_t largest_of(const struct mix_script *s, enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? s->mtu : type == IBV_QPT_UC ? 65537 : (uint32_t)MIX_LARGEST;
}

static void atomic(struct mix_way *way, struct mix_op *op, struct dice *d)
{
	uint32_t n = roll(d, MIX_WORDS);
	uint64_t *word = &way->words[n];

	op->length = 8;
	op->pieces = 1;
	op->part[0] = 8;
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD && roll(d, 3) == 0) {
		op->target = MIX_OF_SHARED;
		op->compare_add = 1;
		return;
	}
	op->target = MIX_OF_WORDS;
	op->offset = MIX_AREA + 8 * n;
	op->before = *word;
	op->swap = mixed(d->state);
	op->compare_add = roll(d, 2) == 0 ? *word : mixed(d->state + 1);
	if (op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		*word += op->compare_add;
	else if (*word == op->compare_add)
		*word = op->swap;
}

static void read_or_write(struct mix_op *op, struct dice *d)
{
	size_t room = MIX_AREA;

	op->target = MIX_OF_AREA;
	if (op->opcode == IBV_WR_RDMA_READ && (op->length > 65536 || roll(d, 2) == 0)) {
		op->target = MIX_OF_SOURCE;
		room = MIX_SOURCE;
	}
	op->offset = roll(d, (uint32_t)(room - op->length + 1));
	op->window = op->target == MIX_OF_AREA && roll(d, 3) == 0;
}

/* A READ that is repeated after a loss reads again: nothing may change what it reads before it has completed. */
static void order(struct mix_way *way, struct mix_op *op, struct dice *d)
{
	op->fence = roll(d, 8) == 0 || op->opcode == IBV_WR_SEND_WITH_INV;
	if (op->opcode == IBV_WR_RDMA_READ) {
		way->read_open |= op->target == MIX_OF_AREA;
		return;
	}
	if (op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		op->fence |= way->read_open;
	if (op->fence)
		way->read_open = false;
}

void mix_op(const struct mix_script *s, struct mix_way *way, const uint8_t *source,
	    struct mix_op *op)
{
	struct dice d = { mix_random(s->seed, way->role, way->qp, way->next) };
	enum ibv_qp_type type = mix_type(way->qp);

	memset(op, 0, sizeof(*op));
	if (way->next % s->per_round == 0)
		way->invalidated = false;
	op->opcode = opcode(type, s->plain[way->role], &d);
	if (op->opcode == IBV_WR_SEND_WITH_INV && way->invalidated)
		op->opcode = IBV_WR_SEND;
	op->length = size_of(s, &d, largest_of(s, type));
	op->signaled =
		roll(&d, 2) == 0 || way->next % 4 == 3 || (way->next + 1) % s->per_round == 0;
	op->use_inline = roll(&d, 2) == 0;
	op->consumes = op->opcode != IBV_WR_RDMA_WRITE;
	if (op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		atomic(way, op, &d);
		op->consumes = false;
	} else {
		gather(s, op, &d);
	}
	if (op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ||
	    op->opcode == IBV_WR_RDMA_READ)
		read_or_write(op, &d);
	if (op->opcode == IBV_WR_RDMA_READ)
		op->consumes = false;
	op->window &= type == IBV_QPT_RC && !way->invalidated;
	order(way, op, &d);
	way->invalidated |= op->opcode == IBV_WR_SEND_WITH_INV;
	if (way->area != NULL && op->target == MIX_OF_AREA && op->opcode != IBV_WR_RDMA_READ &&
	    (op->opcode == IBV_WR_RDMA_WRITE || op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM))
		mix_copy(op, source, way->area + op->offset);
	way->next++;
}

void mix_fresh(struct mix_way *way, const uint8_t *source)
{
	memset(way->words, 0, sizeof(way->words));
	way->read_open = way->invalidated = false;
	if (way->area != NULL)
		memcpy(way->area, source + way->qp, MIX_AREA);
}

bool mix_is(const struct mix_op *op, const uint8_t *source, const uint8_t *memory)
{
	uint32_t i, at = 0;

	for (i = 0; i < op->pieces; at += op->part[i++])
		if (memcmp(memory + at, source + op->from[i], op->part[i]) != 0)
			return false;
	return true;
}

void mix_copy(const struct mix_op *op, const uint8_t *source, uint8_t *memory)
{
	uint32_t i, at = 0;

	for (i = 0; i < op->pieces; at += op->part[i++])
		memcpy(memory + at, source + op->from[i], op->part[i]);
}
