/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's memory, reached from the engine through a descriptor of the client's /proc/self/mem.
 * The engine opens it itself where it may. Otherwise the client passes one that it has opened.
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
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/time.h"
#include "queue/fence.h"

struct peer_atomic;
struct peer_locks;

struct peer_memory {
	int fd; /* ours */
	pid_t pid; /* 0: not reached by pid */
	uint32_t id; /* no other memory of this process has or had it, but its clones */
	struct peer_locks *locks; /* of its user's atomics */
};

/*
 * One copy, or one atomic. Those of a batch are made in their order, also where they go to memory
 * that we map: who sees one of them sees all before it.
 */
struct peer_copy {
	uint64_t peer_address;
	void *local;
	uint32_t length;
	bool to_peer;
	bool ok; /* out: all of it was copied */
	uint8_t tail; /* to_peer: so many octets at its end, at most 8, are written last */
	const struct peer_memory *memory; /* whose; NULL: of the one that the call names */
	void *direct; /* to_peer: we map what is written; NULL: it is at peer_address */
	struct peer_atomic *atomic; /* not a copy, but this */
	uint64_t chain; /* 0: none. Nothing is written behind a copy of its chain that failed */
	uint32_t owner; /* direct: the caller's number of whose memory it is */
};

/* The chains that are broken, the newest of them. Zeroed: none. */
#define COPY_BREAKS 64u

struct copy_breaks {
	uint32_t count; /* of all so far */
	uint64_t chain[COPY_BREAKS];
};

/*
 * Proves which program a process runs: the kernel gives each program at its execve(2) 16 random octets
 * (AT_RANDOM), which nobody can know who may not read its memory. A client says its own in HELLO.
 */
#define PEER_PROOF 16u

struct peer_proof {
	uint8_t octet[PEER_PROOF];
};

/*
 * Opens the memory of a process, *fd, and looks for the proof there: at *at, if it is the program that
 * said it. 0; EACCES: we may not, or have no such process; EPERM: the process runs another program;
 * EMFILE and the like. The caller looks afterwards whether the pid is still its process's. May block
 * for as long as the client pleases.
 */
int peer_memory_find(pid_t pid, const struct peer_proof *proof, int *fd, uint64_t *at);
/* Whether it is a /proc/PID/mem open for reading and writing; may block on a file that may. */
bool peer_memory_is(int fd);
/* Whether that descriptor is of the memory of a program with this proof at that place. */
bool peer_memory_proves(int mem_fd, const struct peer_proof *proof, uint64_t at);
/* Whether the process runs a program with it. */
bool peer_memory_proves_pid(pid_t pid, const struct peer_proof *proof, uint64_t at);
/* Whether process_vm_readv(2) is permitted on this pid. Both may block, as peer_memory_find. */
bool peer_memory_by_pid(pid_t pid);

/*
 * Takes over mem_fd on success: 0, EBADF when it is not a /proc/PID/mem open for reading and writing,
 * or ENOMEM. pid: of a process for which peer_memory_by_pid said yes; it is used only when uid, the
 * kernel's word on the client, is our own. pid 0: never.
 */
int peer_memory_open(struct peer_memory *m, int mem_fd, pid_t pid, uid_t uid);
void peer_memory_close(struct peer_memory *m);
/* A second one with a descriptor of its own (for a mover). 0 or errno. */
int peer_memory_clone(struct peer_memory *to, const struct peer_memory *from);
/* False once the client's address space is gone. */
bool peer_memory_alive(const struct peer_memory *m);

/*
 * Makes n copies in order and sets ok of each; one that fails keeps only those of its chain from it.
 * m may be NULL if every copy names its memory, or is direct. No atomics.
 */
void peer_memory_copy(const struct peer_memory *m, struct peer_copy *copy, uint32_t n);
/* The same, where chains go on from call to call. */
void peer_memory_copy_chained(const struct peer_memory *m, struct peer_copy *copy, uint32_t n,
			      struct copy_breaks *breaks);
bool copy_chain_broken(const struct copy_breaks *b, uint64_t chain);
void copy_chain_break(struct copy_breaks *b, uint64_t chain);

/* Into memory that we map: the last octets, `tail` of them, become visible last. */
static inline void copy_direct(void *to, const void *from, uint32_t length, uint32_t tail)
{
	uint32_t head = length - tail;

	if (head > 0)
		memcpy(to, from, head);
	if (tail == 0)
		return;
	/* Release: who sees the tail (a polling program, on its own acquire) sees the head. */
	queue_release_fence();
	if (tail == 8) /* by one store: of an ATOMIC WRITE these are all */
		memcpy((char *)to + head, (const char *)from + head, 8);
	else
		memcpy((char *)to + head, (const char *)from + head, tail);
}

/* How many copies from the first on are of the same memory. */
static inline uint32_t peer_copy_run(const struct peer_copy *copy, uint32_t n)
{
	uint32_t run = 1;

	while (run < n && copy[run].memory == copy[0].memory)
		run++;
	return run;
}

#endif
