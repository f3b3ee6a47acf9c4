/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long something took that an engine did for us, less the time in which the threads that had to do it
 * could have run but had no processor. So other work on the machine counts for nothing, and a single
 * look is enough: what is left is the engine's own.
 *
 * A thread that is blocked, or that does something else, is charged in full. Linux counts per
 * thread (/proc/PID/task/TID/schedstat), and what a hypervisor takes from the whole machine.
 */
#ifndef TESTS_VERBS_STARVED_H
#define TESTS_VERBS_STARVED_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct endpoint;

#define STARVED_THREADS 128 /* of the engine */

struct starved {
	int fd[STARVED_THREADS], own, machine; /* own: of the thread that called starved_open */
	int name[STARVED_THREADS]; /* of what may be a control thread; -1: of what is none */
	uint32_t asked; /* threads of the engine that is asked, */
	uint32_t count; /* ... and with those of its peer, which follow */
	double began, read_at, before[STARVED_THREADS], own_before, machine_before;
};

/*
 * The engine of $UROCED_PID, or the one in our own process where that is not set; and what it sends to, if
 * there is a $UROCED_PEER_PID. Each thread opens its own.
 */
void starved_open(struct starved *s);
void starved_close(struct starved *s);

/*
 * Posts the request, which is signaled, and polls for its completion. The seconds that it took; a status
 * of IBV_WC_RESP_TIMEOUT_ERR if none came for WAIT_SECONDS, IBV_WC_GENERAL_ERR if it cannot be posted.
 */
double starved_request(struct starved *s, struct ibv_qp *qp, struct ibv_cq *cq,
		       struct ibv_send_wr *wr, struct ibv_wc *wc);

/*
 * The same for one WRITE of eight octets from the endpoint to itself, which must succeed; the
 * written octets are checked.
 */
double starved_write(struct starved *s, struct endpoint *e, uint64_t value);

/*
 * The same in steps: starved_begin, what the caller posts, and then this for all of its completions. False if
 * they did not come within WAIT_SECONDS.
 */
bool starved_poll(struct starved *s, struct ibv_cq *cq, struct ibv_wc *wc, int n, double *took);

/* Seconds since starved_begin, of a command: the caller has slept until it was answered. */
void starved_begin(struct starved *s);
double starved_command(const struct starved *s);
/* ... of the longer one of two commands. */
double starved_commands(struct starved *s, struct ibv_context *context);

/* ... in which the caller, who waited for nobody, could have run. */
double starved_alone(const struct starved *s);

/* The time that the hypervisor has given to others so far, of all processors together. */
double starved_stolen(const struct starved *s);

/* CLOCK_MONOTONIC, in seconds. */
double starved_now(void);

#endif
