/* SPDX-License-Identifier: BSD-3-Clause */
/* One command of a program, from message to reply (command.c). */
#ifndef CONTROL_CALL_H
#define CONTROL_CALL_H

#include "base/time.h"
#include "control/objects.h"
#include "protocol/carrier.h"

struct porter;

struct call {
	struct engine *engine;
	struct client *client; /* NULL: before HELLO */
	struct connection *connection; /* NULL: embedded */
	const struct command_request *request;
	size_t length; /* octets of the request, at least the size of its command's struct */
	struct carrier_descriptors in; /* the engine's; a command that keeps one writes -1 */
	bool in_lost; /* ... of which some were lost */
	struct {
		bool known;
		dev_t device;
		ino_t inode;
	} file; /* of the only descriptor, if in.fd[0] is -1 */
	struct {
		bool sought; /* HELLO: a porter has looked for the program's memory */
		int error; /* 0, or why not (peer_memory_find) */
		int fd; /* the engine's; -1: none */
		bool proven, foreign, by_pid; /* struct porter_report */
	} memory;
	struct porter *porter; /* brought the message; NULL: the message has no descriptors */
	struct carrier_descriptors out; /* closed after they were sent, unless in out_borrowed */
	uint32_t out_borrowed; /* bits: descriptors that stay the engine's */
	union {
		struct command_reply reply;
		uint8_t reply_octets[LIMIT_COMMAND_BYTES];
	} __attribute__((aligned(8)));
	size_t reply_length;
	int (*finish)(struct call *call); /* not NULL: the call waits for copies (settle.h), ... */
	bool leaving; /* ... or for posted work to leave, ... */
	struct {
		nanotime until;
		uint32_t turns; /* of an lcore, that are left */
		bool waits; /* another thread has to send */
		uint32_t serial; /* DESTROY_AH: the work that it waits for */
	} leave;
	bool in_slices; /* ... or it is done in slices, before or after (ending.c) */
	void (*abandon)(struct call *call);
	void *data; /* the command's own */
	struct settling settling;
};

/* Returns `error` and puts the formatted sentence into the reply. */
int call_fail(struct call *call, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Charges n more of r to the program. 0, or ENOMEM with a sentence in the reply. */
int call_take(struct call *call, enum resource r, uint64_t n);
/*
 * Allocates in the program's arena, and charges the program for all of it: programs can make an
 * engine touch any page of a queue, and the kernel charges such a page to the engine. 0, or ENOMEM
 * with a sentence in the reply, and then the offset is 0.
 */
int queues_take(struct call *call, size_t octets, uint64_t *offset);
/* handle_reserve() failed: returns ENOMEM with a sentence in the reply. */
int call_no_handle(struct call *call, enum object_kind kind);

/*
 * Executes a message of arbitrary content. The caller sends call->reply and call->out if
 * call->finish is not set. Otherwise the call waits for copies or is done in slices, and
 * command_finish makes the reply later. control_lock is held.
 */
void command_execute(struct call *call);
void command_finish(struct call *call);
/* Tries a call that is `leaving` once more. True: the reply is made; false: it waits on. */
bool command_try(struct call *call);
void call_close_descriptors(struct call *call);
/* The reply to a message that is not executed. */
void command_refuse(struct call *call, int error, const char *why);

#endif
