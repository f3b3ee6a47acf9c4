/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that are taken back: a program is given a mover while frames of it are made, more of them than
 * a job holds. What has no room in it is made again, in its order, and nothing overtakes it.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "drivers/client_memory/mover.h"
#include "loop_rig.h"

#define PATIENCE (20 * TIME_S)

static struct rig *r;
static struct mover *mover; /* the program's, from this packet on: */
static uint32_t given_at, packets;

enum next_packet __real_qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				       struct packet *p, struct span_list *gather,
				       nanotime *not_before);
enum next_packet __wrap_qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				       struct packet *p, struct span_list *gather,
				       nanotime *not_before);

enum next_packet __wrap_qp_next_packet(struct qp *qp, const struct key_table *keys, nanotime now,
				       struct packet *p, struct span_list *gather,
				       nanotime *not_before)
{
	if (++packets == given_at)
		__atomic_store_n(&r->client.mover, mover, __ATOMIC_RELEASE);
	return __real_qp_next_packet(qp, keys, now, p, gather, not_before);
}

/* What side 0 sends is read from its memory by copies. */
static void make_peer(void)
{
	uint32_t key = r->side[0].key;
	struct region *m = (struct region *)(uintptr_t)key_withdraw(&r->engine.keys, key);

	m->client = r->client.number;
	m->piece[0].direct = NULL;
	m->piece[0].peer_address = (uintptr_t)r->side[0].buffer;
	key_publish(&r->engine.keys, key, m);
}

static void open_rig(uint8_t type)
{
	struct peer_memory *memory = calloc(1, sizeof(*memory));

	rig_type = type;
	rig_timeout = 0;
	r = rig_open();
	r->engine.client[0] = &r->client;
	cr_assert_eq(peer_memory_open(memory, open("/proc/self/mem", O_RDWR | O_CLOEXEC), getpid(),
				      geteuid()),
		     0);
	r->client.memory = memory;
	mover = mover_create(memory, NULL, 2);
	cr_assert_not_null(mover);
	make_peer();
	for (uint32_t i = 0; i < RIG_BUFFER; i++)
		r->side[0].buffer[i] = (uint8_t)(i * 7 + 3);
}

static void close_rig(void)
{
	mover_close(mover);
	peer_memory_close(r->client.memory);
	free(r->client.memory);
	rig_close(r);
}

/* Three messages of 16 packets, as many as one round makes; all arrive. */
static void expect_all(uint32_t given)
{
	nanotime until = clock_now() + PATIENCE;

	packets = 0;
	given_at = given;
	r->client.mover = NULL;
	r->side[0].completions = 0;
	memset(r->side[1].buffer, 0, RIG_BUFFER);
	for (uint32_t i = 0; i < 3; i++)
		cr_assert(rig_post(r, 0, WORK_RDMA_WRITE, RIG_BUFFER, WORK_SIGNALED));
	while ((r->side[0].completions < 3 ||
		memcmp(r->side[0].buffer, r->side[1].buffer, RIG_BUFFER) != 0) &&
	       clock_now() < until)
		rig_poll(r);
	cr_assert_eq(r->side[0].completions, 3, "given at packet %u: %u of 3 completions", given,
		     r->side[0].completions);
	cr_expect_eq(r->side[0].last.status, STATUS_SUCCESS);
	cr_expect_arr_eq(r->side[0].buffer, r->side[1].buffer, RIG_BUFFER);
	cr_assert_not_null(r->client.mover, "it was never given");
	for (int i = 0; i < 100; i++)
		rig_poll(r);
	cr_expect_eq(rte_mempool_in_use_count(r->engine.pool), 0);
}

/* Nothing is sent twice, and the peer misses nothing. */
Test(send, what_had_no_room_is_sent_in_its_order, .timeout = 60)
{
	const struct lcore_statistics *s;

	open_rig(QP_TYPE_RC);
	s = &r->engine.lcore->stats;
	for (uint32_t given = 2; given <= 40; given += 19) {
		expect_all(given);
		cr_expect_eq(s->retransmitted, 0, "%lu packets were sent again", s->retransmitted);
		cr_expect_eq(s->by_reason[REASON_NAK_SEQUENCE], 0);
	}
	close_rig();
}

/* Nobody would send them again. */
Test(send, unreliable_packets_are_sent_in_their_order, .timeout = 60)
{
	open_rig(QP_TYPE_UC);
	for (uint32_t given = 2; given <= 40; given += 19)
		expect_all(given);
	close_rig();
}
