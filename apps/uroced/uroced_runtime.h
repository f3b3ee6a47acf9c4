/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EAL makes a folder for each file prefix and leaves it behind. Our prefix is uroce-PID. An engine
 * removes its own folder when it ends, and the folders of killed engines when it starts.
 */
#ifndef APPS_UROCED_RUNTIME_H
#define APPS_UROCED_RUNTIME_H

/*
 * Registers the removal of the folder at exit. Call it before rte_eal_init(): such functions run in
 * reverse order, and EAL's telemetry must have removed its socket from the folder by then.
 */
void runtime_folder_remove_at_exit(void);

/*
 * Makes the folder uroce-PID where EAL will, and locks it for the life of the process, so that other
 * engines see that it is in use, even from other pid namespaces. Call it before rte_eal_init(): an engine
 * that starts may take long, and another one must not remove its folder meanwhile.
 */
void runtime_folder_make(int pid);

/*
 * Locks EAL's folder if it is another one, as with a --file-prefix. Call it after rte_eal_init() with the
 * result of rte_eal_get_runtime_dir(), whether EAL started or not.
 */
void runtime_folder_hold(const char *folder);

/*
 * Removes sibling folders uroce-PID of the same user whose pid does not exist and that no process
 * has locked: first sockets and files in them, then the folder if it is empty. Follows no symbolic
 * link. Ignores what it cannot remove. Call it before capabilities are dropped.
 */
void runtime_folder_remove_dead(const char *folder);

#endif
