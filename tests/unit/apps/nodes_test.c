/* SPDX-License-Identifier: BSD-3-Clause */
/* The warning of uroced, on machines that the test makes up. */
#include <criterion/criterion.h>

#include "../../../apps/nodes.h"
#include "drivers/node.h"

static int two(void)
{
	return 2;
}

static int one(void)
{
	return 1;
}

/* CPUs 0 to 3 are on node 0. */
static int of_cpu(int cpu)
{
	return cpu < 0 ? -1 : cpu / 4;
}

static const struct node_calls large = { .nodes = two, .of_cpu = of_cpu },
			       small = { .nodes = one, .of_cpu = of_cpu };

Test(nodes, cores_on_another_node_are_named)
{
	static const int cpu[] = { 3, 4, 5, -1 };
	char text[256];

	node_use(&large);
	cr_assert(nodes_differ(cpu, 4, 0, "eth0", text, sizeof(text)));
	cr_expect_str_eq(
		text,
		"core 4-5 and eth0 are on different NUMA nodes: give the engine cores of node 0 (-l)");
	cr_assert(nodes_differ(cpu, 1, 1, "eth0", text, sizeof(text)));
	cr_expect_str_eq(
		text,
		"core 3 and eth0 are on different NUMA nodes: give the engine cores of node 1 (-l)");
}

Test(nodes, nothing_is_said_without_reason)
{
	static const int cpu[] = { 0, 3 };
	char text[256];

	node_use(&large);
	cr_expect_not(nodes_differ(cpu, 2, 0, "eth0", text, sizeof(text)));
	cr_expect_not(nodes_differ(cpu, 2, -1, "eth0", text, sizeof(text)));
	node_use(&small);
	cr_expect_not(nodes_differ(cpu, 2, 1, "eth0", text, sizeof(text)));
}
