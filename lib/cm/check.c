/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a REQ, REP or SIDR_REQ may contain (IBTA 12.6.5, 12.6.8). A message that fails is refused
 * and leaves no state.
 */
#include "cm/state.h"

#define QPN_GSI_LAST 1u /* queue pairs 0 and 1 are for management */
#define MTU_256	     1u
#define MTU_4096     5u
#define XRC	     1u /* the extended transport type */

static bool qpn_connects(uint32_t qpn)
{
	return qpn > QPN_GSI_LAST && qpn != QPN_MULTICAST;
}

static bool transport_supported(const struct cm_message *req, const struct cm_port_view *port)
{
	switch (req->transport) {
	case CM_TRANSPORT_RC:
	case CM_TRANSPORT_UC:
		return true;
	case CM_TRANSPORT_EXTENDED:
		return req->extended_transport == XRC && port->xrc;
	default:
		return false;
	}
}

/* The address of one host: not all zero (also as an IPv4 address), and not a multicast address. */
static bool gid_is_a_host(const struct gid *g)
{
	return !gid_is_zero(g) && !gid_is_multicast(g) &&
	       !(gid_is_ipv4(g) && load_be32(&g->octet[12]) == 0);
}

static uint16_t check_req(const struct cm_message *req, const struct cm_port_view *port)
{
	if (!qpn_connects(req->qpn))
		return CM_REJECT_UNSUPPORTED;
	if (!transport_supported(req, port))
		return CM_REJECT_INVALID_TRANSPORT;
	if (req->path_mtu < MTU_256 || req->path_mtu > MTU_4096 || req->path_mtu > port->mtu)
		return CM_REJECT_INVALID_MTU;
	if (!port->own_gid || !gid_is_a_host(&req->primary.local_gid))
		return CM_REJECT_INVALID_GID;
	return port->own_pkey ? 0 : CM_REJECT_UNSUPPORTED;
}

uint16_t cm_check_request(const struct cm_message *req, const struct cm_port_view *port)
{
	if (req->attribute == CM_SIDR_REQ)
		return port->own_pkey ? 0 : CM_REJECT_UNSUPPORTED;
	return check_req(req, port);
}

uint16_t cm_check_reply(const struct cm_message *rep)
{
	return qpn_connects(cm_sender_qpn(rep)) ? 0 : CM_REJECT_UNSUPPORTED;
}

uint16_t cm_check_ip_header(const struct cm_message *m, struct cm_ip_header *h)
{
	if (!cm_ip_header_decode(h, m->private_data) || !gid_is_a_host(&h->source) ||
	    !gid_is_a_host(&h->destination))
		return CM_REJECT_CONSUMER;
	return gid_is_ipv4(&h->source) == gid_is_ipv4(&h->destination) ? 0 : CM_REJECT_CONSUMER;
}
