/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NUMA nodes: memory on the node of the port that it is for. All functions set a preference, which
 * the kernel follows as long as that node has memory. On a machine with one node, or for a port
 * whose node is not known (-1), they do nothing.
 */
#ifndef DRIVERS_NODE_H
#define DRIVERS_NODE_H

#include <stddef.h>

/* libnuma and the kernel, or a machine that a test makes up. */
struct node_calls {
	int (*nodes)(void); /* of this machine */
	int (*of_cpu)(int cpu); /* -1: unknown */
	/* The calling thread's policy for new pages: 0 or an errno. */
	int (*get_policy)(int *mode, unsigned long *mask, unsigned long bits);
	int (*set_policy)(int mode, const unsigned long *mask, unsigned long bits);
	/* Pages of this range come from that node, whichever thread touches them first. */
	int (*place)(void *at, size_t octets, int node);
};

/* For tests; NULL: the real ones again. Before other threads use this file. */
void node_use(const struct node_calls *calls);

#define NODE_WORDS 16 /* of a set of nodes: the kernel has 1024 at most */

struct node_policy {
	int mode;
	unsigned long mask[NODE_WORDS];
	int changed; /* 1: node_prefer_end has something to put back */
};

/*
 * Memory that the calling thread allocates and touches first from now on comes from this node.
 * node_prefer_end restores the thread's own policy.
 */
void node_prefer(struct node_policy *before, int node);
void node_prefer_end(const struct node_policy *before);

/* The range, which begins and ends with a page, and is not touched yet. */
void node_place(void *at, size_t octets, int node);

/* -1: unknown, or there is only one. */
int node_of_cpu(int cpu);

/* The node of a network interface's device; -1: unknown, or it has no device. */
int node_of_interface(const char *iface);

#endif
