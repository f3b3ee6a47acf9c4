/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds queue pairs by their numbers. The low four bits of a number name the lcore for which it was
 * made. The upper twenty are random and unique, and index this table of pointers. Memory is touched
 * only where queue pairs are.
 *
 * A slot is one of
 *
 *	NULL			free
 *	pointer | 1		reserved, not visible to packets
 *	pointer			published
 *	milliseconds << 2 | 2	free, but it rests until then
 *
 * A number that was in use a moment ago rests. Packets for it may still be on their way, and peers'
 * connection managers know it (protocol-map 192: they would call a new connection of it stale). If
 * nearly all numbers rest, one of them is taken nevertheless.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "lcore/inside.h"

#define REST	    (LIMIT_QPN_REST_S * TIME_S)
#define STATE_RESTS 2u
#define PATIENT	    48 /* tries that leave resting numbers alone */
#define TRIES	    64

#define DIRECTORY_SLOTS	 (1u << 20)
#define DIRECTORY_OCTETS (DIRECTORY_SLOTS * sizeof(struct engine_qp *))

int directory_init(struct engine *e)
{
	void *m = mmap(NULL, DIRECTORY_OCTETS, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (m == MAP_FAILED)
		return errno;
	e->directory = m;
	return 0;
}

void directory_destroy(struct engine *e)
{
	if (e->directory != NULL)
		munmap(e->directory, DIRECTORY_OCTETS);
	e->directory = NULL;
}

static bool is_free(const struct engine_qp *slot, nanotime now, bool patient)
{
	uintptr_t state = (uintptr_t)slot;

	if (state == 0 || (state & 3) != STATE_RESTS)
		return state == 0;
	return !patient || (state >> 2) * TIME_MS <= now;
}

uint32_t directory_reserve(struct engine *e, uint32_t lcore, struct engine_qp *q)
{
	nanotime now = clock_now();

	/* With at most LIMIT_ENGINE_QPS of 2^20 slots taken, 32 tries fail once in 2^64 times. */
	for (int tries = 0; tries < TRIES; tries++) {
		uint32_t slot;

		if (getrandom(&slot, sizeof(slot), 0) != (ssize_t)sizeof(slot))
			return 0;
		slot &= DIRECTORY_SLOTS - 1;
		/* 0 and 1 are the management queue pairs, 0xFFFFFF is multicast (IBTA 3.5.10). */
		if (slot == 0 || slot == DIRECTORY_SLOTS - 1 ||
		    !is_free(e->directory[slot], now, tries < PATIENT))
			continue;
		q->qpn = slot << 4 | lcore;
		__atomic_store_n(&e->directory[slot], (struct engine_qp *)((uintptr_t)q | 1),
				 __ATOMIC_RELEASE);
		return q->qpn;
	}
	return 0;
}

void directory_publish(struct engine *e, struct engine_qp *q)
{
	/*
	 * Pairs with the acquire in directory_find: a thread that sees the pointer sees the queue
	 * pair.
	 */
	__atomic_store_n(&e->directory[q->qpn >> 4], q, __ATOMIC_RELEASE);
}

void directory_remove(struct engine *e, struct engine_qp *q, nanotime now)
{
	uintptr_t rests = (uintptr_t)((now + REST) / TIME_MS) << 2 | STATE_RESTS;

	__atomic_store_n(&e->directory[q->qpn >> 4], (struct engine_qp *)rests, __ATOMIC_RELEASE);
}
