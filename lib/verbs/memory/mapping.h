/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the program may do with a range of its own memory. The engine reaches memory in ways that
 * ignore page protection, so a registration is where it is checked.
 */
#ifndef VERBS_MAPPING_H
#define VERBS_MAPPING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 0, or EFAULT: a part is not mapped, not readable, or (if `write`) not writable. */
int mapping_check(uintptr_t address, size_t length, bool write);

#endif
