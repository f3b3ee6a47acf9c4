/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine in the test's own process, with its lcore polled by a thread, and clients of its
 * control socket that send what they please.
 */
#ifndef TESTS_ENGINE_CONTROL_RIG_H
#define TESTS_ENGINE_CONTROL_RIG_H

#include <criterion/criterion.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/message.h"
#include "protocol/command.h"
#include "engine/uroce.h"

#define ENOUGH_MS	   60000 /* only bounds a hang */
#define CONTROL_RIG_MEMORY 8192u

extern struct uroce_engine *engine;
extern char path[64]; /* of its socket */
extern char memory[CONTROL_RIG_MEMORY]; /* what reg_mr registers */

void control_rig_open(void);
/* The engine at `path`, which no thread polls. */
void control_rig_make(void);
void control_rig_close(void);
/* Another one at the same socket. */
struct uroce_engine *make_engine(char *why, size_t size);
/* A new connection with HELLO; its arena and eventfds are closed at once. */
int attach(void);
/* ... but its arena is the caller's to close. */
int attach_keeping(struct reply_hello *r, int *arena);
/* ... as is the eventfd that announces commands in the arena. */
int attach_keeping_all(struct reply_hello *r, int *arena, int *bell);

/* ---- requests: 0 or the reply's errno ---- */

int ask(int fd, enum command what, struct command_request *q, size_t q_size,
	struct command_reply *r, size_t r_size, const struct carrier_descriptors *in,
	struct carrier_descriptors *out);
/* A request that names a handle; *made (may be NULL) is the one in the reply. */
int ask_handle(int fd, enum command what, uint32_t handle, uint32_t *made);
uint32_t open_context(int fd);
int create_cq(int fd, uint32_t context, uint32_t channel, uint32_t cqe, uint32_t *handle);
int create_qp(int fd, struct request_create_qp *q, struct reply_create_qp *r);
int reg_mr(int fd, uint32_t pd, uint32_t access, uint64_t length, uint32_t *handle);

struct objects {
	uint32_t context, pd, mr, channel, cq, qp;
};

/* One of each. */
void make_objects(int fd, struct objects *o);

/* Asks for an RC queue pair that has one request of one element on each side. */
static inline struct request_create_qp small_qp(const struct objects *o)
{
	return (struct request_create_qp){ .type = QP_TYPE_RC,
					   .pd = o->pd,
					   .send_cq = o->cq,
					   .recv_cq = o->cq,
					   .max_send_wr = 1,
					   .max_recv_wr = 1,
					   .max_send_sge = 1,
					   .max_recv_sge = 1 };
}

/* Sends octets with descriptors; returns the error of the reply, or -1: the connection ended. */
int throw_at(int fd, const void *octets, size_t length, const int *fds, uint32_t count,
	     struct command_reply *reply);
size_t request_size(enum command what);

/* ---- what is there ---- */

void statistics(struct reply_statistics *s);
/* ... within ENOUGH_MS. */
void expect_counts(uint32_t clients, uint32_t qps, uint32_t cqs, uint32_t mrs);
int count_descriptors(void);
void expect_descriptors(int wanted);
/* Processor time of the control thread: however long it waited for a processor. */
double seconds_of_control(void);
/* For how long the calling thread could have run, but had no processor. */
double seconds_without_processor(void);
void expect_serving(void);
/*
 * In a process of another user, who may connect: `check` returns 0 on success. If the test does not
 * run as root, it is skipped.
 */
void as_nobody(int (*check)(void));

/* ---- other processes ---- */

/* Makes processes until one has this number. 0: this machine does not let us choose. */
pid_t process_with_number(pid_t (*make)(void), pid_t wanted);
void process_end(pid_t pid);

#endif
