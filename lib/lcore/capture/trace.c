/* SPDX-License-Identifier: BSD-3-Clause */
#include "lcore/capture/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "queue/fence.h"
#include "wire/envelope.h"

struct trace *trace_make(uint32_t qpn, uint32_t peer_qpn, uint32_t slots, uint32_t rings)
{
	struct trace *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	*t = (struct trace){ .qpn = qpn, .peer_qpn = peer_qpn, .slots = slots, .rings = rings };
	for (uint32_t i = 0; i < rings; i++) {
		t->ring[i].slot = calloc(slots, sizeof(struct trace_slot));
		if (t->ring[i].slot == NULL) {
			trace_free(t);
			return NULL;
		}
	}
	return t;
}

void trace_free(struct trace *t)
{
	for (uint32_t i = 0; t != NULL && i < t->rings; i++)
		free(t->ring[i].slot);
	free(t);
}

/* ---- which frames ---- */

#define ETHERNET     14u
#define TAG	     4u
#define UDP_OCTETS   8u
#define BTH_OCTETS   12u
#define DETH_OCTETS  8u
#define ICRC_OCTETS  4u
#define PROTOCOL_UDP 17u

static uint32_t number_24(const uint8_t *octets)
{
	return (uint32_t)octets[0] << 16 | (uint32_t)octets[1] << 8 | octets[2];
}

static uint32_t number_16(const uint8_t *octets)
{
	return (uint32_t)octets[0] << 8 | octets[1];
}

/* The offset of the BTH in a RoCEv2 frame. 0: these octets have no BTH. */
static uint32_t bth_at(const uint8_t *f, uint32_t n)
{
	uint32_t at = ETHERNET, type, protocol;

	if (n < ETHERNET + TAG + 20)
		return 0;
	type = number_16(f + 12);
	if (type == 0x8100) {
		type = number_16(f + 16);
		at += TAG;
	}
	if (type == 0x0800) {
		protocol = f[at + 9];
		at += 4u * (f[at] & 15);
	} else if (type == 0x86dd) {
		protocol = f[at + 6];
		at += 40;
	} else {
		return 0;
	}
	if (protocol != PROTOCOL_UDP || at + UDP_OCTETS + BTH_OCTETS + ICRC_OCTETS > n ||
	    number_16(f + at + 2) != ROCE_UDP_PORT)
		return 0;
	return at + UDP_OCTETS;
}

static bool is_traced(const struct trace *t, const uint8_t *f, uint32_t n, enum capture_way way)
{
	uint32_t peer = __atomic_load_n(&t->peer_qpn, __ATOMIC_RELAXED), at = bth_at(f, n), to;
	bool datagram;

	if (at == 0)
		return false;
	to = number_24(f + at + 5);
	if (to == t->qpn && way != CAPTURE_SENT)
		return true;
	if (way == CAPTURE_RECEIVED)
		return false;
	/*
	 * A UD packet names its source queue pair in the DETH. Others may end behind the BTH and
	 * the ICRC.
	 */
	datagram = f[at] >> 5 == 3 && at + BTH_OCTETS + DETH_OCTETS <= n;
	return datagram ? number_24(f + at + BTH_OCTETS + 5) == t->qpn : peer != 0 && to == peer;
}

/* ---- the ring ---- */

static void keep(struct trace_ring *r, uint32_t slots, const struct traced_packet *p)
{
	uint64_t i = r->head;
	struct trace_slot *s = &r->slot[i % slots];

	__atomic_store_n(&s->turn, 2 * i + 1, __ATOMIC_RELAXED);
	queue_release_fence(); /* pairs with the second look of copy_slot */
	s->packet = *p;
	__atomic_store_n(&s->turn, 2 * i + 2, __ATOMIC_RELEASE);
	__atomic_store_n(&r->head, i + 1, __ATOMIC_RELEASE);
}

void trace_frames(struct trace *t, uint32_t lcore, struct rte_mbuf *const *m, uint32_t n,
		  enum capture_way way, nanotime now)
{
	struct traced_packet p = { .at = now, .way = way };

	for (uint32_t i = 0; i < n; i++) {
		const void *f;

		p.whole = m[i]->pkt_len;
		p.length = MIN_OF(p.whole, LIMIT_TRACE_SNAP);
		f = rte_pktmbuf_read(m[i], 0, p.length, p.octets);
		if (f == NULL || !is_traced(t, f, p.length, way))
			continue;
		if (f != p.octets)
			memcpy(p.octets, f, p.length);
		keep(&t->ring[lcore], t->slots, &p);
	}
}

/* False: the slot holds another packet by now, or is being written. */
static bool copy_slot(const struct trace_slot *s, uint64_t i, struct traced_packet *to)
{
	if (__atomic_load_n(&s->turn, __ATOMIC_ACQUIRE) != 2 * i + 2)
		return false;
	*to = s->packet;
	queue_acquire_fence(); /* pairs with the fence of keep */
	return __atomic_load_n(&s->turn, __ATOMIC_RELAXED) == 2 * i + 2;
}

uint32_t trace_copy(const struct trace *t, uint32_t ring, struct traced_packet *to)
{
	const struct trace_ring *r = &t->ring[ring];
	uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
	uint64_t i = head > t->slots ? head - t->slots : 0;
	uint32_t n = 0;

	for (; i < head; i++)
		n += copy_slot(&r->slot[i % t->slots], i, &to[n]);
	return n;
}

uint64_t trace_seen(const struct trace *t)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->rings; i++)
		n += __atomic_load_n(&t->ring[i].head, __ATOMIC_ACQUIRE);
	return n;
}
