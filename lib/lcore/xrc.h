/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC: domains, which several processes may share through a file, and target queue pairs, which
 * belong to a domain instead of a process.
 *
 *	engine_xrcd	the domain; it lasts as long as any handle of it
 *	xrcd		a process's handle
 *	engine_qp	a target: no queues, no CQs, nothing in anybody's arena
 *	target		a process's handle of it; the queue pair lasts as long as any handle of it
 *
 * Handles of targets and of ordinary queue pairs are told apart by their highest bit, so that the
 * commands of queue pairs take both.
 *
 * engine_qp.client of a target is one of its holders: that one's mover makes its copies (and its
 * quota carries its memory). When the holder closes its handle, another one takes over.
 */
#ifndef LCORE_XRC_H
#define LCORE_XRC_H

#include <sys/types.h>

#include "lcore/lcore.h"

#define TARGET_HANDLE 0x80000000u

struct engine_xrcd {
	struct user *user; /* its creator */
	int fd; /* holds the inode; -1: no file */
	dev_t device;
	ino_t inode;
	uint32_t handles;
	uint64_t walk; /* as of a protection domain */
	LIST_HEAD(, xrcd) holders;
	LIST_ENTRY(engine_xrcd) link; /* control.xrcds */
};

struct xrcd {
	uint32_t handle;
	uint32_t context;
	uint32_t users; /* SRQs and targets that were made with this handle */
	struct client *client;
	struct engine_xrcd *domain;
	LIST_ENTRY(xrcd) domain_link;
};

struct target {
	struct engine_qp *qp;
	LIST_ENTRY(target) link; /* engine_qp.holders: changed and read by its lcore */
	struct client *client;
	struct xrcd *xrcd;
	int async_fd;
	uint32_t async_events; /* atomic */
	uint32_t async_owed; /* atomic: as of a CQ */
	uint64_t cookie;
	uint32_t handle; /* without TARGET_HANDLE */
	uint32_t context;
};

/* notify.c: as qp_tell_owed. */
void target_tell_owed(struct target *t, struct owed_round *round);

#endif
