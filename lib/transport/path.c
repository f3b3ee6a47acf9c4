/* SPDX-License-Identifier: BSD-3-Clause */
#include <assert.h>
#include <string.h>

#include "base/bits.h"
#include "config/limits.h"
#include "transport/path.h"

#define DELAY	    (LIMIT_PATH_DELAY_US * TIME_US)
#define STEP	    (LIMIT_PATH_STEP_US * TIME_US)
#define UNKNOWN	    (50 * TIME_US) /* stands for an unmeasured round trip */
#define FIRST	    1024u /* assumed octets of a packet before the first one */
#define BETA	    4 / 5 /* Swift's: the part of the excess delay that counts */
#define GAIN	    16u /* DCQCN's g is one in so many, for a round trip instead of 55 us */
#define CALM_STEPS  64u /* in so many at most, missed updates of alpha are made up for */
#define TRUST	    (1 * TIME_S) /* after a loss or mark the network counts as full for so long */
#define SCALE_FROM  16u /* packets: the target of smaller windows is higher */
#define SCALE_STEP  3 / 8 /* ... by so much of what queues may add for each half */
#define LOOK_TRIPS  64u /* the first packets go so many round trips apart at most, */
#define LOOK_MOST   (150 * TIME_US)
#define LOOK_MET    8u /* so many more if they meet others, */
#define LOOK_WIDER  2u /* ... and up to 2 to that power as far apart */
#define BATCH	    128u /* packets that are looked at together, or so */
#define BATCH_LOSSY 40u /* ... more repetitions of 128 than this are not a bad cable's */
#define GENTLE	    64u /* a window that loses a part of itself grows by so much of it, and a packet */
#define OVERFLOWS   3 / 2 /* a queue that does is so much longer than what is tolerated */
#define HOST	    (1 * TIME_MS) /* longer delays are hosts', if the network may be fast */
#define SHARES	    (50 * TIME_US) /* a host later than its own work explains shares its core */
#define CALM	    2u /* round trips far below the target until it grows faster, and from step to step */
#define HASTE	    6u /* ... at most 2 to that power as fast */
#define LONG_KNOWN  4u /* samples of a millisecond and more: then the way is not short */
#define LEAP	    8u /* a window grows by this part in a long round trip at most */
#define SPREAD	    3 / 4 /* part of a round trip in which a window leaves on a long way, */
#define AT_ONCE	    4u /* ... except this many packets at once */
#define OFTEN	    1024u /* packets: a peer that goes back again within them does so often */
#define DOUBT_MOST  6u /* silence is doubled at most so often */

void path_init(struct path *p)
{
	static const struct late never;

	memset(p, 0, sizeof(*p));
	p->late = &never;
	p->packet = p->mean = FIRST;
	p->window = LIMIT_PATH_START;
	p->starting = true;
	p->next_at = TIME_NEVER;
	p->alpha = ALPHA_ONE;
}

/* The way may have changed, so the least round trip is forgotten after two periods. */
static void note_least(struct path *p, nanotime rtt, nanotime now)
{
	if (now >= p->min_until) {
		p->min_rtt = p->samples == 0 ? rtt : p->min_now;
		p->min_now = rtt;
		p->min_until = now + LIMIT_PATH_MIN_S * TIME_S;
	}
	p->min_now = MIN_OF(p->min_now, rtt);
	p->min_rtt = MIN_OF(p->min_rtt, rtt);
}

static void smooth(struct path *p, nanotime rtt)
{
	nanotime off = rtt > p->srtt ? rtt - p->srtt : p->srtt - rtt;

	if (p->samples++ == 0) {
		p->srtt = rtt;
		p->rttvar = rtt / 2;
		p->before = p->last = rtt;
		return;
	}
	p->rttvar += off / 4 - p->rttvar / 4;
	p->srtt += rtt / 8 - p->srtt / 8;
	p->before = p->last;
	p->last = rtt;
}

static nanotime round_trip(const struct path *p)
{
	return p->srtt != 0 ? p->srtt : UNKNOWN;
}

/* The time that queues may add to a round trip. */
static nanotime room(const struct path *p)
{
	return MAX_OF(DELAY, p->min_rtt / 4);
}

/*
 * Swift's flow scaling: n flows that share a bottleneck have windows of 1/n of it, and a higher
 * target for small windows lets them find the same size. The target rises by the same step for each
 * halving of the window. So a flow that takes the way for one step longer only has twice the window
 * of others.
 */
static nanotime scaling(const struct path *p)
{
	uint64_t whole = (uint64_t)SCALE_FROM * p->packet, step = room(p) * SCALE_STEP;
	nanotime sum = 0;

	for (; p->window < whole; whole /= 2, sum += step)
		if (p->window >= whole / 2)
			return sum + step * (whole - p->window) / (whole - whole / 2);
	return sum;
}

/* The least round trip with what queues and hosts may add to it. */
static nanotime tolerated(const struct path *p)
{
	return p->min_rtt + room(p) + path_late(p) + p->peer_late;
}

nanotime path_target(const struct path *p)
{
	return p->samples == 0 ? TIME_NEVER : tolerated(p) + scaling(p);
}

/* A sample alone may be the other side's scheduler. */
static nanotime delay(const struct path *p)
{
	return MIN_OF(p->last, p->before);
}

static bool may_cut(const struct path *p, nanotime now)
{
	return p->cut_at == 0 || now - p->cut_at >= MAX_OF(round_trip(p), p->last);
}

/* To `part` of `whole`, a half at most, not below `least`. */
static void cut(struct path *p, uint64_t part, uint64_t whole, uint64_t least, nanotime now)
{
	uint64_t to = MAX_OF(p->window * part / whole, p->window / 2);

	assert(part <= whole && whole <= UINT64_C(1) << 34 && "no overflow");
	p->starting = false;
	p->cut_at = now;
	p->rounds = 0;
	path_count(p, PATH_CUT);
	p->window = MIN_OF(p->window, MAX_OF(to, least));
}

/* The first samples of a short way are as long if its first packets were lost, until a probe was
 * answered.
 */
static bool is_long(const struct path *p)
{
	return p->min_rtt >= HOST && p->samples >= LONG_KNOWN;
}

/* A round trip that is so much longer is a host's doing. On a long way it may be the network's. */
static nanotime host(const struct path *p)
{
	return MAX_OF(HOST, p->min_rtt);
}

/*
 * A host that shares its cores answers late without any queue in the network. So delay alone leaves
 * a window that suffices for such hosts. The window gets smaller only while losses or marks say
 * that the network is full.
 */
static bool hosts_are_late(const struct path *p)
{
	return p->samples > 0 &&
	       (delay(p) - p->min_rtt >= host(p) || path_late(p) + p->peer_late >= SHARES);
}

/*
 * A late host's packets wait in a ring or a socket, which counts packets: small packets overflow it
 * long before a window in octets does.
 */
static uint64_t ring(const struct path *p)
{
	return (uint64_t)LIMIT_PATH_RING * p->mean;
}

/*
 * A peer that goes back drops a whole window for each loss. While it does so often, packets that wait in a queue are
 * sent twice and bring nothing. On a long way a small window would cost more than that.
 */
static bool goes_back_often(const struct path *p)
{
	return p->acknowledged < p->back_until && !is_long(p);
}

static uint64_t most(const struct path *p)
{
	uint64_t octets = p->small_until != 0 ? ring(p) : LIMIT_PATH_WINDOW;

	return goes_back_often(p) ? MIN_OF(octets, (uint64_t)LIMIT_PATH_GO_BACK * p->packet)
				  : octets;
}

static uint64_t least(const struct path *p)
{
	if (!hosts_are_late(p))
		return LIMIT_PATH_LEAST;
	return MIN_OF(p->full ? LIMIT_PATH_HOSTS : LIMIT_PATH_FLOOR, most(p));
}

static void too_long(struct path *p, nanotime target, nanotime now)
{
	nanotime d = delay(p), over = (d - target) * BETA;

	p->gentle_until = 0;
	if (may_cut(p, now))
		cut(p, d - over, d, least(p), now);
}

/*
 * The queue is to drain, and a little more: a sender that never sees the way without a queue takes
 * the way for longer.
 */
static void too_many(struct path *p, nanotime now)
{
	if (may_cut(p, now))
		cut(p, 9 * p->min_rtt, 10 * MAX_OF(delay(p), p->min_rtt), least(p), now);
}

/* Counts the round trips with nearly no queue. */
static void count_rounds(struct path *p, nanotime target, nanotime now)
{
	if (p->last > p->min_rtt + (target - p->min_rtt) / 2)
		p->rounds = 0;
	if (now < p->round_at)
		return;
	p->round_at = now + round_trip(p);
	p->rounds += p->rounds < CALM * HASTE;
}

/*
 * The first packets of a path go alone, at times of their own. So if many paths begin at once, each
 * of them sees the way before there is a queue. If so many begin that these packets alone are a queue, they
 * are further apart, and more. A long way needs no such care, but the first sample alone does
 * not tell: its packet may have been lost, and the time passed until a probe was answered.
 */
static void look(struct path *p, nanotime rtt, nanotime now)
{
	uint64_t any = (now ^ rtt << 20) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	nanotime most;

	if (rtt > tolerated(p) && p->met < LOOK_MET)
		p->met++;
	else
		p->looks++;
	if (p->looks >= LIMIT_PATH_LOOKS || (rtt >= HOST && p->samples > 1))
		path_looked(p);
	most = MIN_OF(LOOK_TRIPS * rtt, LOOK_MOST << MIN_OF(p->met, LOOK_WIDER));
	p->open_at = now + most * any / (UINT64_C(1) << 32);
}

/*
 * So many are lost only where more is sent than goes through, even if the queue is too short to
 * show in a round trip. What arrived is what goes through. The next losses are few if the window
 * grows slowly from there.
 */
static void share_lost(struct path *p, uint64_t lost, uint64_t of, nanotime now)
{
	p->gentle_until = now + TRUST;
	cut(p, BATCH - lost * BATCH / of, BATCH, p->packet, now);
}

/*
 * A small window would need many round trips for a batch, and repetitions of a large one come
 * together.
 */
static uint64_t batch_of(const struct path *p)
{
	uint64_t whole = (uint64_t)BATCH * p->packet;

	return MAX_OF(MAX_OF(MIN_OF(whole, p->window), whole / 2), p->window / 4);
}

/* What is repeated in the round trip after a cut had left before it, and says nothing of it. */
static void look_at_batch(struct path *p, nanotime now)
{
	uint64_t all = p->batch, again = MIN_OF(p->batch_again, all);
	bool stale = !may_cut(p, now);

	if (!stale && all < batch_of(p))
		return;
	p->batch = p->batch_again = 0;
	if (stale)
		return;
	p->lossy = again >= all * BATCH_LOSSY / BATCH;
	if (p->lossy && !goes_back_often(p))
		share_lost(p, again, all, now);
}

void path_rtt(struct path *p, nanotime rtt, nanotime now)
{
	nanotime target;

	rtt = MIN_OF(MAX_OF(rtt, 1), LIMIT_PATH_RTT_MS * TIME_MS);
	p->doubt = 0;
	note_least(p, rtt, now);
	smooth(p, rtt);
	assert(p->srtt > 0 && p->min_rtt > 0 && "0 means that nothing is known");
	p->full &= now - p->full_at <= TRUST;
	if (now >= p->small_until)
		p->small_until = 0;
	if (now >= p->gentle_until)
		p->gentle_until = 0;
	look_at_batch(p, now);
	if (p->looks < LIMIT_PATH_LOOKS)
		look(p, rtt, now);
	p->slowly |= is_long(p);
	target = path_target(p);
	count_rounds(p, target, now);
	if (p->last <= target)
		p->long_at = 0;
	else if (p->long_at == 0)
		p->long_at = now;
	else if (now - p->long_at >= p->min_rtt && delay(p) > target)
		too_long(p, target, now);
}

/* The time that a CNP speaks for, and the interval at which alpha is updated. */
static nanotime slot(const struct path *p)
{
	return MIN_OF(round_trip(p), LIMIT_CNP_US * TIME_US);
}

static uint32_t gain(const struct path *p)
{
	return GAIN * (uint32_t)(round_trip(p) / slot(p));
}

/*
 * DCQCN's alpha decays in times without a CNP. Updates that were missed are made up for in steps:
 * more of them together, if they are many.
 */
static void calm(struct path *p, nanotime now)
{
	uint64_t missed, step;

	if (p->calm_at == 0 || now < p->calm_at)
		return;
	missed = (now - p->calm_at) / slot(p) + 1;
	p->calm_at += missed * slot(p);
	step = (missed + CALM_STEPS - 1) / CALM_STEPS;
	for (; missed > 0; missed -= MIN_OF(step, missed))
		p->alpha -= p->alpha * MIN_OF(MIN_OF(step, missed), gain(p)) / gain(p);
}

/* A window takes a round trip. The pace never falls to a stop. */
static nanotime time_of(const struct path *p, uint32_t octets)
{
	return MIN_OF(round_trip(p) * octets / p->window, LIMIT_PATH_PAUSE_MS * TIME_MS);
}

/*
 * On a long way a window would be a burst of megabytes for a switch, so it is spread over most of
 * its round trip. Some packets leave at once, so that the sender need not look at the clock for
 * each of them.
 */
static void spread(struct path *p, uint32_t octets, nanotime now)
{
	nanotime burst = time_of(p, AT_ONCE * p->packet);

	p->next_at = MAX_OF(p->next_at, now - MIN_OF(now, burst)) + time_of(p, octets) * SPREAD;
}

void path_sent_slowly(struct path *p, uint32_t octets, nanotime now)
{
	calm(p, now);
	p->packet = MAX_OF(p->packet, MIN_OF(octets, LIMIT_PATH_PACKET));
	if (octets > p->window)
		p->open_at = now + time_of(p, octets);
	else if (is_long(p) && !p->starting && p->next_at != TIME_NEVER)
		spread(p, octets, now);
}

void path_sent_alone(struct path *p, uint32_t octets, nanotime now)
{
	nanotime most = now + time_of(p, (uint32_t)MAX_OF(p->window, octets));

	p->open_at = MIN_OF(MAX_OF(p->open_at, now) + time_of(p, octets), most);
	if (p->next_at != TIME_NEVER)
		p->next_at = MAX_OF(p->next_at, p->open_at);
}

static void grow(struct path *p, uint64_t octets)
{
	uint32_t haste = p->srtt > HOST ? MIN_OF(p->rounds, HASTE) : p->rounds / CALM;
	uint64_t step = (p->packet * MAX_OF(p->srtt, STEP / 8) / STEP) << haste;

	if (is_long(p))
		step = MIN_OF(step, MAX_OF(p->window / LEAP, p->packet));
	if (p->gentle_until != 0)
		step = MIN_OF(step, p->window / GENTLE + p->packet);
	if (p->window < p->packet)
		step = MAX_OF(step * p->window / p->packet, step / 8);
	if (p->window >= ring(p) && hosts_are_late(p))
		p->starting = false;
	if (p->starting)
		p->window += octets;
	else
		p->window += MAX_OF(step * octets / MAX_OF(p->window, octets), 1);
	p->window = MIN_OF(p->window, most(p));
}

void path_grow(struct path *p, uint64_t octets)
{
	if (p->looks >= LIMIT_PATH_LOOKS && delay(p) <= path_target(p))
		grow(p, octets);
}

static void filled(struct path *p, nanotime now)
{
	p->lone = 0;
	p->full = true;
	p->full_at = now;
}

/*
 * Delay alone keeps round trips near the target, above it as often as below. A queue that overflows is longer by half
 * of what is tolerated at least.
 */
static bool is_slow(const struct path *p)
{
	return p->samples > 0 && delay(p) < p->min_rtt + host(p) &&
	       delay(p) > p->min_rtt + (path_target(p) - p->min_rtt) * OVERFLOWS;
}

/* The network is not full any more: its losses would not stand alone so often. */
static void stood_alone(struct path *p)
{
	p->lone = (uint8_t)MIN_OF(p->lone + 1u, LIMIT_PATH_LONE);
	p->full &= !path_losses_are_lone(p);
}

/* A loss that stands alone while the way is short is a bad cable's. */
static bool is_crowded(const struct path *p)
{
	return p->starting || p->lossy || is_slow(p);
}

static void went_back(struct path *p)
{
	uint64_t often = (uint64_t)OFTEN * p->packet;

	if (p->back_at != 0 && p->acknowledged - p->back_at < often)
		p->back_until = p->acknowledged + often;
	p->back_at = MAX_OF(p->acknowledged, 1);
	p->window = MIN_OF(p->window, most(p));
}

void path_lost(struct path *p, bool goes_back, nanotime now)
{
	look_at_batch(p, now);
	if (goes_back)
		went_back(p);
	if (!is_crowded(p))
		stood_alone(p);
	if (hosts_are_late(p)) {
		p->small_until = now + LIMIT_PATH_MIN_S * TIME_S;
		p->window = MIN_OF(p->window, most(p));
	}
	if (is_crowded(p)) {
		if (!p->starting || is_slow(p))
			filled(p, now);
		if (p->samples == 0 && may_cut(p, now))
			cut(p, 1, 2, p->packet, now);
		else if (p->starting || is_slow(p) || goes_back)
			too_many(p, now); /* what is only lossy was cut for its batch */
	} else if (goes_back && may_cut(p, now)) {
		cut(p, 1, 2, LIMIT_PATH_GO_BACK * p->packet, now);
	}
}

/* The most of late; a network that kept the order is trusted. */
static uint32_t learnt(const struct path *p, nanotime now)
{
	if (p->places == 0 || now - p->reordered_at > LIMIT_PATH_MIN_S * TIME_S)
		return LIMIT_REORDER_FIRST;
	return p->places;
}

/*
 * Only small changes of order show: a packet further behind was taken for lost and sent again,
 * which tells nothing. So twice as many places are assumed until the next packets show.
 */
void path_reordered(struct path *p, uint32_t places, nanotime now)
{
	p->places = (uint8_t)MAX_OF(learnt(p, now), MIN_OF(2 * places, LIMIT_REORDER));
	p->reordered_at = now;
}

uint32_t path_places(const struct path *p, nanotime now)
{
	return p->full || is_crowded(p) ? LIMIT_REORDER : learnt(p, now);
}

void path_silent(struct path *p, nanotime now)
{
	if (may_cut(p, now))
		cut(p, 1, 2, p->packet, now);
}

void path_probed(struct path *p)
{
	path_count(p, PATH_PROBE);
	if (p == NULL)
		return;
	/* A packet that was probed gives no sample, and path_rtt counts samples. */
	if (p->samples > 0 && p->looks < LIMIT_PATH_LOOKS && ++p->looks == LIMIT_PATH_LOOKS)
		path_looked(p);
}

/*
 * Karn: a packet that was probed gives no sample. There would be no more samples if round trips
 * became longer than the silence that a probe breaks. So the next silence may be longer, until
 * there is a sample. Probes without an answer do not count: queue pairs whose peer is gone send
 * many, and others would wait for each other's probes 64 times as long.
 */
void path_doubt(struct path *p, uint32_t probes)
{
	p->doubt = (uint8_t)MIN_OF(p->doubt + probes, DOUBT_MOST);
}

/*
 * Packets on the way were lost, or reached no queue pair. They would take the room of queue pairs
 * that get answers, until the longest ACK timeout.
 */
static void count_asked(struct path *p, nanotime now)
{
	if (p->asked_heard != p->heard) {
		p->asked_heard = p->heard;
		p->asked = 0;
	}
	if (p->asked++ < LIMIT_PROBES_ALONE)
		return;
	/* A silence shrinks the window once, because nearly nothing is sent from then on. */
	if (p->asked == LIMIT_PROBES_ALONE + 1)
		path_silent(p, now);
	p->given_up++;
	p->flying = p->used = 0;
}

nanotime path_ask(struct path *p, bool alone, nanotime quiet, nanotime now, nanotime until)
{
	if (p == NULL || p->answered > quiet)
		return now;
	if (now < p->asked_until && (alone || !p->asked_alone))
		return p->asked_until;
	p->asked_at = now;
	p->asked_until = until;
	p->asked_alone = alone;
	if (!alone)
		count_asked(p, now);
	return now;
}

/* DCQCN: alpha follows how often CNPs come, and the window loses half of that part. */
void path_cnp(struct path *p, nanotime now)
{
	filled(p, now);
	p->gentle_until = 0;
	p->slowly = true;
	p->rounds = 0;
	if (now - p->cnp_at >= slot(p)) {
		p->alpha += (ALPHA_ONE - p->alpha) / gain(p);
		p->cnp_at = now;
		p->calm_at = now + slot(p);
	}
	if (may_cut(p, now))
		cut(p, 2 * ALPHA_ONE - p->alpha, 2 * ALPHA_ONE, LIMIT_PATH_MARKED, now);
}

static bool has_room(const struct path *p, uint32_t octets)
{
	return p->looks >= LIMIT_PATH_LOOKS && p->flying + octets <= p->window;
}

uint64_t path_room(const struct path *p, nanotime now)
{
	if (has_room(p, p->packet) && now >= p->next_at)
		return p->window - p->flying;
	return path_may_send(p, p->packet, now) ? p->packet : 0;
}

nanotime path_opens_at(const struct path *p, uint32_t octets, nanotime now)
{
	if (path_may_send(p, octets, now))
		return now;
	if (has_room(p, octets))
		return p->next_at;
	return p->flying == 0 ? p->open_at : TIME_NEVER;
}
