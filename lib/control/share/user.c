/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/share/user.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include "base/bits.h"
#include "control/share/cgroup.h"
#include "lcore/lcore.h"

static const struct {
	const char *name;
	uint64_t all, of_program;
} row[RESOURCE_COUNT] = {
#define X(NAME, name, all, program) [RESOURCE_##NAME] = { name, all, program },
	RESOURCES(X)
#undef X
};

/* ---- limits ---- */

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t open_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint64_t n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

static uint64_t count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t n = 0;
	int c;

	while (f != NULL && (c = getc_unlocked(f)) != EOF)
		n += c == '\n';
	if (f != NULL)
		fclose(f);
	return n;
}

static uint64_t read_number(const char *path, uint64_t otherwise)
{
	FILE *f = fopen(path, "re");
	unsigned long long n;
	bool found = f != NULL && fscanf(f, "%llu", &n) == 1;

	if (f != NULL)
		fclose(f);
	return found ? n : otherwise;
}

static uint64_t limit_of(__rlimit_resource_t resource, uint64_t most)
{
	struct rlimit r;

	if (getrlimit(resource, &r) != 0 || r.rlim_cur == RLIM_INFINITY)
		return most;
	return MIN_OF((uint64_t)r.rlim_cur, most);
}

/*
 * The share of this process's memory that programs may have. If its control group has a limit, the
 * kernel kills the engine there, so half of it is the engine's own.
 */
static uint64_t memory_for_programs(void)
{
	uint64_t group = cgroup_memory_limit();
	struct sysinfo s;

	if (group != UINT64_MAX)
		group /= 2;
	return sysinfo(&s) == 0 ? MIN_OF((uint64_t)s.totalram * s.mem_unit, group) : group;
}

#define DESCRIPTORS_MOST UINT64_C(1 << 24)
#define MAPPINGS_USUAL	 65530u /* Linux's default */
#define ADDRESSES_MOST	 (UINT64_C(1) << 47)
#define PAGE		 UINT64_C(4096)

/*
 * A sanitizer's shadow memory may be larger than all address space for programs, but does not limit
 * them.
 */
static uint64_t addresses_in_use(uint64_t addresses)
{
	uint64_t used = read_number("/proc/self/statm", 0) * PAGE;

	return addresses == ADDRESSES_MOST ? MIN_OF(used, addresses / 2) : used;
}

void users_open(struct users *all)
{
	uint64_t memory = memory_for_programs();
	uint64_t addresses = limit_of(RLIMIT_AS, ADDRESSES_MOST);

	LIST_INIT(&all->list);
	for (uint32_t r = 0; r < RESOURCE_COUNT; r++) {
		all->limit[r] = row[r].all;
		all->of_program[r] = row[r].of_program;
	}
	all->limit[RESOURCE_DESCRIPTORS] = less(limit_of(RLIMIT_NOFILE, DESCRIPTORS_MOST),
						open_descriptors() + LIMIT_OWN_DESCRIPTORS);
	all->limit[RESOURCE_MAPPINGS] =
		less(read_number("/proc/sys/vm/max_map_count", MAPPINGS_USUAL),
		     count_lines("/proc/self/maps") + LIMIT_OWN_MAPPINGS);
	all->limit[RESOURCE_ADDRESSES] =
		less(addresses - addresses / 16, addresses_in_use(addresses));
	all->limit[RESOURCE_MEMORY] = MIN_OF(4 * LIMIT_CLIENT_MEMORY, memory / 2);
	all->limit[RESOURCE_QUEUES] = memory / 2;
	all->limit[RESOURCE_FILES] = memory;
	for (uint32_t r = 0; r < RESOURCE_COUNT; r++)
		if (all->of_program[r] == DERIVED)
			all->of_program[r] = all->limit[r] / 2;
}

/* ---- users ---- */

struct user *user_get(struct users *all, uid_t uid)
{
	struct user *u;

	LIST_FOREACH(u, &all->list, link)
	if (u->uid == uid)
		return user_hold(u);
	u = calloc(1, sizeof(*u));
	if (u == NULL)
		return NULL;
	u->uid = uid;
	u->references = 1;
	LIST_INSERT_HEAD(&all->list, u, link);
	return u;
}

struct user *user_hold(struct user *u)
{
	u->references++;
	return u;
}

void user_drop(struct user *u)
{
	if (--u->references > 0)
		return;
	LIST_REMOVE(u, link);
	free(u);
}

/*
 * The last quarter is reserved for users with little: a user that takes all it can leaves room for
 * others.
 */
static bool has_share(const struct users *all, const struct user *u, enum resource r, uint64_t n)
{
	uint64_t most = all->limit[r], taken = all->all[r];

	if (n > most || taken > most - n)
		return true;
	return taken + n > most - most / 4 && u->has[r] + n > most / 16;
}

void user_charge(struct users *all, struct user *u, enum resource r, uint64_t n)
{
	u->has[r] += n;
	all->all[r] += n;
}

bool user_take(struct users *all, struct user *u, enum resource r, uint64_t n)
{
	if (has_share(all, u, r, n)) {
		all->refused++;
		return false;
	}
	user_charge(all, u, r, n);
	return true;
}

void user_give(struct users *all, struct user *u, enum resource r, uint64_t n)
{
	u->has[r] -= n;
	all->all[r] -= n;
}

/* ---- programs ---- */

bool account_open(struct account *a, struct users *all, uid_t uid, bool embedded)
{
	*a = (struct account){ .users = all, .embedded = embedded, .user = user_get(all, uid) };
	return a->user != NULL;
}

void account_close(struct account *a)
{
	if (a->user != NULL)
		user_drop(a->user);
	a->user = NULL;
}

static bool program_has_share(const struct account *a, enum resource r, uint64_t n)
{
	uint64_t most = a->users->of_program[r];

	return n > most || a->has[r] > most - n;
}

/* An embedding program may use its own process as it likes. */
static bool may_take(const struct account *a, enum resource r, uint64_t n)
{
	const struct users *all = a->users;

	if (a->embedded)
		return row[r].all == DERIVED ||
		       (n <= all->limit[r] && all->all[r] <= all->limit[r] - n);
	return !program_has_share(a, r, n) && !has_share(all, a->user, r, n);
}

bool account_take_for_user(const struct account *a, enum resource r, uint64_t n)
{
	if (!may_take(a, r, n)) {
		a->users->refused++;
		return false;
	}
	user_charge(a->users, a->user, r, n);
	return true;
}

bool account_take(struct account *a, enum resource r, uint64_t n)
{
	if (!account_take_for_user(a, r, n))
		return false;
	a->has[r] += n;
	return true;
}

void account_give(struct account *a, enum resource r, uint64_t n)
{
	a->has[r] -= n;
	user_give(a->users, a->user, r, n);
}

void account_move(struct account *from, struct account *to, enum resource r, uint64_t n)
{
	account_give(from, r, n);
	to->has[r] += n;
	user_charge(to->users, to->user, r, n);
}

bool account_take_memory(struct account *a, size_t octets)
{
	if (!account_take(a, RESOURCE_MEMORY, octets))
		return false;
	if (account_take(a, RESOURCE_MAPPINGS, memory_maps(octets)))
		return true;
	account_give(a, RESOURCE_MEMORY, octets);
	return false;
}

void account_give_memory(struct account *a, size_t octets)
{
	account_give(a, RESOURCE_MEMORY, octets);
	account_give(a, RESOURCE_MAPPINGS, memory_maps(octets));
}

/* ---- reasons ---- */

void user_explain(const struct users *all, const struct user *u, enum resource r, char *text,
		  size_t size)
{
	if (all->all[r] >= all->limit[r])
		snprintf(text, size, "the engine's limit is reached: %llu %s",
			 (unsigned long long)all->all[r], row[r].name);
	else
		snprintf(text, size, "the per-user limit is reached: %llu of %llu %s",
			 (unsigned long long)u->has[r], (unsigned long long)all->limit[r],
			 row[r].name);
}

void account_explain(const struct account *a, enum resource r, uint64_t n, char *text, size_t size)
{
	if (!a->embedded && program_has_share(a, r, n))
		snprintf(text, size, "a program may have at most %llu %s",
			 (unsigned long long)a->users->of_program[r], row[r].name);
	else
		user_explain(a->users, a->user, r, text, size);
}

void account_explain_memory(const struct account *a, size_t octets, char *text, size_t size)
{
	if (may_take(a, RESOURCE_MEMORY, octets))
		account_explain(a, RESOURCE_MAPPINGS, memory_maps(octets), text, size);
	else
		account_explain(a, RESOURCE_MEMORY, octets, text, size);
}

nanotime account_patience(const struct account *a, nanotime now)
{
	return a->embedded ? LEAVE_TIME : patience_left(&a->user->patience, now);
}

void account_waited(struct account *a, nanotime since, nanotime now)
{
	if (!a->embedded)
		patience_spend(&a->user->patience, now - since, now);
}
