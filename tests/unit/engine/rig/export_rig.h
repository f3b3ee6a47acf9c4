/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests about what one program exports and another imports, device memory among it, as a client
 * of the control socket writes them. Each returns 0 or the errno of the reply; *made is the handle.
 */
#ifndef TESTS_ENGINE_EXPORT_RIG_H
#define TESTS_ENGINE_EXPORT_RIG_H

#include "control_rig.h"

#define DM_ACCESS (ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_ZERO_BASED)

/* A context and, in *token, the token that exports it. */
uint32_t open_with_token(int fd, int *token);
int import_context(int fd, int token, uint32_t *made);
/* COMMAND_IMPORT_PD, _MR or _DM of `handle` into the imported context or PD `into`. */
int import(int fd, enum command what, uint32_t into, uint32_t handle, uint32_t *made);
int alloc_dm(int fd, uint32_t context, uint64_t length, uint32_t log_align, uint32_t *made);
int reg_dm_mr(int fd, struct request_reg_dm_mr q, uint32_t *made);

void close_all(struct carrier_descriptors *d);
/* The engine holds as many objects of each kind as it did at `before`. */
void expect_objects(const struct reply_statistics *before, const char *after);

#endif
