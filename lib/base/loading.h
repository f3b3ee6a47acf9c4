/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers of fork(2) are registered when a library is loaded. A fork that has begun does not call
 * handlers that are registered later. Its child would find locks that other threads of its parent have
 * taken since, and no thread of the child would give them back.
 *
 * Handlers that are registered first are called last before a fork, so these constructors have an
 * order. librdmacm is loaded after libibverbs, which it needs.
 */
#ifndef BASE_LOADING_H
#define BASE_LOADING_H

#define AT_LOAD(order) __attribute__((constructor(order)))

/* The program's memory: little happens between its handler and the fork. */
#define LOAD_MEMORY	 1001
#define LOAD_DEVICES	 1002
#define LOAD_ATTACHMENTS 1003
/* librdmacm: cm_lock is taken before any lock above. */
#define LOAD_RSOCKETS	 1004
#define LOAD_IDS	 1005

#endif
