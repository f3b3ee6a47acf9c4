/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions that everybody who may connect can ask: the device and its counters.
 *
 * Atomics: the counters of lcores and of the exception path, which count while they are read.
 */
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "drivers/kernel_interface/kernel_interface.h"
#include "control/cm/cm_control.h"
#include "control/control.h"
#include "control/statistics.h"
#include "lcore/exception/exception.h"

/* ibv_port_state, ibv_mtu */
enum {
	PORT_DOWN = 1,
	PORT_ACTIVE = 4,
	MTU_4096 = 5,
};

/* EUI-64 of the MAC address, as in Linux's node GUIDs of RoCE devices. */
uint64_t guid_of_mac(const struct mac *m)
{
	uint8_t o[8] = { m->octet[0] ^ 2u, m->octet[1], m->octet[2], 0xff, 0xfe,
			 m->octet[3],	   m->octet[4], m->octet[5] };
	uint64_t guid;

	memcpy(&guid, o, sizeof(guid));
	return guid;
}

static void fill_limits(struct reply_device *d)
{
	d->max_qp = LIMIT_QPS;
	d->max_qp_wr = LIMIT_QP_WR;
	d->max_sge = LIMIT_SGE;
	d->max_inline = LIMIT_INLINE;
	d->max_rd_atomic = LIMIT_RD_ATOMIC;
	d->max_cq = LIMIT_CQS;
	d->max_cqe = LIMIT_CQE;
	d->max_mr = LIMIT_MRS;
	d->max_pd = LIMIT_PDS;
	d->max_channels = LIMIT_CLIENT_CHANNELS;
	d->max_srq = LIMIT_SRQS;
	d->max_mr_size = LIMIT_MR_LENGTH;
	d->max_ah = LIMIT_AHS;
	d->max_dm_size = LIMIT_DM_BYTES;
	d->max_mcast_grp = LIMIT_MCAST_GROUPS;
	d->max_mcast_qp_attach = LIMIT_MCAST_QPS;
	d->max_total_mcast_qp_attach = LIMIT_MCAST_GROUPS * LIMIT_MCAST_QPS;
}

/* Like the PortInfo counters of InfiniBand: sixteen bits that stop when full (IBTA 14.2.5.6). */
static uint32_t violations(const struct engine *e, enum reason why)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < e->lcores; i++)
		n += __atomic_load_n(&e->lcore[i].stats.by_reason[why], __ATOMIC_RELAXED);
	return (uint32_t)MIN_OF(n, UINT64_C(0xffff));
}

static void fill_port(const struct engine *e, struct reply_device *d)
{
	d->port_state = e->control->link_up ? PORT_ACTIVE : PORT_DOWN;
	d->active_mtu = e->active_mtu;
	d->max_mtu = MTU_4096;
	link_rate(e->port != NULL ? e->port->speed : MEMORY_RATE, &d->active_speed,
		  &d->active_width);
	d->bad_pkey = violations(e, REASON_PKEY);
	d->qkey_violations = violations(e, REASON_QKEY);
	memcpy(d->mac, e->mac.octet, sizeof(d->mac));
	for (uint32_t i = 0; i < LIMIT_GIDS; i++) {
		d->gid[i] = e->gid[i].gid;
		if (!gid_is_zero(&d->gid[i]))
			d->gid_count = (uint8_t)(i + 1);
	}
	if (e->port != NULL) {
		memcpy(d->netdev, e->port->netdev, sizeof(d->netdev));
		d->ifindex = e->port->ifindex;
		d->link_speed = e->port->speed;
	}
}

void device_describe(const struct engine *e, struct reply_device *d)
{
	memcpy(d->name, e->name, sizeof(d->name));
	d->node_guid = guid_of_mac(&e->mac);
	d->sys_image_guid = d->node_guid;
	d->engine_id = e->id;
	d->lcores = e->lcores;
	fill_limits(d);
	fill_port(e, d);
}

int cmd_device(struct call *call)
{
	device_describe(call->engine, (struct reply_device *)&call->reply);
	return 0;
}

/*
 * Relaxed: lcores count meanwhile. Each counter is right; together they are of nearly one instant.
 */
#define COUNT(field) __atomic_load_n(&e->lcore[i].stats.field, __ATOMIC_RELAXED)

static void count_objects(const struct engine *e, struct reply_statistics *s)
{
	for (uint32_t i = 0, left = e->client_count; i < LIMIT_CLIENTS && left > 0; i++) {
		const struct client *c = e->client[i];

		if (c == NULL)
			continue;
		left--;
		s->qp_memory += c->objects->account.has[RESOURCE_MEMORY];
		for (uint32_t kind = 0; kind < OBJECT_KINDS; kind++)
			s->objects[kind] += c->objects->table[kind].count;
	}
}

#define COUNTED(x, field) atomic_load_explicit(&(x)->field, memory_order_relaxed)

static void read_exceptions(const struct exception *x, struct reply_statistics *s)
{
	s->kernel_given = COUNTED(x, given);
	s->kernel_taken = COUNTED(x, taken);
	s->by_reason[REASON_KERNEL_REFUSED] += COUNTED(x, refused);
	s->by_reason[REASON_KERNEL_LENGTH] += kernel_interface_lost(x->interface);
}

/* Counters that exist for Linux's names only. */
static void read_messages(const struct engine *e, struct reply_statistics *s)
{
	for (uint32_t i = 0; i < e->lcores; i++) {
		s->writes_begun += COUNT(begun[KIND_WRITE]);
		s->reads_begun += COUNT(begun[KIND_READ_REQUEST]);
		s->atomics_begun += COUNT(begun[KIND_CMP_SWAP]) + COUNT(begun[KIND_FETCH_ADD]);
		s->access_refused += COUNT(access_refused);
		s->sends += COUNT(sends);
		s->receives += COUNT(receives);
		s->requests_failed += COUNT(ends[0].failed);
		s->requests_flushed += COUNT(ends[0].flushed);
		s->receives_failed += COUNT(ends[1].failed);
		s->receives_flushed += COUNT(ends[1].flushed);
	}
	s->links_lost = e->control->links_lost;
}

static void read_statistics(struct engine *e, struct reply_statistics *s)
{
	for (uint32_t i = 0; i < e->lcores; i++) {
		s->rx_packets += COUNT(rx_packets);
		s->rx_octets += COUNT(rx_octets);
		s->tx_packets += COUNT(tx_packets);
		s->tx_octets += COUNT(tx_octets);
		s->retransmitted += COUNT(retransmitted);
		s->timeouts += COUNT(timeouts);
		s->rnr_naks += COUNT(rnr_naks);
		s->ecn_marked += COUNT(ecn_marked);
		s->cnps_sent += COUNT(cnps_sent);
		s->crossed += COUNT(crossed);
		s->polls += COUNT(polls);
		s->idle_polls += COUNT(idle_polls);
		for (uint32_t r = 0; r < REASON_COUNT; r++)
			s->by_reason[r] += COUNT(by_reason[r]);
	}
	read_messages(e, s);
	if (e->exception != NULL)
		read_exceptions(e->exception, s);
	s->by_reason[REASON_PEER_TAKEN] += e->control->peers_taken;
	s->by_reason[REASON_SHARE_USED] += e->control->users.refused;
	s->clients = e->client_count;
	s->qps = e->qp_count;
	s->cqs = e->cq_count;
	s->mrs = e->mr_count;
	s->mrs_made = e->mr_made;
	s->mrs_ended = e->mr_made - e->mr_count;
	s->connections = cm_link_count(e);
	count_objects(e, s);
	snprintf(s->priority, sizeof(s->priority), "%s",
		 urgency_name(__atomic_load_n(&e->lcore[0].urgency, __ATOMIC_RELAXED)));
}

int cmd_statistics(struct call *call)
{
	read_statistics(call->engine, (struct reply_statistics *)&call->reply);
	return 0;
}

void uroce_statistics(struct uroce_engine *u, struct reply_statistics *out)
{
	struct engine *e = (struct engine *)u;

	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&e->control_lock);
	read_statistics(e, out);
	pthread_mutex_unlock(&e->control_lock);
}
