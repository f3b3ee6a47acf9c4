/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that clients pass are taken by processes of their own, as they may be of files that hold
 * up whoever closes them, for ever and against any signal (FUSE). A porter takes one message off a
 * client's socket. What it knows to be harmless it passes on: memory files that are sealed against
 * shrinking, and /proc/PID/mem. All others it only describes, and ends with them.
 *
 *	engine --- "one more" ---> the porters' parent --- fork ---> porter
 *	engine --- the client's socket -----------------------------> porter
 *	engine <-- struct porter_report, harmless descriptors ------- porter
 *
 * The parent sees no descriptor of a client. It and the porters end with the engine, or are left alone
 * with what holds them up: they map nothing of the engine's that is shared.
 */
#ifndef CLIENT_MEMORY_PORTER_H
#define CLIENT_MEMORY_PORTER_H

#include <stdint.h>

#include "config/limits.h"

#define PORTER_SECONDS 2 /* a porter that a signal can end does not last longer */

enum porter_order {
	PORTER_CARRY = 1, /* take one message off the socket, and report */
	PORTER_DROP = 2, /* end, when the engine says no more, with all that it sent */
	PORTER_GREET = 3, /* take one, and look for the memory of the program that sent it */
};

/* What a porter gets first, with the socket. */
struct porter_task {
	uint32_t order; /* enum porter_order */
	int32_t pid; /* PORTER_GREET: of the process that connected; 0: not known */
	uint32_t proof; /* ... where the message has its proof, */
	uint32_t proof_at; /* ... and the address of that proof in the program */
};

/* What the parent answers with, and the porter's pidfd. */
struct porter_made {
	int32_t error;
};

/* Looking into a program may take for ever, too: its pages may be of files that hold up. */
struct porter_report {
	int32_t got; /* octets of the message; 0: the end; a negative errno */
	uint32_t count; /* descriptors beside it */
	uint32_t passed; /* bits: those that come with the report, in this order */
	uint32_t lost; /* there were more than could be taken, or one could not be passed on */
	uint32_t described; /* the file of the only descriptor is: */
	uint32_t greeted; /* PORTER_GREET: `found`, `proven` and `by_pid` say what came of it */
	int32_t found; /* 0: /proc/PID/mem comes as the last descriptor; an errno of peer_memory_find */
	uint32_t proven; /* the only descriptor of the message is of the same program's memory */
	uint32_t foreign; /* ... or it is known to be of another's */
	uint32_t by_pid; /* process_vm_readv may be used */
	uint64_t device, inode;
	uint8_t octets[LIMIT_COMMAND_BYTES];
};

/* The porters' parent: our end of a SOCK_SEQPACKET pair, which does not block; -1 with errno. */
int porter_start(void);

/* Sends octets and at most one descriptor (-1: none), without waiting. 0 or an errno. */
int porter_send(int channel, const void *octets, uint32_t length, int fd);

#endif
