/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A descriptor of this process's smaps, for when /proc cannot be opened any more: after chroot(2),
 * or when it is unmounted. It is not one of a directory, because a process could leave its root
 * through that.
 */
#ifndef CLIENT_MEMORY_MAPS_KEPT_H
#define CLIENT_MEMORY_MAPS_KEPT_H

/* Opens the descriptor, unless it is open. Not while another thread does. */
void maps_keep(void);

/*
 * In the child of a fork, before it reads its maps: the descriptor shows the parent's. Another
 * thread of the parent may have been reading it.
 */
void maps_forget(void);

/*
 * Returns the descriptor, at the begin of the text, and keeps other threads from it until
 * maps_kept_give. -1: there is none, the program has closed it, or this thread has it already (and
 * a signal came).
 */
int maps_kept_take(void);
void maps_kept_give(void);

#endif
