/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The files that the kernel has for an RDMA device in /sys/class and /dev, as a tree of ordinary
 * files:
 *
 *	class/infiniband/NAME          node_type, node_guid, ... ports/1/{state, rate, gids, ...}
 *	class/infiniband_verbs/NAME    ibdev, abi_version, device
 *	dev/infiniband/NAME            -> /dev/full: a character device that opens and accepts
 *	                               no data; programs reach the device through libibverbs
 *	engine                         the engine that wrote these files
 */
#ifndef CONTROL_DEVICE_TREE_H
#define CONTROL_DEVICE_TREE_H

#include "protocol/command.h"

#define DEVICE_TREE_SUFFIX ".files" /* after the path of the socket */

/*
 * Writes the tree into `folder` (a descriptor; no other process may write there) or updates it:
 * replaces changed files at once and removes obsolete ones. `netdev` is the interface that has the
 * device's addresses, "" for none. 0 or an errno.
 */
int device_tree_write(int folder, const struct reply_device *d, const char *netdev);

/* Removes everything in the directory. */
void device_tree_clear(int folder);

/*
 * The interface behind the port, else the one of this host that has one of the addresses, else "".
 */
void device_tree_netdev(const struct reply_device *d, char name[16]);

#endif
