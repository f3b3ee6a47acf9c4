/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peer memory: a client's memory, which the engine accesses through a descriptor of the client's
 * /proc/self/mem. The engine opens the file itself if it may; otherwise the client passes a
 * descriptor. The descriptor stands for the address space: it works across users and namespaces,
 * returns errors for addresses that are not mapped, and reads 0 octets once the address space is
 * gone (exit or exec). Writes through it ignore page protection, so registration checks that memory
 * is writable.
 *
 * A pid names the program that runs under it at the moment, even after an exec. So
 * process_vm_readv, which takes many ranges in one call, is used only for reading, and its result
 * counts only if the descriptor still works afterwards. An address space that is gone never comes
 * back, so what was read before was the client's. Nothing is ever written by pid.
 *
 * Any call may block for as long as the client wants (its own userfaultfd, FUSE, NFS).
 */
#ifndef CLIENT_MEMORY_PEER_H
#define CLIENT_MEMORY_PEER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/time.h"
#include "config/limits.h"
#include "queue/fence.h"

struct peer_atomic;
struct peer_locks;

struct peer_memory {
	int fd; /* ours */
	pid_t pid; /* 0: process_vm_readv is not used */
	uint32_t id; /* no other memory of this process has or had this number, except its clones */
	struct peer_locks *locks; /* of its user's atomics */
};

/*
 * One copy, or one atomic. Those of a batch are made in order, also into memory that the engine
 * maps: a reader that sees one of them sees all earlier ones.
 */
struct peer_copy {
	uint64_t peer_address;
	void *local;
	uint32_t length;
	bool to_peer;
	bool ok; /* out: all of it was copied */
	uint8_t tail; /* to_peer: how many octets at the end, at most 8, are written last */
	const struct peer_memory *memory; /* NULL: the memory that the call names */
	void *direct; /* to_peer: the memory as the engine maps it; NULL: it is at peer_address */
	struct peer_atomic *atomic; /* this atomic instead of a copy; NULL: a copy */
	/*
	 * 0: the copy is in no chain. After a copy that failed, nothing more of its chain is
	 * written.
	 */
	uint64_t chain;
	uint32_t owner; /* direct: the number by which the caller knows the memory's owner */
};

/* The newest broken chains. Zeroed: none. */
struct copy_breaks {
	uint32_t count; /* of all that were ever broken */
	uint64_t chain[LIMIT_COPY_BREAKS];
};

/*
 * Proves which program a process runs. The kernel gives each program 16 random octets at its
 * execve(2) (AT_RANDOM). Only a process that may read the program's memory can know them. A client
 * sends its own octets in HELLO.
 */
#define PEER_PROOF 16u

struct peer_proof {
	uint8_t octet[PEER_PROOF];
};

/*
 * Opens the memory of a process and checks the proof there. 0: *fd is the descriptor, which the
 * caller closes, and *at is the address of the proof. EACCES: not permitted, or no such process.
 * EPERM: the process runs another program. EMFILE, ENFILE or ENOMEM. The caller checks afterwards
 * that its client still has the pid. May block for as long as the client wants.
 */
int peer_memory_find(pid_t pid, const struct peer_proof *proof, int *fd, uint64_t *at);
/*
 * Whether the descriptor is a /proc/PID/mem, open for reading and writing. May block if the file's
 * driver does.
 */
bool peer_memory_is(int fd);
/* Whether the program of this descriptor has the proof at that address. May block. */
bool peer_memory_proves(int mem_fd, const struct peer_proof *proof, uint64_t at);
/* Whether the program that the process runs has the proof at that address. May block. */
bool peer_memory_proves_pid(pid_t pid, const struct peer_proof *proof, uint64_t at);
/* Whether process_vm_readv(2) is permitted for this pid. May block. */
bool peer_memory_by_pid(pid_t pid);

/*
 * Takes over mem_fd on success. 0; EBADF: it is not a /proc/PID/mem open for reading and writing;
 * ENOMEM. `pid`: of a process for which peer_memory_by_pid returned true, used only if uid is our
 * own; 0: do not use it. `uid`: the client's, from the kernel. Control thread.
 */
int peer_memory_open(struct peer_memory *m, int mem_fd, pid_t pid, uid_t uid);
void peer_memory_close(struct peer_memory *m);
/* Makes a second one with its own descriptor, for a mover. 0 or an errno. */
int peer_memory_clone(struct peer_memory *to, const struct peer_memory *from);
/* False once the client's address space is gone. */
bool peer_memory_alive(const struct peer_memory *m);

/*
 * Makes n copies in order and sets `ok` of each. If one fails, only later copies of its chain are
 * not made. m may be NULL if every copy names its memory or is direct. No copy may be an atomic.
 * May block.
 */
void peer_memory_copy(const struct peer_memory *m, struct peer_copy *copy, uint32_t n);
/* The same, for chains that continue over several calls. */
void peer_memory_copy_chained(const struct peer_memory *m, struct peer_copy *copy, uint32_t n,
			      struct copy_breaks *breaks);
bool copy_chain_broken(const struct copy_breaks *b, uint64_t chain);
void copy_chain_break(struct copy_breaks *b, uint64_t chain);

/* Copies into memory that the engine maps. The last `tail` octets become visible last. */
static inline void copy_direct(void *to, const void *from, uint32_t length, uint32_t tail)
{
	uint32_t head = length - tail;

	/* Within an lcore (lcore/moving/lent.h) a program's source and destination may overlap. */
	if (head > 0)
		memmove(to, from, head);
	if (tail == 0)
		return;
	/* Release: a program that polls for the tail with acquire also sees the head. */
	queue_release_fence();
	if (tail == 8) /* one store, as ATOMIC WRITE needs */
		memcpy((char *)to + head, (const char *)from + head, 8);
	else
		memmove((char *)to + head, (const char *)from + head, tail);
}

/* The number of copies, from the first on, that are of the same memory. */
static inline uint32_t peer_copy_run(const struct peer_copy *copy, uint32_t n)
{
	uint32_t run = 1;

	while (run < n && copy[run].memory == copy[0].memory)
		run++;
	return run;
}

#endif
