/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the commands of the control socket, contents, lengths and descriptors, and
 * for what an lcore makes of the queues that they create: between commands the client writes any
 * word of its arena, rings any handle's bell, and the lcore is polled. Whatever it did, all of its
 * objects end with its contexts.
 */
#include "base/bits.h"
#include "engine_rig.h"
#include "queue/doorbell.h"
#include "queue/ring.h"

#define AREAS 24u

struct area { /* of the arena: a ring or a page */
	uint64_t offset;
	uint32_t octets;
};

static struct area area[AREAS];
static uint32_t areas;
static uint32_t key; /* of the preamble's region */

static void add_area(uint64_t offset, uint32_t octets)
{
	if (offset != 0 && areas < AREAS)
		area[areas++] = (struct area){ offset, octets };
}

static uint32_t *word_at(uint64_t offset)
{
	demand(offset <= LIMIT_ARENA_BYTES - 4);
	return arena_at(rig_client->arena, offset & ~UINT64_C(3));
}

/* The queues of the live objects, as the replies named them. */
static void find_areas(void)
{
	const struct handle_table *t = rig_client->objects->table;

	areas = 0;
	add_area(rig_client->objects->bell_offset[0], 4096);
	for (uint32_t i = 0; i < rig_mades[OBJECT_QP]; i++) {
		const struct engine_qp *q = handle_find(&t[OBJECT_QP], rig_made[OBJECT_QP][i]);
		const uint8_t *base = arena_base(rig_client->arena);

		if (q == NULL)
			continue;
		add_area((uint64_t)((const uint8_t *)q->page - base), sizeof(*q->page));
		if (q->sq.shared != NULL)
			add_area((uint64_t)(q->sq.shared - base), 1024);
		if (q->rq.shared != NULL)
			add_area((uint64_t)(q->rq.shared - base), 1024);
	}
}

static void write_word(struct input *in)
{
	uint8_t which = input_8(in), how = input_8(in);
	uint32_t value = how & 1 ? input_32(in) : input_8(in), at;
	const struct area *a = &area[which % MAX_OF(areas, 1u)];

	if (areas == 0)
		return;
	at = how & 2 ? input_16(in) % a->octets
		     : (how & 4 ? RING_PRODUCER_TAIL : RING_CONSUMER_TAIL);
	*word_at(a->offset + at % a->octets) = value;
}

/* Enters a handle into the bell's ring, whatever is in it. */
static void ring_bell(uint32_t handle)
{
	uint64_t bell = rig_client->objects->bell_offset[0];
	uint32_t tail = *word_at(bell + RING_PRODUCER_TAIL);

	*word_at(bell + RING_SLOTS + (uint64_t)(tail & (DOORBELL_SLOTS - 1)) * DOORBELL_STRIDE) =
		handle;
	*word_at(bell + RING_PRODUCER_TAIL) = tail + 1;
}

static struct engine_qp *some_qp(uint8_t which)
{
	uint32_t n = rig_mades[OBJECT_QP];

	if (n == 0)
		return NULL;
	return handle_find(&rig_client->objects->table[OBJECT_QP], rig_made[OBJECT_QP][which % n]);
}

/* A request that may be good; the other fields are what the input says. */
static void fill_send(struct input *in, uint8_t *slot, uint32_t room)
{
	struct send_work *w = (struct send_work *)(void *)slot;
	struct work_sge e = { RIG_MEMORY + input_16(in), input_size(in, 0x1000), key };

	w->opcode = input_8(in) & 15;
	w->flags = input_8(in);
	w->num_sge = input_8(in) & 3;
	w->inline_length = input_8(in);
	w->rkey = key;
	w->imm = key;
	w->remote_addr = RIG_MEMORY + input_16(in);
	if (w->opcode == WORK_FLUSH)
		w->flush_type = w->flush_length = 1;
	for (uint32_t i = 0; i < 3 && sizeof(*w) + (i + 1) * sizeof(e) <= room; i++)
		send_work_sge(w)[i] = e;
}

static void fill_receive(struct input *in, uint8_t *slot)
{
	struct recv_work *w = (struct recv_work *)(void *)slot;

	w->num_sge = input_8(in) & 1;
	recv_work_sge(w)[0] =
		(struct work_sge){ RIG_MEMORY + input_16(in), input_size(in, 0x1000), key };
}

/* A request into a ring, shown, and the bell rung, mostly for its queue pair. */
static void post(struct input *in)
{
	uint8_t which = input_8(in), how = input_8(in), *slot;
	struct engine_qp *q = some_qp(which);
	struct ring_side *side;

	if (q == NULL)
		return;
	side = how & 1 ? &q->sq : &q->rq;
	if (side->shared != NULL) {
		uint32_t tail = *ring_shared_word(side, RING_PRODUCER_TAIL);

		slot = side->slots + (size_t)(tail & (side->size - 1)) * side->stride;
		if (how & 1)
			fill_send(in, slot, side->stride);
		else
			fill_receive(in, slot);
		if (how & 2)
			input_take(in, slot, MIN_OF(input_8(in), side->stride));
		*ring_shared_word(side, RING_PRODUCER_TAIL) = tail + 1;
	}
	ring_bell(how >= 0xf0 ? input_32(in) : q->handle);
}

/* A queue pair that is connected to itself, as most programs would have one. */
static void connect_to_itself(uint32_t handle, uint32_t qpn)
{
	struct request_modify_qp m = { .qp = handle,
				       .mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT |
					       QP_ATTR_ACCESS_FLAGS,
				       .attributes = { .state = QP_STATE_INIT,
						       .port_num = 1,
						       .access_flags = 15,
						       .path_mtu = 2,
						       .dest_qpn = qpn,
						       .max_rd_atomic = 2,
						       .max_dest_rd_atomic = 2,
						       .min_rnr_timer = 1,
						       .timeout = 10,
						       .retry_cnt = 2,
						       .rnr_retry = 2 } };

	m.attributes.path = (struct qp_path){
		.dgid = rig_address(1), .sgid_index = 1, .is_global = 1, .port_num = 1
	};
	demand(rig_command(COMMAND_MODIFY_QP, &m, sizeof(m), NULL, NULL) == 0);
	m.attributes.state = QP_STATE_RTR;
	m.mask = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
		 QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	demand(rig_command(COMMAND_MODIFY_QP, &m, sizeof(m), NULL, NULL) == 0);
	m.attributes.state = QP_STATE_RTS;
	m.mask = QP_ATTR_STATE | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
		 QP_ATTR_SQ_PSN | QP_ATTR_MAX_RD_ATOMIC;
	demand(rig_command(COMMAND_MODIFY_QP, &m, sizeof(m), NULL, NULL) == 0);
}

/* The objects that most programs make first. */
static void preamble(void)
{
	const struct command_reply *r;
	struct request_empty context;
	struct request_handle pd = { .reserved = 0 };
	struct request_create_cq cq = { .cqe = 8 };
	struct request_reg_mr mr = {
		.access = 15, .address = RIG_MEMORY, .iova = RIG_MEMORY, .length = RIG_MEMORY_OCTETS
	};
	struct request_create_qp qp = { .type = QP_TYPE_RC,
					.max_send_wr = 8,
					.max_recv_wr = 8,
					.max_send_sge = 2,
					.max_recv_sge = 2,
					.max_inline = 32 };

	demand(rig_make(COMMAND_OPEN_CONTEXT, &context, sizeof(context), &r) == 0);
	cq.context = pd.handle = rig_made[OBJECT_CONTEXT][0];
	demand(rig_make(COMMAND_ALLOC_PD, &pd, sizeof(pd), &r) == 0);
	demand(rig_make(COMMAND_CREATE_CQ, &cq, sizeof(cq), &r) == 0);
	mr.pd = qp.pd = rig_made[OBJECT_PD][0];
	demand(rig_make(COMMAND_REG_MR, &mr, sizeof(mr), &r) == 0);
	key = ((const struct reply_reg_mr *)(const void *)r)->lkey;
	qp.send_cq = qp.recv_cq = rig_made[OBJECT_CQ][0];
	demand(rig_make(COMMAND_CREATE_QP, &qp, sizeof(qp), &r) == 0);
	connect_to_itself(rig_made[OBJECT_QP][0],
			  ((const struct reply_create_qp *)(const void *)r)->qpn);
}

static void step(struct input *in)
{
	uint8_t what = input_8(in);

	if (what < 0xa0) {
		rig_random_command(in);
		find_areas();
	} else if (what < 0xc0) {
		write_word(in);
	} else if (what < 0xe0) {
		post(in);
	} else {
		rig_poll();
	}
}

/* The client's rings are as at the beginning, whatever the last input wrote there. */
static void mend_bell(void)
{
	uint64_t bell = rig_client->objects->bell_offset[0];

	*word_at(bell + RING_PRODUCER_TAIL) = rig_client->bell[0].cursor;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	rig_open();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };

	rig_begin();
	mend_bell();
	areas = 0;
	if (input_8(&in) & 1)
		preamble();
	while (in.left > 0)
		step(&in);
	rig_end();
	return 0;
}
