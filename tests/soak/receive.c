/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a lane receives. A receive is posted again when its message was checked. So a reliable lane
 * has at most SLOTS messages that are not checked yet, and one on its way: as many places of the ring
 * do not change. An unreliable lane's sender does not wait: it may write a place again, and then what
 * is there must be of another message of this place.
 */
#include "soak.h"

#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#define OF_POOL	   (UINT64_C(1) << 63)
#define LATER_MOST 4000u /* messages after the one that arrived */
#define LATE_MOST  (20u * RING) /* ... before it, if packets arrive twice or late */
#define TRIES	   100 /* times 1 ms, for a copy that is under way */

static bool can_be_lost(const struct lane *l)
{
	return l->kind == KIND_UC || l->kind == KIND_UD;
}

static uint8_t *receive_at(const struct lane *l, uint64_t n)
{
	return l->memory + AT_RECEIVE + n % SLOTS * SLOT_OCTETS;
}

static void post_own(struct soak *s, struct lane *l, uint32_t n)
{
	uint8_t *at = receive_at(l, n);
	uint32_t first = l->kind == KIND_UD ? GRH : 100;
	struct ibv_sge sge[2] = { { (uintptr_t)at, first, l->mr->lkey },
				  { (uintptr_t)at + first, LONGEST, l->mr->lkey } };
	struct ibv_recv_wr wr = { .wr_id = (uint64_t)l->index << 40 | n,
				  .sg_list = sge,
				  .num_sge = 2 };
	struct ibv_recv_wr *bad;
	int error = ibv_post_recv(l->qp, &wr, &bad);

	if (error != 0)
		engine_must_be_gone(s, "ibv_post_recv", error);
}

static void post_pool(struct soak *s, uint32_t n)
{
	struct ibv_sge sge = { (uintptr_t)s->pool + (size_t)n * LONGEST, LONGEST,
			       s->pool_mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = OF_POOL | n, .sg_list = &sge, .num_sge = 1 }, *bad;
	int error = ibv_post_srq_recv(n < POOL ? s->srq : s->xrc_srq, &wr, &bad);

	s->in_pool[n] = true;
	if (error != 0)
		engine_must_be_gone(s, "ibv_post_srq_recv", error);
}

void receives_post(struct soak *s)
{
	for (uint32_t n = 0; n < 2 * POOL; n++)
		post_pool(s, n);
	for (uint32_t i = 0; i < s->lane_count; i++)
		for (uint32_t n = 0;
		     n < SLOTS && s->lanes[i].kind != KIND_RC_SRQ && s->lanes[i].kind != KIND_XRC;
		     n++)
			post_own(s, &s->lanes[i], n);
}

/* ---- which message it is ---- */

/*
 * A message that arrives late or twice is checked, but does not count as the next one. UC accepts
 * the first packet of a message with any PSN (docs/protocol-map.md, 172), so a message that the
 * network repeats arrives twice.
 */
static void unreliable_came(struct soak *s, struct lane *l, uint64_t n)
{
	uint64_t behind;

	if (n >= l->expected) {
		uint64_t ahead = n - l->expected + 1;

		l->seen = ahead < 64 ? l->seen << ahead | 1 : 1;
		s->missing += ahead - 1;
		l->expected = n + 1;
		return;
	}
	behind = l->expected - 1 - n;
	if (s->o.orderly)
		lane_die(s, l, "message %llu came behind %llu", (unsigned long long)n,
			 (unsigned long long)(l->expected - 1));
	if (behind < 64 && (l->seen >> behind & 1) == 0) {
		l->seen |= UINT64_C(1) << behind;
		s->missing--;
	}
}

static uint64_t number_of(struct soak *s, struct lane *l, const struct ibv_wc *wc)
{
	uint32_t says = ntohl(wc->imm_data);
	uint64_t n = l->expected;

	if (can_be_lost(l)) {
		if (!(wc->wc_flags & IBV_WC_WITH_IMM))
			lane_die(s, l, "a message without its number");
		n += (uint64_t)(int64_t)(int32_t)(says - (uint32_t)n);
		unreliable_came(s, l, n);
		return n;
	}
	if (message_has_number(l, l->far_key, n) != ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) ||
	    ((wc->wc_flags & IBV_WC_WITH_IMM) && says != (uint32_t)n))
		lane_die(s, l, "message %llu instead of %llu, or its number is missing",
			 (unsigned long long)says, (unsigned long long)n);
	l->expected++;
	return n;
}

/* ---- its octets ---- */

/* Whether octets of message `other` begin at this octet, if that message is written there. */
static bool begins(const struct lane *l, uint64_t other, uint32_t octet, const uint8_t *place)
{
	uint32_t length;

	if (!message_is_written(l, l->far_key, other))
		return false;
	length = message_length(l, l->far_key, other);
	if (length <= octet)
		return false;
	length = length - octet < 8 ? length - octet : 8;
	return pattern_differs(place + octet, l->far_key, other, octet, length) == length;
}

/* Another message of an unreliable lane was written to the same place. */
static bool is_of_another(const struct soak *s, const struct lane *l, uint64_t n, uint32_t octet,
			  const uint8_t *place)
{
	uint64_t late = s->o.orderly ? 0 : LATE_MOST;

	for (uint64_t other = n > late ? n - late : n % RING; other < n + LATER_MOST; other += RING)
		if (other != n && (other > n || late > 0) && begins(l, other, octet, place))
			return true;
	return false;
}

static void check_octets(struct soak *s, struct lane *l, uint64_t n, const uint8_t *at,
			 uint32_t length, bool written)
{
	for (int tries = 0;; tries++) {
		uint32_t differs = pattern_differs(at, l->far_key, n, 0, length);

		if (differs == length) {
			s->octets += length;
			return;
		}
		if (written && l->kind == KIND_UC && is_of_another(s, l, n, differs, at)) {
			s->overtaken++;
			return;
		}
		if (!written || l->kind != KIND_UC || tries == TRIES)
			lane_die(s, l, "octet %u of message %llu of %u octets is wrong", differs,
				 (unsigned long long)n, length);
		usleep(1000);
	}
}

static void check_message(struct soak *s, struct lane *l, const struct ibv_wc *wc,
			  const uint8_t *at)
{
	uint64_t n = number_of(s, l, wc);
	bool written = message_is_written(l, l->far_key, n);
	uint32_t length = message_length(l, l->far_key, n);
	uint32_t says = wc->byte_len - (l->kind == KIND_UD ? GRH : 0);

	if (wc->opcode != (written ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		lane_die(s, l, "message %llu has opcode %d", (unsigned long long)n, wc->opcode);
	if (says != length)
		lane_die(s, l, "message %llu has %u octets instead of %u", (unsigned long long)n,
			 says, length);
	if (written)
		at = l->memory + AT_RING + n % RING * LONGEST;
	else if (l->kind == KIND_UD)
		at += GRH;
	check_octets(s, l, n, at, length, written);
	s->messages++;
}

static void received_own(struct soak *s, struct lane *l, const struct ibv_wc *wc)
{
	uint32_t n = (uint32_t)wc->wr_id;

	if (n != l->taken % SLOTS || wc->qp_num != l->qp->qp_num)
		lane_die(s, l, "receive %u of queue pair %u completed instead of %u of %u", n,
			 wc->qp_num, (uint32_t)(l->taken % SLOTS), l->qp->qp_num);
	l->taken++;
	if (wc->status != IBV_WC_SUCCESS) {
		mate_must_be_lost(s, l, ibv_wc_status_str(wc->status));
		return;
	}
	check_message(s, l, wc, receive_at(l, n));
	post_own(s, l, n);
}

static void received_pool(struct soak *s, const struct ibv_wc *wc)
{
	uint32_t n = (uint32_t)wc->wr_id;
	struct lane *l;

	if (n >= 2 * POOL || !s->in_pool[n])
		die("%s: receive %u of an SRQ completed twice", s->o.name, n);
	s->in_pool[n] = false;
	l = lane_of_qpn(s, wc->qp_num);
	if (wc->status != IBV_WC_SUCCESS) {
		mate_must_be_lost(s, l, ibv_wc_status_str(wc->status));
		return;
	}
	if (l->kind != (n < POOL ? KIND_RC_SRQ : KIND_XRC))
		lane_die(s, l, "it took a receive of another SRQ");
	check_message(s, l, wc, s->pool + (size_t)n * LONGEST);
	post_pool(s, n);
}

void received(struct soak *s, const struct ibv_wc *wc)
{
	if (wc->wr_id & OF_POOL)
		received_pool(s, wc);
	else
		received_own(s, &s->lanes[wc->wr_id >> 40], wc);
}
