/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_getaddrinfo: getaddrinfo(3) for rdma_cm. RoCE has no routes to look up. */
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/types.h"

/* From newer headers. It asks for the resolver, which answers anyway. */
#define FLAG_DNS    0x20 /* RAI_DNS */
#define FLAGS_KNOWN (RAI_PASSIVE | RAI_NUMERICHOST | RAI_NOROUTE | RAI_FAMILY | FLAG_DNS)
#define FAMILY_IB   27 /* AF_IB, which RoCE does not have */

static int socket_type(const struct rdma_addrinfo *hints)
{
	if (hints->ai_qp_type == IBV_QPT_UD)
		return SOCK_DGRAM;
	if (hints->ai_qp_type != 0)
		return SOCK_STREAM;
	if (hints->ai_port_space == RDMA_PS_UDP)
		return SOCK_DGRAM;
	return hints->ai_port_space == RDMA_PS_TCP ? SOCK_STREAM : 0;
}

static int take_hints(struct addrinfo *ai, const struct rdma_addrinfo *hints)
{
	memset(ai, 0, sizeof(*ai));
	if (hints->ai_flags & ~FLAGS_KNOWN)
		return EAI_BADFLAGS;
	if (hints->ai_flags & RAI_PASSIVE)
		ai->ai_flags |= AI_PASSIVE;
	if (hints->ai_flags & RAI_NUMERICHOST)
		ai->ai_flags |= AI_NUMERICHOST;
	/* as in rdma-core, which needs RAI_FAMILY only for AF_IB */
	if (hints->ai_family != FAMILY_IB || (hints->ai_flags & RAI_FAMILY))
		ai->ai_family = hints->ai_family;
	ai->ai_socktype = socket_type(hints);
	return 0;
}

/*
 * Takes queue pair type and port space from the hints. If one is missing, it follows from the other
 * one, or from the kind of socket.
 */
static void set_service(struct rdma_addrinfo *rai, const struct rdma_addrinfo *hints, bool datagram)
{
	int type = hints->ai_qp_type, space = hints->ai_port_space;

	if (type == 0 && space == 0) {
		type = datagram ? IBV_QPT_UD : IBV_QPT_RC;
		space = datagram ? RDMA_PS_UDP : RDMA_PS_TCP;
	} else if (type == 0) {
		type = space == RDMA_PS_UDP ? IBV_QPT_UD : IBV_QPT_RC;
	} else if (space == 0) {
		space = type == IBV_QPT_UD ? RDMA_PS_UDP : RDMA_PS_TCP;
	}
	rai->ai_qp_type = type;
	rai->ai_port_space = space;
}

static int copy_address(struct sockaddr **to, socklen_t *to_length, const struct sockaddr *from,
			socklen_t length)
{
	*to = malloc(length);
	if (*to == NULL)
		return EAI_MEMORY;
	memcpy(*to, from, length);
	*to_length = length;
	return 0;
}

static int copy_name(char **to, const char *from)
{
	if (from == NULL)
		return 0;
	*to = strdup(from);
	return *to != NULL ? 0 : EAI_MEMORY;
}

static int take_answer(struct rdma_addrinfo *rai, const struct addrinfo *ai, bool passive)
{
	int error;

	rai->ai_family = ai->ai_family;
	if (passive) {
		error = copy_address(&rai->ai_src_addr, &rai->ai_src_len, ai->ai_addr,
				     ai->ai_addrlen);
		return error != 0 ? error : copy_name(&rai->ai_src_canonname, ai->ai_canonname);
	}
	error = copy_address(&rai->ai_dst_addr, &rai->ai_dst_len, ai->ai_addr, ai->ai_addrlen);
	return error != 0 ? error : copy_name(&rai->ai_dst_canonname, ai->ai_canonname);
}

static int ask(const char *node, const char *service, const struct rdma_addrinfo *hints,
	       struct rdma_addrinfo *rai)
{
	struct addrinfo wanted, *answer;
	int error = take_hints(&wanted, hints);

	if (error == 0)
		error = getaddrinfo(node, service, &wanted, &answer);
	if (error != 0)
		return error;
	set_service(rai, hints, answer->ai_socktype == SOCK_DGRAM);
	error = take_answer(rai, answer, hints->ai_flags & RAI_PASSIVE);
	freeaddrinfo(answer);
	return error;
}

/* Only hints were given. Uses what they say, and what follows from that. */
static int from_hints(const struct rdma_addrinfo *hints, struct rdma_addrinfo *rai)
{
	if (hints->ai_flags & ~FLAGS_KNOWN)
		return EAI_BADFLAGS;
	set_service(rai, hints, false);
	rai->ai_family = hints->ai_family;
	if (hints->ai_dst_len == 0 || hints->ai_dst_addr == NULL)
		return 0;
	rai->ai_family = hints->ai_dst_addr->sa_family;
	return copy_address(&rai->ai_dst_addr, &rai->ai_dst_len, hints->ai_dst_addr,
			    hints->ai_dst_len);
}

static bool is_consistent(const struct rdma_addrinfo *hints)
{
	if (hints->ai_port_space == RDMA_PS_TCP)
		return hints->ai_qp_type != IBV_QPT_UD;
	return hints->ai_port_space != RDMA_PS_UDP || hints->ai_qp_type == 0 ||
	       hints->ai_qp_type == IBV_QPT_UD;
}

/* No header has the manual's EAI_QPTYPE. This is the nearest code that gai_strerror(3) explains. */
#define QPTYPE_ERROR EAI_SOCKTYPE

/*
 * rdma_getaddrinfo(3). Free *res with rdma_freeaddrinfo. Returns 0, an EAI_ code of
 * gai_strerror(3), or -1 with errno. May block in the resolver.
 */
EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			    const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	static const struct rdma_addrinfo no_hints;
	struct rdma_addrinfo *rai;
	int error;

	if (res == NULL || (node == NULL && service == NULL && hints == NULL))
		return result(EINVAL);
	if (hints == NULL)
		hints = &no_hints;
	if (!is_consistent(hints))
		return QPTYPE_ERROR;
	rai = calloc(1, sizeof(*rai));
	if (rai == NULL)
		return result(ENOMEM);
	rai->ai_flags = hints->ai_flags;
	if (node != NULL || service != NULL)
		error = ask(node, service, hints, rai);
	else
		error = from_hints(hints, rai);
	if (error == 0 && rai->ai_src_len == 0 && hints->ai_src_len > 0 &&
	    hints->ai_src_addr != NULL)
		error = copy_address(&rai->ai_src_addr, &rai->ai_src_len, hints->ai_src_addr,
				     hints->ai_src_len);
	if (error != 0) {
		rdma_freeaddrinfo(rai);
		return error;
	}
	*res = rai;
	return 0;
}

/* rdma_freeaddrinfo(3). `res` may be NULL. */
EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	struct rdma_addrinfo *next;

	for (; res != NULL; res = next) {
		next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
	}
}
