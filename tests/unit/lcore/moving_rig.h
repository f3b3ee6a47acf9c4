/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rig whose copies a mover makes, and a mover that is held up where the test wants it: it sits in a
 * page of a userfaultfd until the descriptor is closed.
 */
#ifndef UNIT_LCORE_MOVING_RIG_H
#define UNIT_LCORE_MOVING_RIG_H

#include "drivers/client_memory/mover.h"
#include "loop_rig.h"

#define PAGE	 4096u
#define READS	 4u /* so many that they go by pid, which waits for the page */
#define PATIENCE (20 * TIME_S)

/* A job that holds up a mover; its batch belongs to an lcore that the rig does not have. */
struct gate {
	int fd;
	void *page;
	uint64_t local[READS];
	struct peer_copy copy[READS];
	struct mover_batch batch;
};

extern struct rig *r;
extern struct client other; /* of the sides 2 and 3 */
extern struct gate gate;

/* The sides 1 and 3 are peer memory. timeout: of the queue pairs, as the verbs have it. */
void moving_rig_open(uint8_t timeout);
void moving_rig_close(void);

/* Writes into that side's memory are made by a mover. */
void make_peer(uint32_t side, struct client *c);
/* A page that blocks its readers; skips the test without the privilege for one. */
void *blocking_page(int *fd);
/* The client's mover comes to the page, and stays there until open_gate. */
void close_gate(struct client *c);
void open_gate(void);

void poll_some(void);
/* Polls until the side has so many completions. */
void wait_for(uint32_t side, uint32_t completions);
/* ... the last of which succeeded. */
void run_until(uint32_t side, uint32_t completions);
/* Packets that found no room. */
uint64_t dropped(void);

#endif
