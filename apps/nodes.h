/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the engine's cores are on the NUMA node of its port. */
#ifndef APPS_NODES_H
#define APPS_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * True: some of the cores are on another node than the port, and the text names them and the
 * remedy. False: none is, or it is not known (node -1, or a machine with one node).
 */
bool nodes_differ(const int *cpu, uint32_t cpus, int node, const char *port, char *text,
		  size_t size);

#endif
