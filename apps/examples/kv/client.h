/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of the store (kv.h). Plain verbs and rdma_cm: it runs on uroce and on network cards. */
#ifndef CLIENT_H
#define CLIENT_H

#include "kv.h"

struct kv;

/* Connects, with room for `reads` GETs under way. NULL: errno says why. */
struct kv *kv_open(const char *host, unsigned int reads);
void kv_close(struct kv *k);

/* Changes the store. 0 or an errno: ENOENT, ENOSPC, EINVAL (a length), EIO (the connection broke). */
int kv_put(struct kv *k, const char *key, const void *value, size_t length);
int kv_delete(struct kv *k, const char *key);
/* Reads a value of at most KV_VALUE octets. 0 or an errno, as above. */
int kv_get(struct kv *k, const char *key, void *value, size_t *length);

/*
 * Many GETs at a time: kv_begin() posts that of `slot` (below `reads`), kv_next() returns a slot whose
 * READ is done, -1: none yet, -2: the connection broke. kv_result() looks at what was read: 0, ENOENT,
 * or EAGAIN (it met a change: begin again).
 */
int kv_begin(struct kv *k, unsigned int slot, const char *key);
int kv_next(struct kv *k);
int kv_result(struct kv *k, unsigned int slot, const void **value, size_t *length);

#endif
