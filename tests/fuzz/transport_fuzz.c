/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libFuzzer target for the transport as a whole: two queue pairs, and events in any order that the
 * caller's contract allows. Requests of any content, packets that are delivered late, twice, never,
 * changed or made up, copies that settle late or fail, deadlines, modify, failures from outside. The
 * oracle is the core's own assertions, the contract that tests/sim/node.c checks, and here: no octet
 * outside the registered memory changes, no request completes twice or out of order, whoever has
 * nothing to say comes to rest, and a queue pair in ERR gives everything back.
 */
#include "base/bits.h"
#include "input.h"
#include "sim/node.h"
#include "wire/decode.h"
#include "wire/encode.h"
#include "wire/opcode.h"

#define MEMORY	    8192u
#define REGISTERED  2048u /* from here on, */
#define LENGTH	    4096u /* so many octets */
#define GUARD	    0xa5
#define IOVA	    UINT64_C(0x700000000000)
#define PD	    7u
#define SGE	    2u
#define INLINE_MAX  32u
#define WINDOW	    8u
#define WIRE	    32u /* packets under way */
#define PAYLOAD_MAX 1024u
#define STEPS	    4096u
#define REST	    4000u /* packets after which a burst must be over */
#define ACCESS_ALL                                                                              \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
	 ACCESS_FLUSH_GLOBAL)

struct carried {
	struct packet p;
	bool to_b;
	uint8_t octets[GRH_LENGTH + NODE_PAYLOAD];
};

struct side {
	struct node node;
	struct node_qp *qp;
	uint32_t key, window;
	uint64_t posted, completed; /* send requests; wr_id counts from 0 */
	uint64_t received, returned; /* receive requests */
};

static const uint32_t types[][2] = { { QP_TYPE_RC, QP_TYPE_RC },
				     { QP_TYPE_UC, QP_TYPE_UC },
				     { QP_TYPE_UD, QP_TYPE_UD },
				     { QP_TYPE_XRC_SEND, QP_TYPE_XRC_RECV },
				     { QP_TYPE_RC, QP_TYPE_RC } };

static struct side all[ARRAY_SIZE(types)][2]; /* made once: a key table takes long */
static struct side *side; /* those of this input */
static struct carried wire[WIRE];
static uint32_t on_wire;
static nanotime now;
static uint8_t how; /* bits of the first octets: delayed copies, PSN at the wrap ... */

static uint32_t type_of(const struct side *s)
{
	return s->qp->caps.type;
}

static struct gid gid_of(const struct side *s)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = s == side ? 1 : 2 } };
}

static uint32_t qpn_of(const struct side *s)
{
	return s == side ? 0x11 : 0x12;
}

static struct side *other(const struct side *s)
{
	return &side[s == side];
}

/* ---- beginning ---- */

static void connect_side(struct side *s, uint8_t tune)
{
	bool rc = !qp_type_unreliable(type_of(s)), ud = type_of(s) == QP_TYPE_UD;
	uint32_t psn = how & 4 ? 0xfffffe : 0x100;
	struct qp_attributes a = { .port_num = 1,
				   .access_flags = ACCESS_ALL,
				   .path_mtu = 1,
				   .rq_psn = psn,
				   .sq_psn = psn,
				   .dest_qpn = qpn_of(other(s)),
				   .max_rd_atomic = (uint8_t)(1 + tune % 3),
				   .max_dest_rd_atomic = (uint8_t)(1 + tune / 4 % 3),
				   .min_rnr_timer = 12,
				   .timeout = tune & 0x40 ? 0 : 10,
				   .retry_cnt = tune & 0x20 ? 1 : 7,
				   .rnr_retry = tune & 0x10 ? 2 : 7,
				   .qkey = 5 };
	uint32_t init = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT;
	uint32_t rtr = QP_ATTR_STATE, rts = QP_ATTR_STATE | QP_ATTR_SQ_PSN;

	a.path = (struct qp_path){ .dgid = gid_of(other(s)),
				   .sgid = gid_of(s),
				   .port_num = 1,
				   .is_global = 1,
				   .hop_limit = 64 };
	init |= ud ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS;
	if (!ud)
		rtr |= QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;
	if (rc && type_of(s) != QP_TYPE_XRC_SEND)
		rtr |= QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	if (rc)
		rts |= QP_ATTR_TIMEOUT;
	if (rc && type_of(s) != QP_TYPE_XRC_RECV)
		rts |= QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_RD_ATOMIC;
	a.state = QP_STATE_INIT;
	demand(node_modify(s->qp, &a, init, now) == 0);
	a.state = QP_STATE_RTR;
	demand(node_modify(s->qp, &a, rtr, now) == 0);
	a.state = QP_STATE_RTS;
	demand(node_modify(s->qp, &a, rts, now) == 0);
}

static void make_side(struct side *s, uint32_t type)
{
	const struct qp_caps caps = { .type = type,
				      .qpn = qpn_of(s),
				      .pd = PD,
				      .handle = 1,
				      .max_send_wr = WINDOW,
				      .max_send_sge = SGE,
				      .max_recv_sge = SGE,
				      .max_inline = INLINE_MAX,
				      .max_rd_atomic = 4,
				      .port_mtu = 2,
				      .max_frame = 1518,
				      .has_srq = type == QP_TYPE_XRC_RECV };

	node_init(&s->node, s == side ? "a" : "b", MEMORY, 1, 1);
	s->node.hold_operations = true;
	if (type == QP_TYPE_XRC_RECV)
		node_srq_add(&s->node, 3, PD, SGE);
	s->qp = node_qp_add(&s->node, &caps, true);
}

/* As it was made. No key is ever freed, so the table hands out the same ones again. */
static void open_side(struct side *s)
{
	struct node_qp *q = s->qp;

	s->posted = s->completed = s->received = s->returned = 0;
	memset(s->node.memory, GUARD, MEMORY);
	memset(s->node.keys.slot, 0, NODE_REGIONS * sizeof(*s->node.keys.slot));
	s->node.keys.first_free = 0;
	s->node.delay_copies = how & 1;
	prng_seed(&s->node.prng, 1);
	s->key = node_register(&s->node, REGISTERED, LENGTH, IOVA, PD, ACCESS_ALL, how & 2 ? 3 : 1);
	s->window = node_window(&s->node, s->key, 1024, 1024, ACCESS_REMOTE_WRITE, qpn_of(s));
	s->node.srq[0].receives.head = s->node.srq[0].receives.tail = 0;
	q->caps.sq_sig_all = how & 8;
	q->core = qp_init(q->core, &q->caps);
	q->receives.head = q->receives.tail = 0;
	q->completion_head = q->completion_tail = q->copy_head = q->copy_tail = 0;
	q->next_ticket = 1;
	q->deadline = TIME_NEVER;
	q->not_before = 0;
	q->events = 0;
	q->flushing = false;
}

static void close_side(struct side *s)
{
	while (s->node.regions > 0)
		free(s->node.region[--s->node.regions]);
	free(s->qp->tickets);
	s->qp->tickets = NULL;
}

static void open_sides(uint8_t type)
{
	side = all[type];
	for (uint32_t i = 0; i < 2; i++) {
		if (side[i].qp == NULL)
			make_side(&side[i], types[type][i]);
		open_side(&side[i]);
	}
}

/* ---- what comes out ---- */

static void take(struct side *s)
{
	struct node_completion c;

	while (node_take(s->qp, &c)) {
		uint64_t *next = c.from_receive ? &s->returned : &s->completed;
		uint64_t end = c.from_receive ? s->received : s->posted;

		if (c.c.from_srq == COMPLETION_OWN)
			continue;
		demand(c.c.wr_id >= *next && c.c.wr_id < end); /* in order, once, and posted */
		*next = c.c.wr_id + 1;
	}
	node_events_take(s->qp);
	demand(s->node.fault[0] == '\0' || (fprintf(stderr, "%s\n", s->node.fault), false));
}

/* A packet as the other side's decoder would make it; false: it would refuse it. */
static bool travel(const struct side *from, struct packet *p, const uint8_t *payload,
		   uint32_t length, struct carried *c)
{
	static uint8_t frame[PACKET_HEADER_MAX + NODE_PAYLOAD + 8];
	const struct address_vector av = { .src_gid = gid_of(from),
					   .dst_gid = gid_of(other(from)),
					   .hop_limit = 64 };
	const struct decode_options options = { .check_icrc = false };
	struct flow flow;
	size_t n;

	if (!opcode_defined(p->opcode))
		return false;
	flow_init(&flow, &av);
	p->payload_length = length;
	n = packet_encode(frame, &flow, p, 1);
	if (length > 0)
		memcpy(frame + n, payload, length);
	n = packet_seal_unsummed(frame, n, length);
	if (packet_decode(&c->p, frame, n, &options) != REASON_NONE)
		return false;
	demand(c->p.payload_length == length);
	memset(c->octets, 0, GRH_LENGTH);
	if (length > 0)
		memcpy(c->octets + GRH_LENGTH, c->p.payload, length);
	c->p.payload = c->octets + GRH_LENGTH;
	c->p.sender = how & 0x10 ? qpn_of(from) : 0;
	c->to_b = from == side;
	return true;
}

static struct carried *wire_slot(void)
{
	if (on_wire == WIRE) { /* the oldest is lost */
		memmove(&wire[0], &wire[1], sizeof(wire[0]) * (WIRE - 1));
		on_wire--;
	}
	return &wire[on_wire];
}

enum fate {
	LEAVES,
	UNSENT,
	NOT_GATHERED,
	REFUSED
};

static void report(struct side *s, const struct packet *p, enum fate fate)
{
	if (fate == UNSENT)
		node_unsent(s->qp, p, now);
	else if (!qp_type_unreliable(type_of(s)) && fate != NOT_GATHERED)
		qp_left(s->qp->core, p, now);
	else if (fate == NOT_GATHERED)
		node_gather_failed(s->qp, p, now);
	else if (fate == REFUSED) {
		qp_refused(s->qp->core, p, STATUS_LOC_QP_OP_ERR, REASON_QP_STATE);
		node_collect(s->qp, now);
	} else
		node_sent(s->qp, p, now);
}

/* False: there was nothing to send. */
static bool send_one(struct side *s, enum fate fate)
{
	static uint8_t payload[NODE_PAYLOAD];
	struct packet p = { .opcode = 0 };

	if (!node_next(s->qp, now, &p, payload))
		return false;
	demand(p.payload_length <= 512 && "the port's MTU");
	report(s, &p, fate);
	if (fate == LEAVES && travel(s, &p, p.payload, p.payload_length, wire_slot()))
		on_wire++;
	return true;
}

static void deliver(uint32_t i, bool keep)
{
	struct carried *c = &wire[i];
	struct side *to = &side[c->to_b];

	if (qp_check_origin(to->qp->core, &c->p) == REASON_NONE || how & 0x20)
		node_received(to->qp, &c->p, now);
	if (keep)
		return;
	memmove(c, c + 1, sizeof(*c) * (on_wire - i - 1));
	on_wire--;
}

/* ---- what goes in ---- */

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

/* Made up, near to what is expected. */
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
	s->completed = s->posted; /* nothing of it completes any more (IBTA 10.3.1) */
	if (s->node.srqs == 0)
		s->returned = s->received;
	if (what & 0x10)
		connect_side(s, what);
}

static void operate(struct side *s, bool well)
{
	const struct key_operation *o = qp_operation(s->qp->core);

	if (o == NULL)
		return;
	if (!o->bind)
		well = well && key_find(&s->node.keys, o->key) != NULL;
	if (o->bind) { /* nobody uses the new key: what a bind does is tested elsewhere */
		qp_operation_done(s->qp->core, well ? STATUS_SUCCESS : STATUS_MW_BIND_ERR,
				  well ? REASON_NONE : REASON_KEY_ACCESS);
		node_collect(s->qp, now);
	} else {
		node_operate(s->qp, well ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR, now);
	}
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

/* ---- the end ---- */

static void expect_all_back(struct side *s)
{
	const struct qp_attributes a = { .state = QP_STATE_ERR };

	if (qp_state(s->qp->core) == QP_STATE_RESET)
		return;
	demand(node_modify(s->qp, &a, QP_ATTR_STATE, now) == 0);
	node_settle(s->qp, TIME_NEVER, now);
	operate(s, false);
	node_collect(s->qp, now);
	take(s);
	demand(qp_retired(s->qp->core) == qp_taken(s->qp->core));
	if (s->node.srqs == 0)
		demand(s->returned == s->received);
}

static void expect_guards(const struct side *s)
{
	static uint8_t guard[MEMORY];

	memset(guard, GUARD, sizeof(guard));
	demand(memcmp(s->node.memory, guard, REGISTERED) == 0);
	demand(memcmp(s->node.memory + REGISTERED + LENGTH, guard, MEMORY - REGISTERED - LENGTH) ==
	       0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	uint8_t type = input_8(&in) % ARRAY_SIZE(types), tune;
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
