/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EAL makes a folder for each file prefix and leaves it behind. Ours has the pid in it: uroce-PID.
 * An engine removes its own folder at its end, and those of engines that were killed at its start.
 */
#ifndef APPS_UROCED_RUNTIME_H
#define APPS_UROCED_RUNTIME_H

/*
 * Has the folder removed at exit. Call it before rte_eal_init(): such functions run last come, first,
 * and EAL's telemetry must have removed its socket there by then.
 */
void runtime_folder_remove_at_exit(void);

/*
 * Keeps a lock on EAL's folder for the life of the process; so other engines see that somebody uses
 * it, also those in other pid namespaces. Call it after rte_eal_init(), with what
 * rte_eal_get_runtime_dir() says, whether EAL started or not.
 */
void runtime_folder_hold(const char *folder);

/*
 * Removes the folders uroce-PID beside this one that are of the same user, whose pid is nobody's,
 * and that nobody has locked: the sockets and files in them, and then the folder if it is empty.
 * Follows no symbolic link. Says nothing of what it cannot remove. Call it before capabilities go.
 */
void runtime_folder_remove_dead(const char *folder);

#endif
