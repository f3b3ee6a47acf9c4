/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places memory on the NUMA node of the port that it is for. All functions set a preference, which
 * the kernel follows as long as that node has memory. On a machine with one node, or for a port
 * whose node is not known (-1), they do nothing.
 */
#ifndef DRIVERS_NODE_H
#define DRIVERS_NODE_H

#include <stddef.h>

/* Calls of libnuma and the kernel, or of a machine that a test makes up. */
struct node_calls {
	int (*nodes)(void); /* the number of nodes of this machine */
	int (*of_cpu)(int cpu); /* -1: unknown */
	/* The calling thread's policy for new pages: 0 or an errno. */
	int (*get_policy)(int *mode, unsigned long *mask, unsigned long bits);
	int (*set_policy)(int mode, const unsigned long *mask, unsigned long bits);
	/* Makes pages of this range come from that node, whichever thread touches them first. */
	int (*place)(void *at, size_t octets, int node);
};

/* For tests. NULL: the real calls again. Must be called before other threads use this file. */
void node_use(const struct node_calls *calls);

#define NODE_WORDS 16 /* words of a set of nodes: the kernel has at most 1024 nodes */

struct node_policy {
	int mode;
	unsigned long mask[NODE_WORDS];
	int changed; /* 1: node_prefer_end has something to put back */
};

/*
 * From now on, memory that the calling thread allocates and touches first comes from this node.
 * node_prefer_end restores the thread's own policy.
 */
void node_prefer(struct node_policy *before, int node);
void node_prefer_end(const struct node_policy *before);

/* Places a range, which begins and ends at a page boundary and has not been touched yet. */
void node_place(void *at, size_t octets, int node);

/* The node of a CPU. -1: it is unknown, or there is only one node. */
int node_of_cpu(int cpu);

/* The node of a network interface's device; -1: unknown, or it has no device. */
int node_of_interface(const char *iface);

#endif
