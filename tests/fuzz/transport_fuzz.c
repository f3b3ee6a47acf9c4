/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the transport as a whole: two queue pairs, and events in any order that the
 * caller's contract allows. Requests of any content, packets that are delivered late, twice, never,
 * changed or made up, copies that settle late or fail, deadlines, modify, failures from outside. The
 * oracle is the core's own assertions, the contract that tests/sim/node.c checks, and here: no octet
 * outside the registered memory changes, no request completes twice or out of order, whoever has
 * nothing to say comes to rest, and a queue pair in ERR gives everything back.
 */
#include "transport_sides.h"

#define PAYLOAD_MAX 1024u
#define STEPS	    4096u
#define REST	    4000u /* packets after which a burst must be over */

static struct work_sge element(struct input *in, const struct side *s)
{
	uint8_t what = input_8(in);
	struct work_sge e = { .addr = IOVA + input_16(in) % LENGTH,
			      .length = input_size(in, 700),
			      .lkey = what & 0x80 ? s->window : s->key };

	if ((what & 0x7f) == 0x7f)
		e.lkey = input_32(in);
	return e;
}

static void post(struct side *s, struct input *in)
{
	uint8_t what = input_8(in), tail[INLINE_MAX] = { 0 };
	struct send_work w = { .wr_id = s->posted,
			       .opcode = what & 15,
			       .flags = input_8(in),
			       .num_sge = what >> 4 & 1,
			       .imm = other(s)->window,
			       .rkey = what & 0x20 ? other(s)->window : other(s)->key,
			       .remote_addr = IOVA + input_16(in) % LENGTH };
	struct work_sge e = element(in, s);

	if (type_of(s) == QP_TYPE_XRC_RECV)
		return; /* it has no send queue */
	if (what & 0x40)
		w.remote_addr &= ~UINT64_C(7);
	if (w.opcode <= WORK_ATOMIC_FETCH_AND_ADD && w.opcode >= WORK_ATOMIC_CMP_AND_SWP)
		w.compare_add = input_8(in), w.swap = input_8(in), e.length = 8;
	else if (type_of(s) == QP_TYPE_UD)
		w.ah = 1, w.remote_qpn = qpn_of(other(s)), w.remote_qkey = 5;
	else if (w.opcode == WORK_FLUSH)
		w.flush_length = e.length, w.flush_type = input_8(in), w.flush_level = input_8(in);
	send_work_set_srqn(&w, what & 0x80 ? 4 : 3);
	memcpy(tail, &e, sizeof(e));
	if (w.flags & WORK_INLINE) {
		w.num_sge = 0;
		w.inline_length = (uint16_t)(e.length % (INLINE_MAX + 1));
	}
	if (node_post_send(s->qp, &w, tail, now))
		s->posted++;
}

static void post_receive(struct side *s, struct input *in)
{
	uint32_t n = input_8(in) % (SGE + 1);
	struct work_sge e[SGE];

	if (type_of(s) == QP_TYPE_XRC_SEND)
		return; /* it has no receive queue */
	for (uint32_t i = 0; i < n; i++)
		e[i] = element(in, s);
	if (s->node.srqs > 0)
		s->received += node_srq_post(&s->node.srq[0], s->received, e, n);
	else
		s->received += node_post_receive(s->qp, s->received, e, n);
}

/* One field of a packet under way becomes another one. */
static void change(struct packet *p, struct input *in)
{
	uint8_t what = input_8(in), delta = input_8(in);

	switch (what % 12) {
	case 0:
		p->psn = (p->psn + (uint32_t)(int8_t)delta) & 0xffffff;
		break;
	case 1:
		p->psn = (p->psn + 0x800000 + delta) & 0xffffff;
		break;
	case 2:
		p->opcode ^= delta & 31;
		break;
	case 3:
		p->syndrome = delta;
		break;
	case 4:
		p->msn = (p->msn + (uint32_t)(int8_t)delta) & 0xffffff;
		break;
	case 5:
		p->va += (uint64_t)(int8_t)delta;
		break;
	case 6:
		p->dma_length = input_32(in);
		break;
	case 7:
		p->rkey ^= delta;
		break;
	case 8:
		p->ack_req = delta & 1, p->solicited = delta & 2, p->becn = delta & 4;
		break;
	case 9:
		p->invalidate_rkey ^= delta, p->srqn ^= delta, p->feth ^= delta;
		break;
	case 10:
		p->payload_length = delta <= p->payload_length ? delta : p->payload_length;
		break;
	default:
		p->qkey ^= delta, p->dest_qpn ^= delta & 1;
	}
}

static void change_one(struct input *in)
{
	struct carried *c = &wire[input_8(in) % on_wire];
	struct side *from = &side[!c->to_b];
	static uint8_t payload[NODE_PAYLOAD];
	struct packet p = c->p;
	struct carried changed;

	memcpy(payload, p.payload, p.payload_length);
	change(&p, in);
	/* An opcode with other headers: the rest of them are those of the packet before. */
	if (travel(from, &p, payload, p.payload_length, &changed)) {
		changed.p.payload = c->octets + GRH_LENGTH;
		memcpy(c->octets, changed.octets, GRH_LENGTH + changed.p.payload_length);
		c->p = changed.p;
	}
}

/* Made up, but close to the expected packet. */
static void invent(struct side *from, struct input *in)
{
	static const uint8_t zeros[PAYLOAD_MAX];
	struct side *to = other(from);
	static const uint8_t services[] = { [QP_TYPE_RC] = SERVICE_RC,
					    [QP_TYPE_UC] = SERVICE_UC,
					    [QP_TYPE_UD] = SERVICE_UD,
					    [QP_TYPE_XRC_SEND] = SERVICE_XRC,
					    [QP_TYPE_XRC_RECV] = SERVICE_XRC };
	struct packet p = { .opcode = OPCODE(services[type_of(to)], input_8(in) & 31),
			    .pkey = 0xffff,
			    .dest_qpn = qpn_of(to),
			    .psn = ((how & 4 ? 0xfffffe : 0x100) + input_8(in)) & 0xffffff,
			    .ack_req = true,
			    .qkey = 5,
			    .src_qpn = qpn_of(from),
			    .va = IOVA + input_16(in) % LENGTH,
			    .rkey = to->key,
			    .dma_length = input_size(in, 1024),
			    .swap_add = 3,
			    .srqn = 3,
			    .syndrome = input_8(in),
			    .invalidate_rkey = to->window,
			    .feth = 1 };
	uint32_t length = input_size(in, 255) % (PAYLOAD_MAX + 1);

	p.msn = input_8(in);
	if (!opcode_is(p.opcode, OP_PAYLOAD) && length % 4 != 1)
		length = 0;
	if (travel(from, &p, zeros, length, wire_slot()))
		on_wire++;
}

static void modify(struct side *s, struct input *in)
{
	uint8_t what = input_8(in);
	struct qp_attributes a = { .state = what & 7,
				   .cur_state = input_8(in) & 7,
				   .path_mtu = 1 + (what >> 6),
				   .port_num = 1,
				   .retry_cnt = 3,
				   .rnr_retry = 3,
				   .timeout = 9,
				   .max_rd_atomic = 2,
				   .max_dest_rd_atomic = 2,
				   .min_rnr_timer = 5,
				   .access_flags = ACCESS_ALL,
				   .qkey = 5,
				   .en_sqd_async_notify = 1,
				   .rq_psn = 0x100,
				   .sq_psn = 0x100,
				   .dest_qpn = qpn_of(other(s)) };
	uint32_t mask = QP_ATTR_STATE;

	if (what & 0x08)
		mask |= input_32(in) & 0x3ffffff;
	a.path = (struct qp_path){
		.dgid = gid_of(other(s)), .sgid = gid_of(s), .port_num = 1, .is_global = 1
	};
	if (node_modify(s->qp, &a, mask, now) != 0 || a.state != QP_STATE_RESET)
		return;
	s->completed = s->posted; /* none of it completes any more (IBTA 10.3.1) */
	if (s->node.srqs == 0)
		s->returned = s->received;
	if (what & 0x10)
		connect_side(s, what);
}

static void settle_one(struct side *s, bool ok)
{
	if (s->qp->copy_head != s->qp->copy_tail)
		node_settle_one(s->qp, ok, now);
}

/* Both sides until nothing moves at this instant. */
static void exchange(void)
{
	uint32_t moved = 0;
	bool any;

	do {
		any = false;
		for (uint32_t i = 0; i < 2; i++) {
			node_settle(side[i].qp, TIME_NEVER, now);
			operate(&side[i], true);
			any |= send_one(&side[i], LEAVES);
		}
		while (on_wire > 0) {
			deliver(0, false);
			any = true;
			take(&side[0]);
			take(&side[1]);
		}
		demand(++moved < REST);
	} while (any);
}

static void wait_for_deadline(uint8_t tune)
{
	nanotime next = time_earlier(side[0].qp->deadline, side[1].qp->deadline);

	if (tune & 1 && next != TIME_NEVER && next > now)
		now = next;
	else
		now += (nanotime)1 << tune % 40;
	node_expire(side[0].qp, now);
	node_expire(side[1].qp, now);
}

static void step(struct input *in)
{
	uint8_t what = input_8(in), more = what >> 4;
	struct side *s = &side[more & 1];

	switch (what & 15) {
	case 0:
	case 1:
		post(s, in);
		break;
	case 2:
		post_receive(s, in);
		break;
	case 3:
	case 4:
		send_one(s, more < 12 ? LEAVES : more / 2 - 5);
		break;
	case 5:
	case 6:
		if (on_wire > 0)
			deliver(input_8(in) % on_wire, more & 8);
		break;
	case 7:
		if (on_wire > 0)
			change_one(in);
		break;
	case 8:
		invent(s, in);
		break;
	case 9:
		settle_one(s, more < 12);
		break;
	case 10:
		wait_for_deadline(input_8(in));
		break;
	case 11:
		modify(s, in);
		break;
	case 12:
		operate(s, more & 2);
		break;
	case 13:
		if (more == 15)
			node_fail(s->qp, REASON_CQ_OVERRUN, now);
		else if (more == 14)
			key_withdraw(&s->node.keys, s->key);
		else
			on_wire -= on_wire > 0; /* lost */
		break;
	default:
		exchange();
	}
	take(&side[0]);
	take(&side[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t type = input_8(&in) % TYPES, tune;
	uint32_t steps = 0;

	how = input_8(&in);
	tune = input_8(&in);
	now = TIME_S;
	on_wire = 0;
	open_sides(type);
	connect_side(&side[0], tune);
	connect_side(&side[1], tune);
	while (in.left > 0 && steps++ < STEPS)
		step(&in);
	for (uint32_t i = 0; i < 2; i++) {
		expect_all_back(&side[i]);
		expect_guards(&side[i]);
		close_side(&side[i]);
	}
	return 0;
}
