/* SPDX-License-Identifier: BSD-3-Clause */
/* The two queue pairs of the target transport, and the packets between them. */
#include "transport_sides.h"
#include "wire/encode.h"

#define GUARD  0xa5
#define PD     7u
#define WINDOW 8u

static const uint32_t types[TYPES][2] = { { QP_TYPE_RC, QP_TYPE_RC },
					  { QP_TYPE_UC, QP_TYPE_UC },
					  { QP_TYPE_UD, QP_TYPE_UD },
					  { QP_TYPE_XRC_SEND, QP_TYPE_XRC_RECV },
					  { QP_TYPE_RC, QP_TYPE_RC } };

static struct side all[TYPES][2]; /* made once: a key table takes long */
struct side *side;
struct carried wire[WIRE];
uint32_t on_wire;
nanotime now;
uint8_t how;

uint32_t type_of(const struct side *s)
{
	return s->qp->caps.type;
}

struct gid gid_of(const struct side *s)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = s == side ? 1 : 2 } };
}

uint32_t qpn_of(const struct side *s)
{
	return s == side ? 0x11 : 0x12;
}

struct side *other(const struct side *s)
{
	return &side[s == side];
}

/* ---- beginning ---- */

void connect_side(struct side *s, uint8_t tune)
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
	s->node.keys.used = 0;
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

void close_side(struct side *s)
{
	while (s->node.regions > 0)
		free(s->node.region[--s->node.regions]);
	free(s->qp->tickets);
	s->qp->tickets = NULL;
}

void open_sides(uint8_t type)
{
	side = all[type];
	for (uint32_t i = 0; i < 2; i++) {
		if (side[i].qp == NULL)
			make_side(&side[i], types[type][i]);
		open_side(&side[i]);
	}
}

/* ---- what comes out ---- */

void take(struct side *s)
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

bool travel(const struct side *from, struct packet *p, const uint8_t *payload, uint32_t length,
	    struct carried *c)
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

struct carried *wire_slot(void)
{
	if (on_wire == WIRE) { /* the oldest is lost */
		memmove(&wire[0], &wire[1], sizeof(wire[0]) * (WIRE - 1));
		on_wire--;
	}
	return &wire[on_wire];
}

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

bool send_one(struct side *s, enum fate fate)
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

void deliver(uint32_t i, bool keep)
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

void operate(struct side *s, bool well)
{
	const struct key_operation *o = qp_operation(s->qp->core);

	if (o == NULL)
		return;
	if (!o->bind)
		well = well && key_find(&s->node.keys, o->key) != NULL;
	if (o->bind) { /* no request uses the new key: binds are tested elsewhere */
		qp_operation_done(s->qp->core, well ? STATUS_SUCCESS : STATUS_MW_BIND_ERR,
				  well ? REASON_NONE : REASON_KEY_ACCESS);
		node_collect(s->qp, now);
	} else {
		node_operate(s->qp, well ? STATUS_SUCCESS : STATUS_LOC_PROT_ERR, now);
	}
}

void expect_all_back(struct side *s)
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

void expect_guards(const struct side *s)
{
	static uint8_t guard[MEMORY];

	memset(guard, GUARD, sizeof(guard));
	demand(memcmp(s->node.memory, guard, REGISTERED) == 0);
	demand(memcmp(s->node.memory + REGISTERED + LENGTH, guard, MEMORY - REGISTERED - LENGTH) ==
	       0);
}
