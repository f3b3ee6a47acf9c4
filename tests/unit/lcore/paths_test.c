/* SPDX-License-Identifier: BSD-3-Clause */
/* Which queue pairs share a path, which have none, and that paths go with their last queue pair. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "lcore/paths.h"
#include "loop_rig.h"
#include "transport/qp.h"

static struct rig *r;

static struct engine_qp *qp(uint32_t side)
{
	return &r->side[side].qp;
}

static void begin(void)
{
	r = rig_open();
	for (uint32_t i = 0; i < RIG_SIDES; i++)
		qp(i)->flow_state = FLOW_PORT;
}

static void end(void)
{
	rig_close(r);
}

TestSuite(paths, .init = begin, .fini = end, .timeout = 60);

static void to_state(struct qp *core, enum qp_state state)
{
	struct qp_attributes a = { .state = state, .port_num = 1 };
	uint32_t mask = QP_ATTR_STATE;

	if (state == QP_STATE_INIT)
		mask |= QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
	cr_assert_eq(qp_modify(core, &a, mask, NULL), 0);
}

/* Ready to receive, by this peer and traffic class. */
static void connect_to(struct qp *core, uint16_t peer, uint8_t traffic_class)
{
	struct qp_attributes a = {
		.state = QP_STATE_RTR,
		.path_mtu = 5,
		.max_dest_rd_atomic = 1,
		.path = { .is_global = 1, .port_num = 1, .traffic_class = traffic_class }
	};

	to_state(core, QP_STATE_RESET);
	to_state(core, QP_STATE_INIT);
	a.path.dgid = (struct gid){ { [10] = 0xff, [11] = 0xff, [12] = 10 } };
	a.path.dgid.octet[14] = (uint8_t)(peer >> 8);
	a.path.dgid.octet[15] = (uint8_t)peer;
	cr_assert_eq(qp_modify(core, &a,
			       QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
				       QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC |
				       QP_ATTR_MIN_RNR_TIMER,
			       NULL),
		     0);
}

static struct engine_qp *first_parked(const struct lcore_path *path)
{
	return TAILQ_FIRST(&TAILQ_FIRST(&path->parked)->qps);
}

static struct lcore_path *follow(struct engine_qp *q)
{
	paths_follow(r->engine.lcore, q);
	return q->way;
}

/* The first two go by one path. */
static struct lcore_path *share_a_path(void)
{
	connect_to(qp(0)->core, 7, 0);
	connect_to(qp(1)->core, 7, 0);
	follow(qp(0));
	follow(qp(1));
	return qp(0)->way;
}

/* ... and wait there. */
static void park_two(void)
{
	share_a_path();
	for (uint32_t i = 0; i < 2; i++)
		paths_park(r->engine.lcore, qp(i));
}

Test(paths, queue_pairs_to_one_peer_share_a_path)
{
	struct lcore_path *path;

	connect_to(qp(0)->core, 7, 0);
	connect_to(qp(1)->core, 7, 0);
	connect_to(qp(2)->core, 8, 0);
	connect_to(qp(3)->core, 7, 4);
	path = follow(qp(0));
	cr_assert_not_null(path);
	cr_expect_eq(follow(qp(1)), path);
	cr_expect_eq(path->users, 2);
	cr_expect_neq(follow(qp(2)), path, "another peer");
	cr_expect_neq(follow(qp(3)), path, "another traffic class");
	cr_expect_eq(follow(qp(0)), path, "nothing changed");
	cr_expect_eq(path->users, 2);
}

/* In RESET and INIT the queue pair sends nothing. */
Test(paths, a_path_comes_and_goes_with_the_state)
{
	to_state(qp(0)->core, QP_STATE_RESET);
	cr_expect_null(follow(qp(0)));
	to_state(qp(0)->core, QP_STATE_INIT);
	cr_expect_null(follow(qp(0)));
	connect_to(qp(0)->core, 7, 0);
	cr_expect_not_null(follow(qp(0)));
	to_state(qp(0)->core, QP_STATE_ERR);
	cr_expect_not_null(follow(qp(0)), "its last packets may be on their way");
	to_state(qp(0)->core, QP_STATE_RESET);
	cr_expect_null(follow(qp(0)));
}

Test(paths, a_queue_pair_inside_the_engine_has_no_path)
{
	connect_to(qp(0)->core, 7, 0);
	cr_expect_not_null(follow(qp(0)));
	qp(0)->flow_state = FLOW_LOOP;
	cr_expect_null(follow(qp(0)));
	qp(0)->flow_state = FLOW_PORT;
	qp(0)->unreliable = true;
	cr_expect_null(follow(qp(0)), "nobody answers to its packets");
	qp(0)->unreliable = false;
	cr_expect_not_null(follow(qp(0)));
}

/* The knowledge about a peer stays as long as a queue pair sends to it, and no longer. */
Test(paths, what_a_path_knows_goes_with_its_last_queue_pair)
{
	struct lcore_path *path = share_a_path();

	path_rtt(&path->core, 1000, 1);
	paths_leave(r->engine.lcore, qp(0));
	cr_expect_null(qp(0)->way);
	cr_expect_eq(path_srtt(&qp(1)->way->core), 1000, "the other one sends");
	paths_leave(r->engine.lcore, qp(1));
	paths_leave(r->engine.lcore, qp(1));
	cr_expect_eq(path_srtt(&follow(qp(0))->core), 0);
	cr_expect_eq(qp(0)->way->users, 1);
}

/* Also those that fall into one bucket. */
Test(paths, each_traffic_class_has_its_own)
{
	static struct engine_qp each[UINT8_MAX + 1];

	for (uint32_t i = 0; i < ARRAY_SIZE(each); i++) {
		each[i] = (struct engine_qp){ .core = qp(0)->core,
					      .client = &r->client,
					      .flow_state = FLOW_PORT };
		connect_to(qp(0)->core, 7, (uint8_t)i);
		cr_assert_not_null(follow(&each[i]));
		cr_expect_eq(each[i].way->traffic_class, i);
		cr_expect_eq(each[i].way->users, 1);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(each); i++)
		paths_leave(r->engine.lcore, &each[i]);
}

/* A queue pair that comes after the first one left joins those that stayed; one with another peer does not. */
Test(paths, a_path_stays_with_its_last_queue_pair)
{
	struct lcore_path *path = share_a_path();

	paths_leave(r->engine.lcore, qp(0));
	connect_to(qp(2)->core, 8, 0);
	cr_expect_neq(follow(qp(2)), path);
	connect_to(qp(3)->core, 7, 0);
	cr_expect_eq(follow(qp(3)), path);
	cr_expect_eq(path->users, 2);
}

/* Any attribute may change while it waits. */
Test(paths, a_queue_pair_that_stays_keeps_its_place)
{
	struct lcore_path *path;

	park_two();
	path = qp(0)->way;
	cr_expect_eq(follow(qp(0)), path);
	cr_expect(qp(0)->parked);
	cr_expect_eq(first_parked(path), qp(0));
	cr_expect_eq(path->users, 2);
}

Test(paths, a_waiting_queue_pair_has_one_place)
{
	struct lcore *l = r->engine.lcore;

	park_two();
	paths_park(l, qp(0));
	cr_expect_eq(first_parked(qp(0)->way), qp(0));
	cr_expect_eq(TAILQ_NEXT(qp(0), park_link), qp(1));
	cr_expect_null(TAILQ_NEXT(qp(1), park_link));
}

/* When the last queue pair that a path holds back is gone, the path wakes no lcore. */
Test(paths, a_path_that_holds_nothing_back_is_not_looked_at)
{
	struct lcore *l = r->engine.lcore;

	connect_to(qp(0)->core, 7, 0);
	follow(qp(0));
	paths_park(l, qp(0));
	cr_expect_lt(paths_next(l, TIME_S), TIME_NEVER);
	paths_leave(l, qp(0));
	cr_expect_eq(paths_next(l, TIME_S), TIME_NEVER);
}

/* A poll looks at LIMIT_ROUND paths. All of those have no room, and the one behind them has. */
Test(paths, each_path_has_its_turn)
{
	static struct engine_qp full[LIMIT_ROUND];
	struct lcore *l = r->engine.lcore;
	struct qp *core =
		qp(0)->core; /* of all these, as it is asked for its address and its turn */

	for (uint32_t i = 0; i < LIMIT_ROUND; i++) {
		full[i] = (struct engine_qp){ .core = core,
					      .client = &r->client,
					      .flow_state = FLOW_PORT };
		connect_to(core, (uint16_t)i, 0);
		follow(&full[i]);
		paths_park(l, &full[i]);
	}
	core->path->flying = 1;
	core->req.held = true;
	connect_to(qp(1)->core, LIMIT_ROUND, 0);
	follow(qp(1));
	paths_park(l, qp(1));
	paths_release(l, TIME_S);
	cr_expect(qp(1)->parked, "not yet");
	paths_release(l, TIME_S);
	cr_expect_not(qp(1)->parked);
	cr_expect(full[0].parked);
	core->path->flying = 0;
	core->req.held = false;
	for (uint32_t i = 0; i < LIMIT_ROUND; i++)
		paths_leave(l, &full[i]);
}

/*
 * hostile H-25: many queue pairs of one user wait for a path, and one of another user comes last. The path has
 * room for one turn at a time.
 */
Test(paths, many_that_wait_are_no_more_than_one)
{
	static struct engine_qp many[100];
	struct client greedy = { .engine = &r->engine, .number = 1, .user = 1 };
	struct lcore *l = r->engine.lcore;
	struct qp *core = qp(0)->core;

	connect_to(core, 7, 0);
	connect_to(qp(1)->core, 7, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++) {
		many[i] = (struct engine_qp){ .core = core,
					      .client = &greedy,
					      .flow_state = FLOW_PORT };
		follow(&many[i]);
		paths_park(l, &many[i]);
	}
	follow(qp(1));
	paths_park(l, qp(1));
	for (uint32_t i = 0; i < 2; i++) {
		core->req.held = true;
		core->path->held = 1;
		paths_release(l, TIME_S);
	}
	cr_expect_not(core->req.held);
	cr_expect_not(many[0].parked);
	cr_expect_not(qp(1)->parked, "it waits behind all of another user's");
	cr_expect(many[ARRAY_SIZE(many) - 1].parked);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		paths_leave(l, &many[i]);
}

/* More users than there are places: they share turns, and everybody has one. */
Test(paths, more_users_than_places)
{
	static struct engine_qp many[3 * LIMIT_PATH_USERS];
	static struct client user[3 * LIMIT_PATH_USERS];
	struct lcore *l = r->engine.lcore;
	uint32_t waiting = ARRAY_SIZE(many);

	connect_to(qp(0)->core, 7, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++) {
		user[i] = (struct client){ .engine = &r->engine, .number = i, .user = i };
		many[i] = (struct engine_qp){ .core = qp(0)->core,
					      .client = &user[i],
					      .flow_state = FLOW_PORT };
		follow(&many[i]);
		paths_park(l, &many[i]);
	}
	paths_leave(l, &many[LIMIT_PATH_USERS]);
	for (uint32_t polls = 0; waiting > 0 && polls < 2 * ARRAY_SIZE(many); polls++) {
		paths_release(l, TIME_S);
		waiting = 0;
		for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
			waiting += many[i].parked;
	}
	cr_expect_eq(waiting, 0, "%u", waiting);
	for (uint32_t i = 0; i < ARRAY_SIZE(many); i++)
		paths_leave(l, &many[i]);
}

/* One that moves to another peer leaves its path behind. */
Test(paths, another_address_is_another_path)
{
	struct lcore_path *old;

	connect_to(qp(0)->core, 7, 0);
	connect_to(qp(1)->core, 7, 0);
	old = follow(qp(0));
	follow(qp(1));
	connect_to(qp(0)->core, 9, 0);
	cr_expect_neq(follow(qp(0)), old);
	cr_expect_eq(old->users, 1);
	cr_expect_eq(qp(1)->way, old);
}

/* Queue pairs to LIMIT_PATHS peers: one core, as it is asked for its address alone. */
Test(paths, further_peers_have_no_path_until_one_goes)
{
	static struct engine_qp many[LIMIT_PATHS];
	struct engine_qp last = { .core = qp(0)->core,
				  .client = &r->client,
				  .flow_state = FLOW_PORT };

	for (uint32_t i = 0; i < LIMIT_PATHS; i++) {
		many[i] = (struct engine_qp){ .core = qp(0)->core,
					      .client = &r->client,
					      .flow_state = FLOW_PORT };
		connect_to(qp(0)->core, (uint16_t)i, 0);
		cr_assert_not_null(follow(&many[i]), "peer %u", i);
		cr_assert(i == 0 || many[i].way != many[i - 1].way);
	}
	connect_to(qp(0)->core, LIMIT_PATHS, 0);
	cr_expect_null(follow(&last));
	paths_leave(r->engine.lcore, &many[5]);
	cr_expect_not_null(follow(&last));
	paths_leave(r->engine.lcore, &last);
	for (uint32_t i = 0; i < LIMIT_PATHS; i++)
		paths_leave(r->engine.lcore, &many[i]);
}

/*
 * hostile H-122: a user has as many peers as it can. Another user finds a sixteenth, whichever of
 * them comes first.
 */
Test(paths, one_user_does_not_take_all)
{
	static struct engine_qp many[LIMIT_PATHS];
	struct client greedy = { .engine = &r->engine, .number = 1, .user = 1 };
	struct client other = { .engine = &r->engine, .number = 2, .user = 2 };
	uint32_t n, most = LIMIT_PATHS - LIMIT_PATHS / 4;

	for (n = 0; n < LIMIT_PATHS; n++) {
		many[n] = (struct engine_qp){ .core = qp(0)->core,
					      .client = n < most ? &greedy : &other,
					      .flow_state = FLOW_PORT };
		connect_to(qp(0)->core, (uint16_t)n, 0);
		if (follow(&many[n]) == NULL)
			break;
	}
	cr_expect_eq(n, most + LIMIT_PATHS / 16, "%u", n);
	many[n].client = &greedy;
	cr_expect_null(follow(&many[n]));
	connect_to(qp(0)->core, 7, 0);
	cr_expect_not_null(follow(&many[n]), "a path that is there is everybody's");
	cr_expect_eq(many[n].way, many[7].way);
	for (uint32_t i = 0; i <= n; i++)
		paths_leave(r->engine.lcore, &many[i]);
	connect_to(qp(0)->core, 9, 0);
	cr_expect_not_null(follow(&many[0]));
	paths_leave(r->engine.lcore, &many[0]);
}

Test(paths, a_list_says_what_is_known)
{
	struct listed_path p[2];
	uint32_t n = 0;

	connect_to(qp(0)->core, 7, 0);
	connect_to(qp(1)->core, 7, 0);
	connect_to(qp(2)->core, 8, 4);
	follow(qp(0));
	path_rtt(&follow(qp(1))->core, 1000, 1);
	for (uint32_t e = 0; e < PATH_EVENTS; e++)
		for (uint32_t i = 0; i <= e; i++)
			path_count(&qp(0)->way->core, (enum path_event)e);
	follow(qp(2));
	cr_assert_eq(paths_list(r->engine.lcore, 0, p, 2, &n), 0);
	cr_assert_eq(n, 2);
	cr_expect_eq(p[0].peer.octet[15], 7);
	cr_expect_eq(p[0].qps, 2);
	cr_expect_eq(p[0].round_trip_ns, 1000);
	cr_expect_eq(p[0].least_ns, 1000);
	cr_expect_eq(p[0].samples, 1);
	cr_expect_eq(p[0].again, PATH_AGAIN + 1);
	cr_expect_eq(p[0].overtaken, PATH_OVERTAKEN + 1);
	cr_expect_eq(p[0].reported, PATH_REPORTED + 1);
	cr_expect_eq(p[0].probes, PATH_PROBE + 1);
	cr_expect_eq(p[0].timeouts, PATH_TIMEOUT + 1);
	cr_expect_eq(p[0].cnps_received, PATH_CNP_RECEIVED + 1);
	cr_expect_eq(p[0].cnps_sent, PATH_CNP_SENT + 1);
	cr_expect_eq(p[1].peer.octet[15], 8);
	cr_expect_eq(p[1].traffic_class, 4);
	cr_expect_eq(p[1].round_trip_ns, 0);
}

static uint32_t serial_of_only_path(void)
{
	struct listed_path p;
	uint32_t n = 0;

	cr_assert_eq(paths_list(r->engine.lcore, 0, &p, 1, &n), 0);
	cr_assert_eq(n, 1);
	return p.serial;
}

/* Who has seen the first one's counts can tell that these are another one's. */
Test(paths, a_path_that_is_made_again_is_another_one)
{
	uint32_t serial;

	connect_to(qp(0)->core, 7, 0);
	follow(qp(0));
	serial = serial_of_only_path();
	follow(qp(0));
	cr_expect_eq(serial_of_only_path(), serial);
	paths_leave(r->engine.lcore, qp(0));
	follow(qp(0));
	cr_expect_neq(serial_of_only_path(), serial);
}

/* The parts of a list are the whole list; a path without users is in none. */
Test(paths, a_list_goes_on_where_it_had_no_room)
{
	struct listed_path p;
	uint32_t n = 0, next;

	for (uint32_t i = 0; i < 3; i++) {
		connect_to(qp(i)->core, (uint16_t)i, 0);
		follow(qp(i));
	}
	paths_leave(r->engine.lcore, qp(1));
	next = paths_list(r->engine.lcore, 0, &p, 1, &n);
	cr_assert_eq(n, 1);
	cr_expect_eq(p.peer.octet[15], 0);
	cr_assert_gt(next, 0);
	n = 0;
	cr_expect_eq(paths_list(r->engine.lcore, next, &p, 1, &n), 0);
	cr_assert_eq(n, 1);
	cr_expect_eq(p.peer.octet[15], 2);
}

/* It was late as long as its core was away; it was not while it slept until a bell called it. */
Test(paths, all_paths_hear_how_late_the_lcore_is)
{
	struct lcore *l = r->engine.lcore;
	nanotime now = TIME_S;
	struct path *path;

	connect_to(qp(0)->core, 7, 0);
	path = &follow(qp(0))->core;
	paths_polled(l, false, now);
	cr_assert_eq(path_late(path), 0, "there was none before");
	paths_polled(l, true, now += 5 * TIME_US);
	cr_assert_eq(path_late(path), 5 * TIME_US);
	paths_woken(l, now += 9 * TIME_MS);
	paths_polled(l, false, now += 1 * TIME_US);
	cr_assert_eq(path_late(path), 5 * TIME_US, "it slept");
	paths_polled(l, false, now + 300 * TIME_US);
	cr_assert_eq(path_late(path), 300 * TIME_US, "others had its core");
}
