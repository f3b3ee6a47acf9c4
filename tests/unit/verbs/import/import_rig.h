/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Import between processes. The test is the conductor. Its two processes, an exporter and an
 * importer, do what it asks and answer. Their memory is shared with the conductor, so that it sees
 * what the engine did there. Each of the two has only its own area; at the address of the other's
 * it has different memory, which shows a copy to the wrong process.
 *
 * Runs with an engine at $UROCE_SOCKET. With $EXPORTER_UID or $IMPORTER_UID (and as root) that
 * process runs as another user: then a mover copies its memory.
 */
#ifndef TESTS_VERBS_IMPORT_RIG_H
#define TESTS_VERBS_IMPORT_RIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/message.h"
#include "rig/endpoint.h"

#define AREA 8192u /* too small to be promoted: the engine copies from process to process */
#define HALF (AREA / 2)
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum request {
	OPEN, /* open a context with a PD and a region of the own area; answer with its token */
	IMPORT, /* import the context of the token that comes with it */
	IMPORT_PD,
	IMPORT_MR,
	REGISTER, /* register the own area in the current PD */
	CONNECT, /* two queue pairs in the current PD, to each other */
	POST,
	BLOCK, /* register memory whose reading blocks for ever */
	STORM, /* POST again and again until one fails */
	DEREGISTER,
	UNIMPORT_MR,
	UNIMPORT_OWN, /* unimport the registered region, which leaves it to others */
	DEALLOC_PD,
	UNIMPORT_PD,
	ALLOC_DM,
	IMPORT_DM,
	WRITE_DM,
	READ_DM,
	FREE_DM,
	REGISTER_DM,
	CLOSE,
};

struct ask {
	enum request what;
	uint32_t handle;
	uint64_t value;
	/* POST */
	enum ibv_wr_opcode opcode;
	int num_sge;
	struct ibv_sge sge[2];
	uint64_t remote;
	uint32_t rkey;
};

struct answer {
	int error;
	int status; /* of the completion */
	uint32_t handle, handle_2;
	uint32_t lkey, rkey;
	uint64_t value;
};

/* ---- one of the two processes: import_player.c ---- */

/* Sends a message, with a descriptor or none (-1). */
bool send_with(int link, const void *octets, size_t n, int fd);
bool receive_with(int link, void *octets, size_t n, int *fd);
/* Changes to the user that this variable names, if any. */
void become(const char *variable);
/* Runs one of the two processes until its end. */
void play(int link, uint8_t *own, uint8_t *others);

/* ---- the conductor: import_rig.c ---- */

struct process {
	pid_t pid;
	int link;
};

extern struct process exporter, importer;
extern uint8_t *areas; /* the exporter's, then the importer's */
extern struct reply_statistics before;
extern struct answer exported; /* of OPEN */
extern int token; /* that came with it */

/* The engine's. */
void statistics(struct reply_statistics *s);
void kill_process(struct process *p);
struct answer take_answer(struct process *p, enum request what, int *fd);
/* Returns the error in the answer. A descriptor that came with it goes to *got or is closed. */
int request(struct process *p, const struct ask *q, int fd, struct answer *a, int *got);
int tell(struct process *p, enum request what, uint32_t handle, uint64_t value);
void start_both(void);
void end_both(void);
void import_begin(void);
/* Checks that nothing is left of any client. */
void import_end(void);
/* Gives the importer the exporter's context, PD and region. */
struct answer import_all(void);
/* The result of a WRITE of the first half of area `from` to the second half of another. */
int write_status(struct process *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey);
void expect_filled(const uint8_t *octets, size_t n, int with);
uint8_t *exporters(void);
uint8_t *importers(void);
struct answer register_importers(void);

#endif
