/* SPDX-License-Identifier: BSD-3-Clause */
/* For a process that ends with its engine. */
#ifndef ENGINE_LEAVE_H
#define ENGINE_LEAVE_H

#include "engine/uroce.h"

/*
 * uroce_destroy() does not free the packet buffers that the engine has made. DPDK would write zeros to
 * all of them, and the kernel takes them a moment later. Hugepages that are not freed would stay in
 * their files, so there the call changes nothing. By the thread that calls uroce_destroy() next.
 */
void engine_leave_buffers(struct uroce_engine *u);

#endif
