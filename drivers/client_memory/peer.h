/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's memory, reached from the engine through a descriptor of the client's /proc/self/mem.
 * That descriptor is the address space itself: it works across users and namespaces, gives errors
 * for addresses that are not mapped, and reads 0 octets once the address space is gone (exit or
 * exec). Writes through it ignore page protection: who registers memory checks that it is writable.
 *
 * A pid names whatever program runs under it, also after an exec. So process_vm_readv, which takes
 * many ranges in one call, is used for reading only, and its result counts only if the descriptor
 * still answers *afterwards*: an address space that is gone never comes back, so what was read
 * before was the client's. Nothing is ever written by pid.
 *
 * Any call may block for as long as the client pleases (its own userfaultfd, FUSE, NFS).
 */
#ifndef CLIENT_MEMORY_PEER_H
#define CLIENT_MEMORY_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/time.h"

struct peer_memory {
	int fd; /* ours */
	pid_t pid; /* 0: not reached by pid */
	uint32_t owner; /* whose it is: the caller's number */
};

struct peer_copy {
	uint64_t peer_address;
	void *local;
	uint32_t length;
	bool to_peer;
	bool ok; /* out: all of it was copied */
	const struct peer_memory *memory; /* whose; NULL: of the one that the call names */
};

/*
 * Takes over mem_fd on success: 0, or EBADF when it is not a /proc/PID/mem open for reading and
 * writing. pid and uid are the kernel's word on the client (SO_PEERCRED); the pid path is probed
 * and used only when uid is our own. pid 0: never.
 */
int peer_memory_open(struct peer_memory *m, int mem_fd, pid_t pid, uid_t uid);
void peer_memory_close(struct peer_memory *m);
/* A second one with a descriptor of its own (for a mover). 0 or errno. */
int peer_memory_clone(struct peer_memory *to, const struct peer_memory *from);
/* False once the client's address space is gone. */
bool peer_memory_alive(const struct peer_memory *m);

/*
 * Makes n copies in order and sets ok of each; one that fails does not keep the rest from it.
 * m may be NULL if every copy names its memory.
 */
void peer_memory_copy(const struct peer_memory *m, struct peer_copy *copy, uint32_t n);

/* How many copies from the first on are of the same memory. */
static inline uint32_t peer_copy_run(const struct peer_copy *copy, uint32_t n)
{
	uint32_t run = 1;

	while (run < n && copy[run].memory == copy[0].memory)
		run++;
	return run;
}

/*
 * Atomics on peer memory: read, compute, write under a lock that all lcores share. Atomic among
 * all that use the same locks (IBV_ATOMIC_HCA), not against the client's own CPU.
 */
#define PEER_STRIPES 256u

struct peer_locks {
	struct {
		uint32_t taken;
	} __attribute__((aligned(64))) stripe[PEER_STRIPES]; /* zeroed: free */
};

/*
 * compare_and_swap: stores `value` if the octets equal `compare`; otherwise adds `value`. 0 with
 * the original value; EFAULT; EBUSY when somebody holds the lock too long (a copy that blocks):
 * nothing was done, try later.
 */
int peer_memory_atomic(const struct peer_memory *m, struct peer_locks *locks, uint64_t address,
		       bool compare_and_swap, uint64_t compare, uint64_t value, uint64_t *original);

/*
 * What an lcore is doing, for the control thread: it stamps before a copy that it makes itself.
 * Past COPY_SLOW the client goes to a mover, past COPY_STUCK it is ended if the copy still waits: an
 * lcore that gets no processor is not its fault.
 */
#define COPY_SLOW  (20 * TIME_MS)
#define COPY_STUCK (1 * TIME_S)

struct copy_stamp {
	uint64_t started_at; /* 0: not in a copy */
	uint32_t client;
	uint32_t thread; /* that makes the copy */
};

/* Of the caller, as the kernel counts threads. */
static inline uint32_t thread_number(void)
{
	static __thread uint32_t number;

	if (number == 0)
		number = (uint32_t)gettid();
	return number;
}

/*
 * Whether that thread of this process waits for something, as it does in a copy that blocks; not if it
 * runs, or would if it got a processor. True if the kernel does not say.
 */
bool thread_waits(uint32_t thread);

static inline void copy_stamp_begin(struct copy_stamp *s, uint32_t client, nanotime now)
{
	__atomic_store_n(&s->client, client, __ATOMIC_RELAXED);
	__atomic_store_n(&s->thread, thread_number(), __ATOMIC_RELAXED);
	/* pairs with copy_stamp_age: who sees the time sees whose copy it is */
	__atomic_store_n(&s->started_at, now, __ATOMIC_RELEASE);
}

static inline void copy_stamp_end(struct copy_stamp *s)
{
	__atomic_store_n(&s->started_at, 0, __ATOMIC_RELEASE);
}

/* Control thread: for how long the copy that is under way lasts, 0 if none is, and whose it is. */
static inline nanotime copy_stamp_age(const struct copy_stamp *s, nanotime now, uint32_t *client)
{
	uint64_t started_at = __atomic_load_n(&s->started_at, __ATOMIC_ACQUIRE);

	*client = __atomic_load_n(&s->client, __ATOMIC_ACQUIRE);
	/* unchanged: the client was read within that copy */
	if (started_at == 0 || started_at != __atomic_load_n(&s->started_at, __ATOMIC_RELAXED))
		return 0;
	return now > started_at ? now - started_at : 0;
}

#endif
