/* SPDX-License-Identifier: BSD-3-Clause */
/* The events of connections that programs get: rdma_get_cm_event(3). */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"

/* All private data of such a message: it does not say how many octets are meaningful. */
static void set_private(struct cm_connect_parameters *p, const struct cm_message *m, size_t from)
{
	p->private_length = (uint8_t)(cm_private_size(m->attribute) - from);
	memcpy(p->private_data, m->private_data + from, p->private_length);
}

static void set_ece(struct cm_connect_parameters *p, const struct cm_message *m)
{
	p->ece_vendor = (uint32_t)m->ece_vendor[0] << 16 | (uint32_t)m->ece_vendor[1] << 8 |
			m->ece_vendor[2];
	p->ece_options = m->ece_options;
}

/* "The maximum for the recipient": what the peer offers is the limit here. */
static void set_peer(struct cm_connect_parameters *p, const struct cm_message *m)
{
	p->qpn = cm_sender_qpn(m);
	p->responder_resources = m->initiator_depth;
	p->initiator_depth = m->responder_resources;
	p->flow_control = m->flow_control;
	p->retry_count = m->retry_count;
	p->rnr_retry_count = m->rnr_retry_count;
	p->srq = m->srq;
}

static void fill_request(struct cm_report *r, const struct cm_message *m)
{
	if (m->attribute == CM_REQ)
		set_peer(&r->what.parameters, m);
	set_ece(&r->what.parameters, m);
	set_private(&r->what.parameters, m, CM_IP_HEADER);
}

static void fill_datagram(struct cm_report *r, const struct cm_link *l, const struct cm_message *m)
{
	set_private(&r->what.parameters, m, 0);
	if (m->status != CM_SIDR_VALID) {
		r->what.event = CM_TYPE_UNREACHABLE;
		r->what.status = m->status;
		return;
	}
	r->what.parameters.qpn = m->qpn;
	r->what.parameters.qkey = m->qkey;
	set_ece(&r->what.parameters, m);
	r->what.path = l->path;
}

static void fill_reply(struct cm_report *r, const struct cm_link *l, const struct cm_message *m)
{
	if (l->steps != 0) {
		r->what.event = l->start_error == 0 ? CM_TYPE_ESTABLISHED : CM_TYPE_CONNECT_ERROR;
		r->what.status = -l->start_error;
	}
	set_peer(&r->what.parameters, m);
	set_ece(&r->what.parameters, m);
	set_private(&r->what.parameters, m, 0);
}

static void fill_rejected(struct cm_report *r, const struct cm_link *l, const struct cm_message *m)
{
	r->what.status = m->reason;
	set_private(&r->what.parameters, m, 0);
}

static const struct {
	uint32_t event; /* enum cm_event */
	uint32_t type;
	int32_t status;
	void (*fill)(struct cm_report *r, const struct cm_link *l, const struct cm_message *m);
} row[] = {
	{ CM_EVENT_REPLY, CM_TYPE_CONNECT_RESPONSE, 0, fill_reply },
	{ CM_EVENT_SIDR_REPLY, CM_TYPE_ESTABLISHED, 0, fill_datagram },
	{ CM_EVENT_ESTABLISHED, CM_TYPE_ESTABLISHED, 0, NULL },
	{ CM_EVENT_REJECTED, CM_TYPE_REJECTED, 0, fill_rejected },
	{ CM_EVENT_UNREACHABLE, CM_TYPE_UNREACHABLE, -ETIMEDOUT, NULL },
	{ CM_EVENT_DISCONNECTED, CM_TYPE_DISCONNECTED, 0, NULL },
	{ CM_EVENT_DISCONNECT_TIMEOUT, CM_TYPE_DISCONNECTED, -ETIMEDOUT, NULL },
	{ CM_EVENT_TIMEWAIT_EXIT, CM_TYPE_TIMEWAIT_EXIT, 0, NULL },
};

void cm_report_events(struct engine *e, struct cm_link *l, uint32_t events)
{
	for (uint32_t i = 0; i < ARRAY_SIZE(row); i++) {
		struct cm_report *r;

		if ((events & row[i].event) == 0)
			continue;
		r = cm_report_new(l->id, row[i].type, row[i].status);
		if (r == NULL)
			continue;
		if (row[i].fill != NULL)
			row[i].fill(r, l, cm_peer_message(&l->core));
		cm_report_post(r);
	}
}

void cm_report_request(struct cm_link *l, struct cm_id *listener, struct cm_report *r)
{
	struct cm_id *id = l->id;

	r->what.id = id->handle;
	r->what.listen_id = listener->handle;
	cm_id_describe(id->client->engine, id, &r->what.route);
	fill_request(r, cm_peer_message(&l->core));
	r->made = id;
	id->request = r;
	listener->backlog--;
	cm_report_post(r);
}

static void tell_bound(const struct client *c)
{
	const struct handle_table *t = &c->objects->table[OBJECT_CM_ID];

	for (uint32_t i = 1; i <= t->used; i++) {
		struct cm_id *id = t->slot[i];

		if (id != NULL)
			cm_ring_collect(id->channel);
		/* The program of an id knows it only once it took the connection request. */
		if (id != NULL && id->is_bound && id->request == NULL && !cm_reports_full(id))
			cm_tell(id, CM_TYPE_ADDR_CHANGE, 0);
	}
}

void cm_tell_address_change(struct engine *e)
{
	for (uint32_t i = 0; i < LIMIT_CLIENTS; i++)
		if (e->client[i] != NULL)
			tell_bound(e->client[i]);
}
