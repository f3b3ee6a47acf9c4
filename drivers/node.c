/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/node.h"

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <string.h>

/* ---- this machine's calls ---- */

static int real_nodes(void)
{
	return numa_available() < 0 ? 1 : numa_num_configured_nodes();
}

static int real_get_policy(int *mode, unsigned long *mask, unsigned long bits)
{
	return get_mempolicy(mode, mask, bits, NULL, 0) == 0 ? 0 : errno;
}

static int real_set_policy(int mode, const unsigned long *mask, unsigned long bits)
{
	return set_mempolicy(mode, mask, bits) == 0 ? 0 : errno;
}

static int real_place(void *at, size_t octets, int node)
{
	unsigned long mask[NODE_WORDS] = { 0 };

	mask[node / (8 * (int)sizeof(long))] = 1ul << node % (8 * (int)sizeof(long));
	return mbind(at, octets, MPOL_PREFERRED, mask, 8 * sizeof(mask), 0) == 0 ? 0 : errno;
}

static const struct node_calls real = {
	.nodes = real_nodes,
	.of_cpu = numa_node_of_cpu,
	.get_policy = real_get_policy,
	.set_policy = real_set_policy,
	.place = real_place,
};
static const struct node_calls *calls = &real;

void node_use(const struct node_calls *c)
{
	calls = c != NULL ? c : &real;
}

/* ---- what follows from them ---- */

#define NODES_MOST ((int)(8 * sizeof(((struct node_policy *)0)->mask)))

static int is_one_of_several(int node)
{
	return node >= 0 && node < NODES_MOST && calls->nodes() > 1;
}

void node_prefer(struct node_policy *before, int node)
{
	unsigned long mask[NODE_WORDS] = { 0 };

	memset(before, 0, sizeof(*before));
	if (!is_one_of_several(node) ||
	    calls->get_policy(&before->mode, before->mask, NODES_MOST) != 0)
		return;
	mask[node / (8 * (int)sizeof(long))] = 1ul << node % (8 * (int)sizeof(long));
	before->changed = calls->set_policy(MPOL_PREFERRED, mask, NODES_MOST) == 0;
}

void node_prefer_end(const struct node_policy *before)
{
	if (before->changed)
		calls->set_policy(before->mode, before->mask, NODES_MOST);
}

void node_place(void *at, size_t octets, int node)
{
	if (is_one_of_several(node))
		calls->place(at, octets, node); /* only a preference, so an error does not matter */
}

int node_of_cpu(int cpu)
{
	return calls->nodes() > 1 ? calls->of_cpu(cpu) : -1;
}

int node_of_interface(const char *iface)
{
	char path[128];
	int node = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/numa_node", iface);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	if (fscanf(f, "%d", &node) != 1)
		node = -1;
	fclose(f);
	return node;
}
