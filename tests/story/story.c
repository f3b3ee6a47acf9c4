/* SPDX-License-Identifier: BSD-3-Clause */
/* The two sides of a story, the time, and what is in their memory. */
#include "config/limits.h"
#include "story_sides.h"
#include "transport/qp.h"

static struct side sides[2];
struct side *const a = &sides[0], *const b = &sides[1];
nanotime now;
struct story_options story_chosen;
static struct path paths[2];

struct gid story_gid(const struct side *s)
{
	return (struct gid){ { [10] = 0xff, [11] = 0xff, 10, 0, 0, s == a ? 1 : 2 } };
}

/* octets, after which pattern() repeats */
#define PERIOD 0x10000u

static uint8_t pattern(const struct side *s, uint32_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 8) * 31 + (s == a ? 1 : 128));
}

/* The pattern repeats: most of it is copied, as a test of storms makes thousands of sides. */
static void fill(struct side *s)
{
	for (uint32_t i = 0; i < PERIOD; i++)
		s->node.memory[i] = pattern(s, i);
	for (uint32_t i = PERIOD; i < MEMORY; i += PERIOD)
		memcpy(s->node.memory + i, s->node.memory, PERIOD);
}

static uint32_t value_of(int v, uint32_t otherwise)
{
	return v == 0 ? otherwise : v < 0 ? 0 : (uint32_t)v;
}

struct qp_attributes attributes_of(struct side *s)
{
	uint32_t a_psn = story_chosen.sq_psn != 0 ? story_chosen.sq_psn : A_PSN;

	return (struct qp_attributes){
		.path_mtu = story_chosen.mtu != 0 ? story_chosen.mtu : 1,
		.rq_psn = s == a ? B_PSN : a_psn,
		.sq_psn = s == a ? a_psn : B_PSN,
		.dest_qpn = s == a ? B_QPN : A_QPN,
		.qkey = QKEY,
		.rate_limit = s == a ? story_chosen.rate_limit : 0,
		.access_flags = (story_chosen.access != 0 ? story_chosen.access : ACCESS_ALL) &
				~story_chosen.no_access,
		.max_rd_atomic = (uint8_t)value_of(story_chosen.max_rd_atomic, 4),
		.max_dest_rd_atomic = (uint8_t)value_of(story_chosen.max_dest_rd_atomic, 4),
		.min_rnr_timer =
			(uint8_t)(story_chosen.min_rnr_timer != 0 ? story_chosen.min_rnr_timer
								  : 12),
		.port_num = 1,
		.timeout = (uint8_t)(story_chosen.no_timeout	 ? 0
				     : story_chosen.timeout != 0 ? story_chosen.timeout
								 : 10),
		.retry_cnt = (uint8_t)value_of(story_chosen.retry_cnt, 3),
		.rnr_retry = (uint8_t)value_of(story_chosen.rnr_retry, 3),
		.path = { .dgid = story_gid(s->peer),
			  .sgid = story_gid(s),
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

uint32_t story_type(const struct side *s)
{
	if (story_chosen.xrc)
		return s == a ? QP_TYPE_XRC_SEND : QP_TYPE_XRC_RECV;
	return story_chosen.type != 0 ? story_chosen.type : QP_TYPE_RC;
}

enum service service_of_story(void)
{
	return story_chosen.type == QP_TYPE_UC	 ? SERVICE_UC
	       : story_chosen.type == QP_TYPE_UD ? SERVICE_UD
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

	switch (story_type(s)) {
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
	if (story_chosen.stay_in_init)
		return;
	cr_assert_eq(modify(s, QP_STATE_RTR, to.rtr, &with), 0, "RTR");
	if (s == b && story_chosen.b_in_rtr)
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
	struct qp_caps caps = { .type = story_type(s),
				.qpn = s == a ? A_QPN : B_QPN,
				.pd = PD,
				.handle = s == a ? 1 : 2,
				.max_send_wr = story_chosen.max_send_wr != 0
						       ? story_chosen.max_send_wr
						       : 8,
				.max_send_sge = 4,
				.max_recv_sge = 4,
				.max_inline = 64,
				.max_rd_atomic = 16,
				.port_mtu = story_chosen.port_mtu != 0 ? story_chosen.port_mtu : 5,
				.max_frame = FRAME,
				.sq_sig_all = story_chosen.sq_sig_all,
				.srq = story_chosen.srq ? 7 : 0,
				.has_srq = story_chosen.srq || (story_chosen.xrc && s == b) };

	s->peer = s == a ? b : a;
	node_init(&s->node, s == a ? "a" : "b", MEMORY, 1, s == a ? 1 : 2);
	s->node.delay_copies = story_chosen.delay_copies;
	s->node.keeps = story_chosen.recovery;
	s->node.hold_operations = true;
	fill(s);
	s->key = node_register(&s->node, 0, MEMORY, BASE, PD, ACCESS_ALL, 1);
	s->q = node_qp_add(&s->node, &caps, story_chosen.delay_copies);
	if (!story_chosen.xrc)
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
	path_looked(path);
	qp_give_path(s->q->core, path);
}

void story_begin(const struct story_options *options)
{
	story_chosen = *options;
	now = ms(1000); /* so that no rule relies on a time of 0 */
	side_begin(a);
	side_begin(b);
	connect_side(a);
	connect_side(b);
	if (story_chosen.recovery) {
		recovery_begin(a);
		recovery_begin(b);
	}
	now = 0;
	/* As if they had heard from each other: tests/story/selective_test.c shows how they do. */
	a->q->core->selective = b->q->core->selective = story_chosen.selective;
}

/* Time: the core's clock runs one second ahead of the story's. */
nanotime story_clock(void)
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
		if (d > story_clock())
			now = d - ms(1000);
		node_expire(a->q, story_clock());
		node_expire(b->q, story_clock());
	}
	now = t;
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
