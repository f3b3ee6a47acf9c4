/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of what is placed, where a region is direct in parts and peer memory in parts, by the
 * lcore and by a mover. Several parts of a region lead to the same octets here, some by a pointer,
 * some through the descriptor: what was written last is what is found there.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "drivers/client_memory/mover.h"
#include "loop_rig.h"

#define PATIENCE (20 * TIME_S)
#define WORD	 64u /* octets that all parts lead to */
#define NOWHERE	 UINT64_C(0x1000) /* an address that no program has mapped */

static struct rig *r;

static void open_rig(bool by_mover)
{
	rig_timeout = 0;
	r = rig_open();
	r->engine.client[0] = &r->client;
	r->client.memory = rig_own_memory();
	if (!by_mover)
		return;
	r->client.mover = mover_create(r->client.memory, NULL, 1);
	cr_assert_not_null(r->client.mover);
}

static void close_rig(void)
{
	if (r->client.mover != NULL)
		mover_close(r->client.mover);
	peer_memory_close(r->client.memory);
	free(r->client.memory);
	rig_close(r);
}

struct part {
	uint32_t length;
	uint64_t peer_address; /* 0: direct */
	void *direct;
};

/* The side's region becomes these parts; the rest of it is its buffer, direct. */
static void lay_out(uint32_t side, const struct part *part, uint32_t n)
{
	struct region *old =
		(struct region *)(uintptr_t)key_withdraw(&r->engine.keys, r->side[side].key);
	struct region *m = calloc(1, sizeof(*m) + (n + 1) * sizeof(m->piece[0]));
	uint64_t offset = 0;

	*m = *old;
	free(old);
	m->pieces = n + 1;
	for (uint32_t i = 0; i < n; i++) {
		m->piece[i] = (struct region_piece){ .offset = offset,
						     .direct = part[i].direct,
						     .peer_address = part[i].peer_address };
		offset += part[i].length;
	}
	m->piece[n] =
		(struct region_piece){ .offset = offset, .direct = r->side[side].buffer + offset };
	key_publish(&r->engine.keys, r->side[side].key, m);
}

#define PEER(at)                            \
	{                                   \
		WORD, (uintptr_t)(at), NULL \
	}
#define DIRECT(at)            \
	{                     \
		WORD, 0, (at) \
	}

static void run_until(uint32_t side, uint32_t completions)
{
	nanotime until = clock_now() + PATIENCE;

	while (r->side[side].completions < completions && clock_now() < until)
		rig_poll(r);
	cr_assert_eq(r->side[side].completions, completions,
		     "%u of %u completions came, the last with status %u",
		     r->side[side].completions, completions, r->side[side].last.status);
}

static void succeeds(uint32_t side, uint32_t completions)
{
	run_until(side, completions);
	cr_assert_eq(r->side[side].last.status, STATUS_SUCCESS, "reason: %s",
		     reason_sentence(r->side[side].last.vendor_err));
}

static void fill(uint32_t side)
{
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		r->side[side].buffer[i] = (uint8_t)(i / WORD + 1);
}

static void each_way(void (*test)(bool by_mover))
{
	for (int by_mover = 0; by_mover < 2; by_mover++) {
		open_rig(by_mover);
		test(by_mover);
		close_rig();
	}
}

#define HOW (by_mover ? "by a mover" : "by the lcore")

/* One packet, whose spans are of both kinds in turn. */
static void spans_of_a_packet(bool by_mover)
{
	uint8_t word[WORD] = { 0 };
	const struct part part[] = { DIRECT(word), PEER(word), DIRECT(word), PEER(word),
				     DIRECT(word) };
	const uint32_t parts = sizeof(part) / sizeof(part[0]);

	fill(0);
	lay_out(1, part, parts);
	for (uint32_t n = 2; n <= parts; n++) {
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, n * WORD, WORK_SIGNALED));
		succeeds(0, n - 1);
		cr_expect_eq(word[0], n, "span %u is seen, not %u, %s", word[0], n, HOW);
		cr_expect_eq(word[WORD - 1], n, "%s", HOW);
	}
}

Test(place, spans_of_a_packet_are_placed_in_their_order)
{
	each_way(spans_of_a_packet);
}

static void writes(bool by_mover)
{
	uint8_t word[WORD] = { 0 };
	const struct part part[] = { PEER(word), DIRECT(word) };

	fill(0);
	lay_out(1, part, 2);
	for (uint32_t i = 0; i < 10; i++)
		cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, i * WORD, i % 2 * WORD, WORD,
				      i == 9 ? WORK_SIGNALED : 0));
	succeeds(0, 1);
	cr_expect_eq(word[0], 10, "WRITE %u is seen, not 10, %s", word[0], HOW);
}

Test(place, writes_are_placed_in_their_order)
{
	each_way(writes);
}

static void sends(bool by_mover)
{
	uint8_t word[WORD] = { 0 };
	const struct part part[] = { PEER(word), DIRECT(word) };

	fill(0);
	lay_out(1, part, 2);
	cr_assert(rig_receive_at(r, 1, 0, WORD));
	cr_assert(rig_receive_at(r, 1, WORD, WORD));
	for (uint32_t i = 0; i < 2; i++)
		cr_assert(rig_post_at(r, 0, WORK_SEND, i * WORD, 0, WORD, 0));
	succeeds(1, 2);
	cr_expect_eq(word[0], 2, "SEND %u is seen, not 2, %s", word[0], HOW);
}

Test(place, sends_are_placed_in_their_order)
{
	each_way(sends);
}

/* What was fetched lands in its order, too: a READ in peer memory, a READ and an atomic's result in ours. */
static void landings(bool by_mover)
{
	uint64_t word[WORD / 8] = { 0 };
	const struct part part[] = { PEER(word), DIRECT(word) };

	fill(1);
	lay_out(0, part, 2);
	cr_assert(rig_post_at(r, 0, WORK_RDMA_READ, 0, WORD, WORD, 0));
	cr_assert(rig_post_at(r, 0, WORK_RDMA_READ, WORD, 2 * WORD, WORD, WORK_SIGNALED));
	succeeds(0, 1);
	cr_expect_eq(*(uint8_t *)word, 3, "%s", HOW);
	cr_assert(rig_post_at(r, 0, WORK_RDMA_READ, 0, WORD, WORD, 0));
	cr_assert(rig_post_at(r, 0, WORK_ATOMIC_FETCH_AND_ADD, WORD, 4 * WORD, 8, WORK_SIGNALED));
	succeeds(0, 2);
	cr_expect_eq(word[0], UINT64_C(0x0505050505050505), "%lx, %s", word[0], HOW);
}

Test(place, landings_are_placed_in_their_order)
{
	each_way(landings);
}

/* An atomic and an ATOMIC WRITE stand between what is before them and behind them. */
static void atomics(bool by_mover)
{
	uint64_t word[WORD / 8] = { 0 }, seen;
	const struct part part[] = { PEER(word), DIRECT(word) };

	fill(0);
	lay_out(1, part, 2);
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 0, 0, WORD, 0));
	cr_assert(rig_post_at(r, 0, WORK_ATOMIC_FETCH_AND_ADD, WORD, WORD, 8, 0));
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 2 * WORD, WORD, WORD, 0));
	cr_assert(rig_post_at(r, 0, WORK_ATOMIC_FETCH_AND_ADD, 3 * WORD, 0, 8, 0));
	cr_assert(rig_post_at(r, 0, WORK_ATOMIC_WRITE, 5 * WORD, WORD, 8, WORK_SIGNALED));
	succeeds(0, 1);
	memcpy(&seen, r->side[0].buffer + WORD, 8);
	cr_expect_eq(seen, UINT64_C(0x0101010101010101), "%lx, %s", seen, HOW);
	memcpy(&seen, r->side[0].buffer + 3 * WORD, 8);
	cr_expect_eq(seen, UINT64_C(0x0303030303030303), "%lx, %s", seen, HOW);
	cr_expect_eq(word[0], UINT64_C(0x0606060606060606), "%lx, %s", word[0], HOW);
}

Test(place, atomics_keep_their_place)
{
	each_way(atomics);
}

/* What is behind a WRITE whose memory is not there never was. */
static void failures(bool by_mover)
{
	uint8_t word[WORD] = { 0 };
	const struct part part[] = { PEER(NOWHERE), DIRECT(word), PEER(word) };

	fill(0);
	lay_out(1, part, 3);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, i * WORD, i * WORD, WORD,
				      WORK_SIGNALED));
	run_until(0, 3);
	cr_expect_eq(r->side[0].last.status, STATUS_WR_FLUSH_ERR);
	cr_expect_eq(word[0], 0, "WRITE %u is seen, behind one that failed, %s", word[0], HOW);
}

Test(place, nothing_is_placed_behind_what_failed)
{
	each_way(failures);
}

/* ... and another queue pair's copies are made nevertheless. */
static void failures_of_others(bool by_mover)
{
	uint8_t word[WORD] = { 0 };
	const struct part gone[] = { PEER(NOWHERE) }, there[] = { PEER(word), DIRECT(word) };

	fill(2);
	lay_out(1, gone, 1);
	lay_out(3, there, 2);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, WORD, WORK_SIGNALED));
	cr_assert(rig_post(r, 2, WORK_RDMA_WRITE, 2 * WORD, WORK_SIGNALED));
	run_until(0, 1);
	cr_expect_neq(r->side[0].last.status, STATUS_SUCCESS);
	succeeds(2, 1);
	cr_expect_eq(word[0], 2, "%s", HOW);
}

Test(place, what_failed_stops_no_other_queue_pair)
{
	each_way(failures_of_others);
}

/* Of UC a message whose memory is gone is dropped, and nothing else. */
static void failures_of_unreliable(bool by_mover)
{
	uint8_t word[WORD] = { 0 };
	const struct part part[] = { PEER(NOWHERE), PEER(word), DIRECT(word) };

	fill(0);
	lay_out(1, part, 3);
	cr_assert(rig_receive_at(r, 1, 2 * WORD, WORD));
	for (uint32_t i = 0; i < 2; i++)
		cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, i * WORD, i * WORD, WORD, 0));
	cr_assert(rig_post_at(r, 0, WORK_SEND, 2 * WORD, 0, WORD, 0));
	succeeds(1, 1);
	cr_expect_eq(word[0], 3, "%s", HOW);
}

Test(place, an_unreliable_message_is_dropped_alone)
{
	rig_type = QP_TYPE_UC;
	each_way(failures_of_unreliable);
}

/* ---- what a copy is asked for ---- */

#define PACKET 4096u

static struct {
	uint32_t length, tail;
} asked[16];
static uint32_t asks;

void __real_peer_memory_copy_chained(const struct peer_memory *m, struct peer_copy *copy,
				     uint32_t n, struct copy_breaks *breaks);
void __wrap_peer_memory_copy_chained(const struct peer_memory *m, struct peer_copy *copy,
				     uint32_t n, struct copy_breaks *breaks);

void __wrap_peer_memory_copy_chained(const struct peer_memory *m, struct peer_copy *copy,
				     uint32_t n, struct copy_breaks *breaks)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!copy[i].to_peer || asks == sizeof(asked) / sizeof(asked[0]))
			continue;
		asked[asks].length = copy[i].length;
		asked[asks++].tail = copy[i].tail;
	}
	__real_peer_memory_copy_chained(m, copy, n, breaks);
}

static void expect_asked(uint32_t length, uint32_t tail, uint32_t i)
{
	cr_assert_lt(i, asks);
	cr_expect_eq(asked[i].length, length, "copy %u: %u octets", i, asked[i].length);
	cr_expect_eq(asked[i].tail, tail, "copy %u: the last %u of %u", i, asked[i].tail,
		     asked[i].length);
}

/* A program may poll for the last 8: they come last, in however many pieces, and no others. */
Test(place, the_last_octets_of_a_message_are_last)
{
	uint8_t word[2 * WORD] = { 0 };
	struct part part[] = { PEER(word), PEER(word + WORD), { 2 * PACKET, 0, NULL } };

	open_rig(false);
	fill(0);
	part[2].peer_address = (uintptr_t)r->side[1].buffer;
	lay_out(1, part, 3);
	cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, WORD + 4, WORK_SIGNALED));
	succeeds(0, 1);
	cr_assert_eq(asks, 2);
	expect_asked(WORD, 4, 0);
	expect_asked(4, 4, 1);
	asks = 0;
	cr_assert(rig_post_at(r, 0, WORK_RDMA_WRITE, 0, 2 * WORD, PACKET + 100, WORK_SIGNALED));
	succeeds(0, 2);
	cr_assert_eq(asks, 2);
	expect_asked(PACKET, 0, 0);
	expect_asked(100, 8, 1);
	close_rig();
}
