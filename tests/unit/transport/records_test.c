/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory for a peer's READs and atomics: it comes later, and grows while in use. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>

#include "pair.h"

static struct pair pair;

static void close_pair(void)
{
	pair_close(&pair);
}

TestSuite(records, .timeout = 60);

Test(records, without_them_a_peer_may_ask_for_nothing)
{
	struct qp_caps caps = { .type = QP_TYPE_RC,
				.qpn = 0x10,
				.max_send_wr = 1,
				.max_rd_atomic = 16,
				.port_mtu = 5,
				.records_later = true };
	struct qp_caps at_once = caps;
	struct qp_attributes a = { .state = QP_STATE_INIT, .port_num = 1 };
	struct pair_options o = pair_options();
	const char *why = NULL;
	void *records;
	struct qp *qp;

	at_once.records_later = false;
	cr_expect_lt(qp_memory_size(&caps), qp_memory_size(&at_once));
	qp = qp_init(aligned_alloc(64, qp_memory_size(&caps)), &caps);
	cr_expect_eq(qp_records(qp), 0);
	pair_attributes(&o, &a);
	a.state = QP_STATE_INIT;
	cr_assert_eq(
		qp_modify(qp, &a,
			  QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
			  &why),
		0, "%s", why);
	a.state = QP_STATE_RTR;
	a.max_dest_rd_atomic = 3;
	cr_expect_eq(qp_modify(qp, &a,
			       QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
				       QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
				       QP_ATTR_MIN_RNR_TIMER,
			       &why),
		     EINVAL);
	cr_expect_str_eq(why, "max_dest_rd_atomic has no memory");
	records = aligned_alloc(64, qp_records_size(3));
	cr_expect_null(qp_give_records(qp, records, 3));
	cr_expect_eq(qp_records(qp), 4, "a power of two");
	cr_expect_eq(qp_modify(qp, &a,
			       QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
				       QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
				       QP_ATTR_MIN_RNR_TIMER,
			       &why),
		     0, "%s", why);
	free(records);
	free(qp);
}

static void *larger;

/* An answer is lost, and the memory changes before the peer asks again. */
static bool lose_one_answer(struct pair *p, struct end *to, struct packet *packet)
{
	if (to != &p->a || p->seen++ != 1)
		return true;
	qp_give_records(p->b.qp, larger, 128);
	return false;
}

/* hostile H-105: another number of records. */
Test(records, are_remembered_in_larger_memory, .fini = close_pair)
{
	struct pair_options o = pair_options();
	uint64_t value = 5;

	larger = aligned_alloc(64, qp_records_size(128));
	o.max_dest_rd_atomic = o.max_rd_atomic = 4;
	pair_init(&pair, &o);
	pair.pass = lose_one_answer;
	memcpy(pair.b.memory, &value, sizeof(value));
	for (int i = 0; i < 3; i++) {
		struct work_sge sge = { PAIR_IOVA + 64 + 8 * (uint32_t)i, 8, pair.a.key };
		struct send_work w = { .opcode = WORK_ATOMIC_FETCH_AND_ADD,
				       .flags = WORK_SIGNALED,
				       .num_sge = 1,
				       .rkey = pair.b.key,
				       .remote_addr = PAIR_IOVA,
				       .compare_add = 1 };

		pair_post_work(&pair, &pair.a, &w, &sge);
	}
	pair_until(&pair, &pair.a, 3, 50);
	for (uint32_t i = 0; i < 3; i++)
		cr_expect_eq(pair.a.done[i].status, STATUS_SUCCESS);
	memcpy(&value, pair.b.memory, sizeof(value));
	cr_expect_eq(value, 8, "each was executed once: %llu", (unsigned long long)value);
	for (uint64_t i = 0; i < 3; i++) {
		memcpy(&value, pair.a.memory + 64 + 8 * i, sizeof(value));
		cr_expect_eq(value, 5 + i, "a repetition brings the first answer");
	}
	cr_expect_eq(qp_records(pair.b.qp), 128);
	free(larger);
}
