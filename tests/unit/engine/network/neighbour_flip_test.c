/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The MAC address of a neighbour alternates ten thousand times a second, by ARP that anybody on the link
 * can send. Thousands of queue pairs and address handles towards it follow, and programs without that
 * neighbour are served as before.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "base/bits.h"
#include "rig/beside.h"
#include "rig/control_rig.h"
#include "rig/test_port.h"
#include "control/commands/commands.h"
#include "control/control.h"
#include "control/network/destinations.h"
#include "control/network/network.h"

#define QPS	3000u
#define AHS	3000u
#define RATE	10000u /* changes a second */
#define SECONDS 2
#define CHANGES (SECONDS * 10u + 10u) /* that are followed, and some for the beginning */
#define MESSAGES                \
	(QPS / LIMIT_FLIP_QPS + \
	 2u) /* to the lcore for one of them, with one for each slice's rest */
#define GRACES	  (AHS / LIMIT_FLIP_AHS + 2u) /* grace periods, likewise */
#define LOOKS	  3u /* at ways: to two neighbours, and to the own address */
#define ARP_FRAME 60u

static const uint8_t own_ip[4] = { 10, 9, 0, 1 }, a_ip[4] = { 10, 9, 0, 2 },
		     b_ip[4] = { 10, 9, 0, 3 };
static const struct mac mac_of_b = { { 2, 0xb, 0, 0, 0, 1 } };
static struct mac mac_of_a = { { 2, 0xa } }; /* as the last frame said */

static uint32_t flooding, asking, answer; /* atomic */
static nanotime flood_began;
static uint64_t sent;
static uint32_t answers, bursts; /* of frames that the engine sent */

/* ---- the port ---- */

static struct rte_mbuf *make_arp(const uint8_t ip[4], const struct mac *mac)
{
	bool asks = __atomic_load_n(&asking, __ATOMIC_RELAXED);
	struct engine *e = (struct engine *)engine;
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->pool);
	uint8_t *f = m != NULL ? (uint8_t *)rte_pktmbuf_append(m, ARP_FRAME) : NULL;

	if (f == NULL)
		return NULL;
	memset(f, 0, ARP_FRAME);
	memset(f, 0xff, 6);
	memcpy(f + 6, mac->octet, 6);
	store_be16(f + 12, 0x0806);
	store_be16(f + 14, 1);
	store_be16(f + 16, 0x0800);
	f[18] = 6;
	f[19] = 4;
	store_be16(f + 20, asks ? 1 : 2);
	memcpy(f + 22, mac->octet, 6);
	memcpy(f + 28, ip, 4);
	memcpy(f + 32, mac->octet, 6);
	memcpy(f + 38, asks ? own_ip : ip, 4);
	return m;
}

static struct rte_mbuf *next_lie(void)
{
	mac_of_a = (struct mac){ { 2, 0xa, 0, 0, (uint8_t)(sent >> 8), (uint8_t)sent } };
	sent++;
	return make_arp(a_ip, &mac_of_a);
}

static uint16_t rx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	nanotime now = clock_now();
	uint16_t i = 0;

	if (__atomic_exchange_n(&answer, 0, __ATOMIC_ACQ_REL)) {
		frames[i] = make_arp(b_ip, &mac_of_b);
		i += frames[i] != NULL;
		frames[i] = make_arp(a_ip, &mac_of_a);
		i += frames[i] != NULL;
	}
	if (!__atomic_load_n(&flooding, __ATOMIC_ACQUIRE))
		return i;
	if (flood_began == 0)
		flood_began = now;
	while (i < n && sent < (now - flood_began) * RATE / TIME_S) {
		frames[i] = next_lie();
		if (frames[i++] == NULL)
			return (uint16_t)(i - 1);
	}
	return i;
}

static uint16_t tx_burst(struct port *p, uint16_t queue, struct rte_mbuf **frames, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		rte_pktmbuf_free(frames[i]);
	answers += n;
	bursts++;
	return n;
}

static void begin(void)
{
	struct uroce_options o = { .address = { { { [10] = 0xff, 0xff }, 24 } },
				   .pool_size = 2048 };

	memcpy(o.address[0].octet + 12, own_ip, 4);
	test_port_begin("flip", &(struct port_ops){ .rx_burst = rx_burst, .tx_burst = tx_burst },
			o);
}

/* ---- queue pairs ---- */

static void modify(int fd, uint32_t qp, struct qp_attributes *a, uint32_t mask)
{
	struct request_modify_qp q = { .qp = qp, .mask = mask, .attributes = *a };
	struct reply_modify_qp r;

	cr_assert_eq(ask(fd, COMMAND_MODIFY_QP, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0,
		     "%s", r.h.why);
}

static uint32_t connect_qp(int fd, struct objects *o, const uint8_t ip[4], uint32_t number)
{
	struct request_create_qp q = small_qp(o);
	struct qp_attributes a = { .state = QP_STATE_INIT, .port_num = 1 };
	struct reply_create_qp r;

	cr_assert_eq(create_qp(fd, &q, &r), 0, "%s", r.h.why);
	modify(fd, r.handle, &a,
	       QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
	a.state = QP_STATE_RTR;
	a.path_mtu = 3;
	a.dest_qpn = number;
	a.path.is_global = 1;
	a.path.port_num = 1;
	a.path.sgid_index = 1;
	memset(a.path.dgid.octet + 10, 0xff, 2);
	memcpy(a.path.dgid.octet + 12, ip, 4);
	modify(fd, r.handle, &a,
	       QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
		       QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
	return r.qpn;
}

/* How many queue pairs towards this address have this MAC address in their frames. */
static uint32_t with_mac(const uint8_t ip[4], const struct mac *mac)
{
	struct engine *e = (struct engine *)engine;
	struct engine_qp *q;
	uint32_t n = 0;

	pthread_mutex_lock(&e->control_lock);
	LIST_FOREACH(q, &e->qps, engine_link)
	n += memcmp(qp_address_vector(q->core)->dgid.octet + 12, ip, 4) == 0 &&
	     q->flow_state == FLOW_PORT && memcmp(q->flow.header, mac->octet, 6) == 0;
	pthread_mutex_unlock(&e->control_lock);
	return n;
}

static void create_ah(int fd, uint32_t pd, const uint8_t ip[4])
{
	struct request_create_ah q = { .pd = pd };
	struct reply_ah r;

	q.path.is_global = 1;
	q.path.port_num = 1;
	q.path.sgid_index = 1;
	memset(q.path.dgid.octet + 10, 0xff, 2);
	memcpy(q.path.dgid.octet + 12, ip, 4);
	cr_assert_eq(ask(fd, COMMAND_CREATE_AH, &q.h, sizeof(q), &r.h, sizeof(r), NULL, NULL), 0,
		     "%s", r.h.why);
}

static uint32_t ahs_with_mac(const uint8_t ip[4], const struct mac *mac)
{
	struct engine *e = (struct engine *)engine;
	struct engine_ah *ah;
	uint32_t n = 0;

	pthread_mutex_lock(&e->control_lock);
	LIST_FOREACH(ah, &e->ahs, engine_link)
	n += memcmp(ah->path.dgid.octet + 12, ip, 4) == 0 && ah->flow_state == FLOW_PORT &&
	     memcmp(ah->flow.header, mac->octet, 6) == 0;
	pthread_mutex_unlock(&e->control_lock);
	return n;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* An answer that finds the ring to the control thread full, behind a flood, is lost. */
static void answer_again(void)
{
	__atomic_store_n(&answer, 1, __ATOMIC_RELEASE);
	poll(NULL, 0, 20);
}

static void expect_with_mac(const uint8_t ip[4], const struct mac *mac, uint32_t wanted)
{
	double end = seconds() + ENOUGH_MS / 1000;

	while (with_mac(ip, mac) != wanted && seconds() < end)
		answer_again();
	cr_assert_eq(with_mac(ip, mac), wanted, "%u of %u queue pairs have the MAC address",
		     with_mac(ip, mac), wanted);
}

static void expect_ahs_with_mac(const uint8_t ip[4], const struct mac *mac, uint32_t wanted)
{
	double end = seconds() + ENOUGH_MS / 1000;

	while (ahs_with_mac(ip, mac) != wanted && seconds() < end)
		answer_again();
	cr_assert_eq(ahs_with_mac(ip, mac), wanted, "%u of %u address handles have the MAC address",
		     ahs_with_mac(ip, mac), wanted);
}

/* The end of a command; another one begins. */
static void note_command(struct beside *pair)
{
	pair->command = MAX_OF(pair->command, starved_command(&pair->starved));
	starved_begin(&pair->starved);
}

/* Commands and data of a program without that neighbour, until the time is over. Returns how many. */
static uint32_t ask_others(int fd, struct beside *pair)
{
	double end = seconds() + SECONDS;
	uint32_t asked = 0;

	for (; seconds() < end || asked == 0; asked++) {
		uint32_t pd, context;

		starved_begin(&pair->starved);
		context = open_context(fd);
		note_command(pair);
		cr_assert_eq(ask_handle(fd, COMMAND_ALLOC_PD, context, &pd), 0);
		note_command(pair);
		cr_assert_eq(ask_handle(fd, COMMAND_DEALLOC_PD, pd, NULL), 0);
		note_command(pair);
		cr_assert_eq(ask_handle(fd, COMMAND_CLOSE_CONTEXT, context, NULL), 0);
		note_command(pair);
		beside_once(pair);
	}
	return asked;
}

/* ---- what a change costs, counted ---- */

/* The work of the control thread when it follows changes. */
static struct {
	bool now; /* it does */
	uint32_t looks, messages, graces;
	uint32_t qps_of_a, ahs_of_a, others; /* users that are told; others: of another neighbour */
} follows; /* under the engine's control_lock */

nanotime __real_destinations_slice(struct engine *e, bool waiting, bool unreachable, nanotime now);
nanotime __wrap_destinations_slice(struct engine *e, bool waiting, bool unreachable, nanotime now);
enum flow_state __real_flow_resolve(struct engine *e, const struct gid *sgid,
				    const struct gid *dgid, struct mac *mac);
enum flow_state __wrap_flow_resolve(struct engine *e, const struct gid *sgid,
				    const struct gid *dgid, struct mac *mac);
void __real_flow_make_of(const struct engine *e, const struct engine_qp *q,
			 const struct qp_path *way, uint32_t dest_qpn, const struct mac *mac,
			 struct flow *flow);
void __wrap_flow_make_of(const struct engine *e, const struct engine_qp *q,
			 const struct qp_path *way, uint32_t dest_qpn, const struct mac *mac,
			 struct flow *flow);
struct engine_ah *__real_ah_renew(struct engine *e, const struct engine_ah *ah,
				  enum flow_state state, const struct mac *mac);
struct engine_ah *__wrap_ah_renew(struct engine *e, const struct engine_ah *ah,
				  enum flow_state state, const struct mac *mac);
void __real_lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg);
void __wrap_lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg);
void __real_engine_grace_period(struct engine *e);
void __wrap_engine_grace_period(struct engine *e);

nanotime __wrap_destinations_slice(struct engine *e, bool waiting, bool unreachable, nanotime now)
{
	nanotime next;

	follows.now = true;
	next = __real_destinations_slice(e, waiting, unreachable, now);
	follows.now = false;
	return next;
}

enum flow_state __wrap_flow_resolve(struct engine *e, const struct gid *sgid,
				    const struct gid *dgid, struct mac *mac)
{
	follows.looks += follows.now;
	return __real_flow_resolve(e, sgid, dgid, mac);
}

static bool is_of_a(const struct qp_path *way)
{
	return memcmp(way->dgid.octet + 12, a_ip, 4) == 0;
}

void __wrap_flow_make_of(const struct engine *e, const struct engine_qp *q,
			 const struct qp_path *way, uint32_t dest_qpn, const struct mac *mac,
			 struct flow *flow)
{
	follows.qps_of_a += follows.now && is_of_a(way);
	follows.others += follows.now && !is_of_a(way);
	__real_flow_make_of(e, q, way, dest_qpn, mac, flow);
}

static struct {
	bool now;
	uint32_t tries;
	uint32_t made; /* handles, since there is memory again */
} starves; /* under the engine's control_lock */

struct engine_ah *__wrap_ah_renew(struct engine *e, const struct engine_ah *ah,
				  enum flow_state state, const struct mac *mac)
{
	starves.tries += starves.now;
	starves.made += !starves.now;
	if (starves.now)
		return NULL;
	follows.ahs_of_a += follows.now && is_of_a(&ah->path);
	follows.others += follows.now && !is_of_a(&ah->path);
	return __real_ah_renew(e, ah, state, mac);
}

/* Lcores do not call each other this way; the caller has the control lock. */
void __wrap_lcore_call(struct lcore *l, void (*run)(struct lcore *, void *, nanotime), void *arg)
{
	follows.messages += follows.now;
	__real_lcore_call(l, run, arg);
}

void __wrap_engine_grace_period(struct engine *e)
{
	bool now = follows.now;

	/* It sends messages of its own. Linkers differ in whether they wrap calls within one file. */
	follows.graces += now;
	follows.now = false;
	__real_engine_grace_period(e);
	follows.now = now;
}

static void count_from_now(void)
{
	struct engine *e = (struct engine *)engine;

	pthread_mutex_lock(&e->control_lock);
	memset(&follows, 0, sizeof(follows));
	pthread_mutex_unlock(&e->control_lock);
}

/*
 * `news`: how many changes were followed. One more may be followed after they were counted. A round of looks may
 * have begun before, or begin for nothing.
 */
static void expect_few(uint32_t news)
{
	struct engine *e = (struct engine *)engine;

	pthread_mutex_lock(&e->control_lock);
	fprintf(stderr, "%u looks, %u and %u users told, %u others; %u messages, %u graces\n",
		follows.looks, follows.qps_of_a, follows.ahs_of_a, follows.others, follows.messages,
		follows.graces);
	cr_expect_leq(news, CHANGES, "%u changes were followed", news);
	cr_expect_leq(follows.looks, (news + 4) * LOOKS, "%u looks at ways", follows.looks);
	cr_expect_leq(follows.qps_of_a, (news + 1) * QPS, "%u queue pairs told", follows.qps_of_a);
	cr_expect_leq(follows.ahs_of_a, (news + 1) * AHS, "%u handles made again",
		      follows.ahs_of_a);
	cr_expect_eq(follows.others, 0, "%u users of another neighbour pay", follows.others);
	cr_expect_leq(follows.messages, (news + 1) * MESSAGES, "%u messages", follows.messages);
	cr_expect_leq(follows.graces, (news + 1) * GRACES, "%u grace periods", follows.graces);
	pthread_mutex_unlock(&e->control_lock);
}

static uint32_t serial_of_first(int fd)
{
	struct request_list q = { .from = 0 };
	struct reply_neighbour_list l;

	cr_assert_eq(ask(fd, COMMAND_NEIGHBOUR_LIST, &q.h, sizeof(q), &l.h, sizeof(l), NULL, NULL),
		     0);
	cr_assert_eq(l.count, 1);
	return l.neighbour[0].serial;
}

/* Who has seen the first one's counts can tell that these are another one's. */
Test(neighbour_flip, a_neighbour_that_is_made_again_is_another_one, .timeout = 120)
{
	struct objects o;
	uint32_t serial;
	int fd, other;

	begin();
	fd = attach();
	other = attach();
	make_objects(fd, &o);
	create_ah(fd, o.pd, a_ip);
	serial = serial_of_first(other);
	create_ah(fd, o.pd, a_ip);
	cr_expect_eq(serial_of_first(other), serial);
	close(fd);
	expect_counts(1, 0, 0, 0);
	make_objects(other, &o);
	create_ah(other, o.pd, a_ip);
	cr_expect_neq(serial_of_first(other), serial);
	close(other);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}

/* hostile H-74, H-123 */
Test(neighbour_flip, only_queue_pairs_that_use_it_pay, .timeout = 120)
{
	uint32_t asked, news;
	struct beside pair;
	double control;
	struct objects o;
	int fd, other;

	begin();
	beside_open(&pair);
	fd = attach();
	other = attach();
	make_objects(fd, &o);
	for (uint32_t i = 0; i < QPS; i++)
		connect_qp(fd, &o, a_ip, 0x1000 + i);
	connect_qp(fd, &o, b_ip, 0x1000);
	for (uint32_t i = 0; i < AHS; i++)
		create_ah(fd, o.pd, a_ip);
	create_ah(fd, o.pd, b_ip);
	expect_with_mac(b_ip, &mac_of_b, 1);
	expect_with_mac(a_ip, &mac_of_a, QPS);
	expect_ahs_with_mac(a_ip, &mac_of_a, AHS);

	count_from_now();
	news = neighbour_agent_news((struct engine *)engine);
	control = seconds_of_control();
	__atomic_store_n(&flooding, 1, __ATOMIC_RELEASE);
	asked = ask_others(other, &pair);
	control = seconds_of_control() - control;
	__atomic_store_n(&flooding, 0, __ATOMIC_RELEASE);
	news = neighbour_agent_news((struct engine *)engine) - news;
	fprintf(stderr, "%lu lies, %u followed, %u times others, control %.2f s\n", sent, news,
		asked, control);
	cr_expect_geq(sent, RATE / 4, "%lu lies: the flood did not come", sent);
	expect_few(news);
	/* the last one wins */
	expect_with_mac(a_ip, &mac_of_a, QPS);
	expect_with_mac(b_ip, &mac_of_b, 1);
	expect_ahs_with_mac(a_ip, &mac_of_a, AHS);
	expect_ahs_with_mac(b_ip, &mac_of_b, 1);
	close(fd);
	close(other);
	beside_close(&pair);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}

static uint32_t starve(bool now)
{
	struct engine *e = (struct engine *)engine;
	uint32_t tries;

	pthread_mutex_lock(&e->control_lock);
	tries = starves.tries;
	starves.now = now;
	starves.tries = starves.made = 0;
	if (now)
		destinations_stale(e->control->destinations);
	pthread_mutex_unlock(&e->control_lock);
	return tries;
}

static void await_number(const uint32_t *number, uint32_t least, const char *what)
{
	struct engine *e = (struct engine *)engine;
	nanotime end = clock_now() + ENOUGH_MS * TIME_MS;
	uint32_t n;

	do {
		poll(NULL, 0, 1);
		pthread_mutex_lock(&e->control_lock);
		n = *number;
		pthread_mutex_unlock(&e->control_lock);
	} while (n < least && clock_now() < end);
	cr_assert_geq(n, least, "%s", what);
}

/* The control thread rests between two tries, and does not forget the handle. */
Test(neighbour_flip, a_handle_waits_for_memory, .timeout = 120)
{
	uint32_t tries;
	struct objects o;
	nanotime since;
	int fd;

	begin();
	fd = attach();
	make_objects(fd, &o);
	create_ah(fd, o.pd, a_ip);
	expect_ahs_with_mac(a_ip, &mac_of_a, 1);
	since = clock_now();
	starve(true);
	await_number(&starves.tries, 5, "the handle is not tried again");
	tries = starve(false);
	since = (clock_now() - since) / TIME_MS;
	cr_expect_leq(tries, 3 + since / (LIMIT_FLIP_MS / 4), "%u tries in %lu ms", tries,
		      (unsigned long)since);
	await_number(&starves.made, 1, "there is memory, and the handle is not made");
	expect_ahs_with_mac(a_ip, &mac_of_a, 1);
	close(fd);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}

/* hostile H-60: questions cost few messages to an lcore, and others are served beside them. */
Test(neighbour_flip, a_flood_of_questions, .timeout = 120)
{
	struct beside pair;
	uint32_t asked;
	double control;
	int other;

	begin();
	beside_open(&pair);
	other = attach();
	__atomic_store_n(&asking, 1, __ATOMIC_RELEASE);
	control = seconds_of_control();
	__atomic_store_n(&flooding, 1, __ATOMIC_RELEASE);
	asked = ask_others(other, &pair);
	control = seconds_of_control() - control;
	__atomic_store_n(&flooding, 0, __ATOMIC_RELEASE);
	fprintf(stderr, "%lu questions, %u answers in %u bursts, %u times others, control %.2f s\n",
		sent, answers, bursts, asked, control);
	cr_expect_gt(answers, 0);
	close(other);
	beside_close(&pair);
	expect_counts(0, 0, 0, 0);
	control_rig_close();
}
