/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's table: kv.h draws it. Many threads may change it; clients read it meanwhile. */
#ifndef TABLE_H
#define TABLE_H

#include "kv.h"

/* All of the table's memory, to be registered for remote reads. */
void *table_memory(size_t *octets);
/* 0, ENOENT, ENOSPC (all buckets of this key are taken) or EINVAL (a length). */
int table_apply(const struct kv_request *request);

#endif
