/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client side (part of libibverbs.so.1): private pages of a registered region move into one memory
 * file of the process, which the engine maps too; it then reaches them without a system call.
 *
 *	before	| ...... private anonymous memory ...... |
 *	after	| private | shared: the promoted file | private |	same addresses, same contents
 *
 * Other threads may read and write the range meanwhile: a userfaultfd holds back whoever writes,
 * until the file is mapped in place of the pages. Without the privilege for a full userfaultfd a
 * system call of another thread that writes into the range would fail with EFAULT meanwhile; so
 * UROCE_PROMOTE=auto (the default) promotes then only in a program of one thread. `on` does so in
 * any case, `off` never.
 *
 * Not promoted, but reached as peer memory: less than a page, after the first 64 regions also less
 * than 64 KiB (each is a mapping of its own, and a program that registers for each transfer would
 * pay more than it gains), more than 1 GiB, what is not private
 * anonymous read-write memory, stacks and thread-local storage of the caller, this library's own
 * data, locked, mbind'ed, MADV_DONTFORK or MADV_WIPEONFORK ranges, and what does not fit the
 * bounds below. MADV_DONTNEED on a promoted page does not clear it any more.
 *
 * While a range is on its way, copies of the engine to and from it through /proc/self/mem fail
 * (Linux 6.18: EIO). So a range that is registered already and was not promoted then is not to be
 * passed here again while that registration is in use.
 *
 * A fork's child gets private copies of all promoted pages before fork returns in the parent. After
 * vfork or a bare clone there is none of that, as the child runs exec next.
 */
#ifndef CLIENT_MEMORY_PROMOTE_H
#define CLIENT_MEMORY_PROMOTE_H

#include <stddef.h>
#include <stdint.h>

#include "engine/command.h"

#define PROMOTE_SMALL	   (UINT64_C(64) << 10) /* what is less than that, is small */
#define PROMOTE_SMALL_MAX  64u /* small regions of a process, ever */
#define PROMOTE_LENGTH_MAX (UINT64_C(1) << 30)
#define PROMOTE_RANGES_MAX 4096u
#define PROMOTE_FILE_BYTES (UINT64_C(64) << 30) /* sparse */

/*
 * The process's promoted file for COMMAND_PROMOTED_FILE, made when first asked for; -1 when this
 * process does not promote. Stays the library's. A fork's child has another one.
 */
int promote_file(void);

/*
 * Promotes what can be promoted of [addr, addr + length) and says which parts of it are in the
 * promoted file (fd BACKING_PROMOTED), also those that were before. Returns their number, 0 .. max,
 * sorted. The caller keeps them for promote_release.
 */
uint32_t promote_range(void *addr, size_t length, struct mr_backing *backing, uint32_t max);

/*
 * The region is no longer registered (the engine has confirmed it): what no other region needs
 * becomes private memory again.
 */
void promote_release(void *addr, const struct mr_backing *backing, uint32_t count);

#endif
