/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks what the program may do with a range of its own memory. The engine accesses memory in ways
 * that ignore page protection, so registration must check it.
 */
#ifndef VERBS_MAPPING_H
#define VERBS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Returns 0, or EFAULT: a part of the range is not mapped, not readable, or (with `write`) not
 * writable. Another errno means that /proc/self/maps cannot be opened. Any thread; not a
 * cancellation point.
 */
int mapping_check(uintptr_t address, size_t length, bool write);

#endif
