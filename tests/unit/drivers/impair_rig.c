/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_rig.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

#include "base/bits.h"
#include "drivers/buffers.h"

struct rte_mempool *pool;

void impair_rig_begin(void)
{
	static char prefix[64];
	char *arguments[] = { (char *)"impair_test", (char *)"--no-huge", (char *)"--no-shconf",
			      (char *)"--no-pci",    (char *)"-m",	  (char *)"32",
			      (char *)"-l",	     (char *)"0",	  prefix };

	snprintf(prefix, sizeof(prefix), "--file-prefix=impair_test_%d", (int)getpid());
	cr_assert_geq(rte_eal_init(ARRAY_SIZE(arguments), arguments), 0, "EAL");
	pool = buffers_make_private("frames", 8191, 0, 2048 + RTE_PKTMBUF_HEADROOM, 0);
	cr_assert_not_null(pool, "%s", rte_strerror(rte_errno));
}

struct rte_mbuf *frame(uint32_t sequence)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *o;

	cr_assert_not_null(m, "frames leaked: %u in use", rte_mempool_in_use_count(pool));
	m->data_len = LENGTH;
	m->pkt_len = LENGTH;
	o = rte_pktmbuf_mtod(m, uint8_t *);
	memset(o, 0, LENGTH);
	/* 02:.. MACs, IPv4 with ECT(0), the number in the payload */
	o[0] = o[6] = 2;
	o[11] = 1;
	store_be16(o + 12, 0x0800);
	o[14] = 0x45;
	o[15] = 0x02;
	store_be16(o + 16, LENGTH - 14);
	store_be16(o + 24, 0xbacd);
	store_be32(o + 40, sequence);
	store_be32(o + 44, ~sequence); /* so that a changed number is detected */
	return m;
}
