/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/limits.h"
#include "story.h"
#include "transport/qp.h"

static struct side sides[2];
struct side *const a = &sides[0], *const b = &sides[1];
nanotime now;
static struct story_options chosen;
static struct path paths[2];

static struct gid gid_of(const struct side *s)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, 10, 0, 0, s == a ? 1 : 2 } };
}

static uint8_t pattern(const struct side *s, uint32_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 8) * 31 + (s == a ? 1 : 128));
}

static uint32_t value_of(int v, uint32_t otherwise)
{
	return v == 0 ? otherwise : v < 0 ? 0 : (uint32_t)v;
}

struct qp_attributes attributes_of(struct side *s)
{
	uint32_t a_psn = chosen.sq_psn != 0 ? chosen.sq_psn : A_PSN;

	return (struct qp_attributes){
		.path_mtu = chosen.mtu != 0 ? chosen.mtu : 1,
		.rq_psn = s == a ? B_PSN : a_psn,
		.sq_psn = s == a ? a_psn : B_PSN,
		.dest_qpn = s == a ? B_QPN : A_QPN,
		.qkey = QKEY,
		.rate_limit = s == a ? chosen.rate_limit : 0,
		.access_flags =
			(chosen.access != 0 ? chosen.access : ACCESS_ALL) & ~chosen.no_access,
		.max_rd_atomic = (uint8_t)value_of(chosen.max_rd_atomic, 4),
		.max_dest_rd_atomic = (uint8_t)value_of(chosen.max_dest_rd_atomic, 4),
		.min_rnr_timer = (uint8_t)(chosen.min_rnr_timer != 0 ? chosen.min_rnr_timer : 12),
		.port_num = 1,
		.timeout = (uint8_t)(chosen.no_timeout	   ? 0
				     : chosen.timeout != 0 ? chosen.timeout
							   : 10),
		.retry_cnt = (uint8_t)value_of(chosen.retry_cnt, 3),
		.rnr_retry = (uint8_t)value_of(chosen.rnr_retry, 3),
		.path = { .dgid = gid_of(s->peer),
			  .sgid = gid_of(s),
			  .hop_limit = 64,
			  .port_num = 1,
			  .is_global = 1 },
	};
}

int modify(struct side *s, uint32_t state, uint32_t mask, const struct qp_attributes *attributes)
{
	struct qp_attributes with = *attributes;

	with.state = state;
	return node_modify(s->q, &with, mask | QP_ATTR_STATE, now);
}

static uint32_t type_of(const struct side *s)
{
	if (chosen.xrc)
		return s == a ? QP_TYPE_XRC_SEND : QP_TYPE_XRC_RECV;
	return chosen.type != 0 ? chosen.type : QP_TYPE_RC;
}

enum service service_of_story(void)
{
	return chosen.type == QP_TYPE_UC   ? SERVICE_UC
	       : chosen.type == QP_TYPE_UD ? SERVICE_UD
					   : SERVICE_RC;
}

/* The attributes of the transitions to INIT, RTR and RTS. */
struct way {
	uint32_t init, rtr, rts;
};

#define CONNECTED (QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS)
#define ROUTE	  (QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN)

static struct way way_of(const struct side *s)
{
	const uint32_t receiving = QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER;
	const uint32_t sending =
		QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_RD_ATOMIC | QP_ATTR_TIMEOUT;

	switch (type_of(s)) {
	case QP_TYPE_UC:
		return (struct way){ CONNECTED, ROUTE, QP_ATTR_SQ_PSN };
	case QP_TYPE_UD:
		return (struct way){ QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, 0,
				     QP_ATTR_SQ_PSN };
	case QP_TYPE_RAW_PACKET:
		return (struct way){ QP_ATTR_PORT, 0, 0 };
	case QP_TYPE_XRC_SEND:
		return (struct way){ CONNECTED, ROUTE, QP_ATTR_SQ_PSN | sending };
	case QP_TYPE_XRC_RECV:
		return (struct way){ CONNECTED, ROUTE | receiving,
				     QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT };
	default:
		return (struct way){ CONNECTED, ROUTE | receiving, QP_ATTR_SQ_PSN | sending };
	}
}

static void connect_side(struct side *s)
{
	struct qp_attributes with = attributes_of(s);
	struct way to = way_of(s);

	cr_assert_eq(modify(s, QP_STATE_INIT, to.init, &with), 0, "INIT");
	if (chosen.stay_in_init)
		return;
	cr_assert_eq(modify(s, QP_STATE_RTR, to.rtr, &with), 0, "RTR");
	if (s == b && chosen.b_in_rtr)
		return;
	cr_assert_eq(modify(s, QP_STATE_RTS, to.rts, &with), 0, "RTS");
	if (with.rate_limit != 0)
		cr_assert_eq(modify(s, QP_STATE_RTS, QP_ATTR_RATE_LIMIT, &with), 0, "the rate");
}

void connect_again(struct side *s)
{
	struct qp_attributes none = { 0 };

	cr_assert_eq(modify(s, QP_STATE_RESET, 0, &none), 0, "RESET");
	connect_side(s);
}

static void side_begin(struct side *s)
{
	struct qp_caps caps = { .type = type_of(s),
				.qpn = s == a ? A_QPN : B_QPN,
				.pd = PD,
				.handle = s == a ? 1 : 2,
				.max_send_wr = chosen.max_send_wr != 0 ? chosen.max_send_wr : 8,
				.max_send_sge = 4,
				.max_recv_sge = 4,
				.max_inline = 64,
				.max_rd_atomic = 16,
				.port_mtu = chosen.port_mtu != 0 ? chosen.port_mtu : 5,
				.max_frame = FRAME,
				.sq_sig_all = chosen.sq_sig_all,
				.srq = chosen.srq ? 7 : 0,
				.has_srq = chosen.srq || (chosen.xrc && s == b) };

	s->peer = s == a ? b : a;
	node_init(&s->node, s == a ? "a" : "b", MEMORY, 1, s == a ? 1 : 2);
	s->node.delay_copies = chosen.delay_copies;
	s->node.keeps = chosen.recovery;
	s->node.hold_operations = true;
	for (uint32_t i = 0; i < MEMORY; i++)
		s->node.memory[i] = pattern(s, i);
	s->key = node_register(&s->node, 0, MEMORY, BASE, PD, ACCESS_ALL, 1);
	s->q = node_qp_add(&s->node, &caps, chosen.delay_copies);
	if (!chosen.xrc)
		return;
	node_srq_add(&s->node, SRQ, PD, 4);
	node_srq_add(&s->node, SRQ_2, PD_2, 4);
}

/* A path that knows its round trip. */
static void recovery_begin(struct side *s)
{
	struct path *path = &paths[s == b];

	path_init(path);
	path_rtt(path, ROUND_TRIP, now);
	path->rttvar = 0;
	path->looks = LIMIT_PATH_LOOKS;
	qp_give_path(s->q->core, path);
}

void story_begin(const struct story_options *options)
{
	chosen = *options;
	now = ms(1000); /* so that no rule relies on time 0 */
	side_begin(a);
	side_begin(b);
	connect_side(a);
	connect_side(b);
	if (chosen.recovery) {
		recovery_begin(a);
		recovery_begin(b);
	}
	now = 0;
	/* As if they had heard from each other: tests/story/selective_test.c has how they do. */
	a->q->core->selective = b->q->core->selective = chosen.selective;
}

/* Time: the core's clock runs one second ahead of the story's. */
static nanotime clock_of_core(void)
{
	return now + ms(1000);
}

void at(nanotime t)
{
	cr_assert_geq(t, now, "time must not run backwards");
	for (uint32_t turns = 0;; turns++) {
		nanotime d = time_earlier(a->q->deadline, b->q->deadline);

		cr_assert_lt(turns, 10000, "the deadlines do not end");
		if (d > t + ms(1000))
			break;
		if (d > clock_of_core())
			now = d - ms(1000);
		node_expire(a->q, clock_of_core());
		node_expire(b->q, clock_of_core());
	}
	now = t;
}

/* Where to: an address handle for datagrams, a remote address for other services. */
static void address(struct side *s, const struct request *r, struct send_work *w)
{
	uint32_t qkey = r->remote_qkey != 0 ? r->remote_qkey : QKEY;

	if (type_of(s) != QP_TYPE_UD && type_of(s) != QP_TYPE_RAW_PACKET)
		return;
	w->ah = r->ah != 0 ? r->ah : 9;
	w->remote_qpn = r->remote_qpn != 0 ? r->remote_qpn : s->peer->q->caps.qpn;
	w->remote_qkey = qkey;
	w->mss = r->mss;
	w->tso_header = r->header != NULL ? (uint16_t)strlen(r->header) : 0;
}

void story_post(struct side *s, const struct request *r)
{
	bool word = r->opcode == WORK_ATOMIC_CMP_AND_SWP ||
		    r->opcode == WORK_ATOMIC_FETCH_AND_ADD || r->opcode == WORK_ATOMIC_WRITE;
	struct send_work w = {
		.wr_id = r->wr_id,
		.opcode = r->opcode,
		.flags = (uint8_t)(r->flags | (r->unsignaled ? 0 : WORK_SIGNALED)),
		.imm = r->imm,
		.rkey = r->rkey != 0 ? r->rkey : s->peer->key,
		.remote_addr =
			r->remote_addr != 0 ? r->remote_addr : BASE + (r->to != 0 ? r->to : LANDS),
		.compare_add = r->compare_add,
		.swap = r->swap,
	};
	uint32_t srqn = r->srqn != 0 ? r->srqn : SRQ;
	struct {
		struct work_sge sge;
		char header[64];
	} slot;
	struct work_sge sge = { .addr = BASE + r->from,
				.length = word ? 8 : r->length,
				.lkey = r->lkey != 0 ? r->lkey : s->key };
	const void *tail = &slot;

	send_work_set_srqn(&w, srqn);
	if (r->opcode == WORK_FLUSH) {
		w.flush_type = r->flush_type;
		w.flush_level = r->flush_level;
		w.flush_length = r->flush_length;
	} else if (r->opcode == WORK_BIND_MW) {
		w.bind_lkey = s->key;
		w.bind_access = r->bind_access;
		w.bind_length = r->bind_length;
	}
	if (r->flags & WORK_INLINE) {
		w.inline_length = (uint16_t)sge.length;
		tail = octets(s, r->from);
	} else {
		w.num_sge = !r->no_sge && sge.length > 0;
	}
	address(s, r, &w);
	slot.sge = sge;
	if (r->header != NULL)
		strcpy(slot.header, r->header);
	if (r->header != NULL && w.num_sge == 0)
		tail = slot.header;
	cr_assert(node_post_send(s->q, &w, tail, clock_of_core()), "the window is full");
}

void post_receive(struct side *s, uint64_t wr_id, uint32_t length)
{
	struct work_sge sge = { .addr = BASE + LANDS + wr_id * 0x1000,
				.length = length,
				.lkey = s->key };

	cr_assert(node_post_receive(s->q, wr_id, &sge, length > 0), "the receive queue is full");
}

void post_srq_receive(struct side *s, uint32_t srqn, uint64_t wr_id, uint32_t length)
{
	struct work_sge sge = { .addr = BASE + LANDS + wr_id * 0x1000,
				.length = length,
				.lkey = s->key };

	for (uint32_t i = 0; i < s->node.srqs; i++) {
		if (s->node.srq[i].srqn == srqn) {
			cr_assert(node_srq_post(&s->node.srq[i], wr_id, &sge, length > 0));
			return;
		}
	}
	cr_assert_fail("%s has no SRQ %x", s->node.name, srqn);
}

/* Packets. */

static bool next(struct side *s)
{
	bool any = node_next(s->q, clock_of_core(), &s->packet, s->payload);

	cr_assert_eq(s->node.fault[0], '\0', "%s: %s", s->node.name, s->node.fault);
	if (!any)
		return false;
	s->packet.src_gid = gid_of(s);
	s->packet.dst_gid = gid_of(s->peer);
	if (type_of(s) != QP_TYPE_RAW_PACKET)
		cr_assert_eq(s->packet.dest_qpn, s->peer->q->caps.qpn, "%s: destination QP %x",
			     s->node.name, s->packet.dest_qpn);
	if (!chosen.hold_sent)
		node_sent(s->q, &s->packet, clock_of_core());
	return true;
}

const struct packet *expect_packet(struct side *s, const char *name, uint32_t psn)
{
	const struct packet *p = &s->packet;

	cr_assert(next(s), "%s sends nothing, %s %06x was expected", s->node.name, name, psn);
	cr_assert(strcmp(opcode_table[p->opcode].name, name) == 0 && p->psn == (psn & PSN_MASK),
		  "%s sends %s %06x (syndrome %02x), %s %06x was expected", s->node.name,
		  opcode_table[p->opcode].name, p->psn, p->syndrome, name, psn & PSN_MASK);
	return p;
}

void grh_of(struct side *s, uint8_t grh[GRH])
{
	for (uint32_t i = 0; i < GRH; i++)
		grh[i] = (uint8_t)(i * 3 + (s == a ? 1 : 128));
}

/* A datagram arrives with its network header before it. */
static enum reason arrive(struct side *s, const struct packet *packet)
{
	static uint8_t datagram[GRH + NODE_PAYLOAD];
	struct packet with_header = *packet;
	const struct packet *p = &with_header;
	enum reason r;

	with_header.selective = packet->selective && (chosen.selective || chosen.negotiates);
	if (type_of(s) == QP_TYPE_UD) {
		grh_of(s->peer, datagram);
		if (p->payload_length > 0)
			memcpy(datagram + GRH, p->payload, p->payload_length);
		with_header.payload = datagram + GRH;
	}
	r = node_received(s->q, p, clock_of_core());

	cr_assert_eq(s->node.fault[0], '\0', "%s: %s", s->node.name, s->node.fault);
	return r;
}

const struct packet *pass(struct side *s, const char *name, uint32_t psn)
{
	const struct packet *p = expect_packet(s, name, psn);

	arrive(s->peer, p);
	return p;
}

const struct packet *expect_frame(struct side *s)
{
	cr_assert(next(s), "%s sends no frame", s->node.name);
	return &s->packet;
}

const struct packet *pass_frame(struct side *s)
{
	arrive(s->peer, expect_frame(s));
	return &s->packet;
}

void sent(struct side *s, const struct packet *p)
{
	node_sent(s->q, p, clock_of_core());
}

void unsent(struct side *s, const struct packet *p)
{
	node_unsent(s->q, p, clock_of_core());
}

void gather_failed(struct side *s, const struct packet *p)
{
	node_gather_failed(s->q, p, clock_of_core());
}

static void expect_answer(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	const struct packet *p = expect_packet(s, chosen.xrc ? "XRC ACK" : "RC ACK", psn);
	uint8_t class = p->syndrome & SYNDROME_CLASS;

	if (syndrome == SYNDROME_ACK)
		cr_assert_eq(class, SYNDROME_ACK, "syndrome %02x is not an ACK", p->syndrome);
	else
		cr_assert_eq(p->syndrome, syndrome, "syndrome %02x, %02x was expected", p->syndrome,
			     syndrome);
	cr_assert_eq(p->msn, msn, "MSN %u, %u was expected", p->msn, msn);
}

void expect_ack(struct side *s, uint32_t psn, uint32_t msn)
{
	expect_answer(s, SYNDROME_ACK, psn, msn);
}

void expect_nak(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	expect_answer(s, syndrome, psn, msn);
}

void pass_ack(struct side *s, uint32_t psn, uint32_t msn)
{
	expect_ack(s, psn, msn);
	arrive(s->peer, &s->packet);
}

const struct packet *expect_selection(struct side *s, uint32_t next, uint32_t count,
				      const uint32_t psn[])
{
	const struct packet *p = expect_packet(s, "SELECTIVE ACK", next - 1);
	uint64_t wanted[ARRAY_SIZE(p->selection)] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		uint32_t n = (psn[i] - next) & PSN_MASK;

		wanted[n / 64] |= UINT64_C(1) << (n % 64);
	}
	cr_assert_arr_eq(p->selection, wanted, sizeof(wanted), "%lx ..., %lx ... was expected",
			 p->selection[0], wanted[0]);
	return p;
}

void deliver(struct side *s)
{
	arrive(s->peer, &s->packet);
}

void pass_nak(struct side *s, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
	expect_nak(s, syndrome, psn, msn);
	arrive(s->peer, &s->packet);
}

const struct key_operation *expect_operation(struct side *s)
{
	cr_assert_null(qp_operation(s->q->core), "%s is still at the last operation", s->node.name);
	expect_silence(s);
	cr_assert_not_null(qp_operation(s->q->core), "%s has no operation", s->node.name);
	return qp_operation(s->q->core);
}

void operate(struct side *s, enum work_status status)
{
	cr_assert(node_operate(s->q, status, clock_of_core()), "%s has no operation", s->node.name);
}

void expect_silence(struct side *s)
{
	if (next(s))
		cr_assert_fail("%s sends %s %06x, silence was expected", s->node.name,
			       opcode_table[s->packet.opcode].name, s->packet.psn);
}

uint32_t exchange(void)
{
	uint32_t packets = 0, before;

	do {
		before = packets;
		for (; next(a); packets++)
			arrive(b, &a->packet);
		for (; next(b); packets++)
			arrive(a, &b->packet);
		cr_assert_lt(packets, 100000, "the exchange does not end");
	} while (packets != before);
	return packets;
}

enum reason story_inject(struct side *s, struct packet *p)
{
	static uint8_t payload[NODE_PAYLOAD];

	if (chosen.xrc && opcode_table[p->opcode].service == SERVICE_RC)
		p->opcode |= OPCODE(SERVICE_XRC, 0);
	p->src_gid = gid_of(s->peer);
	p->dst_gid = gid_of(s);
	if (p->qkey == 0)
		p->qkey = QKEY;
	if (p->payload == NULL)
		p->payload = payload;
	if (p->pad == 0)
		p->pad = (uint8_t)(-p->payload_length & 3);
	for (uint32_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(0xe0 + i);
	return arrive(s, p);
}

void settle(struct side *s, bool ok)
{
	cr_assert_neq(s->q->copy_head, s->q->copy_tail, "%s has no copy under way", s->node.name);
	node_settle_one(s->q, ok, clock_of_core());
}

/* Completions. */

static struct completion take(struct side *s, bool from_receive, uint64_t wr_id,
			      enum work_status status)
{
	struct node_completion c;

	cr_assert(node_take(s->q, &c), "%s: no completion, wr_id %llu was expected", s->node.name,
		  (unsigned long long)wr_id);
	cr_assert(c.from_receive == from_receive && c.c.wr_id == wr_id && c.c.status == status,
		  "%s: completion of %s wr_id %llu status %u (%s); %s %llu status %u was expected",
		  s->node.name, c.from_receive ? "receive" : "send", (unsigned long long)c.c.wr_id,
		  c.c.status, reason_text(c.c.vendor_err), from_receive ? "receive" : "send",
		  (unsigned long long)wr_id, status);
	cr_assert_eq(c.c.qp_num, s->q->caps.qpn);
	cr_assert_eq(c.c.qp_handle, s->q->caps.handle);
	return c.c;
}

struct completion expect_completion(struct side *s, uint64_t wr_id, enum work_status status)
{
	return take(s, false, wr_id, status);
}

struct completion expect_receive(struct side *s, uint64_t wr_id, enum work_status status,
				 uint32_t byte_len)
{
	struct completion c = take(s, true, wr_id, status);

	if (status == STATUS_SUCCESS)
		cr_assert_eq(c.byte_len, byte_len, "byte_len %u, %u was expected", c.byte_len,
			     byte_len);
	return c;
}

void expect_no_completion(struct side *s)
{
	struct node_completion c;

	if (node_take(s->q, &c))
		cr_assert_fail("%s: completion of wr_id %llu status %u, none was expected",
			       s->node.name, (unsigned long long)c.c.wr_id, c.c.status);
}

void expect_state(struct side *s, enum qp_state state)
{
	cr_assert_eq(qp_state(s->q->core), state, "%s is in state %d, %d was expected",
		     s->node.name, qp_state(s->q->core), state);
}

void expect_events(struct side *s, uint32_t events)
{
	uint32_t seen = node_events_take(s->q) & ~(uint32_t)QP_EVENT_ENTERED_ERR;

	cr_assert_eq(seen, events, "%s: events %x, %x were expected", s->node.name, seen, events);
}

/* Memory. */

uint8_t *octets(struct side *s, uint32_t offset)
{
	return s->node.memory + offset;
}

uint64_t word(struct side *s, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, octets(s, offset), sizeof(v));
	return v;
}

void set_word(struct side *s, uint32_t offset, uint64_t v)
{
	memcpy(octets(s, offset), &v, sizeof(v));
}

void expect_same(struct side *x, uint32_t offset, struct side *y, uint32_t from, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		cr_assert_eq(*octets(x, offset + i), *octets(y, from + i),
			     "%s: octet %u of %u is %02x, %02x was expected", x->node.name, i,
			     length, *octets(x, offset + i), *octets(y, from + i));
}

void expect_untouched(struct side *s, uint32_t offset, uint32_t length)
{
	for (uint32_t i = offset; i < offset + length; i++)
		cr_assert_eq(*octets(s, i), pattern(s, i), "%s: the octet at %x changed",
			     s->node.name, i);
}

const char *reason_text(enum reason r)
{
	return reason_name(r);
}
