/* SPDX-License-Identifier: BSD-3-Clause */
#include "nodes.h"

#include <sched.h>
#include <stdio.h>

#include "cpus.h"
#include "drivers/node.h"

bool nodes_differ(const int *cpu, uint32_t cpus, int node, const char *port, char *text,
		  size_t size)
{
	cpu_set_t others;
	char list[64];

	CPU_ZERO(&others);
	for (uint32_t i = 0; i < cpus; i++) {
		int own = node_of_cpu(cpu[i]);

		if (node >= 0 && own >= 0 && own != node)
			CPU_SET((size_t)cpu[i], &others);
	}
	if (CPU_COUNT(&others) == 0)
		return false;
	cpus_write(&others, list, sizeof(list));
	snprintf(
		text, size,
		"core %s and %s are on different NUMA nodes: give the engine cores of node %d (-l)",
		list, port, node);
	return true;
}
