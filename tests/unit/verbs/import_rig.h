/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Import between processes. The test conducts: two processes of its own, an exporter and an
 * importer, do what they are asked to and answer. Memory is shared with the conductor, who so sees
 * what the engine did to it; but each of the two has only its own area there and something else
 * of the same address in the place of the other's, which is found if a copy goes to the wrong one.
 *
 * Runs with an engine at $UROCE_SOCKET. With $EXPORTER_UID or $IMPORTER_UID (and as root) that
 * process is another user's: then the engine's copies of its memory are made by a thread.
 */
#ifndef TESTS_VERBS_IMPORT_RIG_H
#define TESTS_VERBS_IMPORT_RIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "client/message.h"
#include "endpoint.h"

#define AREA 8192u /* too small to be promoted: the engine copies from process to process */
#define HALF (AREA / 2)
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

enum request {
	OPEN, /* a context with a PD and a region of one's own area; answers with its token */
	IMPORT, /* the context of the token that comes along */
	IMPORT_PD,
	IMPORT_MR,
	REGISTER, /* one's own area, in the current PD */
	CONNECT, /* two queue pairs in the current PD, to each other */
	POST,
	BLOCK, /* registers memory, reading which waits for ever */
	STORM, /* POST again and again, until one fails */
	DEREGISTER,
	UNIMPORT_MR,
	UNIMPORT_OWN, /* the region that was registered: left to others */
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

/* A message, maybe with a descriptor (-1: none). */
bool send_with(int link, const void *octets, size_t n, int fd);
bool receive_with(int link, void *octets, size_t n, int *fd);
/* Another user, if this variable names one. */
void become(const char *variable);
/* One of the two processes, to its end. */
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
/* The answer's error; a descriptor that came with it is *got's, or closed. */
int request(struct process *p, const struct ask *q, int fd, struct answer *a, int *got);
int tell(struct process *p, enum request what, uint32_t handle, uint64_t value);
void start_both(void);
void end_both(void);
void import_begin(void);
/* Nothing is left of anybody. */
void import_end(void);
/* The importer has the exporter's context, PD and region. */
struct answer import_all(void);
/* What becomes of a WRITE of the first half of one area, `from`, to the second of another. */
int write_status(struct process *p, uint8_t *from, uint32_t lkey, uint8_t *to, uint32_t rkey);
void expect_filled(const uint8_t *octets, size_t n, int with);
uint8_t *exporters(void);
uint8_t *importers(void);
struct answer register_importers(void);

#endif
