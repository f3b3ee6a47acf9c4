/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet buffers that an engine has made, at its end. */
#include <stdio.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_mempool.h>

#include "engine/inside.h"
#include "engine/leave.h"
#include "rig/control_rig.h"

static char name[RTE_MEMPOOL_NAMESIZE];

static void begin(void)
{
	snprintf(path, sizeof(path), "/tmp/uroce-leave-test-%d.sock", getpid());
	control_rig_make();
	snprintf(name, sizeof(name), "%s", ((struct engine *)engine)->pool->name);
	cr_assert_not_null(rte_mempool_lookup(name));
}

TestSuite(leave, .init = begin, .timeout = 60);

Test(leave, an_engine_frees_its_buffers)
{
	cr_assert_eq(uroce_destroy(engine), 0);
	cr_expect_null(rte_mempool_lookup(name));
}

Test(leave, buffers_in_ordinary_memory_are_left_to_the_kernel)
{
	cr_assert(!rte_eal_has_hugepages());
	engine_leave_buffers(engine);
	cr_assert_eq(uroce_destroy(engine), 0);
	cr_expect_not_null(rte_mempool_lookup(name));
}
