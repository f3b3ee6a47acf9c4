/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/client_memory/peer_atomic.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "config/limits.h"
#include "drivers/client_memory/peer.h"

#define STRIPES 256u

/* Only threads of the engine share the holder of a stripe, so this is not in lib/queue. */

struct peer_locks {
	LIST_ENTRY(peer_locks) link;
	uid_t user;
	uint32_t memories;
	uint32_t held; /* atomic */
	struct {
		/* atomic: number of the try (high half), id of its memory; 0: free */
		uint64_t holder;
	} __attribute__((aligned(64))) stripe[STRIPES];
};

static LIST_HEAD(, peer_locks) all_locks = LIST_HEAD_INITIALIZER(all_locks);
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

static struct peer_locks *find_or_create(uid_t user)
{
	struct peer_locks *l;

	LIST_FOREACH(l, &all_locks, link)
	if (l->user == user)
		return l;
	l = aligned_alloc(64, sizeof(*l));
	if (l == NULL)
		return NULL;
	memset(l, 0, sizeof(*l));
	l->user = user;
	LIST_INSERT_HEAD(&all_locks, l, link);
	return l;
}

struct peer_locks *peer_locks_get(uid_t user)
{
	struct peer_locks *l;

	pthread_mutex_lock(&all_lock);
	l = find_or_create(user);
	if (l != NULL)
		l->memories++;
	pthread_mutex_unlock(&all_lock);
	return l;
}

struct peer_locks *peer_locks_share(struct peer_locks *l)
{
	pthread_mutex_lock(&all_lock);
	l->memories++;
	pthread_mutex_unlock(&all_lock);
	return l;
}

void peer_locks_put(struct peer_locks *l)
{
	pthread_mutex_lock(&all_lock);
	if (--l->memories == 0) {
		LIST_REMOVE(l, link);
		free(l);
	}
	pthread_mutex_unlock(&all_lock);
}

void peer_locks_hold(struct peer_locks *l)
{
	__atomic_store_n(&l->held, 1, __ATOMIC_RELAXED);
}

void peer_locks_let_go(struct peer_locks *l)
{
	/*
	 * Release: pairs with is_held. A thread that begins now sees the result of the last direct
	 * atomic.
	 */
	__atomic_store_n(&l->held, 0, __ATOMIC_RELEASE);
}

/* Acquire: a thread that has seen that memory is peer memory also sees that it was held. */
static bool is_held(const struct peer_locks *l)
{
	return __atomic_load_n(&l->held, __ATOMIC_ACQUIRE) != 0;
}

static bool take_free(uint64_t *holder, uint64_t self, uint64_t *is)
{
	for (uint32_t i = 0; i < LIMIT_ATOMIC_TRIES; i++) {
		*is = __atomic_load_n(holder, __ATOMIC_RELAXED);
		/* acquire: pairs with the release in give_back */
		if (*is == 0 && __atomic_compare_exchange_n(holder, is, self, false,
							    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/*
 * Never takes a stripe over from the same memory, because our own copies would block where its
 * copies do.
 */
static bool take_over(uint64_t *holder, uint64_t self, uint64_t is, struct peer_atomic *a,
		      nanotime now)
{
	if (is != a->holder) {
		a->holder = is;
		a->since = now;
	}
	return is != 0 && (uint32_t)is != (uint32_t)self && now > a->since &&
	       now - a->since >= LIMIT_ATOMIC_WAIT * TIME_MS &&
	       __atomic_compare_exchange_n(holder, &is, self, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

static void give_back(uint64_t *holder, uint64_t self)
{
	/* This fails if we took too long and another try took the stripe over. */
	__atomic_compare_exchange_n(holder, &self, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static bool copy_word(const struct peer_memory *m, uint64_t address, uint64_t *word, bool to_peer)
{
	struct peer_copy c = {
		.peer_address = address, .local = word, .length = sizeof(*word), .to_peer = to_peer
	};

	peer_memory_copy(m, &c, 1);
	return c.ok;
}

static int execute(const struct peer_memory *m, uint64_t address, struct peer_atomic *a,
		   const uint64_t *holder, uint64_t self)
{
	uint64_t old, new;

	if (!copy_word(m, address, &old, false))
		return EFAULT;
	if (__atomic_load_n(holder, __ATOMIC_ACQUIRE) != self)
		return EBUSY; /* the stripe was taken over meanwhile, so what we read is outdated */
	new = a->compare_swap ? a->value : old + a->value;
	if ((!a->compare_swap || old == a->compare) && !copy_word(m, address, &new, true))
		return EFAULT;
	a->original = old;
	return 0;
}

int peer_memory_atomic(const struct peer_memory *m, uint64_t address, struct peer_atomic *a,
		       nanotime now)
{
	static uint32_t tries;
	uint64_t *holder = &m->locks->stripe[(address & 4095) / 8 % STRIPES].holder;
	uint64_t self = (uint64_t)__atomic_add_fetch(&tries, 1, __ATOMIC_RELAXED) << 32 | m->id;
	uint64_t is = 0;
	int error;

	if (is_held(m->locks))
		return EBUSY;
	if (!take_free(holder, self, &is) && !take_over(holder, self, is, a, now))
		return EBUSY;
	error = execute(m, address, a, holder, self);
	give_back(holder, self);
	return error;
}

bool direct_atomic(void *at, struct peer_atomic *a)
{
	uint64_t *word = at;

	if ((uintptr_t)at % sizeof(*word) != 0)
		return false;
	if (!a->compare_swap) {
		a->original = __atomic_fetch_add(word, a->value, __ATOMIC_SEQ_CST);
		return true;
	}
	a->original = a->compare;
	__atomic_compare_exchange_n(word, &a->original, a->value, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return true;
}
