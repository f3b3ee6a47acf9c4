/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory beside its port, on machines that the test makes up, and on this one. */
#include <criterion/criterion.h>
#include <errno.h>
#include <numaif.h>
#include <string.h>

#include "drivers/node.h"

static int nodes, placed_at, refusal;
static size_t placed;
static struct {
	int mode;
	unsigned long mask;
} policy;

static int made_up_nodes(void)
{
	return nodes;
}

/* CPUs are dealt to the nodes in turn. */
static int made_up_of_cpu(int cpu)
{
	return cpu < 64 ? cpu % nodes : -1;
}

static int made_up_get(int *mode, unsigned long *mask, unsigned long bits)
{
	*mode = policy.mode;
	mask[0] = policy.mask;
	return refusal;
}

static int made_up_set(int mode, const unsigned long *mask, unsigned long bits)
{
	policy.mode = mode;
	policy.mask = mask[0];
	return 0;
}

static int made_up_place(void *at, size_t octets, int node)
{
	placed += octets;
	placed_at = node;
	return 0;
}

static const struct node_calls made_up = { made_up_nodes, made_up_of_cpu, made_up_get, made_up_set,
					   made_up_place };

static void begin(int n)
{
	node_use(&made_up);
	nodes = n;
}

Test(node, memory_comes_from_the_port_s_node_for_a_while)
{
	struct node_policy before;

	begin(4);
	policy.mode = MPOL_BIND; /* of a program that was started with numactl */
	policy.mask = 2;
	node_prefer(&before, 3);
	cr_expect_eq(policy.mode, MPOL_PREFERRED);
	cr_expect_eq(policy.mask, 1ul << 3);
	node_prefer_end(&before);
	cr_expect_eq(policy.mode, MPOL_BIND, "the program's own policy is gone");
	cr_expect_eq(policy.mask, 2);
}

Test(node, a_range_is_placed)
{
	begin(2);
	node_place(&placed, 4096, 1);
	cr_expect_eq(placed, 4096);
	cr_expect_eq(placed_at, 1);
}

Test(node, cores_have_nodes)
{
	begin(2);
	cr_expect_eq(node_of_cpu(5), 1);
	cr_expect_eq(node_of_cpu(4), 0);
	cr_expect_eq(node_of_cpu(64), -1);
}

static void nothing_happens(int node)
{
	struct node_policy before;

	node_prefer(&before, node);
	cr_expect_eq(policy.mode, MPOL_DEFAULT, "node %d", node);
	node_prefer_end(&before);
	node_place(&placed, 4096, node);
	cr_expect_eq(placed, 0, "node %d", node);
}

Test(node, without_a_choice_nothing_happens)
{
	begin(1);
	nothing_happens(0);
	cr_expect_eq(node_of_cpu(0), -1);
	begin(2);
	nothing_happens(-1);
	nothing_happens(1 << 20);
}

/* A sandbox may refuse the system call: then the policy is not restored either. */
Test(node, a_refusal_is_no_error)
{
	struct node_policy before;

	begin(2);
	refusal = EPERM;
	node_prefer(&before, 1);
	cr_expect_eq(policy.mode, MPOL_DEFAULT);
	policy.mode = MPOL_LOCAL;
	node_prefer_end(&before);
	cr_expect_eq(policy.mode, MPOL_LOCAL);
}

/* Whatever this machine is: the thread's policy is the same afterwards. */
Test(node, this_machine)
{
	struct node_policy before;
	int mode[2];

	node_use(NULL);
	if (get_mempolicy(&mode[0], NULL, 0, NULL, 0) != 0)
		cr_skip_test("the kernel has no memory policies: %s", strerror(errno));
	node_prefer(&before, 0);
	node_prefer_end(&before);
	cr_assert_eq(get_mempolicy(&mode[1], NULL, 0, NULL, 0), 0);
	cr_expect_eq(mode[0], mode[1]);
	cr_expect_eq(node_of_interface("lo"), -1);
}
