/* SPDX-License-Identifier: BSD-3-Clause */
/* One command of a program, from its message to its reply (command.c). */
#ifndef CONTROL_CALL_H
#define CONTROL_CALL_H

#include "control/objects.h"
#include "protocol/carrier.h"

struct porter;

struct call {
	struct engine *engine;
	struct client *client; /* NULL: before HELLO */
	struct connection *connection; /* NULL: embedded */
	const struct command_request *request;
	size_t length; /* octets of it, at least what its command needs */
	struct carrier_descriptors in; /* ours; what a command keeps it replaces by -1 */
	bool in_lost; /* ... and not all that came */
	struct {
		bool known;
		dev_t device;
		ino_t inode;
	} file; /* of the only descriptor, if that is -1 */
	struct {
		bool sought; /* a porter has looked for the memory of the program that says hello, */
		int error; /* 0, or why not (peer_memory_find) */
		int fd; /* ours; -1: none */
		bool proven, foreign, by_pid; /* struct porter_report */
	} memory;
	struct porter *porter; /* that brought the message; NULL: it came without descriptors */
	struct carrier_descriptors out; /* closed after they were sent, but see out_borrowed */
	uint32_t out_borrowed; /* bits: descriptors that stay ours */
	union {
		struct command_reply reply;
		uint8_t reply_octets[LIMIT_COMMAND_BYTES];
	} __attribute__((aligned(8)));
	size_t reply_length;
	int (*finish)(struct call *call); /* not NULL: it waits for copies, see settle.h, */
	bool in_slices; /* or, before and after that, is done in slices: ending.c */
	void (*abandon)(struct call *call);
	void *data; /* theirs */
	struct settling settling;
};

/* Returns `error` and puts the sentence into the reply. */
int call_fail(struct call *call, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The program takes n more of it. 0, or ENOMEM and the sentence in the reply. */
int call_take(struct call *call, enum resource r, uint64_t n);
/* There was no handle: ENOMEM, and the sentence. */
int call_no_handle(struct call *call, enum object_kind kind);

/*
 * Executes a message of any bytes; call->reply and call->out are to be sent, if call->finish is not set.
 * Then the call waits for copies or is done in slices, and command_finish makes the reply. Lock held.
 */
void command_execute(struct call *call);
void command_finish(struct call *call);
void call_close_descriptors(struct call *call);
/* The reply to what was not executed. */
void command_refuse(struct call *call, int error, const char *why);

#endif
