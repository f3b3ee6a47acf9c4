/* SPDX-License-Identifier: BSD-3-Clause */
/* What the engine remembers of a queue pair, its queues aside. */
#include <criterion/criterion.h>

#include <stdlib.h>

#include "base/bits.h"
#include "config/limits.h"
#include "lcore/queue_pair.h"
#include "transport/transport.h"

/* As cmd_qp.c makes it for a program whose memory lcores copy; the first request is part of the queues. */
Test(queue_pair, a_state_stays_under_2_kib)
{
	const struct qp_caps caps = { .type = QP_TYPE_RC,
				      .max_send_wr = 1,
				      .max_send_sge = 1,
				      .max_recv_sge = 1,
				      .max_rd_atomic = LIMIT_RD_ATOMIC,
				      .tickets = LIMIT_TICKETS_NEW,
				      .records_later = true,
				      .port_mtu = 5 };
	size_t octets = sizeof(struct engine_qp) + qp_memory_size(&caps) - send_work_stride(1, 0);

	cr_expect_lt(octets, 2048, "%zu octets", octets);
}

/* A program's own port may say any MTU that 16 bits hold (engine/handed.c); a frame is longer than that. */
Test(queue_pair, a_raw_frame_may_be_as_long_as_any_port_carries)
{
	const uint32_t longest = UINT16_MAX + 14u + 4u;
	struct qp_caps caps = { .type = QP_TYPE_RAW_PACKET,
				.max_send_wr = 1,
				.max_send_sge = 1,
				.max_recv_sge = 1,
				.port_mtu = 5 };
	void *memory;

	caps.max_frame = longest;
	memory = aligned_alloc(64, round_up(qp_memory_size(&caps), 64));
	cr_assert_not_null(memory);
	cr_expect_eq(qp_capabilities(qp_init(memory, &caps))->max_frame, longest);
	free(memory);
}
