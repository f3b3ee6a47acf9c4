/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine in the target's own process, for targets that throw octets at it. Its port gives what
 * rig_frame() was given and takes everything; the target polls its lcore. Its client is a program
 * behind a socket, but for the socket: commands are executed in this thread, as the control thread
 * would. The client's memory is that of another process, which never runs: whatever the engine
 * writes there harms nobody.
 */
#ifndef TESTS_FUZZ_ENGINE_RIG_H
#define TESTS_FUZZ_ENGINE_RIG_H

#include "control/control.h"
#include "input.h"

#define RIG_MEMORY	  UINT64_C(0x10000000) /* the client's memory begins here, */
#define RIG_MEMORY_OCTETS 0x10000u /* and has so many octets */
#define RIG_OBJECTS	  16u /* of one kind that an input may name */

extern struct engine *rig;
extern struct client *rig_client;
/* Handles that commands of this input have made, by kind. */
extern uint32_t rig_made[OBJECT_KINDS][RIG_OBJECTS];
extern uint32_t rig_mades[OBJECT_KINDS];
/* Every frame that the engine sends. */
extern void (*rig_sent)(const uint8_t *frame, uint32_t length);

/* Once in a process. */
void rig_open(void);
/* Around each input; the control thread has its turn between two of them. */
void rig_begin(void);
void rig_end(void);

/*
 * Executes a command; its header is filled in here. Takes the descriptors over. Returns the reply's
 * error; *r may be NULL. The reply stays until the next command.
 */
int rig_command(enum command what, void *request, size_t length, struct carrier_descriptors *in,
		const struct command_reply **r);
/* The same for one that makes an object: its handle is noted in rig_made. */
int rig_make(enum command what, void *request, size_t length, const struct command_reply **r);
/* One with a handle alone. */
int rig_handle(enum command what, uint32_t handle);
/* A command of the input: which, its contents, and handles of the objects that it may be about. */
void rig_random_command(struct input *in);
/* One of the commands from..to of that input. */
void rig_random_command_of(struct input *in, enum command from, enum command to);

/* The port has received it; seen with the next poll. */
void rig_frame(const uint8_t *octets, size_t length);
void rig_poll(void);

/* 10.9.0.1, the engine; 10.9.0.2, a host whose MAC address is known. */
struct gid rig_address(uint8_t host);
extern const struct mac rig_mac, rig_host_mac;

#endif
