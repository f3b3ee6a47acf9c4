/* SPDX-License-Identifier: BSD-3-Clause */
/* Traffic between two queue pairs: every operation, sizes around the MTU, with and without loss. */
#include <criterion/criterion.h>

#include "pair.h"

static struct pair pair;

static void close_pair(void)
{
	pair_close(&pair);
}

static void open_pair(uint32_t mtu)
{
	struct pair_options o = pair_options();

	o.mtu = mtu;
	pair_init(&pair, &o);
}

static const uint32_t sizes[] = { 0,	1,    3,    4,	  8,	255,  256,   257,    1023,
				  1024, 1025, 2048, 4095, 4096, 4097, 70001, 1048576 };

static void check_done(const struct end *e, uint32_t index, uint32_t status, uint32_t opcode,
		       uint32_t byte_len)
{
	cr_assert(e->done_count > index, "completion %u did not come (state %u, reason %s)", index,
		  qp_state(e->qp), reason_name(e->reason));
	cr_assert_eq(e->done[index].status, status, "completion %u: status %u, vendor %s", index,
		     e->done[index].status, reason_name(e->done[index].vendor_err));
	cr_assert_eq(e->done[index].opcode, opcode);
	cr_assert_eq(e->done[index].byte_len, byte_len);
}

TestSuite(pair, .fini = close_pair, .timeout = 60);

Test(pair, write_of_every_size)
{
	open_pair(3);
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_fill(pair.a.memory, sizes[i], i + 1);
		memset(pair.b.memory, 0, sizes[i] + 1);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, sizes[i], 0);
		pair_run(&pair);
		check_done(&pair.a, i, STATUS_SUCCESS, COMPLETION_RDMA_WRITE, sizes[i]);
		cr_assert_arr_eq(pair.a.memory, pair.b.memory, sizes[i]);
		cr_assert_eq(pair.b.memory[sizes[i]], 0, "an octet too many");
	}
	cr_assert_eq(pair.b.done_count, 0);
}

Test(pair, send_of_every_size)
{
	open_pair(1);
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_fill(pair.a.memory, sizes[i], i + 1);
		pair_post_receive(&pair.b, 0, sizes[i]);
		pair_post(&pair, &pair.a, i & 1 ? WORK_SEND : WORK_SEND_WITH_IMM,
			  WORK_SIGNALED | WORK_SOLICITED, 0, sizes[i], 0);
		pair_run(&pair);
		check_done(&pair.a, i, STATUS_SUCCESS, COMPLETION_SEND, sizes[i]);
		check_done(&pair.b, i, STATUS_SUCCESS, COMPLETION_RECV, sizes[i]);
		cr_assert_eq(pair.b.done[i].wr_id, i);
		cr_assert_eq(pair.b.done[i].wc_flags, i & 1 ? 0 : COMPLETION_WITH_IMM);
		cr_assert_eq(pair.b.done[i].solicited, 1);
		cr_assert_arr_eq(pair.a.memory, pair.b.memory, sizes[i]);
	}
}

Test(pair, read_of_every_size)
{
	open_pair(3);
	for (uint32_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		pair_fill(pair.b.memory, sizes[i], i + 1);
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED, 0, sizes[i], 0);
		pair_run(&pair);
		check_done(&pair.a, i, STATUS_SUCCESS, COMPLETION_RDMA_READ, sizes[i]);
		cr_assert_arr_eq(pair.a.memory, pair.b.memory, sizes[i]);
	}
}

Test(pair, write_with_immediate_takes_a_receive)
{
	open_pair(3);
	pair_post_receive(&pair.b, 0, 0);
	pair_post_receive(&pair.b, 0, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE_WITH_IMM, WORK_SIGNALED, 0, 5000, 0);
	pair_post(&pair, &pair.a, WORK_RDMA_WRITE_WITH_IMM, WORK_SIGNALED, 0, 0, 0);
	pair_run(&pair);
	check_done(&pair.b, 0, STATUS_SUCCESS, COMPLETION_RECV_RDMA_WITH_IMM, 5000);
	check_done(&pair.b, 1, STATUS_SUCCESS, COMPLETION_RECV_RDMA_WITH_IMM, 0);
	cr_assert_eq(pair.b.done[0].imm, 0x12345678);
	cr_assert_eq(pair.a.done_count, 2);
}

Test(pair, atomics)
{
	struct work_sge sge;
	struct send_work w = { .flags = WORK_SIGNALED, .num_sge = 1 };
	uint64_t value = 5, result;

	open_pair(3);
	sge = (struct work_sge){ PAIR_IOVA, 8, pair.a.key };
	w.rkey = pair.b.key;
	w.remote_addr = PAIR_IOVA + 64;
	memcpy(pair.b.memory + 64, &value, 8);

	w.opcode = WORK_ATOMIC_FETCH_AND_ADD;
	w.compare_add = UINT64_MAX; /* wraps: 5 - 1 */
	pair_post_work(&pair, &pair.a, &w, &sge);
	pair_run(&pair);
	check_done(&pair.a, 0, STATUS_SUCCESS, COMPLETION_FETCH_ADD, 8);
	memcpy(&result, pair.a.memory, 8);
	cr_assert_eq(result, 5);

	w.opcode = WORK_ATOMIC_CMP_AND_SWP;
	w.compare_add = 4;
	w.swap = 0x1122334455667788;
	pair_post_work(&pair, &pair.a, &w, &sge);
	pair_run(&pair);
	check_done(&pair.a, 1, STATUS_SUCCESS, COMPLETION_COMP_SWAP, 8);
	memcpy(&result, pair.a.memory, 8);
	cr_assert_eq(result, 4);
	memcpy(&result, pair.b.memory + 64, 8);
	cr_assert_eq(result, 0x1122334455667788);
}

/* Loses about every seventh packet, both directions alike; not in step with any window. */
static bool lose_some(struct pair *p, struct end *to, struct packet *packet)
{
	(void)to;
	(void)packet;
	return (++p->seen * UINT32_C(2654435761) >> 16) % 7 != 0;
}

Test(pair, mixed_traffic_under_loss)
{
	enum {
		ROUNDS = 40,
		LENGTH = 9000
	};
	uint32_t sends = 0;

	open_pair(3);
	pair.pass = lose_some;
	pair_fill(pair.a.memory, 1 << 20, 99);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		pair_post_receive(&pair.b, 2 << 20, LENGTH);
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, 0, i * LENGTH, LENGTH, i * LENGTH);
		pair_post(&pair, &pair.a, WORK_SEND, WORK_SIGNALED, i * 100, LENGTH, 0);
		pair_post(&pair, &pair.a, WORK_RDMA_READ, WORK_SIGNALED | WORK_FENCE,
			  (2 << 20) + i * LENGTH, LENGTH, i * LENGTH);
	}
	pair_until(&pair, &pair.a, 2 * ROUNDS, 10000);
	for (uint32_t i = 0; i < 2 * ROUNDS; i++)
		check_done(&pair.a, i, STATUS_SUCCESS,
			   i % 2 ? COMPLETION_RDMA_READ : COMPLETION_SEND, LENGTH);
	for (uint32_t i = 0; i < pair.b.done_count; i++)
		sends += pair.b.done[i].status == STATUS_SUCCESS;
	cr_assert_eq(sends, ROUNDS);
	cr_assert_eq(pair.b.done_count, ROUNDS);
	cr_assert_arr_eq(pair.b.memory, pair.a.memory, ROUNDS * LENGTH);
	cr_assert_arr_eq(pair.a.memory + (2 << 20), pair.a.memory, ROUNDS * LENGTH);
}

Test(pair, atomics_under_loss_happen_once)
{
	struct work_sge sge;
	struct send_work w = { .opcode = WORK_ATOMIC_FETCH_AND_ADD,
			       .flags = WORK_SIGNALED,
			       .num_sge = 1,
			       .compare_add = 1 };
	uint64_t value;

	open_pair(3);
	pair.pass = lose_some;
	w.rkey = pair.b.key;
	w.remote_addr = PAIR_IOVA;
	for (uint32_t i = 0; i < 200; i++) {
		sge = (struct work_sge){ PAIR_IOVA + i * 8, 8, pair.a.key };
		pair_post_work(&pair, &pair.a, &w, &sge);
	}
	pair_until(&pair, &pair.a, 200, 10000);
	for (uint32_t i = 0; i < 200; i++) {
		check_done(&pair.a, i, STATUS_SUCCESS, COMPLETION_FETCH_ADD, 8);
		memcpy(&value, pair.a.memory + i * 8, 8);
		cr_assert_eq(value, i, "each value is returned once, in order");
	}
	memcpy(&value, pair.b.memory, 8);
	cr_assert_eq(value, 200);
}

Test(pair, many_small_messages_need_few_acknowledgements)
{
	open_pair(3);
	for (uint32_t i = 0; i < 200; i++)
		pair_post(&pair, &pair.a, WORK_RDMA_WRITE, WORK_SIGNALED, 0, 8, 8 * i);
	pair_run(&pair);
	cr_assert_eq(pair.a.done_count, 200);
	cr_assert(pair.packets < 200 + 30, "%u packets for 200 messages", pair.packets);
}

/* More than that is a burst, which short queues on the way do not hold. A READ of 128 KiB is one, whatever the MTU is. */
Test(pair, a_read_is_asked_for_in_parts_of_128_kib)
{
	static struct path path;
	struct packet p;

	for (uint32_t mtu = 3; mtu <= 5; mtu++) {
		struct send_work w = { .opcode = WORK_RDMA_READ,
				       .num_sge = 1,
				       .rkey = 0x1234,
				       .remote_addr = PAIR_IOVA };

		open_pair(mtu);
		pair.a.qp->attr.max_rd_atomic = 16;
		path_init(&path);
		path_looked(&path);
		path.window = 4u << 20;
		qp_give_path(pair.a.qp, &path);
		pair_post_work(&pair, &pair.a, &w,
			       &(struct work_sge){ PAIR_IOVA, 1u << 20, pair.a.key });
		cr_assert(pair_next(&pair, &pair.a, &p));
		cr_assert_eq(p.dma_length, 128u << 10, "MTU %u: %u octets", mtu, p.dma_length);
		if (mtu < 5)
			close_pair();
	}
}
