/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that are not for a RoCE queue pair: steering rules of raw queue pairs, the kernel beside
 * the port, the control thread (ARP, neighbour discovery, the connection manager), groups.
 */
#include "lcore/elsewhere.h"

#include <rte_mbuf.h>

#include "lcore/datagram.h"
#include "lcore/exception/exception.h"
#include "lcore/inside.h"
#include "lcore/raw/raw.h"
#include "queue/pointers.h"

static void group_input(struct lcore *l, struct packet *p, struct rte_mbuf *m, uint32_t kind,
			nanotime now)
{
	mcast_input(l, p, m, kind == FRAME_FOR_MEMBERS, now);
}

static void gsi_input(struct lcore *l, struct packet *p, struct rte_mbuf *m, uint32_t kind,
		      nanotime now)
{
	cm_rx(l, p, m);
}

const struct elsewhere elsewhere[] = {
	{ MULTICAST_QPN, group_input },
	{ QPN_GSI, gsi_input },
	{ 0, NULL },
};

const struct frame_way frame_way[FRAME_KINDS] = {
	[FRAME_RECEIVED] = { .trusted = false },
	[FRAME_LENT] = { .trusted = true },
	[FRAME_TRUSTED] = { .trusted = true },
	[FRAME_RAW_LOOPED] = { .whole = raw_looped },
	[FRAME_RAW_DELIVERED] = { .whole = raw_arrived },
	[FRAME_FOR_MEMBERS] = { .trusted = true },
};

/* Frames that are not RoCE go to the control thread: ARP, neighbour discovery, echo. */
static void stranger(struct lcore *l, struct rte_mbuf *m)
{
	struct engine *e = l->engine;

	if (e->strangers == NULL || !pointer_put(e->strangers, m)) {
		rte_pktmbuf_free(m);
		return;
	}
	control_tell(e, e->strangers);
}

/*
 * Whether the frame is not RoCE at all, so that steering rules may want it. A frame with an error
 * behind its UDP header is a broken RoCE packet. It is dropped, as hardware does.
 */
static bool is_stranger(enum reason why)
{
	return why == REASON_NOT_ROCE || why == REASON_VLAN_TAG || why == REASON_FRAME_SHORT ||
	       why == REASON_IP_HEADER || why == REASON_IP_FRAGMENT;
}

void frame_refused(struct lcore *l, struct rte_mbuf *m, enum reason why, nanotime now)
{
	const struct exception *x = l->engine->exception;
	bool kernels =
		x != NULL && exception_wants(&x->own, l->engine->vlan, why,
					     rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);

	if (!kernels)
		count_reason(l, why);
	if (raw_steering(l->engine) && raw_input(l, m, !is_stranger(why), now))
		return;
	if (kernels)
		exception_collect(l, m);
	else if (why == REASON_NOT_ROCE)
		stranger(l, m);
	else
		rte_pktmbuf_free(m);
}

bool frame_taken(struct lcore *l, const struct packet *p, struct rte_mbuf *m, nanotime now)
{
	const struct exception *x = l->engine->exception;

	if (raw_steering(l->engine))
		raw_input(l, m, true, now);
	if (x == NULL || p->multicast || exception_is_own(&x->own, &p->dst_gid))
		return false;
	exception_collect(l, m);
	return true;
}

void elsewhere_flush(struct lcore *l)
{
	exception_flush(l);
}
