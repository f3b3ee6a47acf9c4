/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Porters are processes that receive the descriptors that clients pass. Closing a client's
 * descriptor may block for ever, against any signal (FUSE), so the engine must not hold one. A
 * porter takes one message off a client's socket. It passes on only harmless descriptors: memory
 * files that are sealed against shrinking, and /proc/PID/mem. It only describes all other
 * descriptors, and keeps them until it ends.
 *
 *	engine --- "one more" ---> the porters' parent --- fork ---> porter
 *	engine --- the client's socket -----------------------------> porter
 *	engine <-- struct porter_report, harmless descriptors ------- porter
 *
 * The parent never has a descriptor of a client. It ends with the engine, and so do the porters
 * unless they are blocked. They map nothing that is shared with the engine.
 */
#ifndef CLIENT_MEMORY_PORTER_H
#define CLIENT_MEMORY_PORTER_H

#include <stdint.h>

#include "config/limits.h"

enum porter_order {
	PORTER_CARRY = 1, /* take one message off the socket and report */
	PORTER_DROP = 2, /* keep the descriptors that the engine sent until it closes the channel */
	/* as PORTER_CARRY, and find the memory of the program that sent the message */
	PORTER_GREET = 3,
};

/* The engine's first message to a porter; the client's socket comes with it. */
struct porter_task {
	uint32_t order; /* enum porter_order */
	int32_t pid; /* PORTER_GREET: the process that connected; 0: not known */
	uint32_t proof; /* PORTER_GREET: offset of the proof in the message */
	uint32_t proof_at; /* PORTER_GREET: offset of the proof's address in the program */
};

/* The parent's answer; the porter's pidfd comes with it. */
struct porter_made {
	int32_t error;
};

/*
 * A porter's report. Porters also read programs' memory, because its pages may be of files that
 * block.
 */
struct porter_report {
	int32_t got; /* octets of the message; 0: end of file; negative: an errno */
	uint32_t count; /* descriptors that came with the message */
	uint32_t passed; /* bit i: descriptor i comes with the report; they keep their order */
	uint32_t lost; /* 1: there were too many descriptors, or one could not be passed on */
	uint32_t described; /* 1: `device` and `inode` belong to the only descriptor */
	uint32_t greeted; /* PORTER_GREET, 1: the four members below are valid */
	/* 0: /proc/PID/mem is the last descriptor; else an errno of peer_memory_find */
	int32_t found;
	uint32_t proven; /* 1: the only descriptor of the message is of the program's own memory */
	uint32_t foreign; /* 1: that descriptor is known not to be */
	uint32_t by_pid; /* 1: process_vm_readv may be used */
	uint64_t device, inode;
	uint8_t octets[LIMIT_COMMAND_BYTES];
};

/*
 * Starts the porters' parent. Returns our end of a SOCK_SEQPACKET pair, non-blocking, which the
 * caller closes; -1 with errno. Control thread.
 */
int porter_start(void);

/*
 * Sends octets and one descriptor (-1: none), which the caller keeps. Never waits. 0 or an errno.
 */
int porter_send(int channel, const void *octets, uint32_t length, int fd);

#endif
