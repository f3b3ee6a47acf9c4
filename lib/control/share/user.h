/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each user's share of an engine: objects of each kind, and the engine's own descriptors,
 * mappings, addresses and memory. Everybody who may open the socket may use the engine, and no user
 * can use it up.
 *
 *	one user	three quarters of each; the rest is for users with less than a sixteenth
 *	one program	what the device announces; of what it does not announce, half of all
 *
 * An embedding program only has the engine's limits, as it could only harm itself. All of this
 * belongs to the control path, under control_lock.
 */
#ifndef CONTROL_USER_H
#define CONTROL_USER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "config/limits.h"
#include "control/share/patience.h"

#define DERIVED	 0 /* from the limits of this process and the machine: users_open() */
#define NO_LIMIT UINT64_MAX

/* X(NAME, "in a sentence", limit of the engine, limit of one program) */
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
	X(CM_LINKS, "connections of rdma_cm", LIMIT_CM_LINKS, NO_LIMIT)                        \
	X(CM_JOINS, "joins", LIMIT_ENGINE_CM_JOINS, LIMIT_CLIENT_CM_JOINS)                     \
	X(DESCRIPTORS, "descriptors of the engine", DERIVED, DERIVED)                          \
	X(MAPPINGS, "mappings of the engine", DERIVED, DERIVED)                                \
	X(ADDRESSES, "octets of address space", DERIVED, DERIVED)                              \
	X(MEMORY, "octets of the engine's memory", DERIVED, LIMIT_CLIENT_MEMORY)               \
	X(QUEUES, "octets of queues", DERIVED, DERIVED)                                        \
	X(FILES, "octets of mapped files", DERIVED, DERIVED)                                   \
	X(WATCHES, "files that were mapped and still exist", LIMIT_ENGINE_WATCHES, NO_LIMIT)

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
	struct patience patience;
	LIST_ENTRY(user) link;
};

struct users {
	LIST_HEAD(, user) list;
	uint64_t all[RESOURCE_COUNT]; /* of all users together */
	uint64_t limit[RESOURCE_COUNT], of_program[RESOURCE_COUNT];
	uint64_t refused; /* times that a limit was reached: REASON_SHARE_USED */
};

/* One program's part of what its user has. */
struct account {
	struct users *users;
	struct user *user;
	bool embedded;
	uint64_t has[RESOURCE_COUNT];
};

/*
 * Excludes what this process already has and needs for itself: called when the engine is created,
 * before anybody connects.
 */
void users_open(struct users *all);

/* A user's record, to be released by user_drop. NULL: no memory. */
struct user *user_get(struct users *all, uid_t uid);
struct user *user_hold(struct user *u);
void user_drop(struct user *u);

/*
 * Charges n more of r to the user. False: its limit is reached. user_give returns what was taken.
 */
bool user_take(struct users *all, struct user *u, enum resource r, uint64_t n);
void user_give(struct users *all, struct user *u, enum resource r, uint64_t n);
/* ... of what the user has already: never refused. */
void user_charge(struct users *all, struct user *u, enum resource r, uint64_t n);

/* ... to a program of the user. */
bool account_open(struct account *a, struct users *all, uid_t uid, bool embedded);
void account_close(struct account *a);
bool account_take(struct account *a, enum resource r, uint64_t n);
void account_give(struct account *a, enum resource r, uint64_t n);
/* ... to the user of the program alone, as it may outlive the program: user_give returns it. */
bool account_take_for_user(const struct account *a, enum resource r, uint64_t n);
/* The mappings that malloc(3) may make for that many octets. */
static inline uint64_t memory_maps(size_t octets)
{
	return octets >= LIMIT_MALLOC_MAPS;
}

/* Memory of malloc(3), with its mapping. It is given back in the same amounts. */
bool account_take_memory(struct account *a, size_t octets);
void account_give_memory(struct account *a, size_t octets);
/*
 * How long a command of this program may wait for lcores. account_waited says that it has waited
 * since then. A command of an embedding program keeps no other program waiting.
 */
nanotime account_patience(const struct account *a, nanotime now);
void account_waited(struct account *a, nanotime since, nanotime now);
/* Moves a charge to another program, which did not ask for it: never refused. */
void account_move(struct account *from, struct account *to, enum resource r, uint64_t n);

/* Writes a sentence that says why account_take would refuse, or did. */
void account_explain(const struct account *a, enum resource r, uint64_t n, char *text, size_t size);
void account_explain_memory(const struct account *a, size_t octets, char *text, size_t size);
void user_explain(const struct users *all, const struct user *u, enum resource r, char *text,
		  size_t size);

#endif
