/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/limits.h"
#include "drivers/net_impair/impair.h"

#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>

/* splitmix64 */
static uint64_t draw(struct impair_path *p)
{
	uint64_t z = p->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static bool happens(struct impair_path *p, uint64_t threshold)
{
	return (draw(p) >> 32) < threshold;
}

/* The moment whose distance from now is `ratio` times that of `at`. */
static uint64_t rescaled(uint64_t at, uint64_t now, double ratio)
{
	return at <= now ? at : now + (uint64_t)((double)(at - now) * ratio);
}

/*
 * The rules have another rate than the path. Frames that wait for the old rate leave at the new
 * one, or at once if there is no rate. Frames that only wait for their delay have passed the rate
 * already.
 */
static void rate_changed(struct impair_path *p, uint64_t now)
{
	const struct impair_rules *r = p->rules;
	uint64_t passed_at = now + impair_rule(&r->delay), old_cost = p->octet_cost;
	double ratio;

	p->rate = impair_rule(&r->rate);
	p->octet_cost = p->rate == 0 ? 0
				     : (uint64_t)((double)r->frequency * 8 * p->paths *
						  (1 << IMPAIR_SHIFT) / (double)p->rate);
	ratio = old_cost == 0 ? 0 : (double)p->octet_cost / (double)old_cost;
	p->rate_free_at = rescaled(p->rate_free_at, now, ratio);
	for (uint32_t i = p->head; i != p->tail; i++) {
		struct impair_waiting *w = &p->line[i % IMPAIR_LINE];

		w->due = rescaled(w->due, passed_at, ratio);
	}
}

static void follow_rate(struct impair_path *p, uint64_t now)
{
	if (p->rules != NULL && impair_rule(&p->rules->rate) != p->rate)
		rate_changed(p, now);
}

void impair_path_init(struct impair_path *p, const struct impair_rules *rules, uint64_t salt,
		      uint32_t paths)
{
	memset(p, 0, sizeof(*p));
	p->rules = rules;
	p->random = (rules == NULL ? 0 : rules->seed) * UINT64_C(0x2545f4914f6cdd1d) + salt;
	p->paths = paths;
	if (rules != NULL)
		rate_changed(p, 0);
}

void impair_path_clear(struct impair_path *p)
{
	for (; p->head != p->tail; p->head++)
		rte_pktmbuf_free(p->line[p->head % IMPAIR_LINE].frame);
	for (uint32_t i = 0; i < p->pocketed; i++)
		rte_pktmbuf_free(p->pocket[i].frame);
	p->pocketed = 0;
}

static void line_up(struct impair_path *p, struct rte_mbuf *frame, uint64_t due)
{
	p->line[p->tail++ % IMPAIR_LINE] = (struct impair_waiting){ .frame = frame, .due = due };
}

/*
 * A frame whose octets this path may change: the frame itself, or a copy if its octets are shared.
 * NULL: no buffer is free.
 */
static struct rte_mbuf *own_octets(struct rte_mbuf *frame)
{
	struct rte_mbuf *copy;

	if (RTE_MBUF_DIRECT(frame) && rte_mbuf_refcnt_read(frame) == 1 && frame->nb_segs == 1)
		return frame;
	copy = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
	if (copy == NULL)
		return NULL;
	rte_pktmbuf_free(frame);
	return copy;
}

static struct rte_mbuf *corrupt(struct impair_path *p, struct rte_mbuf *frame)
{
	struct rte_mbuf *own = own_octets(frame);
	uint64_t bit = draw(p);

	if (own == NULL || own->data_len == 0)
		return frame;
	rte_pktmbuf_mtod(own, uint8_t *)[bit / 8 % own->data_len] ^= (uint8_t)(1u << bit % 8);
	p->counters.corrupted++;
	return own;
}

/*
 * The IP header of a frame, behind at most one VLAN tag, and its EtherType. NULL: the frame has
 * none.
 */
static uint8_t *ip_header(uint8_t *frame, uint32_t length, uint16_t *type)
{
	uint32_t l3 = RTE_ETHER_HDR_LEN;

	if (length < l3 + RTE_VLAN_HLEN + sizeof(struct rte_ipv4_hdr))
		return NULL;
	*type = (uint16_t)(frame[12] << 8 | frame[13]);
	if (*type == RTE_ETHER_TYPE_VLAN) {
		*type = (uint16_t)(frame[16] << 8 | frame[17]);
		l3 += RTE_VLAN_HLEN;
	}
	return *type == RTE_ETHER_TYPE_IPV4 || *type == RTE_ETHER_TYPE_IPV6 ? frame + l3 : NULL;
}

/* Sets ECN = 11 in the IP header, if there is one (RFC 3168). */
static bool mark_ip(uint8_t *frame, uint32_t length)
{
	uint16_t type;
	uint8_t *l3 = ip_header(frame, length, &type);

	if (l3 == NULL)
		return false;
	if (type == RTE_ETHER_TYPE_IPV4) {
		struct rte_ipv4_hdr *ip = (void *)l3;

		ip->type_of_service |= RTE_IPV4_HDR_ECN_CE;
		ip->hdr_checksum = 0;
		ip->hdr_checksum = rte_ipv4_cksum(ip);
	} else {
		l3[1] |= 0x30;
	}
	return true;
}

/* Whether the sender understands marks, and the frame has none yet (ECN = 01 or 10). */
static bool can_be_marked(struct rte_mbuf *frame)
{
	uint16_t type;
	const uint8_t *l3 = ip_header(rte_pktmbuf_mtod(frame, uint8_t *), frame->data_len, &type);
	uint8_t ecn;

	if (l3 == NULL)
		return false;
	ecn = type == RTE_ETHER_TYPE_IPV4 ? l3[1] & 3 : l3[1] >> 4 & 3;
	return ecn == 1 || ecn == 2;
}

static struct rte_mbuf *mark(struct rte_mbuf *frame, uint64_t *marked)
{
	struct rte_mbuf *own = own_octets(frame);

	if (own == NULL)
		return frame;
	*marked += mark_ip(rte_pktmbuf_mtod(own, uint8_t *), own->data_len);
	return own;
}

static void pocket_or_line(struct impair_path *p, struct rte_mbuf *frame, uint64_t due)
{
	const struct impair_rules *r = p->rules;

	if (!happens(p, impair_rule(&r->reorder)) || p->pocketed == IMPAIR_POCKET) {
		line_up(p, frame, due);
		return;
	}
	p->pocket[p->pocketed++] = (struct impair_waiting){
		.frame = frame,
		.due = due + r->patience,
		.after = p->tail + 1 + (uint32_t)(draw(p) % r->overtaken),
	};
	p->counters.reordered++;
}

static void overflow(struct impair_path *p, struct rte_mbuf *frame)
{
	rte_pktmbuf_free(frame);
	p->counters.overflowed++;
}

/* Passes a frame through the buffer in front of the rate, if there is a rate, and into the line. */
static void through_rate(struct impair_path *p, struct rte_mbuf *frame, uint64_t now)
{
	const struct impair_rules *r = p->rules;
	uint64_t begins = RTE_MAX(now, p->rate_free_at), waiting; /* octets of all paths */

	if (p->octet_cost == 0) {
		if (impair_line_free(p) > 0)
			pocket_or_line(p, frame, now + impair_rule(&r->delay));
		else
			overflow(p, frame);
		return;
	}
	waiting = ((begins - now) << IMPAIR_SHIFT) / p->octet_cost * p->paths;
	if (waiting + (uint64_t)frame->pkt_len * p->paths > impair_rule(&r->queue) ||
	    impair_line_room(p) == 0) {
		overflow(p, frame);
		return;
	}
	if (waiting > impair_rule(&r->ecn) && can_be_marked(frame))
		frame = mark(frame, &p->counters.queue_marked);
	p->rate_free_at = begins + (frame->pkt_len * p->octet_cost >> IMPAIR_SHIFT);
	pocket_or_line(p, frame, p->rate_free_at + impair_rule(&r->delay));
}

void impair_admit(struct impair_path *p, struct rte_mbuf *frame, uint64_t now)
{
	const struct impair_rules *r = p->rules;
	struct rte_mbuf *twin = NULL;

	if (r == NULL) {
		line_up(p, frame, now);
		return;
	}
	follow_rate(p, now);
	if (happens(p, impair_rule(&r->drop))) {
		rte_pktmbuf_free(frame);
		p->counters.dropped++;
		return;
	}
	if (happens(p, impair_rule(&r->corrupt)))
		frame = corrupt(p, frame);
	if (happens(p, impair_rule(&r->ce)))
		frame = mark(frame, &p->counters.ce_marked);
	if (happens(p, impair_rule(&r->duplicate)))
		twin = rte_pktmbuf_copy(frame, frame->pool, 0, UINT32_MAX);
	through_rate(p, frame, now);
	if (twin != NULL) {
		p->counters.duplicated++;
		through_rate(p, twin, now);
	}
}

/* Takes a frame out of the pocket, if enough others have passed it or it has waited too long. */
static struct rte_mbuf *from_pocket(struct impair_path *p, uint64_t now)
{
	for (uint32_t i = 0; i < p->pocketed; i++) {
		struct rte_mbuf *frame = p->pocket[i].frame;

		if ((int32_t)(p->head - p->pocket[i].after) < 0 && p->pocket[i].due > now)
			continue;
		p->pocketed--;
		memmove(&p->pocket[i], &p->pocket[i + 1], (p->pocketed - i) * sizeof(p->pocket[0]));
		return frame;
	}
	return NULL;
}

static struct rte_mbuf *from_line(struct impair_path *p, uint64_t now)
{
	struct impair_waiting *w = &p->line[p->head % IMPAIR_LINE];

	if (p->head == p->tail || w->due > now)
		return NULL;
	p->head++;
	return w->frame;
}

uint16_t impair_take(struct impair_path *p, struct rte_mbuf **frames, uint16_t n, uint64_t now)
{
	uint16_t taken = 0;

	follow_rate(p, now);
	while (taken < n) {
		struct rte_mbuf *frame = from_pocket(p, now);

		if (frame == NULL)
			frame = from_line(p, now);
		if (frame == NULL)
			break;
		p->counters.passed++;
		p->counters.octets += frame->pkt_len;
		frames[taken++] = frame;
	}
	return taken;
}

void impair_put_back(struct impair_path *p, struct rte_mbuf **frames, uint16_t k)
{
	while (k-- > 0) {
		p->line[--p->head % IMPAIR_LINE] = (struct impair_waiting){ .frame = frames[k] };
		p->counters.passed--;
		p->counters.octets -= frames[k]->pkt_len;
	}
}
