/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine without a control path: one lcore, one embedded client, two pairs of queue pairs (0
 * with 1, 2 with 3) that are connected through the engine's own address. What the control path does
 * is done by hand here, so that the data path is tested (and timed) alone.
 */
#ifndef UNIT_ENGINE_LOOP_RIG_H
#define UNIT_ENGINE_LOOP_RIG_H

#include "lcore/inside.h"

#define RIG_SIDES  4u
#define RIG_BUFFER 65536u

struct rig_side {
	struct engine_qp qp;
	struct engine_cq send_cq;
	struct engine_cq recv_cq;
	uint8_t *buffer;
	uint32_t key;
	uint32_t completions; /* of both CQs, taken by rig_poll */
	struct completion last;
};

struct rig {
	struct engine engine;
	struct client client;
	struct arena *arena;
	struct rig_side side[RIG_SIDES];
};

/*
 * Attributes of the queue pairs, as verbs have them; set before rig_open. 0: no packet is sent
 * again.
 */
extern uint8_t rig_timeout;
extern uint8_t rig_mtu; /* enum ibv_mtu; before rig_open */
/* Requests of a send queue; before rig_open. */
extern uint32_t rig_depth;
/* QP_TYPE_RC, or QP_TYPE_UC; before rig_open. */
extern uint8_t rig_type;
/* Their room for unsettled copies; 0: the most. Before rig_open. */
extern uint16_t rig_tickets;

/* Starts the EAL once a process; then a fresh rig. */
struct rig *rig_open(void);
void rig_close(struct rig *r);
/* Returns how many packet buffers the lcore kept when it ended. */
uint32_t rig_close_counting(struct rig *r);
/* All queue pairs send through this port, and receive what comes from it. */
void rig_use_port(struct rig *r, struct port *port);
/* Posts one request of `length` octets of the side's own buffer; false: the ring is full. */
bool rig_post(struct rig *r, uint32_t side, enum work_opcode opcode, uint32_t length,
	      uint32_t flags);
/* ... from and to so many octets into the two buffers. */
bool rig_post_at(struct rig *r, uint32_t side, enum work_opcode opcode, uint32_t from, uint32_t to,
		 uint32_t length, uint32_t flags);
/* ... a SEND that takes this key of the peer's back, signaled. */
bool rig_post_invalidate(struct rig *r, uint32_t side, uint32_t length, uint32_t key);
bool rig_receive(struct rig *r, uint32_t side);
/* ... into so many octets from there. */
bool rig_receive_at(struct rig *r, uint32_t side, uint32_t at, uint32_t length);
/* This process's own memory as that of a peer; peer_memory_close and free it. */
struct peer_memory *rig_own_memory(void);
/* One poll of the lcore, then all sides' completions are taken. */
void rig_poll(struct rig *r);

#endif
