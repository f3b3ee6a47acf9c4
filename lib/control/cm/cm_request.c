/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Incoming messages. A message belongs to a connection, requests one, or is answered without one. A
 * refused request leaves no state behind.
 */
#include <stdlib.h>

#include "control/cm/cm_manager.h"

static void refuse(struct engine *e, const struct cm_input *in, uint16_t reason)
{
	struct cm_message answer;

	cm_refuse(&in->message, reason, &answer);
	cm_answer(e, in, &answer);
}

static void stray(struct engine *e, const struct cm_input *in)
{
	struct cm_message answer;

	if (cm_stray(&in->message, &answer))
		cm_answer(e, in, &answer);
}

void cm_input_wrong_version(struct engine *e, const struct cm_input *in, nanotime now)
{
	struct cm_message answer;

	if (cm_wrong_version(&in->message, &answer))
		cm_answer(e, in, &answer);
}

static void to_link(struct engine *e, struct cm_link *l, const struct cm_message *m, nanotime now)
{
	l->received++;
	cm_received(&l->core, m, now);
	cm_link_settle(e, l, now);
}

/* ---- which listener ---- */

static uint8_t qp_type_of(const struct cm_message *m)
{
	if (m->attribute == CM_SIDR_REQ)
		return QP_TYPE_UD;
	switch (m->transport) {
	case CM_TRANSPORT_RC:
		return QP_TYPE_RC;
	case CM_TRANSPORT_UC:
		return QP_TYPE_UC;
	case CM_TRANSPORT_EXTENDED:
		return QP_TYPE_XRC_RECV;
	default:
		return 0;
	}
}

/* The reason why the request is wrong, or 0. */
static uint16_t check(const struct engine *e, const struct cm_input *in)
{
	const struct cm_message *m = &in->message;
	const struct cm_port_view view = {
		.own_gid = gid_equal(&m->primary.remote_gid, &in->destination),
		.own_pkey = (m->pkey & 0x7fff) == 0x7fff,
		.xrc = true,
		.mtu = e->active_mtu,
	};
	uint16_t reason = cm_check_request(m, &view);

	/* Answers go to the sender of the request and nowhere else. */
	if (reason == 0 && m->attribute == CM_REQ && !gid_equal(&m->primary.local_gid, &in->source))
		return CM_REJECT_INVALID_GID;
	return reason;
}

/*
 * The listener, and the request's addresses in *h. NULL: *reason says why; 0: it is not answered.
 */
static struct cm_id *find_listener(const struct engine *e, const struct cm_input *in,
				   struct cm_ip_header *h, uint16_t *reason)
{
	uint64_t service = in->message.service_id;
	struct cm_id *id;

	*reason = CM_REJECT_INVALID_SERVICE_ID;
	if (service >> 32 != 0)
		return NULL;
	*reason = cm_check_ip_header(&in->message, h);
	if (*reason != 0)
		return NULL;
	id = cm_port_listener(e, (uint16_t)(service >> 16), (uint16_t)service, &h->destination,
			      qp_type_of(&in->message));
	*reason = CM_REJECT_INVALID_SERVICE_ID;
	if (id == NULL || (id->local_only && in->has_mac))
		return NULL;
	/*
	 * The program does not take its events. As on Linux a REQ is not answered then, since its
	 * retry may find room; a SIDR_REQ is refused.
	 */
	cm_ring_collect(id->channel);
	*reason = in->message.attribute == CM_REQ ? 0 : CM_REJECT_NO_RESOURCES;
	return id->backlog > 0 ? id : NULL;
}

/* ---- a new connection ---- */

static void set_ends(struct cm_id *id, const struct cm_input *in, const struct cm_ip_header *h,
		     uint8_t index)
{
	uint8_t family = h->ip_version;

	id->gid_index = index;
	id->is_bound = true;
	id->source = (struct cm_address){ .ip = h->destination,
					  .family = family,
					  .port = (uint16_t)in->message.service_id };
	id->destination =
		(struct cm_address){ .ip = h->source, .family = family, .port = h->source_port };
	id->state = CM_ID_CONNECTED;
	if (in->message.attribute != CM_REQ)
		return;
	id->tos = in->message.primary.traffic_class;
	id->path_mtu = in->message.path_mtu;
}

static struct cm_link *make_link(struct engine *e, struct cm_id *id, const struct cm_input *in)
{
	struct qp_path path = cm_path_make(e, id, &in->source);
	struct cm_link *l;

	/* One host may not use up the connections of all others. */
	if (in->has_mac && *cm_source_count(e, &in->source) >= CM_SOURCE_MAX)
		return NULL;
	path.sgid = in->destination;
	l = cm_link_new(e, id, &path);
	if (l == NULL)
		return NULL;
	l->passive = true;
	l->has_mac = in->has_mac;
	l->from_afar = in->has_mac;
	if (l->from_afar)
		++*cm_source_count(e, &in->source);
	l->mac = in->mac;
	return l;
}

static void begin(struct engine *e, struct cm_link *l, const struct cm_message *m)
{
	l->received++;
	if (m->attribute == CM_REQ)
		cm_requested(&l->core, m, cm_new_local_id(e));
	else
		cm_sidr_requested(&l->core, m);
	cm_tables_add(e, l);
}

/* False: no room for another one. */
static bool announce(struct engine *e, struct cm_id *listener, const struct cm_input *in,
		     const struct cm_ip_header *h, uint8_t index, nanotime now)
{
	struct cm_report *r = cm_report_new(listener, CM_TYPE_CONNECT_REQUEST, 0);
	struct cm_id *id = NULL;
	struct cm_link *l = NULL;

	if (r != NULL)
		id = cm_id_new(listener->client, listener->channel, listener->space,
			       listener->qp_type);
	if (id != NULL) {
		set_ends(id, in, h, index);
		l = make_link(e, id, in);
	}
	if (l == NULL) {
		if (id != NULL)
			cm_id_free(id);
		free(r);
		return false;
	}
	begin(e, l, &in->message);
	cm_report_request(l, listener, r);
	cm_link_settle(e, l, now);
	return true;
}

static void ask(struct engine *e, const struct cm_input *in, nanotime now)
{
	struct cm_address to = { 0 };
	struct cm_ip_header h;
	struct cm_id *listener;
	uint16_t reason = check(e, in);
	bool loopback;
	uint8_t index;

	if (reason != 0) {
		refuse(e, in, reason);
		return;
	}
	listener = find_listener(e, in, &h, &reason);
	if (listener == NULL) {
		if (reason != 0)
			refuse(e, in, reason);
		return;
	}
	to.ip = in->destination;
	if (!cm_address_own(e, &to, &index, &loopback) || !gid_is_own(e, &h.destination))
		refuse(e, in, CM_REJECT_INVALID_GID);
	else if (!announce(e, listener, in, &h, index, now))
		refuse(e, in, CM_REJECT_NO_RESOURCES);
}

/* ---- one message ---- */

/* The peer does not know this connection any more. */
static void end_stale(struct engine *e, struct cm_link *l, nanotime now)
{
	cm_disconnect(&l->core, NULL, 0, now);
	cm_link_settle(e, l, now);
}

/* A rejected connection ends when a new request with its id comes: each id is in use once. */
static void replace_rejected(struct engine *e, const struct cm_input *in, nanotime now)
{
	struct cm_link *l =
		cm_find_remote(e, in->message.local_id, in->message.ca_guid, &in->source);

	if (l == NULL)
		return;
	cm_forget(&l->core);
	cm_link_settle(e, l, now);
}

static void req_input(struct engine *e, const struct cm_input *in, nanotime now)
{
	struct cm_link *l;

	switch (cm_find_relation(e, in, NULL, &l)) {
	case CM_REPETITION:
		to_link(e, l, &in->message, now);
		break;
	case CM_STALE:
		refuse(e, in, CM_REJECT_STALE);
		end_stale(e, l, now);
		break;
	case CM_UNRELATED:
		replace_rejected(e, in, now);
		ask(e, in, now);
		break;
	}
}

static void sidr_input(struct engine *e, const struct cm_input *in, nanotime now)
{
	struct cm_link *l = cm_find_responder(e, in);

	if (l != NULL)
		to_link(e, l, &in->message, now);
	else
		ask(e, in, now);
}

/* A REP from a queue pair, or with an id, that belongs to an older connection. */
static bool rep_is_stale(struct engine *e, struct cm_link *l, const struct cm_input *in,
			 nanotime now)
{
	const struct cm_rejection stale = { .reason = CM_REJECT_STALE };
	struct cm_link *old;

	if (cm_state(&l->core) != CM_REQ_SENT || cm_find_relation(e, in, l, &old) != CM_STALE)
		return false;
	end_stale(e, old, now);
	l->received++;
	cm_received(&l->core, &in->message, now);
	cm_take_events(&l->core);
	cm_reject(&l->core, &stale, now);
	if (l->id != NULL)
		cm_tell(l->id, CM_TYPE_REJECTED, CM_REJECT_STALE);
	cm_link_settle(e, l, now);
	return true;
}

static struct cm_link *find(struct engine *e, const struct cm_input *in)
{
	struct cm_key_of key = cm_key(&in->message);

	switch (key.by) {
	case CM_KEY_LOCAL_ID:
		return cm_find_local(e, key.id, false, &in->source);
	case CM_KEY_REMOTE_ID:
		return cm_find_remote(e, key.id, key.guid, &in->source);
	case CM_KEY_SIDR_REQUESTER:
		return cm_find_local(e, key.id, true, &in->source);
	default:
		return NULL;
	}
}

void cm_input(struct engine *e, const struct cm_input *in, nanotime now)
{
	struct cm_link *l;

	if (in->message.attribute == CM_REQ) {
		req_input(e, in, now);
		return;
	}
	if (in->message.attribute == CM_SIDR_REQ) {
		sidr_input(e, in, now);
		return;
	}
	l = find(e, in);
	if (l == NULL)
		stray(e, in);
	else if (in->message.attribute != CM_REP || !rep_is_stale(e, l, in, now))
		to_link(e, l, &in->message, now);
}
