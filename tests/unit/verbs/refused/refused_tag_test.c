/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tag matching SRQs: wrong arguments, nonsense in the ring, and what is announced. Runs with an
 * engine at $UROCE_SOCKET.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "queue/doorbell.h"
#include "queue/ring_client.h"
#include "queues/tag_rig.h"
#include "verbs/queues/srq.h"

TestSuite(refused_tag, .init = tag_setup, .fini = tag_teardown, .timeout = 60);

Test(refused_tag, operations_with_wrong_arguments)
{
	struct ibv_sge sge = { 0 };
	struct ibv_ops_wr good = operation(IBV_WR_TAG_ADD, 1), wr, *bad = NULL;
	struct ibv_srq_init_attr basic = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *other = ibv_create_srq(e.pd, &basic);

	good.tm.add.sg_list = &sge;
	wr = good;
	wr.opcode = 3;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr = good;
	wr.flags = 4;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr = good;
	wr.tm.add.num_sge = -1;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr.tm.add.num_sge = LIMIT_TAG_SGE + 1;
	cr_expect_eq(post_operation(&wr), EINVAL);
	wr = operation(IBV_WR_TAG_SYNC, 7);
	wr.next = &good;
	good.opcode = 9;
	cr_expect_eq(ibv_post_srq_ops(tag_srq, &wr, &bad), EINVAL);
	cr_expect_eq(bad, &good);
	expect_seen(next("what stood before the wrong one"), 7, IBV_WC_TM_SYNC, 0);
	cr_expect_eq(ibv_post_srq_ops(other, &wr, &bad), EINVAL, "not a list");
	cr_expect_eq(ibv_destroy_srq(other), 0);
}

Test(refused_tag, creation_with_wrong_arguments)
{
	struct ibv_device_attr_ex d;
	struct ibv_pd *pd = ibv_alloc_pd(e.context), *mine = e.pd;
	struct ibv_srq_init_attr_ex init;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &d), 0);
	for (int i = 0; i < 7; i++) {
		init = usual();
		switch (i) {
		case 0:
			init.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_TM;
			break;
		case 1:
			init.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
			break;
		case 2:
			init.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_PD;
			break;
		case 3:
			init.tm_cap.max_num_tags = 0;
			break;
		case 4:
			init.tm_cap.max_num_tags = d.tm_caps.max_num_tags + 1;
			break;
		case 5:
			init.tm_cap.max_ops = 0;
			break;
		default:
			init.tm_cap.max_ops = d.tm_caps.max_ops + 1;
		}
		errno = 0;
		cr_expect_null(ibv_create_srq_ex(e.context, &init), "%d", i);
		cr_expect_eq(errno, EINVAL, "%d: %m", i);
	}
	cr_expect_null(create_qp(tag_srq, IBV_QPT_UD));
	cr_expect_null(create_qp(tag_srq, IBV_QPT_UC));
	cr_expect_eq(errno, EINVAL);
	e.pd = pd;
	cr_expect_null(create_qp(tag_srq, IBV_QPT_RC), "of another protection domain");
	cr_expect_eq(errno, EINVAL);
	e.pd = mine;
	cr_expect_eq(ibv_dealloc_pd(pd), 0);
}

Test(refused_tag, announced_limits_are_granted)
{
	struct ibv_srq_init_attr_ex init = usual();
	struct ibv_device_attr_ex d;
	struct ibv_sge sge[LIMIT_TAG_SGE] = { 0 };
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_ADD, 1), *bad;
	struct ibv_srq *s;

	cr_assert_eq(ibv_query_device_ex(e.context, NULL, &d), 0);
	cr_expect_eq(d.tm_caps.flags, IBV_TM_CAP_RC);
	cr_expect_geq(d.tm_caps.max_rndv_hdr_size, sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh));
	init.tm_cap.max_num_tags = d.tm_caps.max_num_tags;
	init.tm_cap.max_ops = d.tm_caps.max_ops;
	s = ibv_create_srq_ex(e.context, &init);
	cr_assert_not_null(s, "%m");
	wr.tm.add.sg_list = sge;
	wr.tm.add.num_sge = (int)d.tm_caps.max_sge;
	for (uint32_t i = 0; i < d.tm_caps.max_num_tags; i++) {
		cr_assert_eq(ibv_post_srq_ops(s, &wr, &bad), 0, "entry %u", i);
		expect_seen(next("the entry"), 1, IBV_WC_TM_ADD, 0);
	}
	cr_expect_eq(ibv_post_srq_ops(s, &wr, &bad), ENOMEM);
	cr_expect_eq(ibv_destroy_srq(s), 0, "with its entries");
}

/*
 * Operations that the library would refuse.
 * hostile H-92: missing elements.
 */
Test(refused_tag, forged_operations_fail)
{
	struct srq *s = (struct srq *)tag_srq;
	struct ibv_ops_wr wr = operation(IBV_WR_TAG_SYNC, 1);
	struct tag_work *slot;
	static const struct {
		uint8_t opcode, num_sge;
	} forged[] = { { TAG_ADD, LIMIT_TAG_SGE + 1 }, { TAG_ADD, 255 }, { 3, 0 }, { 255, 255 } };

	for (size_t i = 0; i < ARRAY_SIZE(forged); i++) {
		slot = ring_client_reserve(s->ops, s->ops_stride);
		cr_assert_not_null(slot);
		*slot = (struct tag_work){ .wr_id = 40 + i,
					   .opcode = forged[i].opcode,
					   .num_sge = forged[i].num_sge };
		ring_client_publish(s->ops);
		cr_assert_eq(post_operation(&wr), 0);
		cr_expect_eq(next("the forged one").status, IBV_WC_TM_ERR);
		expect_seen(next("the one behind it"), 1, IBV_WC_TM_SYNC, 0);
	}
	for (uint64_t i = 0; i < 2 * TAGS; i++) { /* more entries than the list has */
		slot = ring_client_reserve(s->ops, s->ops_stride);
		cr_assert_not_null(slot);
		*slot = (struct tag_work){ .wr_id = i, .opcode = TAG_ADD, .flags = TAG_SIGNALED };
		ring_client_publish(s->ops);
		cr_assert_eq(post_operation(&wr), 0);
		cr_expect_eq(next("the entry").status, i < TAGS ? IBV_WC_SUCCESS : IBV_WC_TM_ERR,
			     "%u", (unsigned)i);
		next("the one behind it");
	}
}

/* hostile H-90: forged positions in a ring. */
Test(refused_tag, a_ring_of_wrong_operations_ends_the_srq)
{
	struct srq *s = (struct srq *)tag_srq;
	struct ibv_async_event event;

	__atomic_store_n(&s->ops->prod.tail, 0x12345678, __ATOMIC_RELEASE);
	s->ops->prod.head = 0x12345678;
	doorbell_ring(s->bell, &s->page->doorbell, DOORBELL_SRQ | s->number, s->sleeping,
		      s->wake_fd);
	cr_assert_eq(ibv_get_async_event(e.context, &event), 0);
	cr_expect_eq(event.event_type, IBV_EVENT_SRQ_ERR);
	cr_expect_eq(event.element.srq, tag_srq);
	ibv_ack_async_event(&event);
}
