/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of the connection manager: connections. */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "control/cm/cm_manager.h"
#include "control/network/peers.h"

#define EVENT_COMM_EST 4u /* ibv_event_type */
#define ACK_DELAY      15u /* the device's local_ca_ack_delay */
#define RETRIES_MAX    7u
#define LID_PERMISSIVE 0xffffu /* for a peer behind a router: Linux uses it for every RoCEv2 peer */
#define RATE_DEFAULT   0u

/* ---- parameters ---- */

/*
 * The number of the queue pair to connect. It may be one that the program moves itself. 0 or an
 * errno.
 */
static int find_qpn(struct call *call, const struct cm_id *id,
		    const struct cm_connect_parameters *p, uint32_t *qpn)
{
	const struct engine_qp *q;

	*qpn = p->qpn;
	if (p->qp != 0) {
		q = qp_of_handle(call->client, p->qp);
		if (q == NULL)
			return call_fail(call, EINVAL, "no such queue pair");
		if (q->type != id->qp_type)
			return call_fail(call, EINVAL,
					 "the queue pair has another type than the id");
		*qpn = q->qpn;
	}
	/*
	 * With another program's queue pair the peer would accept its packets as this one's, and
	 * send to it.
	 */
	if (*qpn <= QPN_GSI || *qpn >= QPN_MULTICAST || (p->qp == 0 && !call_may_name(call, *qpn)))
		return call_fail(call, EINVAL, "no such queue pair: 0x%x", *qpn);
	return 0;
}

static int check_private(struct call *call, uint32_t length, uint8_t attribute, size_t taken)
{
	size_t room = cm_private_size(attribute) - taken;

	if (length > room)
		return call_fail(call, EINVAL, "%u octets of private data exceed %zu", length,
				 room);
	return 0;
}

static void put_ece(struct cm_message *m, const struct cm_connect_parameters *p)
{
	m->ece_vendor[0] = (uint8_t)(p->ece_vendor >> 16);
	m->ece_vendor[1] = (uint8_t)(p->ece_vendor >> 8);
	m->ece_vendor[2] = (uint8_t)p->ece_vendor;
	m->ece_options = p->ece_options;
}

static struct cm_path primary_path(const struct engine *e, const struct cm_id *id)
{
	return (struct cm_path){
		.local_gid = e->gid[id->gid_index].gid,
		.remote_gid = id->destination.ip,
		.local_lid = LID_PERMISSIVE,
		.remote_lid = LID_PERMISSIVE,
		.packet_rate = RATE_DEFAULT,
		.traffic_class = id->tos,
		.hop_limit = CM_HOP_LIMIT,
		.sl = id->tos >> 5,
		.ack_timeout = cm_ack_timeout(id),
	};
}

static void put_ip_header(const struct cm_id *id, struct cm_message *m)
{
	const struct cm_ip_header h = {
		.ip_version = id->destination.family,
		.source_port = id->source.port,
		.source = id->source.ip,
		.destination = id->destination.ip,
	};

	m->service_id = cm_service_id(id->space, id->destination.port);
	m->pkey = CM_PKEY;
	cm_ip_header_encode(&h, m->private_data);
}

static uint64_t own_guid(const struct engine *e)
{
	uint64_t guid = guid_of_mac(&e->mac);

	return load_be64(&guid);
}

/* ---- the active side ---- */

static void set_transport(struct cm_message *m, uint8_t qp_type)
{
	m->transport = qp_type == QP_TYPE_UC ? CM_TRANSPORT_UC : CM_TRANSPORT_RC;
	if (qp_type != QP_TYPE_XRC_SEND && qp_type != QP_TYPE_XRC_RECV)
		return;
	m->transport = CM_TRANSPORT_EXTENDED;
	m->extended_transport = 1;
}

static struct cm_message make_req(const struct engine *e, const struct cm_id *id,
				  const struct cm_connect_parameters *p, uint32_t qpn)
{
	struct cm_message m = {
		.attribute = CM_REQ,
		.ca_guid = own_guid(e),
		.qpn = qpn,
		.starting_psn = id->connection->own_psn,
		.responder_resources = MIN_OF(p->responder_resources, LIMIT_RD_ATOMIC),
		.initiator_depth = MIN_OF(p->initiator_depth, LIMIT_RD_ATOMIC),
		.remote_response_timeout = LIMIT_CM_RESPONSE_TIMEOUT,
		.local_response_timeout = LIMIT_CM_RESPONSE_TIMEOUT,
		.flow_control = p->flow_control != 0,
		.retry_count = MIN_OF(p->retry_count, RETRIES_MAX),
		.rnr_retry_count = MIN_OF(p->rnr_retry_count, RETRIES_MAX),
		.max_cm_retries = LIMIT_CM_RETRIES,
		.path_mtu = id->path_mtu,
		.srq = p->srq != 0,
		.primary = primary_path(e, id),
	};

	set_transport(&m, id->qp_type);
	put_ip_header(id, &m);
	put_ece(&m, p);
	memcpy(m.private_data + CM_IP_HEADER, p->private_data, p->private_length);
	return m;
}

static struct cm_message make_sidr_req(const struct cm_id *id,
				       const struct cm_connect_parameters *p)
{
	struct cm_message m = { .attribute = CM_SIDR_REQ };

	put_ip_header(id, &m);
	memcpy(m.private_data + CM_IP_HEADER, p->private_data, p->private_length);
	return m;
}

static int check_connect(struct call *call, const struct cm_id *id,
			 const struct cm_connect_parameters *p, uint32_t steps, uint32_t *qpn)
{
	bool is_datagram = id->qp_type == QP_TYPE_UD;

	if (id->state != CM_ID_ROUTED)
		return call_fail(call, EINVAL, "the id has no route to a destination");
	if ((steps & ~(uint32_t)CM_QP_TO_RTS) != 0)
		return call_fail(call, EINVAL, "unknown steps 0x%x", steps);
	if (cm_address_is_lost(call->engine, id))
		return call_fail(call, ENODEV,
				 "the id's address is no longer configured on the device");
	if (!is_datagram && find_qpn(call, id, p, qpn) != 0)
		return EINVAL;
	return check_private(call, p->private_length, is_datagram ? CM_SIDR_REQ : CM_REQ,
			     CM_IP_HEADER);
}

/* For programs both are ENOMEM; the reason says which. */
static int no_link(struct call *call, int why)
{
	if (why != EDQUOT)
		return call_fail(call, ENOMEM, "the engine has no memory for the connection");
	account_explain(&call->client->objects->account, RESOURCE_CM_LINKS, 1, call->reply.why,
			sizeof(call->reply.why));
	return ENOMEM;
}

int cmd_cm_connect(struct call *call)
{
	const struct request_cm_connect *r = (const struct request_cm_connect *)call->request;
	const struct cm_connect_parameters *p = &r->parameters;
	struct cm_id *id = cm_id_of_call(call, r->id);
	struct engine *e = call->engine;
	nanotime now = clock_now();
	struct qp_path path;
	struct cm_message m;
	struct cm_link *l;
	uint32_t qpn = 0;
	int error = id != NULL ? check_connect(call, id, p, r->steps, &qpn) : EINVAL;

	if (error != 0)
		return error;
	path = cm_path_make(e, id, &id->destination.ip);
	l = cm_link_new(e, id, &path);
	if (l == NULL)
		return no_link(call, errno);
	m = l->datagram ? make_sidr_req(id, p) : make_req(e, id, p, qpn);
	m.local_id = cm_new_local_id(e);
	l->retry_count = m.retry_count;
	l->steps = l->datagram ? 0 : r->steps;
	l->qp = p->qp;
	if (l->datagram)
		cm_sidr_connect(&l->core, &m, LIMIT_CM_RESPONSE_TIMEOUT, LIMIT_CM_RETRIES, now);
	else
		cm_connect(&l->core, &m, now);
	id->state = CM_ID_CONNECTED;
	cm_tables_add(e, l);
	cm_link_settle(e, l, now);
	cm_done(e);
	return 0;
}

/* ---- the passive side ---- */

static int accept_connection(struct call *call, struct cm_id *id,
			     const struct cm_connect_parameters *p, nanotime now)
{
	struct cm_link *l = id->connection;
	struct cm_message m = {
		.ca_guid = own_guid(call->engine),
		.starting_psn = l->own_psn,
		.responder_resources = MIN_OF(p->responder_resources, LIMIT_RD_ATOMIC),
		.initiator_depth = MIN_OF(p->initiator_depth, LIMIT_RD_ATOMIC),
		.target_ack_delay = ACK_DELAY,
		.flow_control = p->flow_control != 0,
		.rnr_retry_count = MIN_OF(p->rnr_retry_count, RETRIES_MAX),
		.srq = p->srq != 0,
	};

	if (find_qpn(call, id, p, &m.qpn) != 0 ||
	    check_private(call, p->private_length, CM_REP, 0) != 0)
		return EINVAL;
	put_ece(&m, p);
	memcpy(m.private_data, p->private_data, p->private_length);
	return cm_accept(&l->core, &m, now);
}

static int accept_datagrams(struct call *call, struct cm_id *id,
			    const struct cm_connect_parameters *p, nanotime now)
{
	struct cm_message m = { .status = CM_SIDR_VALID,
				.qkey = p->qkey != 0 ? p->qkey : CM_UDP_QKEY };

	if (find_qpn(call, id, p, &m.qpn) != 0 ||
	    check_private(call, p->private_length, CM_SIDR_REP, 0) != 0)
		return EINVAL;
	put_ece(&m, p);
	memcpy(m.private_data, p->private_data, p->private_length);
	return cm_sidr_reply(&id->connection->core, &m, now);
}

static int without_connection(struct call *call)
{
	return call_fail(call, EINVAL, "the id has no connection");
}

/* The id, if it has a connection, or NULL. */
static struct cm_id *connected(struct call *call, uint32_t handle)
{
	struct cm_id *id = cm_id_of_call(call, handle);

	if (id != NULL && id->connection == NULL) {
		without_connection(call);
		return NULL;
	}
	return id;
}

/* Executes what the state machine decided, and answers the command. */
static int settled(struct call *call, struct cm_id *id, int error, nanotime now)
{
	if (error != 0 && call->reply.why[0] == '\0')
		call_fail(call, error, "the connection is in state %s",
			  cm_state_name(cm_state(&id->connection->core)));
	cm_link_settle(call->engine, id->connection, now);
	cm_done(call->engine);
	return error;
}

/*
 * An answer that cannot be given rejects the request, as on Linux, so that its sender does not wait
 * for its timeout.
 */
static void reject_instead(struct cm_id *id, nanotime now)
{
	const struct cm_rejection no = { .reason = CM_REJECT_CONSUMER };
	const struct cm_message sidr = { .status = CM_SIDR_REJECTED };
	struct cm_connection *c = &id->connection->core;

	if (id->connection->datagram)
		cm_sidr_reply(c, &sidr, now);
	else if (cm_state(c) == CM_REQ_RECEIVED || cm_state(c) == CM_REP_RECEIVED)
		cm_reject(c, &no, now);
}

static int say_yes(struct call *call, struct cm_id *id, const struct request_cm_connect *r)
{
	nanotime now = clock_now();
	int error;

	if (cm_state(&id->connection->core) == CM_REP_RECEIVED)
		error = cm_ready(&id->connection->core, NULL, 0, now);
	else if (id->connection->datagram)
		error = accept_datagrams(call, id, &r->parameters, now);
	else
		error = accept_connection(call, id, &r->parameters, now);
	if (error != 0)
		reject_instead(id, now);
	return settled(call, id, error, now);
}

int cmd_cm_accept(struct call *call)
{
	const struct request_cm_connect *r = (const struct request_cm_connect *)call->request;
	struct reply_modify_qp *reply = (struct reply_modify_qp *)&call->reply;
	struct cm_id *id = connected(call, r->id);
	uint32_t qp = r->parameters.qp;
	int error = 0;

	if (id == NULL)
		return EINVAL;
	if ((r->steps & ~(uint32_t)CM_QP_TO_RTS) != 0)
		return call_fail(call, EINVAL, "unknown steps 0x%x", r->steps);
	if (r->steps != 0)
		error = cm_move_qp(call, id, qp, r->steps, &r->parameters, &reply->state);
	if (error != 0)
		return error;
	error = say_yes(call, id, r);
	if (error != 0 && r->steps != 0)
		cm_move_qp(call, id, qp, CM_QP_ERR, NULL, &reply->state);
	return error;
}

int cmd_cm_reject(struct call *call)
{
	const struct request_cm_reject *r = (const struct request_cm_reject *)call->request;
	const struct cm_rejection no = { .reason = (uint16_t)r->reason,
					 .private_data = r->private_data,
					 .private_length = r->private_length };
	struct cm_message sidr = { .status = CM_SIDR_REJECTED };
	struct cm_id *id = connected(call, r->id);
	nanotime now = clock_now();
	int error;

	if (id == NULL)
		return EINVAL;
	if (r->reason != CM_REJECT_CONSUMER && r->reason != CM_REJECT_VENDOR_OPTION)
		return call_fail(call, EINVAL, "reject reason %u is not available to programs",
				 r->reason);
	error = check_private(call, r->private_length,
			      id->connection->datagram ? CM_SIDR_REP : CM_REJ, 0);
	if (error != 0)
		return error;
	if (id->connection->datagram) {
		memcpy(sidr.private_data, r->private_data, r->private_length);
		error = cm_sidr_reply(&id->connection->core, &sidr, now);
	} else {
		error = cm_reject(&id->connection->core, &no, now);
	}
	return settled(call, id, error, now);
}

/* ---- both ---- */

int cmd_cm_establish(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct cm_id *id = connected(call, r->handle);
	nanotime now = clock_now();

	if (id == NULL)
		return EINVAL;
	return settled(call, id, cm_ready(&id->connection->core, NULL, 0, now), now);
}

/* As on Linux it is not an error if the connection has ended or was never established. */
int cm_id_disconnect(struct call *call, struct cm_id *id)
{
	nanotime now = clock_now();

	if (id->connection == NULL)
		return without_connection(call);
	cm_disconnect(&id->connection->core, NULL, 0, now);
	return settled(call, id, 0, now);
}

int cmd_cm_disconnect(struct call *call)
{
	const struct request_handle *r = (const struct request_handle *)call->request;
	struct cm_id *id = cm_id_of_call(call, r->handle);

	return id != NULL ? cm_id_disconnect(call, id) : EINVAL;
}

int cmd_cm_notify(struct call *call)
{
	const struct request_cm_notify *r = (const struct request_cm_notify *)call->request;
	struct cm_id *id = connected(call, r->id);
	nanotime now = clock_now();

	if (id == NULL)
		return EINVAL;
	if (r->event != EVENT_COMM_EST)
		return call_fail(call, EINVAL, "event %u does not concern connections", r->event);
	return settled(call, id, cm_establish(&id->connection->core, now), now);
}

int cmd_cm_init_qp_attr(struct call *call)
{
	const struct request_cm_init_qp_attr *r =
		(const struct request_cm_init_qp_attr *)call->request;
	struct reply_cm_qp_attr *reply = (struct reply_cm_qp_attr *)&call->reply;
	struct cm_id *id = cm_id_of_call(call, r->id);

	if (id == NULL)
		return EINVAL;
	if (cm_attributes(call->engine, id, r->state, &reply->attributes, &reply->mask) != 0)
		return call_fail(call, EINVAL, "the id's connection has no attributes for state %u",
				 r->state);
	return 0;
}
