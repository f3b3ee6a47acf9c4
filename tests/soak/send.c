/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a lane sends. Each operation has a slot until it is complete. Each work request of a lane
 * completes once, in the order of posting: its id is its number.
 */
#include "soak.h"

#include <arpa/inet.h>
#include <string.h>

#define NUMBER_MASK ((UINT64_C(1) << 40) - 1)

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge[3];
};

bool lane_can_begin(const struct lane *l)
{
	return l->begun - l->done < SLOTS;
}

static uint8_t *slot(const struct lane *l, uint64_t operation)
{
	return l->memory + AT_SEND + operation % SLOTS * SLOT_OCTETS;
}

static uint64_t next_id(struct lane *l)
{
	return (uint64_t)l->index << 40 | (l->asked++ & NUMBER_MASK);
}

/* One element, or three. */
static void give(struct soak *s, const struct lane *l, struct request *r, uint8_t *at,
		 uint32_t length)
{
	uint32_t parts = length >= 3 && random_below(s, 4) == 0 ? 3 : length > 0;

	for (uint32_t i = 0; i < parts; i++) {
		uint32_t part = i + 1 < parts ? 1 + random_below(s, length / parts) : length;

		r->sge[i] = (struct ibv_sge){ (uintptr_t)at, part, l->mr->lkey };
		at += part;
		length -= part;
	}
	r->wr.sg_list = r->sge;
	r->wr.num_sge = (int)parts;
}

static void post(struct soak *s, struct lane *l, struct request *r)
{
	struct ibv_send_wr *bad;
	int error;

	r->wr.wr_id = next_id(l);
	r->wr.send_flags |= IBV_SEND_SIGNALED;
	if (l->kind == KIND_XRC)
		r->wr.qp_type.xrc.remote_srqn = l->far.srqn;
	error = ibv_post_send(l->qp, &r->wr, &bad);
	if (error != 0)
		engine_must_be_gone(s, "ibv_post_send", error);
	l->flight[l->begun % SLOTS].requests++;
}

static void post_remote(struct soak *s, struct lane *l, struct request *r, uint32_t at)
{
	r->wr.wr.rdma.remote_addr = l->far.address + at;
	r->wr.wr.rdma.rkey = l->far.rkey;
	post(s, l, r);
}

static void begin_message(struct soak *s, struct lane *l, struct flight *f)
{
	uint8_t *at = slot(l, l->begun);
	uint64_t n = f->number = l->sent++;
	uint32_t length = message_length(l, l->key, n);
	bool with_number = message_has_number(l, l->key, n);
	bool is_inline = length <= INLINE_MOST && length > 0 && random_below(s, 2) == 0;
	struct request r = { .wr = { .opcode = with_number ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
				     .imm_data = htonl((uint32_t)n),
				     .send_flags = is_inline ? IBV_SEND_INLINE : 0 } };

	pattern_fill(at, l->key, n, 0, length);
	give(s, l, &r, at, length);
	if (l->kind == KIND_UD) {
		r.wr.wr.ud.ah = l->ah;
		r.wr.wr.ud.remote_qpn = l->far.qpn;
		r.wr.wr.ud.remote_qkey = QKEY;
	}
	if (message_is_written(l, l->key, n)) {
		r.wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		post_remote(s, l, &r, AT_RING + (uint32_t)(n % RING) * LONGEST);
	} else {
		post(s, l, &r);
	}
	if (is_inline)
		memset(at, 0, length); /* it was taken at once */
}

/*
 * A READ that is repeated reads again, so the next WRITE waits for it by its fence.
 */
static void begin_write(struct soak *s, struct lane *l, struct flight *f)
{
	uint8_t *at = slot(l, l->begun);
	struct request w = { .wr = { .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_FENCE } };
	struct request r = { .wr = { .opcode = IBV_WR_RDMA_READ } };

	f->number = NUMBER_SCRATCH + l->begun;
	f->length = random_below(s, HALF + 1);
	f->from = random_below(s, LONGEST - f->length + 1);
	pattern_fill(at, l->key, f->number, f->from, f->length);
	give(s, l, &w, at, f->length);
	post_remote(s, l, &w, AT_SCRATCH + f->from);
	give(s, l, &r, at + HALF, f->length);
	post_remote(s, l, &r, AT_SCRATCH + f->from);
}

static void begin_read(struct soak *s, struct lane *l, struct flight *f)
{
	struct request r = { .wr = { .opcode = IBV_WR_RDMA_READ } };

	f->length = random_below(s, LONGEST + 1);
	f->from = random_below(s, LONGEST - f->length + 1);
	give(s, l, &r, slot(l, l->begun), f->length);
	post_remote(s, l, &r, AT_CONSTANT + f->from);
}

static void begin_atomic(struct soak *s, struct lane *l, struct flight *f)
{
	struct request r = { .wr = { .opcode = f->op == OP_FETCH_ADD
						       ? IBV_WR_ATOMIC_FETCH_AND_ADD
						       : IBV_WR_ATOMIC_CMP_AND_SWP } };

	f->number = l->counted++;
	r.sge[0] = (struct ibv_sge){ (uintptr_t)slot(l, l->begun), 8, l->mr->lkey };
	r.wr.sg_list = r.sge;
	r.wr.num_sge = 1;
	r.wr.wr.atomic.remote_addr = l->far.address + AT_COUNTER;
	r.wr.wr.atomic.rkey = l->far.rkey;
	r.wr.wr.atomic.compare_add = f->op == OP_FETCH_ADD ? 1 : f->number;
	r.wr.wr.atomic.swap = f->number + 1;
	post(s, l, &r);
}

static enum operation choose(struct soak *s, const struct lane *l)
{
	static const enum operation often[] = { OP_MESSAGE,   OP_MESSAGE,     OP_MESSAGE,
						OP_MESSAGE,   OP_WRITE,	      OP_READ,
						OP_FETCH_ADD, OP_COMPARE_SWAP };

	if (l->kind == KIND_UC || l->kind == KIND_UD)
		return OP_MESSAGE;
	return often[random_below(s, sizeof(often) / sizeof(often[0]))];
}

void lane_begin(struct soak *s, struct lane *l)
{
	struct flight *f = &l->flight[l->begun % SLOTS];

	if (l->begun == l->done)
		l->since = seconds_now();
	*f = (struct flight){ .op = choose(s, l) };
	switch (f->op) {
	case OP_MESSAGE:
		begin_message(s, l, f);
		break;
	case OP_WRITE:
		begin_write(s, l, f);
		break;
	case OP_READ:
		begin_read(s, l, f);
		break;
	default:
		begin_atomic(s, l, f);
	}
	l->begun++;
}

/* ---- what came back ---- */

static void check_read(struct soak *s, struct lane *l, const struct flight *f, uint64_t key,
		       uint64_t number, const uint8_t *at)
{
	uint32_t differs = pattern_differs(at, key, number, f->from, f->length);

	if (differs < f->length)
		lane_die(s, l, "octet %u of a READ of %u from %u is wrong (operation %llu)",
			 differs, f->length, f->from, (unsigned long long)l->done);
	s->octets += f->length;
}

static void check_result(struct soak *s, struct lane *l, const struct flight *f)
{
	const uint8_t *at = slot(l, l->done);
	uint64_t was;

	switch (f->op) {
	case OP_MESSAGE:
		return;
	case OP_WRITE:
		check_read(s, l, f, l->key, f->number, at + HALF);
		return;
	case OP_READ:
		check_read(s, l, f, l->far_key, NUMBER_CONSTANT, at);
		return;
	default:
		memcpy(&was, at, sizeof(was));
		if (was != f->number)
			lane_die(s, l, "an atomic found %llu instead of %llu",
				 (unsigned long long)was, (unsigned long long)f->number);
		s->octets += sizeof(was);
	}
}

void sent(struct soak *s, const struct ibv_wc *wc)
{
	struct lane *l = &s->lanes[wc->wr_id >> 40];
	struct flight *f = &l->flight[l->done % SLOTS];

	if (l->done == l->begun || (wc->wr_id & NUMBER_MASK) != (l->answered & NUMBER_MASK))
		lane_die(s, l, "request %llu completed instead of %llu",
			 (unsigned long long)(wc->wr_id & NUMBER_MASK),
			 (unsigned long long)l->answered);
	l->answered++;
	l->since = seconds_now();
	if (wc->status != IBV_WC_SUCCESS)
		mate_must_be_lost(s, l, ibv_wc_status_str(wc->status));
	if (--f->requests > 0)
		return;
	if (wc->status == IBV_WC_SUCCESS)
		check_result(s, l, f);
	s->operations++;
	l->done++;
}
