/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What users have of an engine: how many objects of each kind, and what of the engine's own
 * descriptors, mappings, addresses and memory. Whoever may open the socket may use the engine, and
 * nobody may use it up.
 *
 *	one user	three quarters of each; what is left is for users with less than a sixteenth
 *	one program	what the device announces; of what is not announced half of all
 *
 * A program that has the engine inside is bounded by what there is only: it would keep nothing but
 * itself from going on. All of this is the control path's, under control_lock.
 */
#ifndef CONTROL_USER_H
#define CONTROL_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "config/limits.h"

#define DERIVED	 0 /* from the limits of this process and the machine: users_open() */
#define NO_LIMIT UINT64_MAX

/* X(NAME, "in a sentence", of the engine, of one program) */
#define RESOURCES(X)                                                                           \
	X(CONNECTIONS, "connections", LIMIT_CONNECTIONS, NO_LIMIT)                             \
	X(PROGRAMS, "programs", LIMIT_CLIENTS, NO_LIMIT)                                       \
	X(CONTEXTS, "contexts", LIMIT_ENGINE_CONTEXTS, LIMIT_CLIENT_CONTEXTS)                  \
	X(PDS, "protection domains", LIMIT_ENGINE_PDS, LIMIT_PDS)                              \
	X(MRS, "regions and windows", LIMIT_ENGINE_MRS, LIMIT_MRS)                             \
	X(IMPORTS, "imported regions", LIMIT_ENGINE_MRS, LIMIT_MRS)                            \
	X(CHANNELS, "completion channels", NO_LIMIT, LIMIT_CLIENT_CHANNELS)                    \
	X(CQS, "completion queues", LIMIT_ENGINE_CQS, LIMIT_CQS)                               \
	X(QPS, "queue pairs", LIMIT_ENGINE_QPS, LIMIT_QPS)                                     \
	X(TARGETS, "handles of XRC targets", LIMIT_ENGINE_QPS, LIMIT_QPS)                      \
	X(AHS, "address handles", LIMIT_ENGINE_AHS, LIMIT_AHS)                                 \
	X(SRQS, "shared receive queues", LIMIT_ENGINE_SRQS, LIMIT_SRQS)                        \
	X(XRCDS, "XRC domains", NO_LIMIT, LIMIT_CLIENT_XRCDS)                                  \
	X(TABLES, "indirection tables", LIMIT_ENGINE_RWQ_TABLES, LIMIT_RWQ_TABLES)             \
	X(RSS, "queue pairs on indirection tables", LIMIT_ENGINE_RWQ_TABLES, LIMIT_RWQ_TABLES) \
	X(FLOWS, "steering rules", LIMIT_ENGINE_FLOWS, LIMIT_FLOWS)                            \
	X(COUNTERS, "counter objects", LIMIT_ENGINE_COUNTERS, LIMIT_COUNTERS)                  \
	X(GROUPS, "multicast groups", LIMIT_ENGINE_GROUPS, NO_LIMIT)                           \
	X(DMS, "pieces of device memory", NO_LIMIT, LIMIT_CLIENT_DMS)                          \
	X(DM_OCTETS, "octets of device memory", LIMIT_ENGINE_DM_BYTES, NO_LIMIT)               \
	X(CM_CHANNELS, "event channels", NO_LIMIT, LIMIT_CLIENT_CM_CHANNELS)                   \
	X(CM_IDS, "ids", LIMIT_ENGINE_CM_IDS, LIMIT_CLIENT_CM_IDS)                             \
	X(CM_JOINS, "joins", LIMIT_ENGINE_CM_JOINS, LIMIT_CLIENT_CM_JOINS)                     \
	X(DESCRIPTORS, "of the engine's descriptors", DERIVED, DERIVED)                        \
	X(MAPPINGS, "of the engine's mappings", DERIVED, DERIVED)                              \
	X(ADDRESSES, "octets of address space", DERIVED, DERIVED)                              \
	X(MEMORY, "octets of the engine's memory", DERIVED, LIMIT_CLIENT_MEMORY)               \
	X(FILES, "octets of mapped files", DERIVED, DERIVED)

enum resource {
#define X(NAME, name, all, program) RESOURCE_##NAME,
	RESOURCES(X)
#undef X
	RESOURCE_COUNT
};

struct user {
	uid_t uid;
	uint32_t references;
	uint64_t has[RESOURCE_COUNT];
	LIST_ENTRY(user) link;
};

struct users {
	LIST_HEAD(, user) list;
	uint64_t all[RESOURCE_COUNT]; /* what users have, together */
	uint64_t limit[RESOURCE_COUNT], of_program[RESOURCE_COUNT];
	uint64_t refused; /* times that somebody had his share */
};

/* One program's part of what its user has. */
struct account {
	struct users *users;
	struct user *user;
	bool embedded;
	uint64_t has[RESOURCE_COUNT];
};

/*
 * What this process has already, and needs for itself, is no user's: called when the engine is
 * built, before anybody connects.
 */
void users_open(struct users *all);

/* Somebody's record, to be given back by user_drop; NULL: no memory. */
struct user *user_get(struct users *all, uid_t uid);
struct user *user_hold(struct user *u);
void user_drop(struct user *u);

/* n more of it for the user himself; false: he has his share. What is given back was taken. */
bool user_take(struct users *all, struct user *u, enum resource r, uint64_t n);
void user_give(struct users *all, struct user *u, enum resource r, uint64_t n);

/* ... for a program of his. */
bool account_open(struct account *a, struct users *all, uid_t uid, bool embedded);
void account_close(struct account *a);
bool account_take(struct account *a, enum resource r, uint64_t n);
void account_give(struct account *a, enum resource r, uint64_t n);
/* The mappings that the allocator may make for so many octets. */
static inline uint64_t memory_maps(size_t octets)
{
	return octets >= LIMIT_MALLOC_MAPS;
}

/* Memory of the allocator, with its mapping. As it was taken it is given back. */
bool account_take_memory(struct account *a, size_t octets);
void account_give_memory(struct account *a, size_t octets);
/* From one program to another, which did not ask for it: never refused. */
void account_move(struct account *from, struct account *to, enum resource r, uint64_t n);

/* Why account_take would refuse, or did: a sentence. */
void account_explain(const struct account *a, enum resource r, uint64_t n, char *text, size_t size);
void account_explain_memory(const struct account *a, size_t octets, char *text, size_t size);
void user_explain(const struct users *all, const struct user *u, enum resource r, char *text,
		  size_t size);

#endif
